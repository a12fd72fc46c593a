/* How fast bytes move in a machine that is not here: links with a capacity for each direction and
 * for both together, uplinks that the GPUs under a switch share, caps by path class, max-min fair
 * sharing, latencies. All numbers come from the machine file's `fabric` (README.md has the keys).
 * Units: GB/s = 1e9 bytes/s, microseconds. */
#ifndef GV_FABRIC_H
#define GV_FABRIC_H

#include <stdbool.h>

#include "base/gv_error.h"
#include "testbench/machines/gv_bench_machine.h"

enum gv_fabric_class {
    GV_FABRIC_LOCAL, /* the same GPU */
    GV_FABRIC_NVL,
    GV_FABRIC_PIX,
    GV_FABRIC_PXB,
    GV_FABRIC_PHB,
    GV_FABRIC_SYS,
    GV_FABRIC_CLASSES
};

/* Caps of one stream of traffic over a path of the class. INFINITY: none. */
struct gv_fabric_caps {
    double write_gbs, read_gbs;
    double both_ways_gbs; /* both directions of a pair together */
    double ring_gbs;      /* an edge of a ring AllReduce, both directions of the links in use */
    double exchange_gbs;  /* a pair's share while all pairs write to each other */
    double latency_us;    /* a write, until the other side sees it */
};

struct gv_fabric_gpu {
    double memory_gbs, theoretical_gbs; /* read plus written */
    int bus_width_bits, memory_mhz, app_core_mhz, max_core_mhz, power_limit_w, multiprocessors;
    int link_width; /* trained; the machine file's width by default */
    double link_gbs, to_device_gbs,
        to_host_gbs; /* its own, where it differs from `links`; else 0 */
};

struct gv_fabric {
    struct gv_bench_machine machine;
    struct gv_fabric_gpu gpu[GV_MAX_GPUS];
    struct gv_fabric_caps caps[GV_FABRIC_CLASSES];
    double link_gbs, link_both_gbs;     /* a GPU's own link at full width, one way and both */
    double uplink_gbs, uplink_both_gbs; /* a root port's link */
    double to_device_gbs, to_host_gbs;  /* one GPU and host memory */
    double staged_gbs; /* a copy between GPUs that the driver leads through the host */
    double host_latency_us;
    double shm_edge_gbs;           /* a ring edge through host memory */
    double shm_ports_gbs;          /* such edges between the same two root ports, all together */
    int max_peers;                 /* 8 */
    int port[GV_MAX_GPUS], nports; /* root port of each GPU, numbered */
    int nvlinks[GV_MAX_GPUS][GV_MAX_GPUS];
};

/* What follows from f->machine alone, everything else zero: root ports, link widths, NVLinks, no
 * caps. Capacities are then to be set. */
void gv_fabric_init(struct gv_fabric *f);

/* Reads the machine file with its `fabric`. 0, or -1 with file, line, column, cause. */
int gv_fabric_read(const char *path, struct gv_fabric *out, struct gv_error *err);

enum gv_fabric_class gv_fabric_class(const struct gv_fabric *fabric, int a, int b);
/* What the driver says: whether a can reach b's memory. */
bool gv_fabric_p2p(const struct gv_fabric *fabric, int a, int b);

/* Something that moves bytes: it uses resources, each with a weight (bytes on the resource for each
 * byte of progress), and never exceeds `cap_gbs`. */
struct gv_flow {
    int nuse, capacity;
    struct gv_flow_use {
        int resource;
        double weight;
    } * use;
    double cap_gbs;
};

/* Numbers of resources; those of a pair are unordered. */
int gv_fabric_resources(const struct gv_fabric *fabric);
double gv_fabric_capacity(const struct gv_fabric *fabric, int resource);

void gv_flow_init(struct gv_flow *flow);
void gv_flow_finish(struct gv_flow *flow);
/* Each adds what one kind of traffic uses, `weight` bytes for each byte of progress. */
void gv_flow_memory(struct gv_flow *, const struct gv_fabric *, int gpu, double weight);
void gv_flow_write(struct gv_flow *, const struct gv_fabric *, int from, int to, double weight);
/* The same while all pairs write to each other. */
void gv_flow_exchange(struct gv_flow *, const struct gv_fabric *, int from, int to, double weight);
/* `by` reads the memory of `of`. */
void gv_flow_read(struct gv_flow *, const struct gv_fabric *, int by, int of, double weight);
void gv_flow_to_host(struct gv_flow *, const struct gv_fabric *, int gpu, double weight);
void gv_flow_to_device(struct gv_flow *, const struct gv_fabric *, int gpu, double weight);
void gv_flow_staged(struct gv_flow *, const struct gv_fabric *, int from, int to, double weight);
/* An edge of a ring, P2P or through host memory. */
void gv_flow_ring_edge(struct gv_flow *, const struct gv_fabric *, int from, int to, bool shm);

/* Max-min fair rates (GB/s of progress) of `n` flows that run together: all rise alike until a
 * resource or a cap is full, its flows stay there, the others rise on. */
void gv_fabric_share(
    const struct gv_fabric *fabric, const struct gv_flow *const *flows, int n, double *rates);

/* Collectives of one communicator, as the virtual NCCL times them ------------------------------ */

/* Numbers of ncclFunc_t. */
enum gv_fabric_op {
    GV_FABRIC_BROADCAST,
    GV_FABRIC_REDUCE,
    GV_FABRIC_ALL_GATHER,
    GV_FABRIC_REDUCE_SCATTER,
    GV_FABRIC_ALL_REDUCE
};

/* Rates and latency of a ring. */
struct gv_fabric_ring {
    int n;
    double ring_gbs, chain_gbs; /* the chain lacks the closing edge */
    double hop_us;              /* of its slowest edge */
};

/* The ring gpu[0] .. gpu[n - 1]; shm[i]: the edge from gpu[i] goes through host memory. */
struct gv_fabric_ring
gv_fabric_ring_of(const struct gv_fabric *fabric, const int *gpu, const bool *shm, int n);

/* Microseconds of a call of `size` bytes under NCCL's protocol number (other values: Simple). */
double gv_fabric_collective_us(
    const struct gv_fabric_ring *ring, enum gv_fabric_op op, double size, bool tree, int protocol,
    int channels);

/* Microseconds until all flows, begun together, have moved a gigabyte each. */
double gv_fabric_drain_us(const struct gv_fabric *fabric, const struct gv_flow *flows, int n);

/* All pairs at once, `size` bytes from each rank to each other; `us_per_gb` by gv_fabric_drain_us.
 */
double gv_fabric_all_to_all_us(const struct gv_fabric_ring *ring, double us_per_gb, double size);

#endif
