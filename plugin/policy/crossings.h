/* How a ring goes through the islands of a communicator, and over which pairs it crosses from one
 * to the next. */
#ifndef GV_POLICY_CROSSINGS_H
#define GV_POLICY_CROSSINGS_H

#include "plugin/policy/facts.h"

/* Blocks: GPUs of a communicator that NCCL joins among themselves over PCIe; in PCI order by their
 * first GPU. An island, but for GPUs that were moved out of it or whose P2P the driver refuses. */
struct gv_blocks {
    gv_gpuset set[GV_MAX_GPUS];
    int count;
};

/* `moved`: GPUs taken out of their island by a separation. */
void gv_blocks_init(
    struct gv_blocks *blocks, const struct gv_facts *facts, gv_gpuset gpus, gv_gpuset moved);

enum gv_crossing_kind {
    GV_CROSSING_JOINED, /* P2P by NCCL's own choice: an NVLink between islands */
    GV_CROSSING_LENT,
    GV_CROSSING_SHM
};

struct gv_crossing {
    int from, to;
    enum gv_crossing_kind kind;
};

/* A ring through all blocks: block i is entered at entry[i], left at leave[i] over crossing[i]. */
struct gv_route {
    gv_gpuset block[GV_MAX_GPUS]; /* in ring order */
    int entry[GV_MAX_GPUS], leave[GV_MAX_GPUS];
    struct gv_crossing crossing[GV_MAX_GPUS];
    int count;   /* blocks; with one block there is no crossing, and leave is entry */
    int missing; /* crossings on SHM */
};

/* Finds the ring with, in this order: the fewest crossings left on SHM, the fewest lent links, the
 * fewest lent links at GPUs with real NVLinks (their own would have to be listed too), the highest
 * bandwidth of its slowest lent pair (pairs within min_gain of that count as equal), PCI order (out
 * of an island at its last GPU, into the next at its first). A GPU takes two lent links only where
 * it is alone in its block. `lendable`: bit b of lendable[a] where the pair may be lent a link;
 * NULL: nothing is lent, every crossing that is not joined stays on SHM. */
void gv_route_find(
    const struct gv_facts *facts, const struct gv_blocks *blocks, const gv_gpuset *lendable,
    struct gv_route *route);

/* The order of all GPUs along the route, real NVLink pairs next to each other where that is
 * possible. Returns their number. */
int gv_route_ring(const struct gv_facts *facts, const struct gv_route *route, int *ring);

/* The ring's order inside one block, from `entry` to `leave` (to anywhere where that is `entry`).
 */
int gv_block_path(const struct gv_facts *facts, gv_gpuset block, int entry, int leave, int *out);

#endif
