/* The variants of a group's ring, and what is kept of them: inside this folder only. */
#ifndef GV_PROBE_VARIANTS_H
#define GV_PROBE_VARIANTS_H

#include "profiler/probe/gv_calibration.h"
#include "profiler/probe/gv_ring.h"

struct gv_ring_variant {
    enum gv_edit_kind edit;
    struct gv_ring ring;
    struct gv_ring_setup setup;
    double samples[GV_MAX_SAMPLES];
    bool throttled[GV_MAX_SAMPLES], any_throttled, broken;
    int count;
};

/* The variants of a group. NCCL's default where every edge that it pairs by default is verified,
 * else those edges through host memory ("separate"); and P2P on the crossing edges, where each of
 * them is verified or is none for NCCL either, since the driver refuses it. Returns their number.
 */
int gv_ring_variants(
    const struct gv_calibration *cal, const struct gv_ring *ring, struct gv_ring_variant out[2]);

/* Adds a group with all samples of those of the `n` variants that work. 0, or -1: out of memory. */
int gv_ring_keep(
    struct gv_calibration *cal, const struct gv_item *item, const struct gv_ring_variant *v, int n);

#endif
