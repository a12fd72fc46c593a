/* NCCL measured under two (or more) variants, and what the difference is worth: the one structure
 * that the table, JSON, CSV and the report are made from. */
#ifndef GV_COMPARE_H
#define GV_COMPARE_H

#include <jansson.h>
#include <limits.h>

#include "plugin/policy/samples.h"
#include "profiler/collective/gv_collective.h"
#include "profiler/collective/gv_statistics.h"

#define GV_COMPARED_SCHEMA 1

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
    double algbw_gbs, busbw_gbs; /* out of place, its one run */
};

/* One case of variant `other` against the base. */
struct gv_compared_row {
    int other, k; /* indexes into run.steer and run.cases */
    struct gv_compared_side base, tuned;
    double gain; /* of busbw; NAN */
    struct gv_interval interval;
    enum gv_verdict verdict; /* rule 1 of the policy */
};

struct gv_compared {
    char host[65], driver[32], date[32], tool[64];
    char profile[PATH_MAX]; /* "" none */
    bool virtual_machine;
    double min_gain, max_loss;    /* the policy's thresholds, from the profile */
    char bus_id[GV_MAX_GPUS][20]; /* [run.nranks] */
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

/* JSON with every sample; gv_compared_load of it gives an equal structure and the same JSON again.
 */
json_t *gv_compared_json(const struct gv_compared *c);
int gv_compared_load(const char *path, struct gv_compared *out, struct gv_error *err);

void gv_compared_csv(const struct gv_compared *c, FILE *out);

#endif
