/* What the host says of a communicator: the edge of channel 0 that leaves each rank. Lines stay in
 * memory (gv_host_log_each). */
#include "testbench/host/engine.h"

void gvh_report(const struct gvh_comm *comm)
{
    const struct gv_nccl_eval_out *e = comm->eval;
    for (int i = 0; i < e->n && e->n > 1; i++)
        if (e->ring[i] == comm->devices[comm->rank])
            GVH_INFO(
                "Channel 00 : %d -> %d via %s", e->ring[i], e->ring[(i + 1) % e->n],
                e->transport[i] == 'P'   ? "P2P"
                : e->transport[i] == 'S' ? "SHM"
                                         : "NET");
}

void gvh_print(int level, const char *text)
{
    (void)level, (void)text;
}
