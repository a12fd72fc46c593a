/* How long a call takes: by the fabric, the communicator's ring and transports, and what was chosen
 * for it. */
#include <math.h>
#include <stdlib.h>

#include "testbench/vnccl/vnccl.h"

_Static_assert((int)GV_FABRIC_ALL_REDUCE == (int)GVH_CALL_ALLREDUCE, "both are ncclFunc_t");
_Static_assert((int)GV_FABRIC_ALL_GATHER == (int)GVH_CALL_ALLGATHER, "both are ncclFunc_t");

/* Rates and latency of a communicator, found once. */
struct rates {
    struct gv_fabric_ring ring;
    double all_to_all_us_per_gb; /* NAN until asked for */
};

/* Rates by the pointer of the evaluation, which the engine keeps for good: communicators that are
 * wired alike share it. */
static struct rates *rates_of(const struct gv_nccl_eval_out *e)
{
    static struct {
        const struct gv_nccl_eval_out *e;
        struct rates rates;
    } kept_rates[64];
    static int n;
    bool shm[GV_NCCL_MAX_GPUS];
    for (int i = 0; i < n; i++)
        if (kept_rates[i].e == e)
            return &kept_rates[i].rates;
    if (n == 64)
        n = 0;
    struct rates *r = &kept_rates[n].rates;
    kept_rates[n++].e = e;
    for (int i = 0; i < e->n; i++)
        shm[i] = e->transport[i] != 'P';
    r->ring = gv_fabric_ring_of(gvv_fabric(), e->ring, shm, e->n);
    r->all_to_all_us_per_gb = NAN;
    return r;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

double gvv_collective_us(const struct gvh_comm *comm, const struct gvh_call *call)
{
    pthread_mutex_lock(&lock);
    struct gv_fabric_ring ring = rates_of(comm->eval)->ring;
    pthread_mutex_unlock(&lock);
    enum gv_fabric_op op =
        call->kind <= GVH_CALL_ALLREDUCE ? (enum gv_fabric_op)call->kind : GV_FABRIC_BROADCAST;
    return gv_fabric_collective_us(
        &ring, op, (double)gvh_call_bytes(comm, call), comm->algorithm == GV_NCCL_TREE,
        comm->protocol, comm->channels);
}

static void route(const struct gvh_comm *comm, int from, int to, struct gv_flow *flow)
{
    const struct gv_fabric *f = gvv_fabric();
    const struct gv_nccl_pair *pair = &comm->eval->pair[from][to];
    int a = comm->devices[from], b = comm->devices[to];
    if (from == to)
        gv_flow_memory(flow, f, a, 2);
    else if (!pair->p2p)
        gv_flow_ring_edge(flow, f, a, b, true);
    else if (pair->via < 0)
        gv_flow_exchange(flow, f, a, b, 1);
    else {
        gv_flow_exchange(flow, f, a, comm->devices[pair->via], 1);
        gv_flow_exchange(flow, f, comm->devices[pair->via], b, 1);
    }
}

static double all_to_all_us_per_gb(const struct gvh_comm *comm)
{
    int n = comm->nranks;
    struct gv_flow *flow = calloc((size_t)(n * n), sizeof(*flow));
    if (!flow)
        abort();
    for (int i = 0; i < n * n; i++) {
        gv_flow_init(&flow[i]);
        route(comm, i / n, i % n, &flow[i]);
    }
    double us = gv_fabric_drain_us(gvv_fabric(), flow, n * n);
    for (int i = 0; i < n * n; i++)
        gv_flow_finish(&flow[i]);
    free(flow);
    return us;
}

double gvv_all_to_all_us(const struct gvh_comm *comm, uint64_t bytes)
{
    if (comm->nranks < 2 || !comm->eval)
        return 0;
    pthread_mutex_lock(&lock);
    struct rates *r = rates_of(comm->eval);
    if (isnan(r->all_to_all_us_per_gb))
        r->all_to_all_us_per_gb = all_to_all_us_per_gb(comm);
    double us = gv_fabric_all_to_all_us(&r->ring, r->all_to_all_us_per_gb, (double)bytes);
    pthread_mutex_unlock(&lock);
    return us;
}
