/* The public operations: each becomes a task of the thread's group. */
#include "testbench/host/engine.h"

/* Bytes of an element by ncclDataType_t: int8, uint8, int32, uint32, int64, uint64, half, float,
 * double, bfloat16. */
static const int type_bytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};

uint64_t gvh_call_bytes(const struct gvh_comm *comm, const struct gvh_call *call)
{
    bool known = call->type >= 0 && call->type < (int)(sizeof(type_bytes) / sizeof(type_bytes[0]));
    uint64_t bytes = call->count * (uint64_t)(known ? type_bytes[call->type] : 1);
    bool pieces = call->kind == GVH_CALL_ALLGATHER || call->kind == GVH_CALL_REDUCESCATTER;
    return pieces ? bytes * (uint64_t)comm->nranks : bytes;
}

int ncclAllReduce(
    const void *send, void *recv, size_t count, int type, int op, ncclComm_t comm, void *stream)
{
    struct gvh_call call = {GVH_CALL_ALLREDUCE, send, recv, count, type, op, 0, stream};
    return gvh_task(comm, &call);
}

int ncclReduce(
    const void *send, void *recv, size_t count, int type, int op, int root, ncclComm_t comm,
    void *stream)
{
    struct gvh_call call = {GVH_CALL_REDUCE, send, recv, count, type, op, root, stream};
    return gvh_task(comm, &call);
}

int ncclBroadcast(
    const void *send, void *recv, size_t count, int type, int root, ncclComm_t comm, void *stream)
{
    struct gvh_call call = {GVH_CALL_BROADCAST, send, recv, count, type, 0, root, stream};
    return gvh_task(comm, &call);
}

int ncclAllGather(
    const void *send, void *recv, size_t count, int type, ncclComm_t comm, void *stream)
{
    struct gvh_call call = {GVH_CALL_ALLGATHER, send, recv, count, type, 0, 0, stream};
    return gvh_task(comm, &call);
}

int ncclReduceScatter(
    const void *send, void *recv, size_t count, int type, int op, ncclComm_t comm, void *stream)
{
    struct gvh_call call = {GVH_CALL_REDUCESCATTER, send, recv, count, type, op, 0, stream};
    return gvh_task(comm, &call);
}

int ncclSend(const void *send, size_t count, int type, int peer, ncclComm_t comm, void *stream)
{
    struct gvh_call call = {GVH_CALL_SEND, send, NULL, count, type, 0, peer, stream};
    return gvh_task(comm, &call);
}

int ncclRecv(void *recv, size_t count, int type, int peer, ncclComm_t comm, void *stream)
{
    struct gvh_call call = {GVH_CALL_RECV, NULL, recv, count, type, 0, peer, stream};
    return gvh_task(comm, &call);
}
