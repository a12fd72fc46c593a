/* gv-bench-init: what the plugin adds to the life of a communicator, one JSON object. Ranks are
 * threads; for each communicator the same barriers are run with slots that do nothing, so that
 * their cost can be taken off. With --leaks: what many communicators leave behind. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/bench/drive.h"
#include "tests/bench/leaks.h"
#include "tests/bench/profiles.h"
#include "tests/bench/world.h"

struct options {
    int ranks;
    long communicators;
    bool leaks, nothing;
};

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static double total_us(const struct gv_drive_result *r)
{
    double sum = 0;
    for (int p = 0; p < GV_DRIVE_PHASES; p++)
        sum += r->wall_us[p];
    return sum;
}

/* Groups that have a plan: {0,5}, 0-9, all 64. */
static void choose_gpus(int ranks, int gpus[GV_MAX_GPUS])
{
    for (int i = 0; i < ranks; i++)
        gpus[i] = i;
    if (ranks == 2)
        gpus[1] = 5;
}

static void open_world(struct gv_world *world, int ranks)
{
    gv_world_open(world, ranks > 11 ? GV_WORLD_64 : GV_WORLD_4028);
    setenv("NCCL_ENV_PLUGIN", "gv100", 1);
    if (ranks <= 11)
        gv_world_shipped("4028");
    else
        gv_world_profile(world, gv_bench_profile_64());
}

static double start_plugin(const struct gv_drive_plugin *plugin)
{
    double begin = now_us();
    plugin->env->init(
        GV_WORLD_NCCL / 10000, GV_WORLD_NCCL / 100 % 100, GV_WORLD_NCCL % 100, "", gv_world_logger);
    return now_us() - begin;
}

static void print_list(const char *name, const double *values, long n)
{
    printf(",\"%s\":[", name);
    for (long i = 0; i < n; i++)
        printf("%s%.1f", i ? "," : "", values[i]);
    putchar(']');
}

static void print(const struct gv_drive_result *with, const struct gv_drive_result *without, long n)
{
    static const char *const phases[] = {"net_us", "lookup_us", "tuner_us", "finalize_us"};
    double *list = calloc((size_t)n, sizeof(*list));
    if (!list)
        abort();
    for (int p = 0; p < GV_DRIVE_PHASES; p++) {
        for (long i = 0; i < n; i++)
            list[i] = with[i].wall_us[p] - without[i].wall_us[p];
        print_list(phases[p], list, n);
    }
    for (long i = 0; i < n; i++)
        list[i] = total_us(&with[i]);
    print_list("wall_us", list, n);
    for (long i = 0; i < n; i++)
        list[i] = total_us(&without[i]);
    print_list("barriers_us", list, n);
    for (long i = 0; i < n; i++)
        list[i] = with[i].cpu_us - without[i].cpu_us;
    print_list("cpu_us", list, n);
    for (long i = 0; i < n; i++)
        list[i] = with[i].cpu_max_us - without[i].cpu_max_us;
    print_list("cpu_max_us", list, n);
    free(list);
}

static int measure(const struct options *o)
{
    int gpus[GV_MAX_GPUS];
    struct gv_world world;
    long n = o->communicators;
    struct gv_drive_result *with = calloc((size_t)n, sizeof(*with));
    struct gv_drive_result *without = calloc((size_t)n, sizeof(*without));
    if (!with || !without)
        abort();
    open_world(&world, o->ranks);
    choose_gpus(o->ranks, gpus);
    struct gv_drive_plugin none = gv_drive_nothing(), plugin = o->nothing ? none : gv_drive_real();
    struct gv_drive *drive = gv_drive_new(o->ranks);
    for (int i = 0; i < 20; i++) /* threads and barriers warm */
        gv_drive_communicator(drive, &none, 0, gpus, false);
    double env_init_us = o->nothing ? 0 : start_plugin(&plugin);
    for (long i = 0; i < n; i++) {
        without[i] = gv_drive_communicator(drive, &none, 0, gpus, i == 0);
        with[i] = gv_drive_communicator(drive, &plugin, 0xc0ffee00ull + (uint64_t)i, gpus, i == 0);
    }
    int files = with[0].files;
    printf(
        "{\"ranks\":%d,\"communicators\":%ld,\"files\":%d,\"warnings\":%d,\"env_init_us\":%.1f",
        o->ranks, n, files, gv_world_warnings(), env_init_us);
    print(with, without, n);
    puts("}");
    gv_drive_free(drive);
    gv_world_close(&world);
    free(with);
    free(without);
    return o->nothing || files == o->ranks ? 0 : 3;
}

static void print_leaks(const char *name, const struct gv_leaks *l)
{
    printf(
        ",\"%s\":{\"heap_bytes\":%ld,\"rss_kib\":%ld,\"descriptors\":%d,\"registry_files\":%d}",
        name, l->heap_bytes, l->rss_kib, l->descriptors, l->registry_files);
}

static int leaks(const struct options *o)
{
    struct gv_leaks before, after;
    double begin = now_us();
    gv_leaks_run(o->communicators, &before, &after);
    printf("{\"communicators\":%ld,\"seconds\":%.1f", o->communicators, (now_us() - begin) * 1e-6);
    print_leaks("before", &before);
    print_leaks("after", &after);
    puts("}");
    return 0;
}

int main(int argc, char **argv)
{
    static const struct option known[] = {
        {"ranks", required_argument, NULL, 'r'},
        {"communicators", required_argument, NULL, 'c'},
        {"leaks", no_argument, NULL, 'l'},
        {"nothing", no_argument, NULL, 'n'},
        {0}};
    struct options o = {.ranks = 10, .communicators = 10};
    for (int c; (c = getopt_long(argc, argv, "", known, NULL)) >= 0;) {
        if (c == 'r')
            o.ranks = atoi(optarg);
        else if (c == 'c')
            o.communicators = atol(optarg);
        else if (c == 'l')
            o.leaks = true;
        else if (c == 'n')
            o.nothing = true;
        else
            return 2;
    }
    if (o.ranks < 2 || o.ranks > GV_MAX_GPUS || o.communicators < 1) {
        fputs("bench: --ranks 2 to 64, --communicators 1 or more\n", stderr);
        return 2;
    }
    return o.leaks ? leaks(&o) : measure(&o);
}
