/* NCCL measured under two (or more) variants, and what the difference is worth: the one structure
 * that the table, JSON, CSV and the report are made from. */
#ifndef GV_COMPARE_H
#define GV_COMPARE_H

#include <jansson.h>
#include <limits.h>
#include <stdio.h>

#include "base/gv_str.h"
#include "plugin/policy/samples.h"
#include "profiler/collective/gv_collective.h"
#include "profiler/collective/gv_statistics.h"
#include "profiler/compare/gv_histogram.h"

#define GV_COMPARED_SCHEMA 2

/* A ring edge of one variant. GPUs are the machine's numbers. */
struct gv_compared_edge {
    int from, to;
    char path[8];       /* class of the pair as NCCL names it; "" not known */
    char transport[32]; /* as NCCL's log says it; "" where it said nothing */
    double gbs;         /* the profile's figure for that pair on that transport; NAN */
};

/* One variant's ring. `slowest`: the edge with the lowest figure, else the first on SHM where there
 * are edges on P2P beside it; -1 where that cannot be said. */
struct gv_compared_ring {
    struct gv_compared_edge edge[GV_MAX_GPUS];
    int n, slowest;
};

/* One case under one variant, in nccl-tests' terms; NAN where there is no sample. */
struct gv_compared_side {
    double time_us, algbw_gbs, busbw_gbs; /* medians */
    double first_us;                      /* cold */
    struct gv_side busbw; /* as the policy sees it: inner range, throttled samples left out */
};

/* What another program (nccl-tests) measured under one of the variants. */
struct gv_witness {
    int steer;
    enum gv_op op;
    uint64_t bytes;
    bool in_place;
    double algbw_gbs, busbw_gbs; /* its one run */
};

/* One case of variant `other` against the base. */
struct gv_compared_row {
    int other, k; /* indexes into run.steer and run.cases */
    struct gv_compared_side base, tuned;
    double gain; /* of busbw; NAN */
    struct gv_interval interval;
    enum gv_verdict verdict; /* rule 1 of the policy */
};

#define GV_MAX_ENVIRONMENT 32

/* All that was asked for: with the GPUs and the profile, what a run must be told to be made again.
 */
struct gv_compared_settings {
    char machine[PATH_MAX];           /* of --virtual; "" the real one */
    char nccl[2][PATH_MAX];           /* the library; [1] of a second release, "" none */
    char witness[PATH_MAX];           /* "" none */
    char variant[GV_MAX_STEERS][256]; /* plans of --variant */
    char
        *environment[GV_MAX_ENVIRONMENT]; /* "NAME=value" of what steers NCCL, CUDA or the plugin */
    int nvariants, nenvironment;
    unsigned ops; /* GV_OP_BITs */
    enum gv_type type;
    enum gv_redop redop;
    uint64_t min_bytes, max_bytes, check_bytes; /* check_bytes 0: every byte */
    double factor, timeout_s;                   /* timeout_s 0: as it comes */
    bool in_place, threads;
    int repeats, iterations, ranks_per_gpu; /* iterations 0: by size */
};

/* One of the files that a comparison was put together from. */
struct gv_compared_origin {
    char file[PATH_MAX];
    char label[16]; /* that its variants' names begin with; "" of a profile alone */
    bool profile;   /* samples of a profile's groups; else a run that was kept */
    char host[65], driver[32], date[80], nccl[40];
    char *command; /* that measured it; NULL not known */
};

/* A job that the difference is held against. */
struct gv_compared_job {
    char file[PATH_MAX]; /* "" none */
    struct gv_histogram sizes;
    double steps, step_s; /* `steps` are in the file; step_s NAN: not known */
};

#define GV_MAX_NOTES 12

struct gv_compared {
    char host[2 * 65], driver[32], date[80], tool[64];
    char profile[PATH_MAX]; /* "" none */
    uint64_t profile_hash;  /* of the file then; 0 none */
    bool virtual_machine;
    bool thin;     /* one sample a side is enough for a verdict: published and imported profiles */
    bool measured; /* by this program in one run: `settings` hold */
    struct gv_compared_settings settings;
    struct gv_compared_origin origin[2]; /* else the files that it comes from */
    int norigins;
    char loaded[PATH_MAX];        /* the file it was read from; "" measured or put together now */
    char note[GV_MAX_NOTES][256]; /* what a reader must know, a sentence each */
    int nnotes;
    struct gv_compared_job job;
    double min_gain, max_loss;    /* the policy's thresholds, from the profile */
    char bus_id[GV_MAX_GPUS][20]; /* [run.nranks]; "" not known */
    char model[GV_MAX_GPUS][64];  /* [run.nranks]; "" not known */
    struct gv_collective run;     /* samples and wiring, GPUs in the machine's numbers */
    struct gv_compared_ring ring[GV_MAX_STEERS];
    int base; /* the variant that the others are held against */
    struct gv_compared_row *rows;
    int nrows;
    char witness_program[256]; /* "" none */
    struct gv_witness *witness;
    int nwitness;
};

/* One case under one variant. */
struct gv_compared_side gv_compared_side_of(const struct gv_compared *c, int steer, int k);

/* Fills rows from the samples: every variant but `base` against it. 0, or -1: out of memory. */
int gv_compared_judge(struct gv_compared *c);
void gv_compared_finish(struct gv_compared *c);

/* "gain", "tie", "loss", "not measured". */
const char *gv_judgement(enum gv_verdict verdict);

/* Adds a sentence to `note`; one too many is dropped. */
void gv_compared_note(struct gv_compared *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* The rings of all variants from run.wiring, with what `profile` (may be NULL) knows of their
 * edges; to_profile[GPU]: the profile's number of it, -1 none. */
void gv_compared_rings(
    struct gv_compared *c, const struct gv_profile *profile, const int to_profile[GV_MAX_GPUS]);

/* JSON with every sample; gv_compared_load of it gives an equal structure and the same JSON again,
 * but for the key `loaded`. */
json_t *gv_compared_json(const struct gv_compared *c);
int gv_compared_load(const char *path, struct gv_compared *out, struct gv_error *err);

/* What a profile measured of these GPUs (profile indexes; 0: those of its one set, if it has one):
 * NCCL's default against what the policy decides from that profile. 0, or -1 with `err`. */
int gv_compared_from_profile(
    const struct gv_profile *profile, const char *path, gv_gpuset gpus, struct gv_compared *out,
    struct gv_error *err);

/* Two comparisons as one: all variants of both against the base of `a`, in the cases that both
 * have. Another machine, other GPUs or no common case are an error that names the file (`paths`);
 * another host of the same kind, driver, release, settings or cases are notes. `a` and `b` stay. 0,
 * or -1 with `err`. */
int gv_compared_merge(
    const struct gv_compared *a, const struct gv_compared *b, const char *const paths[2],
    struct gv_compared *out, struct gv_error *err);

/* Adds the command line that makes this comparison again, words quoted for a shell. */
void gv_compared_command(const struct gv_compared *c, struct gv_str *out);

/* Adds what the caller's environment holds of variables that steer NCCL, CUDA or the plugin. 0, or
 * -1: out of memory. */
int gv_compared_environment(struct gv_compared_settings *settings);

void gv_compared_csv(const struct gv_compared *c, FILE *out);

#endif
