/* What the policy needs to know of a machine and a communicator, prepared once per decision: the
 * profile's pairs as sets, so that the rules read as set operations. */
#ifndef GV_POLICY_FACTS_H
#define GV_POLICY_FACTS_H

#include "plugin/policy/gv_policy.h"

/* All sets are profile indexes. `pairs` of an array are symmetric: bit b of x[a] is bit a of x[b].
 */
struct gv_facts {
    const struct gv_policy_in *in;
    const struct gv_profile *profile;
    const struct gv_profile_path *path[GV_MAX_GPUS][GV_MAX_GPUS]; /* ordered pair; NULL: no entry */
    gv_gpuset island[GV_MAX_GPUS]; /* GPUs under the same switch, itself included */
    gv_gpuset nvlink[GV_MAX_GPUS]; /* peers by real NVLinks */
    gv_gpuset near[GV_MAX_GPUS];   /* PXB or nearer, whatever the driver says of P2P */
    gv_gpuset refused[GV_MAX_GPUS];
    gv_gpuset bad[GV_MAX_GPUS];    /* corrupt, hung, one-way: by the profile or by this host */
    gv_gpuset sound[GV_MAX_GPUS];  /* verified both ways, nothing bad known: may be turned on */
    gv_gpuset peers[GV_MAX_GPUS];  /* on the whole machine, what NCCL joins by itself up to PXB */
    gv_gpuset joined[GV_MAX_GPUS]; /* inside the communicator, what NCCL joins by itself; under
                                      level_pxb also the bad pairs that it would join without */
    bool level_sys;                /* NCCL's default level for this communicator is SYS, not PXB */
    bool level_pxb;                /* gv_policy_level_pxb: the process runs under PXB */
    bool chains;                   /* gv_profile_nvlink_chains */
    double min_gain, max_loss;
    unsigned operations; /* 0: any */
    /* The profile's groups by GPUs, operation, size, load: what is asked for is found by search. */
    const struct gv_profile_group **group;
    int ngroups; /* 0 also where memory ran out: then nothing counts as measured */
};

/* Release with gv_facts_finish. */
void gv_facts_init(struct gv_facts *facts, const struct gv_policy_in *in);
void gv_facts_finish(struct gv_facts *facts);

/* Index of the first group that does not come before (gpus, op, bytes); ngroups where there is
 * none. */
int gv_facts_group(const struct gv_facts *facts, gv_gpuset gpus, enum gv_op op, uint64_t bytes);

/* The groups of these GPUs and this operation, by size: from what is returned up to, without,
 * `*end`. */
int gv_facts_groups(const struct gv_facts *facts, gv_gpuset gpus, enum gv_op op, int *end);

/* True where NCCL uses P2P for the pair by its own choice, in this communicator. */
static inline bool gv_facts_joined(const struct gv_facts *facts, int a, int b)
{
    return gv_gpuset_has(facts->joined[a], b);
}

/* A set of islands: bit i where the lowest GPU of an island of `gpus` is i. */
gv_gpuset gv_facts_islands(const struct gv_facts *facts, gv_gpuset gpus);

/* One-way P2P write of the pair, GB/s; NAN where not measured. */
double gv_facts_p2p_gbs(const struct gv_facts *facts, int from, int to);

/* Whether P2P of the pair is not to be had: the driver's word, not a missing verification. */
bool gv_facts_refused(const struct gv_facts *facts, int a, int b);

/* True if the operation is among those that the job (or the profile) declares; all are where
 * nothing is declared. */
bool gv_facts_uses(const struct gv_facts *facts, enum gv_op op);

#endif
