/* One run of gv-nccl-host: what the command line asked for. */
#ifndef GV_HOST_JOB_H
#define GV_HOST_JOB_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/gv_error.h"
#include "base/gv_gpuset.h"
#include "testbench/host/release.h"
#include "testbench/machines/gv_bench_machine.h"

#define GVH_MAX_COMMS 256

enum gvh_mode { GVH_THREADS, GVH_PROCESSES };
enum gvh_how { GVH_HOW_RANK, GVH_HOW_CONFIG, GVH_HOW_SCALABLE, GVH_HOW_ALL };
enum gvh_origin { GVH_NEW, GVH_SPLIT, GVH_SHRINK };
enum gvh_given {
    GVH_GIVEN_AUTO,
    GVH_GIVEN_ENV,
    GVH_GIVEN_PRELOAD,
    GVH_GIVEN_TUNER,
    GVH_GIVEN_NONE
};

/* A communicator to be made. GPUs in rank order, PCI numbers. */
struct gvh_wanted {
    enum gvh_origin origin;
    int gpus[GV_MAX_GPUS], n;
    int parent; /* number of the communicator it comes from */
    int color;  /* of a split */
    int step;   /* children of one split share it */
};

struct gvh_fault {
    int gpu; /* -1: none */
    int ms;
    char step[16];
};

#define GVH_MAX_RANK_ENV 16
struct gvh_rank_env {
    int gpu;
    const char *setting; /* NAME=VALUE */
};

struct gvh_job {
    struct gvh_wanted comms[GVH_MAX_COMMS];
    int ncomms;
    enum gvh_mode mode;
    enum gvh_how how;
    enum gvh_given given;
    bool concurrent, alltoall, json, share, nonblocking, trace, keep;
    const char *machine, *release_text, *topology, *plugin, *launcher, *stamp, *visible, *nop2p,
        *command;
    int nodes, sm, timeout_ms, steps;
    uint64_t bytes;
    struct gvh_fault late, die, abort;
    struct gvh_rank_env rank_env[GVH_MAX_RANK_ENV];
    int nrank_env;
    bool namespaces;
    struct gvh_release release;
    char dir[PATH_MAX]; /* temporary folder of this job */
    gv_gpuset all;      /* every GPU of any communicator */
};

/* options.c: 0, or an exit status with the message printed. */
int gvh_options(int argc, char **argv, struct gvh_job *job);

/* setup.c: the temporary folder, the machine in it, and every variable of the job in this process's
 * environment. */
int gvh_setup(struct gvh_job *job, const char *program, struct gv_error *err);
/* Variables of one process of the job (launchers name ranks). */
void gvh_setup_rank(const struct gvh_job *job, int rank, int nprocs);
void gvh_remove_folder(const char *dir);

/* worker.c: in a process of the job: makes the communicators of `gpus` and writes what became of
 * them to `out`. */
int gvh_work(const struct gvh_job *job, gv_gpuset gpus, const char *out);

/* merge.c: prints one object a communicator from the workers' files; returns the exit status.
 * `lost[gpu]` (may be NULL) says how the process of that GPU ended, where it did not end well. */
int gvh_merge(const struct gvh_job *job, const char *const *files, int nfiles, char (*lost)[64]);

#endif
