/* One search: channel after channel through all GPUs, at one demand. */
#ifndef GV_NT_CHANNEL_H
#define GV_NT_CHANNEL_H

#include "testbench/nccl/search.h"

/* Left of the steps once no better plan is possible. */
#define GV_NT_PERFECT (-1)

/* `trial` is the demand and what is being tried, `best` the best plan so far. */
struct gv_nt_walk {
    struct gv_nt_system *sys;
    struct gv_nt_plan *trial, *best;
    int n;     /* GPUs */
    int steps; /* left; 0 = ran out */
    /* ranked[g]: the other GPUs in the order in which a free search tries them from GPU g */
    unsigned char ranked[GV_NCCL_MAX_GPUS][GV_NCCL_MAX_GPUS], nranked[GV_NCCL_MAX_GPUS];
};

static inline struct gv_nt_node *gv_nt_gpu(const struct gv_nt_walk *w, int g)
{
    return w->sys->node[GV_NT_GPU][g];
}

/* Fills `ranked` from the paths; sys and n are set. */
void gv_nt_walk_rank(struct gv_nt_walk *w);

/* Tries file order, then every order (or, from the second channel on, the last channel's order and
 * only if channels may differ all others). Takes steps; replaces *best by better plans. */
void gv_nt_walk_channels(struct gv_nt_walk *w);

#endif
