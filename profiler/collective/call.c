#include <stdint.h>

#include "profiler/collective/gv_busbw.h"
#include "profiler/collective/rank.h"

/* Elements of one piece. */
static size_t piece(const struct gv_rank *r, const struct gv_case *what)
{
    int n = r->setup->nranks;
    int send = gv_op_send_pieces(what->op, n), recv = gv_op_recv_pieces(what->op, n);
    return what->bytes / (size_t)gv_type_bytes(what->type) / (size_t)(send > recv ? send : recv);
}

/* In place an all-gather sends from its own piece of the result, and a reduce-scatter leaves the
 * result in its own piece of what it sent. */
gv_cu_ptr gv_rank_send_buffer(const struct gv_rank *r, const struct gv_case *what)
{
    size_t bytes = piece(r, what) * (size_t)gv_type_bytes(what->type);
    if (!what->in_place)
        return r->send;
    return what->op == GV_OP_ALL_GATHER ? r->recv + (size_t)r->rank * bytes : r->recv;
}

gv_cu_ptr gv_rank_recv_buffer(const struct gv_rank *r, const struct gv_case *what)
{
    size_t bytes = piece(r, what) * (size_t)gv_type_bytes(what->type);
    if (what->in_place && what->op == GV_OP_REDUCE_SCATTER)
        return r->recv + (size_t)r->rank * bytes;
    return r->recv;
}

static gv_nccl_result all_to_all(struct gv_rank *r, const struct gv_case *what, size_t count)
{
    const struct gv_nccl_table *nccl = r->nccl;
    size_t bytes = count * (size_t)gv_type_bytes(what->type);
    gv_nccl_result rc = nccl->group_start();
    for (int peer = 0; !rc && peer < r->setup->nranks; peer++) {
        size_t at = (size_t)peer * bytes;
        rc = nccl->send(
            (const void *)(uintptr_t)(r->send + at), count, what->type, peer, r->comm, r->stream);
        if (!rc)
            rc = nccl->recv(
                (void *)(uintptr_t)(r->recv + at), count, what->type, peer, r->comm, r->stream);
    }
    gv_nccl_result ended = nccl->group_end();
    return rc ? rc : ended;
}

static gv_nccl_result call(struct gv_rank *r, const struct gv_case *what)
{
    const struct gv_nccl_table *nccl = r->nccl;
    const void *send = (const void *)(uintptr_t)gv_rank_send_buffer(r, what);
    void *recv = (void *)(uintptr_t)gv_rank_recv_buffer(r, what);
    size_t count = piece(r, what);
    int type = what->type, op = what->redop;
    switch (what->op) {
    case GV_OP_ALL_REDUCE:
        return nccl->all_reduce(send, recv, count, type, op, r->comm, r->stream);
    case GV_OP_REDUCE:
        return nccl->reduce(send, recv, count, type, op, GV_ROOT, r->comm, r->stream);
    case GV_OP_BROADCAST:
        return nccl->broadcast(send, recv, count, type, GV_ROOT, r->comm, r->stream);
    case GV_OP_ALL_GATHER:
        return nccl->all_gather(send, recv, count, type, r->comm, r->stream);
    case GV_OP_REDUCE_SCATTER:
        return nccl->reduce_scatter(send, recv, count, type, op, r->comm, r->stream);
    default:
        return all_to_all(r, what, count);
    }
}

int gv_rank_call(struct gv_rank *r, const struct gv_case *what, struct gv_error *err)
{
    gv_nccl_result rc = call(r, what);
    return rc ? gv_nccl_fail(r->nccl, rc, gv_op_name(what->op), err) : 0;
}
