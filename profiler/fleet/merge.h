/* A merged profile on its way; merge.c and merge_groups.c alone. */
#ifndef GV_FLEET_MERGE_H
#define GV_FLEET_MERGE_H

#include "profiler/fleet/fleet.h"

struct merge {
    struct gv_fleet *fleet;
    struct gv_fleet_kind *kind;
    const struct gv_profile *first; /* of the kind: what all have alike is taken from it */
    struct gv_profile *out;
    int left_out; /* figures that not all hosts measured */
};

/* The profile of the kind's i-th host. */
const struct gv_profile *gv_merge_profile(const struct merge *m, int i);
/* Five digits say all that a measurement does, and keep the file readable. */
double gv_merge_digits(double value);
/* m->out->groups, for which there is room. 0, or -1: out of memory. */
int gv_merge_fleet_groups(struct merge *m);

#endif
