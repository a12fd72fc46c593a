/* The search for rings and trees inside one host. */
#ifndef GV_NT_SEARCH_H
#define GV_NT_SEARCH_H

#include "testbench/nccl/graph.h"

#define GV_NT_MAX_CHANNELS 64

enum gv_nt_shape { GV_NT_RING, GV_NT_TREE_BALANCED, GV_NT_TREE_CHAIN };

/* What is asked of a search and what it found. order[c * n + i] is the rank at place i of channel
 * c, n GPUs in all. */
struct gv_nt_plan {
    enum gv_nt_shape shape;
    int min_channels, max_channels;
    float gbs_intra, gbs_inter;
    enum gv_nccl_path type;
    bool cross_nic, same_channels;
    int channels, hops;
    int order[GV_NT_MAX_CHANNELS * GV_NCCL_MAX_GPUS];
};

/* Searches for plan->shape with plan->min_channels to max_channels; all other fields are set. A
 * system without any solution gets one channel in file order at 0.1 GB/s, as in NCCL. */
void gv_nt_search(struct gv_nt_system *sys, struct gv_nt_plan *plan);

#endif
