/* Rule 4: pairs that NCCL would join and that are known to be bad are taken apart. */
#ifndef GV_POLICY_SEPARATE_H
#define GV_POLICY_SEPARATE_H

#include "plugin/policy/facts.h"

struct gv_separation {
    int pair[GV_MAX_EDITS][2]; /* the first GPU of each pair is moved to its CPU */
    int count;
    gv_gpuset moved;
    gv_gpuset apart[GV_MAX_GPUS]; /* symmetric: all pairs taken apart */
    bool level_pxb;
    int first[2]; /* a pair to name; -1 where there is none */
};

/* The bad pairs inside the communicator that NCCL joins by itself. False where there are none. */
bool gv_separate_bad(const struct gv_facts *facts, struct gv_separation *out);

/* A measured separation: the pairs that a variant names, or all that NCCL joins by itself. */
bool gv_separate_listed(
    const struct gv_facts *facts, const int (*pairs)[2], int npairs, struct gv_separation *out);

/* Whether the pair still is P2P after the separation, by NCCL's own choice. */
bool gv_separation_joins(
    const struct gv_facts *facts, const struct gv_separation *separation, int a, int b);

#endif
