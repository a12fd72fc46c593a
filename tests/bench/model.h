/* A machine of the fabric model, what NCCL makes of a plan on it, and how fast that is. */
#ifndef GV_BENCH_MODEL_H
#define GV_BENCH_MODEL_H

#include "plugin/policy/gv_policy.h"
#include "plugin/topology/gv_topology.h"
#include "testbench/fabric/gv_fabric.h"
#include "testbench/nccl/gv_nccl_eval.h"

/* The NCCL that is played. */
#define GV_MODEL_NCCL 22809

struct gv_model {
    struct gv_fabric fabric;
    /* What a check of each ordered pair would find. */
    enum gv_p2p state[GV_MAX_GPUS][GV_MAX_GPUS];
    uint64_t noise_seed;  /* of what is measured on it */
    bool level_pxb;       /* the process runs under NCCL_P2P_LEVEL=PXB (gv_policy_level_pxb) */
    struct gv_str xml;    /* NCCL's own detection */
    struct gv_tree *tree; /* the same, to be edited */
};

/* The machine file `path`, all pairs sound that the driver offers. Exits when it cannot be read. */
struct gv_model *gv_model_read(const char *path);
/* A machine made by chance, the same for the same number: 2 to 64 GPUs, 1 to 8 switches, NUMA
 * nodes, NVLinks, and faults (corrupt, hung and one-way pairs, links that trained to x4). */
struct gv_model *gv_model_random(unsigned number);
void gv_model_free(struct gv_model *model);

static inline int gv_model_ngpus(const struct gv_model *model)
{
    return model->fabric.machine.ngpus;
}
gv_gpuset gv_model_gpus(const struct gv_model *model);

/* GPUs with the same root port, itself included. */
gv_gpuset gv_model_island(const struct gv_model *model, int gpu);

/* How NCCL wires a communicator under a plan. */
struct gv_wired {
    const struct gv_model *model;
    struct gv_nccl_eval_out eval;
    bool shm[GV_MAX_GPUS]; /* by position in eval.ring */
    struct gv_fabric_ring ring;
    bool ring_sound; /* no bad pair on a P2P edge of the ring */
    bool all_sound;  /* nor between any two ranks */
    bool peers;      /* all-to-all stays within 8 peers a GPU */
};

/* 0, or -1: the edits are refused, or NCCL would fail. */
int gv_model_wire(
    const struct gv_model *model, gv_gpuset gpus, const struct gv_edit *edits, int nedits,
    bool nvb_disable, bool level_pxb, struct gv_wired *out);

/* Microseconds of an AllReduce with the algorithm and protocol that NCCL would take; LL128 is
 * vetoed where a link is lent. */
double gv_wired_all_reduce_us(const struct gv_wired *wired, uint64_t bytes, bool lent);
/* The same with this algorithm and protocol, where NCCL offers them. */
double gv_wired_forced_us(
    const struct gv_wired *wired, uint64_t bytes, bool lent, int algorithm, int protocol);
/* Microseconds of a gigabyte from every rank to every other, and of an all-to-all with that. */
double gv_wired_us_per_gb(const struct gv_wired *wired);
double gv_wired_all_to_all_us(const struct gv_wired *wired, double us_per_gb, uint64_t bytes);

/* GB/s that no ring over these GPUs can exceed, whatever its order and whatever edges are P2P where
 * that is sound. */
double gv_model_bound_gbs(const struct gv_model *model, gv_gpuset gpus);

/* A generator of its own state. */
unsigned gv_chance(uint64_t *seed, unsigned below);

#endif
