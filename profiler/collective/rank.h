/* One rank: a GPU, its buffers, its communicator. Called from one thread of its own. */
#ifndef GV_COLLECTIVE_RANK_H
#define GV_COLLECTIVE_RANK_H

#include "profiler/collective/data.h"
#include "profiler/collective/wire.h"
#include "profiler/gpu/gv_gpus.h"

struct gv_rank {
    const struct gv_nccl_table *nccl;
    struct gv_gpus *gpus;
    const struct gv_worker_setup *setup;
    int rank, gpu;
    gv_cu_ctx ctx;
    gv_cu_stream stream;
    gv_cu_event begin, end;
    gv_cu_ptr send, recv;
    unsigned char *staging; /* pinned, setup->staging_bytes */
    gv_nccl_comm comm;
    struct gv_expected mine, result; /* what was made of them, kept for the next case */
};

/* Context, stream, buffers. */
int gv_rank_open(struct gv_rank *r, struct gv_error *err);
int gv_rank_init(struct gv_rank *r, const struct gv_nccl_id *id, struct gv_error *err);
/* Fills, runs once (timed as the cold call), checks, warms up, and times the rest. */
int gv_rank_run(
    struct gv_rank *r, const struct gv_worker_run *run, struct gv_ran *out, struct gv_error *err);
int gv_rank_destroy(struct gv_rank *r, struct gv_error *err);

/* call.c: the operation's call, queued on the rank's stream. */
int gv_rank_call(struct gv_rank *r, const struct gv_case *what, struct gv_error *err);
/* Where the operation's buffers are: in place they overlap as nccl-tests has them. */
gv_cu_ptr gv_rank_send_buffer(const struct gv_rank *r, const struct gv_case *what);
gv_cu_ptr gv_rank_recv_buffer(const struct gv_rank *r, const struct gv_case *what);

/* verify.c */
int gv_rank_fill(struct gv_rank *r, const struct gv_case *what, struct gv_error *err);
int gv_rank_verify(
    struct gv_rank *r, const struct gv_case *what, struct gv_ran *out, struct gv_error *err);

/* worker.c: tells the command what this rank is about to do. */
void gv_worker_step(int rank, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define GV_ROOT 0 /* of Broadcast and Reduce */

#endif
