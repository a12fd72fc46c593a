/* What the host does with the calls of a group: it chooses and connects, and moves nothing. */
#include "testbench/host/engine.h"

static int perform(const struct gvh_task *task)
{
    struct gvh_comm *comm = task->comm;
    if (task->call.kind >= GVH_CALL_SEND)
        return gvh_peers_all(comm);
    if (comm->nranks == 1)
        return GVH_SUCCESS;
    return gvh_choose(comm, (int)task->call.kind, gvh_call_bytes(comm, &task->call));
}

int gvh_perform(const struct gvh_task *tasks, int n)
{
    int rc = GVH_SUCCESS;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; !rc && i < n; i++) {
            if ((tasks[i].call.kind >= GVH_CALL_SEND) != (pass == 0))
                continue;
            struct gvh_comm *former = gvh_current(tasks[i].comm);
            gvh_set_device(tasks[i].comm->device);
            rc = perform(&tasks[i]);
            gvh_current(former);
        }
    return rc;
}
