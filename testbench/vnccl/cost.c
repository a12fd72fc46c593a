/* How long a call takes on the machine. Bandwidths are the fabric's; what a protocol keeps of them
 * and what a step costs is assumed (rounded from NCCL's published model), since it was not measured
 * on the reference machine: sizes at which choices change are those of this model, not of a board.
 */
#include <math.h>
#include <stdlib.h>

#include "testbench/vnccl/vnccl.h"

enum { LL, LL128, SIMPLE };

static const double base_us[] = {6.6, 14.0, 8.4};
static const double kept[] = {0.5, 0.92, 1.0};      /* of the bandwidth: LL sends a flag a word */
static const double hop_factor[] = {1.0, 1.2, 3.0}; /* of a write's latency, a step */
#define TREE_KEEPS 0.9                              /* of a ring's bandwidth, inside a host */
#define CHANNEL_GBS 22.0                            /* what one channel moves at most */
#define SEND_BASE_US 12.0

/* Rates and latency of a communicator, found once. */
struct rates {
    double ring_gbs, chain_gbs;  /* the chain lacks the closing edge */
    double hop_us;               /* of its slowest edge */
    double all_to_all_us_per_gb; /* NAN until asked for */
};

static double edge_latency_us(const struct gv_fabric *f, const struct gv_nccl_eval_out *e, int i)
{
    int from = e->ring[i], to = e->ring[(i + 1) % e->n];
    if (e->transport[i] == 'P')
        return f->caps[gv_fabric_class(f, from, to)].latency_us;
    return 2 * f->host_latency_us;
}

static double ring_gbs(const struct gv_fabric *f, const struct gv_nccl_eval_out *e, int edges)
{
    struct gv_flow flow;
    const struct gv_flow *one = &flow;
    double rate = 0;
    gv_flow_init(&flow);
    for (int i = 0; i < edges; i++)
        gv_flow_ring_edge(&flow, f, e->ring[i], e->ring[(i + 1) % e->n], e->transport[i] != 'P');
    gv_fabric_share(f, &one, 1, &rate);
    gv_flow_finish(&flow);
    return rate;
}

/* Rates by the pointer of the evaluation, which the engine keeps for good: communicators that are
 * wired alike share it. */
static const struct rates *rates_of(const struct gv_nccl_eval_out *e)
{
    static struct {
        const struct gv_nccl_eval_out *e;
        struct rates rates;
    } kept_rates[64];
    static int n;
    const struct gv_fabric *f = gvv_fabric();
    for (int i = 0; i < n; i++)
        if (kept_rates[i].e == e)
            return &kept_rates[i].rates;
    if (n == 64)
        n = 0;
    struct rates *r = &kept_rates[n].rates;
    kept_rates[n++].e = e;
    *r = (struct rates){.all_to_all_us_per_gb = NAN};
    r->ring_gbs = ring_gbs(f, e, e->n);
    r->chain_gbs = ring_gbs(f, e, e->n - 1);
    for (int i = 0; i < e->n; i++)
        r->hop_us = fmax(r->hop_us, edge_latency_us(f, e, i));
    return r;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct rates rates(const struct gv_nccl_eval_out *e)
{
    pthread_mutex_lock(&lock);
    struct rates r = *rates_of(e);
    pthread_mutex_unlock(&lock);
    return r;
}

/* Bytes over each edge for a byte of the call, and steps one after another. */
static void work_of(const struct gvh_comm *comm, int kind, double *bytes, double *steps)
{
    double n = comm->nranks;
    *bytes = kind == GVH_CALL_ALLREDUCE                                     ? 2 * (n - 1) / n
             : kind == GVH_CALL_ALLGATHER || kind == GVH_CALL_REDUCESCATTER ? (n - 1) / n
                                                                            : 1;
    *steps = kind == GVH_CALL_ALLREDUCE ? 2 * (n - 1) : n - 1;
}

double gvv_collective_us(const struct gvh_comm *comm, const struct gvh_call *call)
{
    struct rates r = rates(comm->eval);
    int p = comm->protocol < LL || comm->protocol > SIMPLE ? SIMPLE : comm->protocol;
    double bytes, steps, size = (double)gvh_call_bytes(comm, call);
    bool tree = comm->algorithm == GV_NCCL_TREE;
    work_of(comm, (int)call->kind, &bytes, &steps);
    if (tree)
        steps = 2 * ceil(log2(comm->nranks)) + 1;
    bool whole = call->kind <= GVH_CALL_REDUCE || tree;
    double gbs = (whole ? r.chain_gbs : r.ring_gbs) * kept[p] * (tree ? TREE_KEEPS : 1);
    if (tree && call->kind == GVH_CALL_ALLREDUCE)
        bytes = 2 * (comm->nranks - 1.0) / comm->nranks;
    gbs = fmin(gbs, comm->channels * CHANNEL_GBS * kept[p]);
    return base_us[p] + steps * r.hop_us * hop_factor[p] + bytes * size / gbs / 1e3;
}

/* One message to be on its way. */
struct message {
    struct gv_flow flow;
    double left_gb;
};

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

/* Microseconds until all have arrived, a gigabyte each. */
static double drain(struct message *m, int n)
{
    const struct gv_flow **flows = calloc((size_t)n, sizeof(*flows));
    double *rate = calloc((size_t)n, sizeof(*rate)), seconds = 0;
    int *who = calloc((size_t)n, sizeof(*who)), moving;
    if (!flows || !rate || !who)
        abort();
    do {
        double step = INFINITY;
        moving = 0;
        for (int i = 0; i < n; i++)
            if (m[i].left_gb > 1e-9) {
                who[moving] = i;
                flows[moving++] = &m[i].flow;
            }
        if (moving)
            gv_fabric_share(gvv_fabric(), flows, moving, rate);
        for (int i = 0; i < moving; i++)
            step = fmin(step, m[who[i]].left_gb / rate[i]);
        for (int i = 0; i < moving; i++)
            m[who[i]].left_gb -= step * rate[i];
        seconds += moving ? step : 0;
    } while (moving);
    free(flows);
    free(rate);
    free(who);
    return seconds * 1e6;
}

static double all_to_all_us_per_gb(const struct gvh_comm *comm)
{
    int n = comm->nranks;
    struct message *m = calloc((size_t)(n * n), sizeof(*m));
    if (!m)
        abort();
    for (int i = 0; i < n * n; i++) {
        gv_flow_init(&m[i].flow);
        route(comm, i / n, i % n, &m[i].flow);
        m[i].left_gb = 1;
    }
    double us = drain(m, n * n);
    for (int i = 0; i < n * n; i++)
        gv_flow_finish(&m[i].flow);
    free(m);
    return us;
}

double gvv_all_to_all_us(const struct gvh_comm *comm, uint64_t bytes)
{
    if (comm->nranks < 2 || !comm->eval)
        return 0;
    pthread_mutex_lock(&lock);
    struct rates *r = (struct rates *)rates_of(comm->eval);
    if (isnan(r->all_to_all_us_per_gb))
        r->all_to_all_us_per_gb = all_to_all_us_per_gb(comm);
    double us = SEND_BASE_US + 3 * r->hop_us + r->all_to_all_us_per_gb * (double)bytes / 1e9;
    pthread_mutex_unlock(&lock);
    return us;
}
