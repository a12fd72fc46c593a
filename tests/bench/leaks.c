#include "tests/bench/leaks.h"

#include <dirent.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/bench/drive.h"
#include "tests/bench/world.h"

enum { RANKS = 3, GPUS = 11, GROUPS = 165 };

struct run {
    struct gv_drive *drive;
    struct gv_drive_plugin plugin;
    int groups[GROUPS][RANKS];
    uint64_t id;
    int files; /* answers with a topology file so far */
};

static int entries(const char *path)
{
    int n = 0;
    DIR *dir = opendir(path);
    for (struct dirent *item; dir && (item = readdir(dir));)
        n += item->d_name[0] != '.';
    if (dir)
        closedir(dir);
    return n;
}

static struct gv_leaks look(void)
{
    struct gv_leaks now = {0};
    long pages = 0;
    struct mallinfo2 heap = mallinfo2();
    now.heap_bytes = (long)(heap.uordblks + heap.hblkhd);
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%*s %ld", &pages) != 1)
        abort();
    fclose(file);
    now.rss_kib = pages * (sysconf(_SC_PAGESIZE) / 1024);
    now.descriptors = entries("/proc/self/fd") - 1; /* its own */
    now.registry_files = entries(gv_world_registry());
    return now;
}

static void list_groups(struct run *run)
{
    int n = 0;
    for (int a = 0; a < GPUS; a++)
        for (int b = a + 1; b < GPUS; b++)
            for (int c = b + 1; c < GPUS; c++, n++) {
                run->groups[n][0] = a;
                run->groups[n][1] = b;
                run->groups[n][2] = c;
            }
}

static void make(struct run *run, long n)
{
    for (long i = 0; i < n; i++, run->id++)
        run->files +=
            gv_drive_communicator(
                run->drive, &run->plugin, run->id, run->groups[run->id % GROUPS], run->id == 0)
                .files;
}

void gv_leaks_run(long n, struct gv_leaks *before, struct gv_leaks *after)
{
    static struct run run;
    struct gv_world world;
    gv_world_open(&world, GV_WORLD_4028);
    gv_world_shipped("4028");
    setenv("NCCL_ENV_PLUGIN", "gv100", 1);
    run.plugin = gv_drive_real();
    run.plugin.env->init(2, 28, 9, "", gv_world_logger);
    run.drive = gv_drive_new(RANKS);
    list_groups(&run);
    make(&run, GROUPS);
    setenv("NCCL_PROTO", "Simple", 1);
    make(&run, GROUPS);
    unsetenv("NCCL_PROTO");
    make(&run, GROUPS);
    *before = look();
    make(&run, n / 2);
    setenv("NCCL_PROTO", "Simple", 1);
    make(&run, n - n / 2);
    unsetenv("NCCL_PROTO");
    make(&run, GROUPS - (long)(run.id % GROUPS)); /* the same decisions are kept as before */
    make(&run, GROUPS);
    *after = look();
    gv_drive_free(run.drive);
    gv_world_close(&world);
    if (run.files < n / 4) {
        fprintf(stderr, "bench: only %d plans in %ld communicators\n", run.files, n);
        exit(3);
    }
}
