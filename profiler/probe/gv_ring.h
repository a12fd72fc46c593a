/* A ring AllReduce by our own kernels: what a group of GPUs can do, over P2P edges or over edges
 * that go through host memory. */
#ifndef GV_RING_H
#define GV_RING_H

#include "profiler/probe/gv_meter.h"

struct gv_ring {
    int n, gpu[GV_MAX_GPUS]; /* in ring order; a GPU may stand in it several times */
    bool shm[GV_MAX_GPUS];   /* edge i -> i + 1 goes through host memory */
    size_t bytes;            /* of each rank's buffer */
    unsigned loops;          /* AllReduces in one run; 0 is 1 */
};

/* Memory, peer connections and works of one ring, made once and run often. */
struct gv_ring_setup {
    struct gv_ring ring;
    struct gv_work work[GV_MAX_GPUS];
    gv_cu_ptr in[GV_MAX_GPUS], out[GV_MAX_GPUS], memory[GV_MAX_GPUS];
    void *host[GV_MAX_GPUS];
    void *result; /* mapped host memory: failures and wrong units */
    gv_cu_ptr result_at;
    bool peer_on[GV_MAX_GPUS];
};

/* `buffers_from` (may be NULL) lends in and out of another setup over the same GPUs in the same
 * order, so that variants fit into memory together. Returns 0, or -1 with `err` (nothing is left
 * behind). */
int gv_ring_init(
    struct gv_meter *meter, const struct gv_ring *ring, const struct gv_ring_setup *buffers_from,
    struct gv_ring_setup *out, struct gv_error *err);
void gv_ring_finish(struct gv_meter *meter, struct gv_ring_setup *setup, bool own_buffers);

/* Fills the inputs, runs once, and has every rank check every word of its result against the sum of
 * all inputs. Returns 0; 1 with `err` where the ring does not work (wrong sums at a rank, a rank
 * that waited in vain); -1 with `err` where a device or the driver failed. */
int gv_ring_verify(struct gv_meter *meter, struct gv_ring_setup *setup, struct gv_error *err);

/* One sample of busbw in GB/s, as nccl-tests defines it: 2 (n - 1) / n * bytes / time. `beside`
 * (may be NULL) is another ring on other GPUs that runs at the same time; it is given more loops
 * until it lasts longer. Returns as gv_ring_verify does. */
int gv_ring_sample(
    struct gv_meter *meter, struct gv_ring_setup *setup, struct gv_ring_setup *beside,
    double *busbw_gbs, bool *throttled, struct gv_error *err);

#endif
