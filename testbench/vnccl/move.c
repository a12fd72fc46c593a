/* The calls of a group carried out: bytes from rank to rank, then the time that it took. A call
 * waits for all ranks of its communicator, which the real one leaves to the GPUs. */
#include <stdlib.h>
#include <string.h>

#include "testbench/vnccl/vnccl.h"

/* Pieces that each rank puts in. */
static int pieces_in(const struct gvh_comm *comm, const struct gvh_call *call)
{
    return call->kind == GVH_CALL_REDUCESCATTER ? comm->nranks : 1;
}

static void show(struct gvh_comm *comm, const struct gvh_call *call, size_t bytes)
{
    int n = pieces_in(comm, call);
    size_t room = gvv_room() / (size_t)n;
    unsigned char *slot = gvv_slot(comm->moved, comm->rank);
    for (int p = 0; p < n; p++)
        gvv_pack(
            slot + (size_t)p * room, (const char *)call->send + (size_t)p * bytes,
            gvv_ends(bytes, room));
}

/* Piece `p` of all ranks reduced into `out`. */
static void
reduce_piece(struct gvh_comm *comm, const struct gvh_call *call, int p, size_t bytes, void *out)
{
    size_t room = gvv_room() / (size_t)pieces_in(comm, call);
    struct gvv_ends ends = gvv_ends(bytes, room);
    size_t moved = ends.head + ends.tail;
    unsigned char *sum = malloc(moved ? moved : 1);
    if (!sum)
        abort();
    memcpy(sum, gvv_slot(comm->moved, 0) + (size_t)p * room, moved);
    for (int r = 1; r < comm->nranks; r++)
        gvv_reduce(
            sum, gvv_slot(comm->moved, r) + (size_t)p * room, moved, call->type, call->redop);
    if (call->redop == 4)
        gvv_scale(sum, moved, call->type, comm->nranks);
    gvv_unpack(out, sum, ends);
    free(sum);
}

static void gather(struct gvh_comm *comm, const struct gvh_call *call, size_t bytes)
{
    for (int r = 0; r < comm->nranks; r++)
        gvv_unpack(
            (char *)call->recv + (size_t)r * bytes, gvv_slot(comm->moved, r),
            gvv_ends(bytes, gvv_room()));
}

static void receive(struct gvh_comm *comm, const struct gvh_call *call, size_t bytes)
{
    switch (call->kind) {
    case GVH_CALL_ALLREDUCE:
        reduce_piece(comm, call, 0, bytes, call->recv);
        break;
    case GVH_CALL_REDUCE:
        if (comm->rank == call->root)
            reduce_piece(comm, call, 0, bytes, call->recv);
        break;
    case GVH_CALL_REDUCESCATTER:
        reduce_piece(comm, call, comm->rank, bytes, call->recv);
        break;
    case GVH_CALL_ALLGATHER:
        gather(comm, call, bytes);
        break;
    default:
        gvv_unpack(call->recv, gvv_slot(comm->moved, call->root), gvv_ends(bytes, gvv_room()));
    }
}

/* One bit, where the ring leads over a pair on P2P that is at fault. */
static void spoil(const struct gvh_comm *comm, const struct gvh_call *call)
{
    const struct gv_nccl_eval_out *e = comm->eval;
    for (int i = 0; e && i < e->n; i++)
        if (e->transport[i] == 'P' && call->count &&
            gvv_corrupt(e->ring[i], e->ring[(i + 1) % e->n])) {
            ((unsigned char *)call->recv)[0] ^= 0x40;
            return;
        }
}

static int failed(struct gvh_comm *comm)
{
    return gvh_fail(comm, GVH_CUDA_ERROR, "the GPU failed");
}

/* One rank, nothing to wait for. */
static int alone(struct gvh_comm *comm, const struct gvh_call *call, size_t bytes)
{
    if (gvv_pass(call->stream, 0))
        return failed(comm);
    struct gvv_ends ends = gvv_ends(bytes, gvv_room());
    if (call->recv != call->send) {
        memcpy(call->recv, call->send, ends.head);
        memcpy(
            (char *)call->recv + bytes - ends.tail, (const char *)call->send + bytes - ends.tail,
            ends.tail);
    }
    return GVH_SUCCESS;
}

static int collective(struct gvh_comm *comm, const struct gvh_call *call)
{
    size_t bytes = call->count * (size_t)gvv_type_bytes(call->type);
    if (comm->nranks == 1)
        return alone(comm, call, bytes);
    int rc = gvh_choose(comm, (int)call->kind, gvh_call_bytes(comm, call));
    if (rc)
        return rc;
    double us = gvv_collective_us(comm, call) * gvv_noise();
    if (gvv_pass(call->stream, 0)) /* what was queued before this call comes first */
        return failed(comm);
    show(comm, call, bytes);
    if ((rc = gvv_meet(comm, &us)))
        return rc;
    receive(comm, call, bytes);
    spoil(comm, call);
    return gvv_end(comm, call->stream, us) ? failed(comm) : GVH_SUCCESS;
}

static bool is_p2p(const struct gvh_task *task)
{
    return task->call.kind >= GVH_CALL_SEND;
}

/* Sends and receives of one communicator in a group: one exchange, in which every rank has a part.
 */
struct exchange {
    struct gvh_comm *comm;
    const struct gvh_task *tasks;
    int n;
    size_t room; /* of one message */
};

static size_t message_bytes(const struct gvh_call *call)
{
    return call->count * (size_t)gvv_type_bytes(call->type);
}

static void send_all(const struct exchange *x, size_t *most)
{
    unsigned char *slot = gvv_slot(x->comm->moved, x->comm->rank);
    for (int i = 0; i < x->n; i++) {
        const struct gvh_call *call = &x->tasks[i].call;
        if (x->tasks[i].comm != x->comm || call->kind != GVH_CALL_SEND)
            continue;
        size_t bytes = message_bytes(call);
        gvv_pack(slot + (size_t)call->root * x->room, call->send, gvv_ends(bytes, x->room));
        if (bytes > *most)
            *most = bytes;
    }
}

static void receive_all(const struct exchange *x)
{
    for (int i = 0; i < x->n; i++) {
        const struct gvh_call *call = &x->tasks[i].call;
        if (x->tasks[i].comm != x->comm || call->kind != GVH_CALL_RECV)
            continue;
        const unsigned char *slot = gvv_slot(x->comm->moved, call->root);
        gvv_unpack(
            call->recv, slot + (size_t)x->comm->rank * x->room,
            gvv_ends(message_bytes(call), x->room));
    }
}

static int exchange(struct gvh_comm *comm, const struct gvh_task *tasks, int n, void *stream)
{
    struct exchange x = {comm, tasks, n, gvv_room() / (size_t)comm->nranks};
    size_t most = 0;
    int rc = comm->nranks > 1 ? gvh_peers_all(comm) : GVH_SUCCESS;
    if (rc)
        return rc;
    if (gvv_pass(stream, 0))
        return failed(comm);
    send_all(&x, &most);
    double us = gvv_all_to_all_us(comm, most) * gvv_noise();
    if ((rc = gvv_meet(comm, &us)))
        return rc;
    receive_all(&x);
    return gvv_end(comm, stream, us) ? failed(comm) : GVH_SUCCESS;
}

static int perform(struct gvh_comm *comm, const struct gvh_task *tasks, int n, int i)
{
    struct gvh_comm *former = gvh_current(comm);
    int rc;
    gvh_set_device(comm->device);
    if (!gvv_fabric() || !gvv_shared(comm))
        rc = gvh_fail(comm, GVH_SYSTEM_ERROR, "no machine, or no room to exchange data");
    else if (is_p2p(&tasks[i]))
        rc = exchange(comm, tasks, n, tasks[i].call.stream);
    else
        rc = collective(comm, &tasks[i].call);
    gvh_current(former);
    return rc;
}

/* True where an earlier task of the group began the same exchange. */
static bool done_before(const struct gvh_task *tasks, int i)
{
    for (int k = 0; k < i; k++)
        if (is_p2p(&tasks[k]) && tasks[k].comm == tasks[i].comm)
            return true;
    return false;
}

int gvh_perform(const struct gvh_task *tasks, int n)
{
    int device = gvh_get_device(), rc = GVH_SUCCESS;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; !rc && i < n; i++) {
            if (is_p2p(&tasks[i]) != (pass == 0) || (!pass && done_before(tasks, i)))
                continue;
            rc = perform(tasks[i].comm, tasks, n, i);
        }
    gvh_set_device(device);
    return rc;
}
