#include "profiler/collective/rank.h"

#include <stdio.h>
#include <time.h>

#include "base/gv_size.h"

static int cuda(struct gv_rank *r, gv_cu_result rc, const char *what, struct gv_error *err)
{
    return rc ? gv_cuda_fail(&r->gpus->cuda, rc, err, what) : 0;
}

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

int gv_rank_open(struct gv_rank *r, struct gv_error *err)
{
    const struct gv_cuda *cu = &r->gpus->cuda;
    void *staging = NULL;
    char size[32];
    gv_worker_step(r->rank, "opening GPU %d", r->gpu);
    if (r->gpu >= r->gpus->n)
        return gv_error_set(err, "there is no GPU %d: CUDA shows %d", r->gpu, r->gpus->n);
    if (cuda(r, cu->ctx_retain(&r->ctx, r->gpus->device[r->gpu].device), "context", err) ||
        cuda(r, cu->ctx_set(r->ctx), "context", err) ||
        cuda(r, cu->stream_create(&r->stream, GV_CU_STREAM_NON_BLOCKING), "stream", err) ||
        cuda(r, cu->event_create(&r->begin, 0), "event", err) ||
        cuda(r, cu->event_create(&r->end, 0), "event", err))
        return -1;
    gv_size_format(r->setup->buffer_bytes, size, sizeof(size));
    gv_worker_step(r->rank, "allocating two buffers of %s", size);
    if (cuda(r, cu->mem_alloc(&r->send, r->setup->buffer_bytes), "send buffer", err) ||
        cuda(r, cu->mem_alloc(&r->recv, r->setup->buffer_bytes), "receive buffer", err) ||
        cuda(r, cu->host_alloc(&staging, r->setup->staging_bytes, 0), "host buffer", err))
        return -1;
    r->staging = staging;
    return 0;
}

int gv_rank_init(struct gv_rank *r, const struct gv_nccl_id *id, struct gv_error *err)
{
    gv_worker_step(r->rank, "ncclCommInitRank");
    gv_nccl_result rc = r->nccl->init_rank(&r->comm, r->setup->nranks, *id, r->rank);
    return rc ? gv_nccl_fail(r->nccl, rc, "ncclCommInitRank", err) : 0;
}

int gv_rank_destroy(struct gv_rank *r, struct gv_error *err)
{
    gv_worker_step(r->rank, "ncclCommDestroy");
    gv_nccl_result rc = r->comm ? r->nccl->destroy(r->comm) : 0;
    r->comm = NULL;
    return rc ? gv_nccl_fail(r->nccl, rc, "ncclCommDestroy", err) : 0;
}

/* Calls back to back between two events; microseconds a call. */
static int
timed(struct gv_rank *r, const struct gv_worker_run *run, double *out_us, struct gv_error *err)
{
    const struct gv_cuda *cu = &r->gpus->cuda;
    float ms = 0;
    for (int i = 0; i < run->warmups; i++)
        if (gv_rank_call(r, &run->what, err))
            return -1;
    if (cuda(r, cu->event_record(r->begin, r->stream), "event", err))
        return -1;
    for (int i = 0; i < run->iterations; i++)
        if (gv_rank_call(r, &run->what, err))
            return -1;
    if (cuda(r, cu->event_record(r->end, r->stream), "event", err) ||
        cuda(r, cu->stream_sync(r->stream), gv_op_name(run->what.op), err) ||
        cuda(r, cu->event_elapsed(&ms, r->begin, r->end), "event", err))
        return -1;
    *out_us = (double)ms * 1e3 / run->iterations;
    return 0;
}

static int
first_call(struct gv_rank *r, const struct gv_case *what, double *out_us, struct gv_error *err)
{
    double from = now_us();
    if (gv_rank_call(r, what, err) ||
        cuda(r, r->gpus->cuda.stream_sync(r->stream), gv_op_name(what->op), err))
        return -1;
    *out_us = now_us() - from;
    return 0;
}

int gv_rank_run(
    struct gv_rank *r, const struct gv_worker_run *run, struct gv_ran *out, struct gv_error *err)
{
    char size[32];
    const struct gv_case *what = &run->what;
    const char *name = gv_op_name(what->op);
    gv_size_format(what->bytes, size, sizeof(size));
    *out = (struct gv_ran){0};
    gv_worker_step(r->rank, "%s of %s, filling the buffers", name, size);
    if (gv_rank_fill(r, what, err))
        return -1;
    gv_worker_step(r->rank, "%s of %s, first call", name, size);
    if (first_call(r, what, &out->first_us, err))
        return -1;
    gv_worker_step(r->rank, "%s of %s, checking the result", name, size);
    if (gv_rank_verify(r, what, out, err))
        return -1;
    gv_worker_step(r->rank, "%s of %s, timed calls", name, size);
    if (timed(r, run, &out->time_us, err))
        return -1;
    out->throttled = (gv_device_throttle(r->gpus, r->gpu) & GV_NVML_THROTTLED) != 0;
    return 0;
}
