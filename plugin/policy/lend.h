/* When a link may be lent to a pair, and a bridge put above a communicator: what each edit needs.
 */
#ifndef GV_POLICY_LEND_H
#define GV_POLICY_LEND_H

#include "plugin/policy/crossings.h"

/* CUDA allows that many peers a GPU; a ninth fails with error 711. */
#define GV_MAX_PEERS 8

enum gv_obstacle {
    GV_NO_OBSTACLE,
    GV_REFUSED,      /* the driver refuses P2P between a and b */
    GV_BAD,          /* bytes arrived wrong, or not at all */
    GV_NOT_VERIFIED, /* P2P between a and b was not verified */
    GV_SM_READS,     /* sm 80: NCCL would read over an NVLink instead of writing */
    GV_SM_UNKNOWN,
    GV_PEERS,      /* GPU a would have a ninth peer */
    GV_NVB,        /* GPU a would have two NVLinks, on a machine whose own NVLinks form chains */
    GV_ALL_NVLINK, /* NCCL could build a ring or chain of NVLinks alone: LL128 over PCIe */
    GV_CPU_NODES,  /* a and b are not known to be on the same CPU node */
    GV_BRIDGE_SIZE,
    GV_OPERATIONS, /* all-to-all neither measured nor excluded */
    GV_LEVEL,      /* pairs stay joined but at NCCL_P2P_LEVEL=PXB, the whole process's */
    GV_NOTHING_CROSSES
};

struct gv_refusal {
    enum gv_obstacle obstacle;
    int a, b; /* -1 where the obstacle is no pair's */
};

/* Pairs to be lent links. */
struct gv_lent {
    int pair[GV_MAX_GPUS][2];
    int count;
    bool nvb_disable; /* a GPU has two NVLinks with them */
};

/* What keeps a link from being lent to this pair, whatever other pairs get. */
enum gv_obstacle gv_lend_obstacle(const struct gv_facts *facts, int a, int b);

/* All pairs of the communicator that may be lent a link, symmetric. */
void gv_lendable(const struct gv_facts *facts, gv_gpuset gpus, gv_gpuset out[GV_MAX_GPUS]);

/* The pairs of a set, symmetric. */
void gv_lent_pairs(const struct gv_lent *lent, gv_gpuset out[GV_MAX_GPUS]);

/* True if this GPU may carry two lent links. */
bool gv_lend_two(const struct gv_facts *facts, int gpu);

/* The whole set for the communicator `gpus`; sets `lent->nvb_disable`. */
struct gv_refusal gv_lent_check(const struct gv_facts *facts, gv_gpuset gpus, struct gv_lent *lent);

/* A bridge above all GPUs of the communicator. Its operations are checked elsewhere. */
struct gv_refusal gv_bridge_check(const struct gv_facts *facts, gv_gpuset gpus);

/* The first obstacle to P2P itself, whatever the edit: refused, bad, not verified. */
enum gv_obstacle gv_p2p_obstacle(const struct gv_facts *facts, int a, int b);

#endif
