/* `compare` on this machine now: what is asked for, and the measurement of it. */
#ifndef GV_COMPARE_LIVE_H
#define GV_COMPARE_LIVE_H

#include "profiler/cli/cli.h"
#include "profiler/compare/gv_compare.h"

struct gv_compare_input {
    const char *machine; /* --virtual */
    const char *profile, *nccl;
    const char *witness; /* a program of nccl-tests, run under the same plans; NULL none */
    gv_gpuset gpus;      /* 0: all */
    struct gv_steer variants[GV_MAX_STEERS - 2];
    int nvariants;
    unsigned ops; /* GV_OP_BITs */
    enum gv_type type;
    enum gv_redop redop;
    uint64_t min_bytes, max_bytes, check_bytes;
    double factor;
    bool in_place, threads, check_some;
    int repeats, iterations, ranks_per_gpu;
    double timeout_s;
};

/* Measures and judges. 0, or -1 with `err`. Release with gv_compared_finish. */
int gv_compare_live(
    const struct gv_compare_input *in, struct gv_compared *out, struct gv_error *err);

/* compare_releases.c: the same with two NCCLs, in turn within each repeat; variants are named
 * "2.23.4 default" and so on, the first NCCL's default is the base. */
int gv_compare_releases(
    const struct gv_compare_input *in, const char *const nccl[2], struct gv_compared *out,
    struct gv_error *err);

/* compare_witness.c: runs in->witness once under each variant over the same GPUs (`ordinals`, by
 * rank) and adds what it printed to `out`. 0, or -1 with `err`: it failed, or printed no table. */
int gv_compare_witness(
    const struct gv_compare_input *in, const struct gv_collective_options *options,
    const int *ordinals, struct gv_compared *out, struct gv_error *err);

/* compare_saved.c: one or two of what was measured before, each a run that was kept (`--save`,
 * `--json`) or a profile (a path, a shipped name). `gpus` 0: those of the run, or the profile's one
 * set. Two become one comparison (gv_compared_merge). 0, or -1 with `err`. */
int gv_compare_saved(
    const char *const *names, int n, gv_gpuset gpus, struct gv_compared *out, struct gv_error *err);

#endif
