/* How long a collective takes on the machine. Bandwidths are the fabric's; what a protocol keeps of
 * them and what a step costs is assumed (rounded from NCCL's published model), since it was not
 * measured on the reference machine: sizes at which choices change are those of this model, not of
 * a board. */
#include <math.h>
#include <stdlib.h>

#include "testbench/fabric/gv_fabric.h"

enum { LL, LL128, SIMPLE };

static const double base_us[] = {6.6, 14.0, 8.4};
static const double kept[] = {0.5, 0.92, 1.0};      /* of the bandwidth: LL sends a flag a word */
static const double hop_factor[] = {1.0, 1.2, 3.0}; /* of a write's latency, a step */
#define TREE_KEEPS 0.9                              /* of a ring's bandwidth, inside a host */
#define CHANNEL_GBS 22.0                            /* what one channel moves at most */
#define SEND_BASE_US 12.0

static double rate_of(const struct gv_fabric *f, const int *gpu, const bool *shm, int n, int edges)
{
    struct gv_flow flow;
    const struct gv_flow *one = &flow;
    double rate = 0;
    gv_flow_init(&flow);
    for (int i = 0; i < edges; i++)
        gv_flow_ring_edge(&flow, f, gpu[i], gpu[(i + 1) % n], shm[i]);
    gv_fabric_share(f, &one, 1, &rate);
    gv_flow_finish(&flow);
    return rate;
}

struct gv_fabric_ring
gv_fabric_ring_of(const struct gv_fabric *f, const int *gpu, const bool *shm, int n)
{
    struct gv_fabric_ring r = {.n = n};
    r.ring_gbs = rate_of(f, gpu, shm, n, n);
    r.chain_gbs = rate_of(f, gpu, shm, n, n - 1);
    for (int i = 0; i < n; i++) {
        enum gv_fabric_class c = gv_fabric_class(f, gpu[i], gpu[(i + 1) % n]);
        r.hop_us = fmax(r.hop_us, shm[i] ? 2 * f->host_latency_us : f->caps[c].latency_us);
    }
    return r;
}

/* Bytes over each edge for a byte of the call, and steps one after another. */
static void work_of(int n, enum gv_fabric_op op, double *bytes, double *steps)
{
    double all = n;
    *bytes = op == GV_FABRIC_ALL_REDUCE                                     ? 2 * (all - 1) / all
             : op == GV_FABRIC_ALL_GATHER || op == GV_FABRIC_REDUCE_SCATTER ? (all - 1) / all
                                                                            : 1;
    *steps = op == GV_FABRIC_ALL_REDUCE ? 2 * (all - 1) : all - 1;
}

double gv_fabric_collective_us(
    const struct gv_fabric_ring *r, enum gv_fabric_op op, double size, bool tree, int protocol,
    int channels)
{
    int p = protocol < LL || protocol > SIMPLE ? SIMPLE : protocol;
    double bytes, steps;
    work_of(r->n, op, &bytes, &steps);
    if (tree)
        steps = 2 * ceil(log2(r->n)) + 1;
    bool whole = op <= GV_FABRIC_REDUCE || tree;
    double gbs = (whole ? r->chain_gbs : r->ring_gbs) * kept[p] * (tree ? TREE_KEEPS : 1);
    gbs = fmin(gbs, channels * CHANNEL_GBS * kept[p]);
    return base_us[p] + steps * r->hop_us * hop_factor[p] + bytes * size / gbs / 1e3;
}

double gv_fabric_all_to_all_us(const struct gv_fabric_ring *r, double us_per_gb, double size)
{
    return SEND_BASE_US + 3 * r->hop_us + us_per_gb * size / 1e9;
}

struct draining {
    const struct gv_flow **flow;
    double *rate, *left_gb;
    int moving;
};

/* Lets time pass until the first of those that move has arrived. */
static double drain_once(const struct gv_fabric *f, struct draining *d)
{
    double seconds = INFINITY;
    int left = 0;
    gv_fabric_share(f, d->flow, d->moving, d->rate);
    for (int i = 0; i < d->moving; i++)
        seconds = fmin(seconds, d->left_gb[i] / d->rate[i]);
    for (int i = 0; i < d->moving; i++) {
        double gb = d->left_gb[i] - seconds * d->rate[i];
        if (gb <= 1e-9)
            continue;
        d->flow[left] = d->flow[i];
        d->left_gb[left++] = gb;
    }
    d->moving = left;
    return seconds;
}

double gv_fabric_drain_us(const struct gv_fabric *f, const struct gv_flow *flows, int n)
{
    struct draining d = {
        .flow = calloc((size_t)n + 1, sizeof(*d.flow)),
        .rate = malloc(sizeof(*d.rate) * ((size_t)n + 1)),
        .left_gb = malloc(sizeof(*d.left_gb) * ((size_t)n + 1)),
        .moving = n};
    double seconds = 0;
    if (!d.flow || !d.rate || !d.left_gb)
        abort();
    for (int i = 0; i < n; i++) {
        d.flow[i] = &flows[i];
        d.left_gb[i] = 1;
    }
    while (d.moving)
        seconds += drain_once(f, &d);
    free(d.flow);
    free(d.rate);
    free(d.left_gb);
    return seconds * 1e6;
}
