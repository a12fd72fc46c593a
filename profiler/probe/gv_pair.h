/* Whether one GPU may write into another's memory and be believed. The owner reads what arrived, by
 * a kernel that is resident while the other one writes: a copy followed by a check passes on
 * machines where NCCL hangs or gets wrong sums. */
#ifndef GV_PAIR_H
#define GV_PAIR_H

#include "profiler/probe/gv_meter.h"

enum gv_pair_outcome {
    GV_PAIR_OK,
    GV_PAIR_REFUSED, /* the driver says no */
    GV_PAIR_CORRUPT,
    GV_PAIR_HUNG,
    GV_PAIR_INCONCLUSIVE, /* the same check through host memory failed as well */
    GV_PAIR_OUTCOMES
};

struct gv_pair_result {
    enum gv_pair_outcome outcome;
    unsigned long long wrong, first_wrong; /* units of 16 bytes */
    bool stuck; /* HUNG, and the kernels run on: this process can do nothing more with its GPUs */
    char text[160]; /* cause in one sentence; "" for OK */
};

/* Checks from -> to in this process. `bytes` is the size of the buffer (at most what both have
 * free), `timeout_s` bounds each wait of the kernels. Both devices must be started. Returns 0, or
 * -1 with `err` where the check itself could not be made (out of memory, a device that fails). */
int gv_pair_check(
    struct gv_meter *meter, int from, int to, size_t bytes, double timeout_s,
    struct gv_pair_result *out, struct gv_error *err);

/* One-way latency of a write, from < > to, into `samples` (gv_meter_us with per = 2 * rounds). Peer
 * access must be on both ways. */
int gv_pair_latency(
    struct gv_meter *meter, int a, int b, unsigned rounds, struct gv_figure *out,
    struct gv_error *err);

/* Turns peer access from one GPU to another on or off; on twice is no error. */
gv_cu_result gv_peer_on(struct gv_gpus *gpus, int from, int to);
void gv_peer_off(struct gv_gpus *gpus, int from, int to);

const char *gv_pair_outcome_name(enum gv_pair_outcome outcome);

#endif
