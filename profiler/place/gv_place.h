/* Which GPUs to give to which work, from a profile alone. All sets are profile indexes; bandwidths
 * are GB/s (1e9 bytes/s), busbw as nccl-tests defines it, of AllReduce at the largest size
 * measured. */
#ifndef GV_PLACE_H
#define GV_PLACE_H

#include <stdbool.h>

#include "base/gv_error.h"
#include "base/gv_gpuset.h"
#include "config/gv_profile.h"
#include "plugin/policy/gv_policy.h"

enum gv_work {
    GV_WORK_SYNC,        /* GPUs in step: one ring, bounded by its slowest edge */
    GV_WORK_PAIR,        /* a model split over GPUs that exchange all the time */
    GV_WORK_MEMORY,      /* bound by the memory's bandwidth */
    GV_WORK_INDEPENDENT, /* small work that needs nothing: what others miss least */
    GV_WORKS
};

enum gv_known { GV_KNOWN_NOT, GV_KNOWN_INFERRED, GV_KNOWN_MEASURED };

struct gv_request {
    char name[32];
    int gpus;
    int memory_mib; /* least of each GPU; for PAIR: of all together */
    enum gv_work work;
};

/* A set of GPUs for one request. */
struct gv_group_place {
    gv_gpuset gpus;
    double busbw_gbs; /* under the plugin's decision; NAN for one GPU or where nothing tells */
    enum gv_known known;
    int like;        /* what it was inferred from: index of gv_place's measured sets, -1 none */
    bool p2p;        /* the plugin turns P2P on for it */
    double copy_gbs; /* the slowest memory in it, NAN not known */
    int memory_mib;  /* the smallest */
    double worth;    /* of its GPUs to others, 0 to 1 each, added */
    int models, split, nvlinks; /* boards of different kinds; NVLink pairs torn, kept */
    enum gv_path_class path;    /* of the slowest edge of its ring, where busbw is NAN */
    int rank;                   /* in the order of the request, from 0; the same for equals */
};

/* What was measured of one set. */
struct gv_measured_set {
    gv_gpuset gpus;
    double busbw[2];         /* NCCL's default; under the plan, NAN where there is none */
    bool p2p;                /* the plan turns P2P on */
    enum gv_path_class path; /* of the slowest edge of its ring */
};

struct gv_place {
    const struct gv_profile *profile;
    gv_gpuset all;                 /* every GPU */
    gv_gpuset p2p[GV_MAX_GPUS];    /* peers that the driver does not refuse and no one found bad */
    gv_gpuset nvlink[GV_MAX_GPUS]; /* peers by NVLink */
    gv_gpuset island[GV_MAX_GPUS];
    enum gv_path_class path[GV_MAX_GPUS][GV_MAX_GPUS];
    double copy_gbs[GV_MAX_GPUS]; /* NAN not known */
    const gv_gpuset *bad;
    struct gv_measured_set measured[256];
    int nmeasured;
};

/* The most candidates that are looked at: every group of 16 GPUs (12870 of 8), and those of larger
 * machines as far as this goes. */
#define GV_PLACE_MOST 200000
/* `gv_place_jobs` looks at every division of this many GPUs. */
#define GV_PLACE_JOBS_GPUS 16
#define GV_PLACE_JOBS 16

/* Prepares the facts. `profile` and `bad` (as gv_policy_in has it; may be NULL) must outlive the
 * result. NULL: out of memory. gv_place_free takes it back. */
struct gv_place *gv_place_new(const struct gv_profile *profile, const gv_gpuset *bad);
void gv_place_free(struct gv_place *place);

/* Every group of `free_gpus` that fits the request, best first, on the heap for free(). Returns
 * their number (over 0), or -1 with `err`: none fits, and why; or too many to look at. */
int gv_place_rank(
    const struct gv_place *place, const struct gv_request *request, gv_gpuset free_gpus,
    struct gv_group_place **out, struct gv_error *err);

/* All jobs at once, on GPUs of their own: the division with the greatest sum of each job's figure
 * over the best that it could have alone. out[n] in the jobs' order. 0, or -1 with `err`. */
int gv_place_jobs(
    const struct gv_place *place, const struct gv_request *jobs, int n, gv_gpuset free_gpus,
    struct gv_group_place *out, struct gv_error *err);

/* Why, in one sentence. Returns `out`. */
const char *gv_place_reason(
    const struct gv_place *place, enum gv_work work, const struct gv_group_place *group, char *out,
    size_t size);

/* busbw of a set under the plugin's decision, measured or inferred. Fills busbw_gbs, known, like
 * and p2p. */
void gv_place_busbw(const struct gv_place *place, struct gv_group_place *group);

/* The class of the slowest edge of the best ring through the set (of the pair, for two). */
enum gv_path_class gv_place_ring_class(const struct gv_place *place, gv_gpuset gpus);

const char *gv_work_name(enum gv_work work);    /* "sync", "pair", "memory", "independent" */
int gv_work_from_name(const char *name);        /* -1: none of them */
const char *gv_known_name(enum gv_known known); /* "none", "inferred", "measured" */

#endif
