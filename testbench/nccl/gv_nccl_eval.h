/* What a given NCCL release makes of a topology file: paths, P2P, rings, transports, channels,
 * costs.
 *
 * This is the judge of the project's own tests. It shares no code with the plugin and is held
 * against runs of the real NCCL (tests/replay). The rules were learnt from NCCL's public source,
 * releases 2.19.3 to 2.30.7; later releases are taken to behave as 2.30.7.
 *
 * Modelled: one host, every rank the same file, every GPU once. Not modelled: NVLS, CollNet and PAT
 * graphs, GPUs split in parts, the order of a ring that crosses the network (see `approximate`),
 * and NCCL_* variables other than those in the input. */
#ifndef GV_NCCL_EVAL_H
#define GV_NCCL_EVAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GV_NCCL_MAX_GPUS 64
#define GV_NCCL_NUM_ALGO 7
#define GV_NCCL_NUM_PROTO 3
/* CUDA maps the memory of this many other GPUs at most (error 711 beyond). */
#define GV_NCCL_MAX_PEERS 8

/* Results 0 to 5 are ncclResult_t's. The others say what NCCL has no number for. */
enum gv_nccl_result {
    GV_NCCL_SUCCESS = 0,
    GV_NCCL_CUDA_ERROR = 1,
    GV_NCCL_SYSTEM_ERROR = 2,
    GV_NCCL_INTERNAL_ERROR = 3,
    GV_NCCL_INVALID_ARGUMENT = 4,
    GV_NCCL_INVALID_USAGE = 5,
    GV_NCCL_AUTODETECT = 100, /* empty file: NCCL silently looks into /sys; `machine_xml` says what
                                 it finds there, so this comes only without one */
    GV_NCCL_CRASH = 101,      /* the real one ends in SIGSEGV */
    GV_NCCL_UNKNOWN = 102,    /* depends on /sys or NVML, and no `machine_xml` was given */
};

/* How two GPUs are joined, nearest first. NET: only through the network. DIS: not at all. */
enum gv_nccl_path {
    GV_NCCL_LOC,
    GV_NCCL_NVL,
    GV_NCCL_NVB,
    GV_NCCL_C2C,
    GV_NCCL_PIX,
    GV_NCCL_PXB,
    GV_NCCL_P2C,
    GV_NCCL_PXN,
    GV_NCCL_PHB,
    GV_NCCL_SYS,
    GV_NCCL_NET,
    GV_NCCL_DIS,
};

/* Numbers of ncclFunc_t. */
enum gv_nccl_func {
    GV_NCCL_BROADCAST,
    GV_NCCL_REDUCE,
    GV_NCCL_ALLGATHER,
    GV_NCCL_REDUCESCATTER,
    GV_NCCL_ALLREDUCE,
    GV_NCCL_NUM_FUNC,
};

enum { GV_NCCL_TREE = 0, GV_NCCL_RING = 1 };
enum { GV_NCCL_LL = 0, GV_NCCL_LL128 = 1, GV_NCCL_SIMPLE = 2 };

struct gv_nccl_eval_in {
    const char *xml; /* the topology file, NULL or empty: autodetection */
    size_t xml_len;
    /* What /sys, CPUID and NVML say of the machine, as a complete topology file: fills attributes
     * that `xml` leaves out, GPUs that it forgets, and NVLinks of GPUs without any nvlink element.
     * NULL: nothing is known but `xml`. */
    const char *machine_xml;
    size_t machine_xml_len;
    int release;     /* major * 10000 + minor * 100 + patch: 22809 is 2.28.9 */
    const int *gpus; /* devices (`dev` of the gpu elements) in rank order */
    int ngpus;
    uint64_t nop2p; /* bit per device: the driver refuses P2P to and from it */
    int sm;         /* compute capability, 70 = 7.0; 0 = what the file says */
    int p2p_level;  /* NCCL_P2P_LEVEL as enum gv_nccl_path, -1 = not set */
    bool p2p_disable, shm_disable, nvb_disable;
};

/* One ordered pair of ranks, as the transports see it. */
struct gv_nccl_pair {
    enum gv_nccl_path path; /* after detours through the CPU */
    float gbs;
    bool p2p;       /* the P2P transport carries it */
    int via;        /* rank of the GPU in between for "P2P/indirect", else -1 */
    char transport; /* 'P', 'S', 'N'; '-' from a rank to itself */
};

/* Nothing but `result` and `error` is set unless `result` is 0. */
struct gv_nccl_eval_out {
    int result;
    char error[256];
    int n;                                /* ranks */
    int devices[GV_NCCL_MAX_GPUS];        /* gpus[] of the input */
    int ring[GV_NCCL_MAX_GPUS];           /* devices along channel 0, from rank 0 on */
    char transport[GV_NCCL_MAX_GPUS + 1]; /* of ring[i] to ring[i + 1], closing edge last */
    enum gv_nccl_path graph_path, graph_path_tree; /* worst path that the search had to allow */
    int graph_channels;                            /* of the ring graph, before doubling */
    double graph_gbs;                              /* GB/s of one channel of it */
    int tree_channels;
    double tree_gbs;
    bool tree_chain;    /* the tree search fell back to the plain chain pattern */
    bool same_channels; /* all channels run the same ring */
    int channels;       /* collective channels of the communicator */
    bool ll128_allowed; /* on the ring; the tree has its own in the cost table */
    bool ll128_tree;
    bool approximate; /* the ring crosses the network: order inside it is a guess */
    int min_sm, max_sm;
    int peers[GV_NCCL_MAX_GPUS]; /* per rank: distinct GPUs it maps or that map it, all pairs */
    struct gv_nccl_pair pair[GV_NCCL_MAX_GPUS][GV_NCCL_MAX_GPUS]; /* [from rank][to rank] */
};

/* Evaluates one communicator. `out` is overwritten whole. Returns out->result. */
int gv_nccl_evaluate(const struct gv_nccl_eval_in *in, struct gv_nccl_eval_out *out);

/* What the first all-to-all over the evaluated communicator does: 0, or GV_NCCL_CUDA_ERROR with a
 * text (terminated, `size` bytes at most) where a GPU would need more than GV_NCCL_MAX_PEERS. */
int gv_nccl_alltoall(const struct gv_nccl_eval_out *eval, char *error, size_t size);

/* The cost table that a tuner is given, in microseconds: table[algorithm][protocol], -1 where NCCL
 * offers nothing. Algorithms 0 tree, 1 ring, 2 to 5 CollNet and NVLS, 6 PAT; protocols 0 LL,
 * 1 LL128, 2 Simple.
 *
 * Follows NCCL's published model (2.23 to 2.30) for one node: base latency plus hardware latency a
 * step, bus bandwidth of the search with the caps of LL, LL128 and tree, the correction of trees by
 * size. CollNet, NVLS and PAT are -1: they need a network, an NVSwitch of compute capability 9, or
 * one GPU a node. `ops` is the number of operations that NCCL bundles (numPipeOps). Returns 0, or
 * -1 for a func that has no table and for a ring that crosses the network. */
int gv_nccl_costs(
    const struct gv_nccl_eval_out *eval, int release, enum gv_nccl_func func, uint64_t bytes,
    int ops, float table[GV_NCCL_NUM_ALGO][GV_NCCL_NUM_PROTO]);

/* "PIX" and the like. Never NULL. */
const char *gv_nccl_path_name(enum gv_nccl_path path);

/* A value of NCCL_P2P_LEVEL (exact upper-case name up to SYS, or a leading digit of the old
 * numbering) as the release reads it; -1 where it ignores the value. */
int gv_nccl_p2p_level(const char *value, int release);

#endif
