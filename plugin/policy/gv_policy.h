/* What to do for one communicator, decided from the profile alone. Pure: no NCCL, no CUDA, no YAML,
 * no environment, no clock; equal input gives equal output, in every process. The rules are
 * numbered as in docs/design.md. */
#ifndef GV_POLICY_H
#define GV_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/gv_gpuset.h"
#include "config/gv_profile.h"

struct gv_policy_in {
    const struct gv_profile *profile;
    gv_gpuset gpus; /* of the communicator, profile indexes */
    int nranks;     /* 0: not known; else another number than GPUs in `gpus` means default (several
                       ranks on a GPU) */
    int nnodes;     /* 0: not known */
    bool one_node;  /* proven (rule 6) */
    unsigned operations; /* the job's own declaration, GV_OP_BITs; 0: the profile's */
    int nccl_version;    /* 22809 for 2.28.9; 0: not known (explain): then rule 7 is not applied */
    /* Pairs that this very host verified, by profile index: bit b of verified[a]. NULL: the
     * profile's own word suffices (it was measured on this host, or GV100_ASSUME_VERIFIED, or
     * explain). */
    const gv_gpuset *verified;
    /* Pairs that this host found bad (corrupt, hung, one-way): they are separated. NULL: none
     * beyond the profile's. */
    const gv_gpuset *bad;
};

enum gv_evidence { GV_EVIDENCE_NONE, GV_EVIDENCE_MEASURED, GV_EVIDENCE_INTERPOLATED };
enum gv_transport { GV_TRANSPORT_DEFAULT, GV_TRANSPORT_P2P, GV_TRANSPORT_SHM, GV_TRANSPORT_MIXED };

/* One change of the topology. LEND, SEPARATE: the pair (from, to), profile indexes. BRIDGE: above
 * the switches of `gpus`. */
struct gv_edit {
    enum gv_edit_kind kind;
    int from, to;
    int count; /* LEND: NVLinks in the entry; 0: the smallest that is not below the PCIe link */
    gv_gpuset gpus;
};

/* An edge of the ring as it is expected under the plan. */
struct gv_ring_edge {
    int from, to;
    enum gv_path_class path;     /* of the pair on the real machine */
    enum gv_transport transport; /* P2P or SHM; DEFAULT: not known */
    double gbs; /* the pair's measured one-way figure on that transport, NAN where none */
};

/* A line of the tuner's table: for sizes min_bytes <= n <= max_bytes of `op` use this. */
struct gv_tuner_row {
    enum gv_op op;
    uint64_t min_bytes, max_bytes;
    enum gv_algo algorithm; /* both ANY: leave NCCL's choice */
    enum gv_proto protocol;
    int channels; /* 0: leave alone */
    double gain;  /* NAN: somebody's choice, nothing was measured (profile's `tuner`) */
};

#define GV_MAX_EDITS 64
#define GV_MAX_ROWS 4096

struct gv_plan {
    enum gv_transport transport; /* DEFAULT: hand over no file */
    struct gv_edit edits[GV_MAX_EDITS];
    int nedits;
    bool nvb_disable; /* needs NCCL_NVB_DISABLE=1 (two lent links on one GPU; only where real
                         NVLinks form no chain) */
    bool veto_ll128;  /* a link is lent: LL128 must not be chosen */
    bool level_pxb;   /* SEPARATE alone cannot work here: NCCL_P2P_LEVEL=PXB for the process too
                         (with no edits where the level alone separates the pair) */
    bool other_nccl;  /* rule 7: nccl_version has another major.minor than the profile's: none but
                         the  profile's `tuner` */
    enum gv_evidence evidence;
    bool thin;   /* decided on fewer than three samples on a side */
    double gain; /* median over median minus 1; NAN where nothing was measured for these GPUs. Of a
                    default plan: what the measured alternative would have gained or lost */
    int ring[GV_MAX_GPUS], nring; /* expected order; the measured one where there is one */
    bool ring_measured;
    struct gv_ring_edge edges[GV_MAX_GPUS]; /* [nring], edges[i] from ring[i] */
    int slowest;                            /* index into edges, -1 not known */
    struct gv_tuner_row *rows;              /* [nrows], by op then size; NULL where none */
    int nrows;
    char reason[320]; /* one sentence: the deciding rule, measurement or edge */
};

/* Decides. Never fails: where anything is in doubt the plan is the default and `reason` says why.
 * `*out` is overwritten; release with gv_plan_finish. */
void gv_policy_decide(const struct gv_policy_in *in, struct gv_plan *out);
void gv_plan_finish(struct gv_plan *plan);

/* Whether the whole process needs NCCL_P2P_LEVEL=PXB (NCCL reads it once, so this is asked for the
 * machine, not for a communicator): a pair is bad, and NCCL's default level may be SYS in some
 * communicator, so that moving a GPU would not separate it. `nccl_version` 0: not known, so perhaps
 * an old one. `bad` as in gv_policy_in. */
bool gv_policy_level_pxb(const struct gv_profile *profile, int nccl_version, const gv_gpuset *bad);

/* True if one GPU anywhere on the machine has real NVLinks to two others (then NVB paths exist and
 * NCCL_NVB_DISABLE is not ours to set). */
bool gv_profile_nvlink_chains(const struct gv_profile *profile);

const char *gv_evidence_name(enum gv_evidence e);   /* "none", "measured", "interpolated" */
const char *gv_transport_name(enum gv_transport t); /* "default", "p2p", "shm", "mixed" */

#endif
