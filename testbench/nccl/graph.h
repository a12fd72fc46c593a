/* The machine as a graph of nodes and directed links, from a prepared tree. */
#ifndef GV_NT_GRAPH_H
#define GV_NT_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "testbench/nccl/gv_nccl_eval.h"
#include "testbench/nccl/xml.h"

enum gv_nt_kind {
    GV_NT_GPU,
    GV_NT_PCI,
    GV_NT_NVS,
    GV_NT_CPU,
    GV_NT_NIC,
    GV_NT_NET,
    GV_NT_KINDS,
};

enum gv_nt_wire {
    GV_NT_LOCAL,
    GV_NT_NVLINK,
    GV_NT_C2C,
    GV_NT_PCIE,
    GV_NT_INTER_CPU,
    GV_NT_NETWORK
};

enum gv_nt_arch { GV_NT_ARCH_NONE, GV_NT_X86, GV_NT_POWER, GV_NT_ARM };
enum gv_nt_vendor { GV_NT_VENDOR_NONE, GV_NT_INTEL, GV_NT_AMD, GV_NT_ZHAOXIN };

/* NCCL's figure for a link that never limits, GB/s. */
#define GV_NT_LOCAL_GBS 5000.0f
#define GV_NT_MAX_LINKS 576
#define GV_NT_MAX_HOPS 64

struct gv_nt_node;

/* `gbs` is what is left of it: the search takes from it and gives back. */
struct gv_nt_link {
    struct gv_nt_node *to;
    enum gv_nt_wire wire;
    float gbs;
};

/* One way from a node to another: `hop` points to links, in the order of travel. */
struct gv_nt_path {
    struct gv_nt_link *hop[GV_NT_MAX_HOPS];
    int hops;
    float gbs;
    enum gv_nccl_path type;
};

struct gv_nt_node {
    enum gv_nt_kind kind;
    int index; /* among its kind */
    int64_t id;
    int dev, rank, sm; /* GPU */
    bool gdr;          /* GPU, NET */
    enum gv_nt_arch arch;
    enum gv_nt_vendor vendor;
    float inter_cpu_gbs; /* CPU */
    uint64_t device;     /* PCI: vendor, device and subsystem ids in one number */
    struct gv_nt_link link[GV_NT_MAX_LINKS];
    int nlinks;
    uint64_t used; /* search: bit per channel */
};

struct gv_nt_system {
    int release, max_links;
    struct gv_nt_node **node[GV_NT_KINDS];
    int count[GV_NT_KINDS], cap[GV_NT_KINDS];
    /* path[kind a][kind b][i * count[b] + j] from a's i-th to b's j-th node; only GPU, CPU and NET
     * have them (paths.h fills them). */
    struct gv_nt_path *path[GV_NT_KINDS][GV_NT_KINDS];
    float max_gbs, total_gbs; /* fastest path, fastest GPU */
    bool crosses_network;
    struct gv_nt_error *err;
};

/* Builds the graph of the kept branches. Returns a gv_nccl_result; on success the caller ends with
 * gv_nt_system_free. */
int gv_nt_system_build(
    struct gv_nt_elem *tree, int release, struct gv_nt_system **out, struct gv_nt_error *err);

/* NULL is allowed. */
void gv_nt_system_free(struct gv_nt_system *sys);

static inline struct gv_nt_path *gv_nt_path_between(
    const struct gv_nt_system *sys, const struct gv_nt_node *a, const struct gv_nt_node *b)
{
    return sys->path[a->kind][b->kind] + a->index * sys->count[b->kind] + b->index;
}

#endif
