#include "tests/bench/drive.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "testbench/host/gv_fakecuda.h"
#include "tests/bench/statistics.h"
#include "tests/bench/world.h"

struct rank {
    pthread_t thread;
    struct gv_drive *drive;
    int index;
    void *context;
    const char *file;
    double begin_us[GV_DRIVE_PHASES], end_us[GV_DRIVE_PHASES], cpu_us;
};

struct gv_drive {
    int nranks;
    pthread_barrier_t start, gather; /* start: with the caller */
    struct rank ranks[GV_MAX_GPUS];
    /* the communicator under way */
    const struct gv_drive_plugin *plugin;
    uint64_t id;
    const int *gpus;
    bool first, stop;
};

static double clock_us(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static void look_up(const struct gv_env_v2 *env, const char *const *names)
{
    for (; *names; names++)
        env->get_env(*names);
}

static void net(struct rank *rank)
{
    static const char *const once[] = {"NCCL_NET_PLUGIN", NULL};
    static const char *const names[] = {"NCCL_NET", "NCCL_SOCKET_IFNAME", NULL};
    const struct gv_net_v11 *slot = rank->drive->plugin->net;
    void *ctx = NULL;
    int ndev;
    if (rank->drive->first && !rank->index)
        look_up(rank->drive->plugin->env, once);
    look_up(rank->drive->plugin->env, names);
    slot->init(&ctx, rank->drive->id, NULL, gv_world_logger, NULL);
    slot->devices(&ndev);
    slot->get_properties(0, NULL);
    slot->finalize(ctx);
}

static void lookup(struct rank *rank)
{
    static const char *const once[] = {
        "NCCL_NVB_DISABLE", "NCCL_P2P_LEVEL", "NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE", NULL};
    static const char *const names[] = {
        "NCCL_COLLNET_ENABLE", "NCCL_ALGO", "NCCL_PROTO", "NCCL_THREAD_THRESHOLDS", NULL};
    const struct gv_env_v2 *env = rank->drive->plugin->env;
    rank->file = env->get_env("NCCL_TOPO_FILE");
    if (rank->drive->first && !rank->index)
        look_up(env, once);
    env->get_env("NCCL_GRAPH_FILE");
    look_up(env, names);
}

static void tuner(struct rank *rank)
{
    static const char *const once[] = {"NCCL_TUNER_PLUGIN", NULL};
    const struct gv_drive *drive = rank->drive;
    if (drive->first && !rank->index)
        look_up(drive->plugin->env, once);
    drive->plugin->tuner->init(
        &rank->context, drive->id, (size_t)drive->nranks, 1, gv_world_logger, NULL, NULL);
}

static void finalize(struct rank *rank)
{
    rank->drive->plugin->tuner->finalize(rank->context);
}

static void play(struct rank *rank)
{
    static void (*const phases[])(struct rank *) = {net, lookup, tuner, finalize};
    gv_fakecuda_set_device(rank->drive->gpus[rank->index]);
    rank->cpu_us = 0;
    for (int p = 0; p < GV_DRIVE_PHASES; p++) {
        pthread_barrier_wait(&rank->drive->gather);
        double cpu = clock_us(CLOCK_THREAD_CPUTIME_ID);
        rank->begin_us[p] = clock_us(CLOCK_MONOTONIC);
        phases[p](rank);
        rank->end_us[p] = clock_us(CLOCK_MONOTONIC);
        rank->cpu_us += clock_us(CLOCK_THREAD_CPUTIME_ID) - cpu;
    }
}

static void *live(void *arg)
{
    struct rank *rank = arg;
    /* NCCL's own threads have allocated and used their stack long before a plugin is called. */
    volatile char stack[64 * 1024];
    for (size_t i = 0; i < sizeof(stack); i += 4096)
        stack[i] = 0;
    void *volatile memory = malloc(64);
    free(memory);
    for (;;) {
        pthread_barrier_wait(&rank->drive->start);
        if (rank->drive->stop)
            return NULL;
        play(rank);
        pthread_barrier_wait(&rank->drive->start);
    }
}

struct gv_drive *gv_drive_new(int nranks)
{
    struct gv_drive *drive = calloc(1, sizeof(*drive));
    if (!drive)
        abort();
    drive->nranks = nranks;
    pthread_barrier_init(&drive->start, NULL, (unsigned)nranks + 1);
    pthread_barrier_init(&drive->gather, NULL, (unsigned)nranks);
    for (int i = 0; i < nranks; i++) {
        drive->ranks[i].drive = drive;
        drive->ranks[i].index = i;
        if (pthread_create(&drive->ranks[i].thread, NULL, live, &drive->ranks[i])) {
            fprintf(stderr, "bench: %d threads cannot be started\n", nranks);
            exit(3);
        }
    }
    return drive;
}

void gv_drive_free(struct gv_drive *drive)
{
    drive->stop = true;
    pthread_barrier_wait(&drive->start);
    for (int i = 0; i < drive->nranks; i++)
        pthread_join(drive->ranks[i].thread, NULL);
    pthread_barrier_destroy(&drive->start);
    pthread_barrier_destroy(&drive->gather);
    free(drive);
}

static double span_us(const struct gv_drive *drive, int phase)
{
    double begin = drive->ranks[0].begin_us[phase], end = drive->ranks[0].end_us[phase];
    for (int i = 1; i < drive->nranks; i++) {
        const struct rank *rank = &drive->ranks[i];
        begin = rank->begin_us[phase] < begin ? rank->begin_us[phase] : begin;
        end = rank->end_us[phase] > end ? rank->end_us[phase] : end;
    }
    return end - begin;
}

static struct gv_drive_result summarise(const struct gv_drive *drive)
{
    struct gv_drive_result result = {0};
    double cpu_us[GV_MAX_GPUS];
    for (int p = 0; p < GV_DRIVE_PHASES; p++)
        result.wall_us[p] = span_us(drive, p);
    for (int i = 0; i < drive->nranks; i++) {
        cpu_us[i] = drive->ranks[i].cpu_us;
        result.files += drive->ranks[i].file != NULL;
        result.contexts += drive->ranks[i].context != NULL;
    }
    gv_sort(cpu_us, (size_t)drive->nranks);
    result.cpu_us = gv_quantile(cpu_us, (size_t)drive->nranks, 0.5);
    result.cpu_max_us = cpu_us[drive->nranks - 1];
    return result;
}

struct gv_drive_result gv_drive_communicator(
    struct gv_drive *drive, const struct gv_drive_plugin *plugin, uint64_t id, const int *gpus,
    bool first)
{
    drive->plugin = plugin;
    drive->id = id;
    drive->gpus = gpus;
    drive->first = first;
    pthread_barrier_wait(&drive->start);
    pthread_barrier_wait(&drive->start);
    return summarise(drive);
}

static const char *no_env(const char *name)
{
    (void)name;
    return NULL;
}

static int no_net(void **ctx, uint64_t id, void *config, gv_logger logger, void *profiler)
{
    (void)ctx, (void)id, (void)config, (void)logger, (void)profiler;
    return GV_NCCL_SUCCESS;
}

static int no_devices(int *ndev)
{
    *ndev = 1;
    return GV_NCCL_SUCCESS;
}

static int no_properties(int dev, void *properties)
{
    (void)dev, (void)properties;
    return GV_NCCL_INTERNAL_ERROR;
}

static int no_tuner(
    void **ctx, uint64_t id, size_t nranks, size_t nnodes, gv_logger logger, void *domains,
    void *constants)
{
    (void)id, (void)nranks, (void)nnodes, (void)logger, (void)domains, (void)constants;
    *ctx = NULL;
    return GV_NCCL_SUCCESS;
}

static int no_finalize(void *ctx)
{
    (void)ctx;
    return GV_NCCL_SUCCESS;
}

struct gv_drive_plugin gv_drive_nothing(void)
{
    static const struct gv_env_v2 env = {.name = "nothing", .get_env = no_env};
    static const struct gv_net_v11 slot = {
        .name = "nothing",
        .init = no_net,
        .devices = no_devices,
        .get_properties = no_properties,
        .finalize = no_finalize};
    static const struct gv_tuner_v5 tune = {
        .name = "nothing", .init = no_tuner, .finalize = no_finalize};
    return (struct gv_drive_plugin){&env, &slot, &tune};
}

struct gv_drive_plugin gv_drive_real(void)
{
    /* The first library that is not found costs the loader hundreds of system calls, later ones
     * four. In NCCL that was one of its own (libcuda.so.1 excepted, all of them are optional). */
    dlopen("libnccl-profiler.so", RTLD_LAZY);
    return (struct gv_drive_plugin){
        gv_world_symbol(GV_WORLD_PLUGIN, "ncclEnvPlugin_v2"),
        gv_world_symbol(GV_WORLD_PLUGIN, "ncclNetPlugin_v11"),
        gv_world_symbol(GV_WORLD_PLUGIN, "ncclTunerPlugin_v5")};
}
