/* What the command and its workers say to each other: messages of one size over a socket pair, both
 * ends from the same binary. */
#ifndef GV_COLLECTIVE_WIRE_H
#define GV_COLLECTIVE_WIRE_H

#include <limits.h>

#include "profiler/collective/gv_collective.h"
#include "profiler/collective/nccl_table.h"

#define GV_WORKER_FD 3

struct gv_worker_setup {
    char nccl[PATH_MAX], cuda[PATH_MAX], nvml[PATH_MAX];
    int nranks, first_rank, nlocal;
    int gpu[GV_MAX_GPUS]; /* [nlocal], CUDA ordinals */
    size_t buffer_bytes;  /* of the send and of the receive buffer */
    size_t check_bytes;
    size_t staging_bytes;
};

struct gv_worker_run {
    struct gv_case what;
    int iterations, warmups;
};

enum gv_ask { GV_ASK_SETUP, GV_ASK_ID, GV_ASK_INIT, GV_ASK_RUN, GV_ASK_DESTROY, GV_ASK_QUIT };

struct gv_request {
    enum gv_ask ask;
    struct gv_worker_setup setup; /* SETUP */
    struct gv_nccl_id id;         /* INIT */
    char force[256];              /* INIT: GV100_FORCE from now on */
    struct gv_worker_run run;     /* RUN */
};

/* What one rank did in a RUN. */
struct gv_ran {
    double time_us, first_us;
    uint64_t wrong;
    double bound;
    bool throttled;
};

enum gv_answer_kind { GV_ANSWER_STEP, GV_ANSWER_DONE, GV_ANSWER_FAILED };

struct gv_answer {
    enum gv_answer_kind kind;
    int rank;    /* of STEP and FAILED; -1: the process as a whole */
    int version; /* SETUP */
    struct gv_nccl_id id;
    struct gv_ran ran; /* RUN: over the process's ranks: mean time, most of the rest */
    char text[400];    /* STEP: what it is about to do; FAILED: why */
};

#endif
