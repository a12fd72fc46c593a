/* A calibration: the plan of what is measured, and what was found. Figures go into the profile at
 * the end; the state here can be filled from a profile again, which is how a run is resumed. */
#ifndef GV_CALIBRATION_H
#define GV_CALIBRATION_H

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/gv_str.h"
#include "config/gv_machine.h"
#include "config/gv_profile.h"
#include "profiler/probe/gv_host_facts.h"
#include "profiler/probe/gv_geometry.h"
#include "profiler/probe/gv_meter.h"
#include "profiler/probe/gv_pair.h"

struct gv_calibration;
struct gv_collective_options;
struct gv_item;

/* Called before each item, and with NULL at the end. `done_s` of `all_s` (both estimates). */
typedef void (*gv_progress_fn)(
    void *data, const struct gv_calibration *cal, const struct gv_item *item, double done_s,
    double all_s);

struct gv_calibration_options {
    const char *cuda_path, *nvml_path; /* NULL: the system's */
    const char *only;                  /* "hbm,p2p,host,nccl,ring"; NULL: all */
    bool quick, force, virtual_machine;
    double budget_s;         /* 0: none, or 60 with `quick` */
    size_t memory_bytes;     /* at most this much of each GPU at a time; 0: 3 GiB */
    double pair_timeout_s;   /* a wait of the pair check's kernels; 0: 2 s */
    const gv_gpuset *groups; /* instead of those chosen by shape */
    int ngroups;
    const volatile sig_atomic_t *stop;
    const char *machine_name; /* of --virtual, for the child; NULL: none */
    /* How NCCL is measured; NULL: there is none, the groups get our own ring kernels. */
    const struct gv_collective_options *nccl;
    const char *self; /* the program that checks pairs in a child: SELF verify --worker PAIRS */
    gv_progress_fn progress;
    void *progress_data;
    FILE *trace; /* one line for each geometry tried; NULL: none */
};

/* What is measured for one kind of thing: a row of the table in probes.c. */
struct gv_probe {
    const char *name, *only; /* `only`: the word of --only that selects it */
    const char *needs, *unit;
    const char *better; /* which way is better */
    /* Adds its items with gv_plan_add. */
    void (*plan)(struct gv_calibration *cal, const struct gv_probe *self);
    /* Measures one item into `cal`. -1 with `err`: nothing more can be measured. What concerns one
     * GPU or pair alone is a warning and 0. */
    int (*run)(struct gv_calibration *cal, const struct gv_item *item, struct gv_error *err);
};

/* One step of the plan. Higher priority stays longer when the plan must fit into a budget. */
struct gv_item {
    const struct gv_probe *probe;
    char label[64];
    int a, b;
    gv_gpuset gpus, beside; /* `beside`: GPUs that are at work at the same time */
    double seconds;
    int priority;
    bool done, left_out;
};

struct gv_pair_state {
    enum gv_p2p p2p;
    bool checked, measured;
    struct gv_figure write_gbs, read_gbs, both_ways_gbs, latency_us, loaded_write_gbs,
        host_path_gbs;
    char note[96];
};

struct gv_calibration {
    struct gv_calibration_options options;
    struct gv_gpus gpus;
    struct gv_machine machine;
    struct gv_meter meter;
    struct gv_host_facts facts;
    int n; /* GPUs, in PCI order as CUDA and sysfs agree on */
    enum gv_path_class path_class[GV_MAX_GPUS][GV_MAX_GPUS];
    char smi_class[GV_MAX_GPUS][GV_MAX_GPUS][8];
    int nvlinks[GV_MAX_GPUS][GV_MAX_GPUS];
    int island[GV_MAX_GPUS]; /* numbered in the order of GPUs */

    struct gv_item *items;
    int nitems, item_capacity;

    struct gv_profile_memory memory[GV_MAX_GPUS];
    struct gv_figure driver_copy_gbs[GV_MAX_GPUS];
    int peers; /* connections that the first GPU could hold at once; -1 not known */
    struct gv_geometry geometry[GV_MAX_GPUS][4]; /* copy, read, write, triad */
    struct gv_profile_host_link host_alone[GV_MAX_GPUS], host_together[GV_MAX_GPUS];
    struct gv_figure host_driver_to_device_gbs[GV_MAX_GPUS], host_driver_to_host_gbs[GV_MAX_GPUS];
    int nhost_together;
    struct gv_pair_state pair[GV_MAX_GPUS][GV_MAX_GPUS];
    struct gv_profile_group *groups; /* malloc; moves into the profile */
    int ngroups;
    char nccl[16];             /* "2.28.9" where NCCL was measured, else "" */
    struct gv_str warnings;    /* one a line */
    gv_gpuset short_of_memory; /* warned of */
};

/* Opens driver and machine, makes the plan. Returns it, or NULL with `err`. */
struct gv_calibration *
gv_calibration_open(const struct gv_calibration_options *options, struct gv_error *err);
void gv_calibration_close(struct gv_calibration *cal); /* NULL is fine */

void gv_plan_add(
    struct gv_calibration *cal, const struct gv_probe *probe, int a, int b, gv_gpuset gpus,
    double seconds, int priority, const char *fmt, ...) __attribute__((format(printf, 8, 9)));
/* Estimated seconds of what is to be done. */
double gv_plan_seconds(const struct gv_calibration *cal);

/* Takes over what a profile of the same machine already has. -1 with `err`: another machine. */
int gv_calibration_resume(
    struct gv_calibration *cal, const struct gv_profile *profile, struct gv_error *err);

/* Does the plan. After each item `save` (may be NULL) is called. Returns 0, or -1 with `err`. */
int gv_calibration_run(
    struct gv_calibration *cal, int (*save)(void *data, struct gv_calibration *cal), void *data,
    struct gv_error *err);

/* The profile of what was found so far; free it. NULL: out of memory. */
struct gv_profile *gv_calibration_profile(const struct gv_calibration *cal);

/* Adds a warning, once. */
void gv_warn(struct gv_calibration *cal, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Warns of each of the GPUs that has fewer bytes free. */
void gv_warn_memory(struct gv_calibration *cal, gv_gpuset gpus, size_t bytes);

/* The table, ended by a row without a name, and its rows. */
extern const struct gv_probe *const gv_probes[];
extern const struct gv_probe gv_probe_memory, gv_probe_host, gv_probe_check, gv_probe_paths,
    gv_probe_loaded, gv_probe_ring, gv_probe_beside, gv_probe_groups;

/* shape.c */
void gv_shape_read(struct gv_calibration *cal);
/* Groups by shape: each kind of pair once, islands of each size once, an island with the first GPU
 * of the next (first crossing), islands of a NUMA node joined, all. Returns their number. */
int gv_shape_groups(const struct gv_calibration *cal, gv_gpuset out[GV_MAX_GPUS]);
/* The ring that follows the nearest neighbour from the first GPU on. Returns its length. */
int gv_shape_ring(const struct gv_calibration *cal, gv_gpuset gpus, int out[GV_MAX_GPUS]);
/* gv_host_acs_between of two GPUs. */
const char *gv_shape_acs(const struct gv_calibration *cal, int a, int b, char *out, size_t size);
/* Whether NCCL pairs them by default: PXB or nearer, or NVLink. */
bool gv_shape_default_p2p(const struct gv_calibration *cal, int a, int b);

/* estimate.c: what busbw to expect of a group at least, and how many plans there are to choose
 * from. For the times in a plan only. */
double gv_estimate_ring_gbs(const struct gv_calibration *cal, gv_gpuset group);
int gv_estimate_variants(const struct gv_calibration *cal, gv_gpuset group);

struct gv_collective;
/* suspects.c: where NCCL's results over P2P were wrong though the pairs' own check was right, each
 * pair that can be to blame under NCCL alone: AllReduce over P2P beside one through host memory. A
 * pair that is wrong becomes corrupt; where none is, none of them stays verified. */
int gv_suspects_check(
    struct gv_calibration *cal, const struct gv_collective_options *options,
    const struct gv_collective *found, struct gv_error *err);

/* check.c, worker.c: pairs in a child process. */
int gv_check_pairs(
    struct gv_calibration *cal, const int (*pairs)[2], int npairs, struct gv_pair_result *results,
    struct gv_error *err);
/* The child: checks the pairs named in `text` ("0>5,5>0") and prints a line before and after each.
 * Returns an exit status. */
int gv_check_worker(const struct gv_calibration_options *options, const char *text, FILE *out);

#endif
