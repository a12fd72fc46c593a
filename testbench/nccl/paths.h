/* Best ways between GPUs, CPUs and network devices, and which pairs of GPUs talk directly. */
#ifndef GV_NT_PATHS_H
#define GV_NT_PATHS_H

#include "testbench/nccl/graph.h"

/* What decides on P2P beside the graph. */
struct gv_nt_rules {
    uint64_t nop2p; /* bit per device */
    int p2p_level;  /* set by the user, else -1 */
    bool shm_disable, nvb_disable;
    bool use_nets;   /* network devices take part */
    bool nets_known; /* their GPUDirect state is settled, as it is once all paths are computed */
};

/* How far P2P reaches in this system: the user's level or the release's default. */
enum gv_nccl_path gv_nt_p2p_reach(const struct gv_nt_system *sys, const struct gv_nt_rules *rules);

/* Computes all paths; pairs that must not use P2P go through the CPU, pairs without P2P and SHM
 * become GV_NCCL_NET. Sets max_gbs and total_gbs. Returns a gv_nccl_result. */
int gv_nt_compute_paths(struct gv_nt_system *sys, const struct gv_nt_rules *rules);

/* Whether the P2P transport takes the pair, on the paths as they are now; *via is the GPU in
 * between or NULL. Returns a gv_nccl_result (an NVLink pair without P2P is an error there). */
int gv_nt_p2p(
    const struct gv_nt_system *sys, const struct gv_nt_rules *rules, const struct gv_nt_node *a,
    const struct gv_nt_node *b, bool *ok, const struct gv_nt_node **via);

/* Whether SHM takes the pair. */
bool gv_nt_shm(
    const struct gv_nt_system *sys, const struct gv_nt_rules *rules, const struct gv_nt_node *a,
    const struct gv_nt_node *b);

/* The release's order of path types has no such type: a search that widens its demand passes it
 * over. */
bool gv_nt_path_exists(enum gv_nccl_path type, int release);

#endif
