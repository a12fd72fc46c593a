/* Things that a host process does, with the real plugin in it:
 *
 *   gv-torture-process names          prints getenv of awkward names and environments
 *   gv-torture-process cost           prints nanoseconds of a getenv
 *   gv-torture-process reopen N       dlopen and dlclose N times, a communicator now and then
 *   gv-torture-process fork N         forks N times while communicators are made; children look up
 *                                     variables and make a communicator of their own
 *   gv-torture-process exit           ends while another thread waits inside an init
 *   gv-torture-process end-thread     a thread ends inside an init
 *   gv-torture-process twice COPY     the plugin and a copy of it, a communicator through each
 *
 * 0 where all is as it must be. */
#include <dirent.h>
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "plugin/registry/gv_registry.h"
#include "testbench/host/gv_fakecuda.h"
#include "tests/torture/inside.h"

enum { RANKS = 2 };
static const int gpus[RANKS] = {0, 5}; /* a pair with a plan */

static struct gv_world world;

static void open_world(void)
{
    gv_world_open(&world, GV_WORLD_4028);
    gv_world_shipped("4028");
    setenv("NCCL_ENV_PLUGIN", "gv100", 1);
}

/* --- names --- */

static void print(const char *name)
{
    const char *value = getenv(name);
    printf("%s -> %s\n", name, value ? value : "(not set)");
}

static int names(void)
{
    static char long_name[70000], *odd[] = {"=x=y",  "NOEQUALS", "DUP=1",  "DUP=2",      "",
                                            "A=B=C", "NCCL_=e",  "EMPTY=", "\x01\xff=z", NULL};
    static const char *const asked[] = {
        "",
        "=",
        "=x",
        "A",
        "A=B",
        "A=",
        "NOEQUALS",
        "DUP",
        "NCCL_",
        "NCCL_DEBUG",
        "N",
        "NC",
        "NCCL_TOPO_FILE",
        "EMPTY",
        "PATH",
        "path",
        "\x01\xff",
        "NCCL_GRAPH_FILE",
        "NCCL_P2P_LEVEL",
        "GV100_PROFILE"};
    memset(long_name, 'N', sizeof(long_name) - 1);
    print("HOME");
    environ = odd;
    for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++)
        print(asked[i]);
    print(long_name);
    environ = (char *[]){NULL};
    print("A");
    environ = NULL;
    print("A");
    print("NCCL_DEBUG");
    MUST(!setenv("NCCL_DEBUG", "INFO", 1));
    print("NCCL_DEBUG");
    MUST(!putenv((char *)"NCCL_DEBUG=WARN"));
    print("NCCL_DEBUG");
    MUST(!unsetenv("NCCL_DEBUG"));
    print("NCCL_DEBUG");
    return 0;
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int cost(void)
{
    enum { CALLS = 200000 };
    double best = 1e9;
    for (int run = 0; run < 9; run++) {
        double begin = now_s();
        for (int i = 0; i < CALLS; i++) {
            char *volatile value = getenv("GV_NOT_SET");
            (void)value;
        }
        double took = (now_s() - begin) / CALLS * 1e9;
        best = took < best ? took : best;
    }
    printf("%.1f\n", best);
    return 0;
}

/* --- many openings --- */

static int descriptors(void)
{
    int n = 0;
    DIR *dir = opendir("/proc/self/fd");
    MUST(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

static void *open_plugin(void)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s", getenv("GV_LIB_DIR"), GV_WORLD_PLUGIN);
    return gv_inside_open(path);
}

static int reopen(int n)
{
    open_world();
    struct gv_drive *drive = gv_drive_new(RANKS);
    int before = 0;
    for (int i = 0; i < n; i++) {
        void *lib = open_plugin();
        if (i % (n / 10 + 1) == 0) {
            struct gv_drive_plugin plugin = gv_inside_slots(lib);
            MUST(!plugin.env->init(2, 28, 9, "", gv_world_logger));
            struct gv_drive_result result =
                gv_drive_communicator(drive, &plugin, (uint64_t)i + 1, gpus, i == 0);
            MUST(result.files == RANKS && result.contexts == RANKS);
        }
        dlclose(lib);
        if (!i)
            before = descriptors();
    }
    MUST(descriptors() == before);
    gv_drive_free(drive);
    return 0;
}

/* --- fork --- */

struct maker {
    struct gv_drive_plugin plugin;
    atomic_bool stop;
    int made;
};

static void *make(void *arg)
{
    struct maker *maker = arg;
    struct gv_drive *drive = gv_drive_new(RANKS);
    /* The user's own setting goes around the kept decisions: every communicator decides anew. */
    for (uint64_t id = 1; !atomic_load(&maker->stop); id++, maker->made++) {
        struct gv_drive_result r = gv_drive_communicator(drive, &maker->plugin, id, gpus, id == 1);
        MUST(r.files == RANKS);
    }
    gv_drive_free(drive);
    return NULL;
}

#ifdef __SANITIZE_THREAD__
/* ThreadSanitizer cannot start a thread in the child of a program with threads: there each rank of
 * the child's communicator is a process. */
static void meet(const int to[2], const int from[2])
{
    char byte = 0;
    MUST(write(to[1], &byte, 1) == 1 && read(from[0], &byte, 1) == 1);
}

static bool be_rank(
    const struct gv_drive_plugin *plugin, uint64_t id, int gpu, const int to[2], const int from[2])
{
    void *ctx;
    gv_fakecuda_set_device(gpu);
    MUST(!plugin->net->init(&ctx, id, NULL, gv_world_logger, NULL));
    meet(to, from);
    bool file = plugin->env->get_env("NCCL_TOPO_FILE") != NULL;
    plugin->env->get_env("NCCL_GRAPH_FILE");
    MUST(!plugin->tuner->init(&ctx, id, RANKS, 1, gv_world_logger, NULL, NULL));
    meet(to, from);
    MUST(!plugin->tuner->finalize(ctx));
    return file;
}

static bool make_in_child(const struct gv_drive_plugin *plugin, uint64_t id)
{
    int there[2], back[2], status;
    MUST(!pipe(there) && !pipe(back));
    pid_t other = fork();
    MUST(other >= 0);
    if (!other)
        _exit(!be_rank(plugin, id, gpus[1], back, there));
    bool file = be_rank(plugin, id, gpus[0], there, back);
    MUST(waitpid(other, &status, 0) == other);
    return file && !status;
}
#else
static bool make_in_child(const struct gv_drive_plugin *plugin, uint64_t id)
{
    struct gv_drive *drive = gv_drive_new(RANKS);
    struct gv_drive_result r = gv_drive_communicator(drive, plugin, id, gpus, false);
    gv_drive_free(drive);
    return r.files == RANKS;
}
#endif

static void be_child(const struct maker *maker, int number)
{
    const char *slow = getenv("GV_SLOW");
    alarm(20 * (slow ? (unsigned)atoi(slow) : 1));
    maker->plugin.env->get_env("NCCL_TOPO_FILE");
    maker->plugin.env->get_env("NCCL_P2P_LEVEL");
    _exit(make_in_child(&maker->plugin, 1000000 + (uint64_t)number) ? 0 : 1);
}

static int fork_often(int n)
{
    struct maker maker = {0};
    pthread_t thread;
    int lost = 0;
    open_world();
    setenv("NCCL_PROTO", "Simple", 1);
    maker.plugin = gv_inside_slots(open_plugin());
    MUST(!maker.plugin.env->init(2, 28, 9, "", gv_world_logger));
    MUST(!pthread_create(&thread, NULL, make, &maker));
    for (int i = 0; i < n; i++) {
        int status;
        pid_t child = fork();
        MUST(child >= 0);
        if (!child)
            be_child(&maker, i);
        MUST(waitpid(child, &status, 0) == child);
        if (status)
            fprintf(stderr, "child %d ended with %#x\n", i, (unsigned)status);
        lost += status != 0;
    }
    atomic_store(&maker.stop, true);
    pthread_join(thread, NULL);
    printf("%d children, %d lost, %d communicators meanwhile\n", n, lost, maker.made);
    return lost != 0;
}

/* --- ends --- */

static struct gv_drive_plugin first;
static atomic_bool waiting;

/* Rank 0 of two; the other has registered and never comes. */
static void *wait_inside(void *unused)
{
    void *ctx;
    (void)unused;
    gv_fakecuda_set_device(gpus[0]);
    MUST(!first.net->init(&ctx, 77, NULL, gv_world_logger, NULL));
    atomic_store(&waiting, true);
    first.env->get_env("NCCL_TOPO_FILE");
    return NULL;
}

static void *register_only(void *unused)
{
    void *ctx;
    (void)unused;
    gv_fakecuda_set_device(gpus[1]);
    MUST(!first.net->init(&ctx, 77, NULL, gv_world_logger, NULL));
    return NULL;
}

static void open_first(void)
{
    open_world();
    first = gv_inside_slots(open_plugin());
    MUST(!first.env->init(2, 28, 9, "", gv_world_logger));
}

static int exit_inside(void)
{
    pthread_t thread;
    open_first();
    void *ctx;
    gv_fakecuda_set_device(gpus[1]);
    MUST(!first.net->init(&ctx, 77, NULL, gv_world_logger, NULL));
    MUST(!pthread_create(&thread, NULL, wait_inside, NULL));
    while (!atomic_load(&waiting))
        usleep(1000);
    usleep(20000);
    return 0; /* main returns: exit handlers run while the thread waits in there */
}

/* The thread's end is its rank's end: the other one is told at once, not after the wait. */
static int end_thread(void)
{
    pthread_t gone;
    void *ctx;
    open_first();
    gv_fakecuda_set_device(gpus[0]);
    MUST(!first.net->init(&ctx, 77, NULL, gv_world_logger, NULL));
    MUST(!pthread_create(&gone, NULL, register_only, NULL));
    pthread_join(gone, NULL);
    double begin = now_s();
    MUST(!first.env->get_env("NCCL_TOPO_FILE"));
    MUST(now_s() - begin < 2);
    return 0;
}

/* --- a second copy --- */

static int twice(const char *copy)
{
    open_world();
    struct gv_drive *drive = gv_drive_new(RANKS);
    void *second = dlopen(copy, RTLD_NOW | RTLD_LOCAL);
    MUST(second);
    struct gv_drive_plugin plugins[] = {gv_inside_slots(open_plugin()), gv_inside_slots(second)};
    MUST(plugins[0].tuner != plugins[1].tuner);
    for (int i = 0; i < 2; i++)
        MUST(!plugins[i].env->init(2, 28, 9, "", gv_world_logger));
    for (int i = 0; i < 6; i++) {
        struct gv_drive_result r =
            gv_drive_communicator(drive, &plugins[i % 2], (uint64_t)i + 1, gpus, i < 2);
        MUST(r.files == RANKS && r.contexts == RANKS);
    }
    gv_drive_free(drive);
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "", *value = argc > 2 ? argv[2] : "0";
    int rc = 2;
    if (!strcmp(what, "names"))
        return names();
    if (!strcmp(what, "cost"))
        return cost();
    if (!strcmp(what, "reopen"))
        rc = reopen(atoi(value));
    else if (!strcmp(what, "fork"))
        rc = fork_often(atoi(value));
    else if (!strcmp(what, "exit"))
        rc = exit_inside();
    else if (!strcmp(what, "end-thread"))
        rc = end_thread();
    else if (!strcmp(what, "twice"))
        rc = twice(value);
    if (world.dir[0])
        gv_world_close(&world);
    return rc;
}
