/* Profiles of many hosts, side by side: which hosts are of one kind, how far each figure spreads
 * across them, which host is off, and one profile for each kind.
 *
 * A fleet is filled with gv_fleet_add, settled once with gv_fleet_settle and then only read; all
 * that it points at is its own and lives until gv_fleet_free. */
#ifndef GV_FLEET_H
#define GV_FLEET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/gv_error.h"
#include "base/gv_gpuset.h"
#include "base/gv_str.h"
#include "config/gv_profile.h"

/* Fewer hosts of a kind than this, and no one can be told to be off: of two that differ either may
 * be. */
#define GV_FLEET_FEWEST 3

enum gv_fleet_scope { GV_SCOPE_GPU, GV_SCOPE_PAIR, GV_SCOPE_GROUP };

/* One quantity that is compared across hosts: a row of the table in figures.c. */
struct gv_fleet_figure {
    const char *name;  /* as the profile's key has it: "copy_gbs", "link_width" */
    const char *label; /* for people: "memory copy" */
    const char *unit;  /* "GB/s", "us", "lanes", "" */
    enum gv_fleet_scope scope;
    bool counted; /* a setting or a state: hosts are counted, nothing is averaged */
};

/* What exactly: a figure of one GPU, an ordered pair, or a group. */
struct gv_fleet_key {
    int figure; /* index of gv_fleet_figures */
    int a, b;   /* the GPU, or the pair; -1 */
    gv_gpuset gpus;
    enum gv_op op;
    uint64_t bytes;
    bool loaded;
    int variant; /* index of fleet->variants; -1 */
};

/* One host's value of a key. */
struct gv_fleet_value {
    struct gv_fleet_key key;
    int host;
    double value; /* the median of its samples; the number of a setting or state */
    double range; /* of its samples, largest less smallest; 0 where there is one */
    bool off;
};

/* A key over all hosts of one kind. */
struct gv_fleet_item {
    struct gv_fleet_key key;
    int first, n;            /* its values, fleet->values[first .. first + n) */
    double median, min, max; /* over hosts; of a counted one the median is the usual value, NAN
                                where there is none */
    int min_host, max_host;
    double bound; /* how far from the median a host may be; NAN where nobody can be off */
    int off;      /* hosts that are */
};

/* Something is off on one host. */
struct gv_fleet_outlier {
    int host;
    int item, value; /* -1: no single figure, `text` says it all */
    int gpu;         /* over half of this GPU's pairs are off; -1 */
    int cause;       /* another outlier's index that this one goes with; -1 none */
    char text[200];  /* "host to GPU is 3.10 GB/s, 12.30 elsewhere (-75 %)" */
    char where[64];  /* "GPU 2 (0000:1c:00.0)", "GPU 0 to 5", "GPUs 0-5" */
};

struct gv_fleet_host {
    char name[96]; /* unique in the fleet */
    char *file;    /* where the profile was read, "file:line" for one of several in a file */
    struct gv_profile *profile;
    int kind, outliers;
};

/* Hosts of the same hardware: provenance, driver, number, model, memory, NUMA node and switch of
 * each GPU in PCI order, pairs with NVLink. */
struct gv_fleet_kind {
    char name[64]; /* "11x-tesla-v100-pcie-32gb", unique in the fleet */
    int *hosts, n;
    int first_item, nitems;
    char differs[200]; /* from the largest kind that is alike; "" for that one */
    struct gv_profile *merged;
    struct gv_str left_out; /* what the merged profile is without and why, one a line */
};

struct gv_fleet {
    struct gv_fleet_host *hosts;
    int nhosts;
    struct gv_error *unread; /* profiles that could not be read */
    int nunread;
    struct gv_str passed;        /* files that were passed over, and why, one a line */
    struct gv_fleet_kind *kinds; /* the largest first */
    int nkinds;
    struct gv_fleet_value *values;
    int nvalues, value_capacity;
    struct gv_fleet_item *items;
    int nitems;
    struct gv_profile_variant *variants; /* without runs */
    int nvariants;
    struct gv_fleet_outlier *outliers; /* by host */
    int noutliers;
    bool failed; /* out of memory */
};

extern const struct gv_fleet_figure gv_fleet_figures[];
extern const int gv_fleet_nfigures;

/* Adds a folder (every *.yaml below it, in order of name), a file, or "-" for standard input. A
 * file may hold several profiles, as `srun --label`, `mpirun` and Ansible collect them. A profile
 * that cannot be read goes to `unread` and the rest goes on. -1 with `err` where the folder or file
 * itself cannot be read, or memory ran out. */
int gv_fleet_add(struct gv_fleet *fleet, const char *path, struct gv_error *err);

/* Groups, compares and merges. Cards that stand in two profiles are one host: the later date
 * counts; of the same day both are refused. -1 with `err`: no profile, or out of memory. */
int gv_fleet_settle(struct gv_fleet *fleet, struct gv_error *err);

void gv_fleet_free(struct gv_fleet *fleet); /* what it holds; the struct is the caller's */

/* All items of one figure within a kind. */
struct gv_fleet_spread {
    int items, differ, off; /* items; those in which hosts differ; values that are off */
    double low, high;       /* of the items' medians over hosts */
    double typical, widest; /* (largest - smallest) / median across hosts, of the middle item and of
                               the one where it is greatest; NAN of a counted figure */
    int widest_item;        /* -1: none */
};

/* Fills `out`. Returns the number of items. */
int gv_fleet_spread_of(
    const struct gv_fleet *fleet, const struct gv_fleet_kind *kind, int figure,
    struct gv_fleet_spread *out);

/* "GPU 2", "GPU 0 to 5", "GPUs 0-5 AllReduce 1G (p2p-level)". */
const char *gv_fleet_where(
    const struct gv_fleet *fleet, const struct gv_fleet_key *key, char *out, size_t size);
/* A value as people read it: "x4", "refused", "12.30 GB/s". */
const char *gv_fleet_say(const struct gv_fleet_key *key, double value, char *out, size_t size);

/* The whole as one HTML page. 0, or -1: out of memory. */
int gv_fleet_html(const struct gv_fleet *fleet, struct gv_str *out);

#endif
