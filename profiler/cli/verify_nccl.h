/* The last word of `verify`: NCCL itself over the pairs that the check found good. */
#ifndef GV_CLI_VERIFY_NCCL_H
#define GV_CLI_VERIFY_NCCL_H

#include "profiler/probe/gv_calibration.h"

enum gv_nccl_verdict {
    GV_NCCL_ABSENT, /* no NCCL, no plugin, or no verified pair: nothing was run */
    GV_NCCL_RIGHT,
    GV_NCCL_WRONG,        /* over P2P wrong or hung, through host memory right */
    GV_NCCL_INCONCLUSIVE, /* the control through host memory failed too */
    GV_NCCL_VERDICTS
};

struct gv_nccl_check {
    enum gv_nccl_verdict verdict;
    char nccl[512]; /* path */
    int version;    /* 22809 */
    char text[400]; /* what was seen, in one sentence */
};

/* One AllReduce of integers over all GPUs that have a verified pair: with P2P on their ring (links
 * lent, or a bridge, where it crosses the host bridge), and with every pair moved to host memory as
 * the control. Where only the control is right, the pairs that were on P2P are verified no more.
 * `machine` is that of --virtual, or NULL. */
void gv_verify_nccl(struct gv_calibration *cal, const char *machine, struct gv_nccl_check *out);

const char *gv_nccl_verdict_name(enum gv_nccl_verdict verdict);

#endif
