/* What changed between two logs. */
#include <string.h>

#include "profiler/log/log.h"

const char *gv_nlog_transport_name(enum gv_nlog_transport transport)
{
    static const char *const names[] = {"P2P", "SHM", "NET", "other"};
    return transport < GV_NLOG_TRANSPORTS ? names[transport] : "?";
}

static bool counts(const struct gv_nlog_comm *c, const struct gv_nlog_edge *e)
{
    return e->ring || !c->nrings;
}

/* The slowest transport of the pair, -1 where it is not connected or not in the ring. */
static int transport_of(const struct gv_nlog_comm *c, int from, int to)
{
    int slowest = -1;
    for (int i = 0; i < c->nedges; i++) {
        const struct gv_nlog_edge *e = &c->edges[i];
        if (e->from == from && e->to == to && counts(c, e) && (int)e->transport > slowest)
            slowest = (int)e->transport;
    }
    return slowest;
}

/* Edges are sorted by pair: the first of each pair stands for it. */
static bool first_of_pair(const struct gv_nlog_comm *c, int i)
{
    for (int k = i - 1;
         k >= 0 && c->edges[k].from == c->edges[i].from && c->edges[k].to == c->edges[i].to; k--)
        if (counts(c, &c->edges[k]))
            return false;
    return counts(c, &c->edges[i]);
}

int gv_nlog_count(const struct gv_nlog_comm *c, int by_transport[GV_NLOG_TRANSPORTS])
{
    int n = 0;
    memset(by_transport, 0, GV_NLOG_TRANSPORTS * sizeof(int));
    for (int i = 0; i < c->nedges; i++)
        if (first_of_pair(c, i)) {
            by_transport[transport_of(c, c->edges[i].from, c->edges[i].to)]++;
            n++;
        }
    return n;
}

/* The only transport, or -1. */
static int throughout(const struct gv_nlog_comm *c, int *edges)
{
    int by[GV_NLOG_TRANSPORTS];
    *edges = gv_nlog_count(c, by);
    for (int t = 0; t < GV_NLOG_TRANSPORTS; t++)
        if (*edges && by[t] == *edges)
            return t;
    return -1;
}

static void compare_edges(
    const struct gv_nlog_comm *b, const struct gv_nlog_comm *a, struct gv_nlog_change *out)
{
    int nb, na, tb = throughout(b, &nb), ta = throughout(a, &na);
    if (!out->same_ring && out->rings_known && tb >= 0 && ta >= 0 && nb == na) {
        out->moved[tb][ta] = out->edges = na;
        return;
    }
    for (int i = 0; i < a->nedges; i++) {
        if (!first_of_pair(a, i))
            continue;
        int was = transport_of(b, a->edges[i].from, a->edges[i].to);
        if (was < 0)
            continue;
        out->moved[was][transport_of(a, a->edges[i].from, a->edges[i].to)]++;
        out->edges++;
    }
}

static bool same_order(const struct gv_nlog_comm *b, const struct gv_nlog_comm *a)
{
    return b->nrings && a->nrings && b->rings[0].n == a->rings[0].n &&
           !memcmp(b->rings[0].order, a->rings[0].order, (size_t)a->rings[0].n * sizeof(int));
}

int gv_nlog_compare(
    const struct gv_nlog *before, const struct gv_nlog *after, struct gv_nlog_change *out, int size)
{
    int n = 0;
    for (int i = 0; i < after->ncomms && n < size; i++) {
        const struct gv_nlog_comm *a = &after->comms[i];
        int nth = 0, at = -1;
        for (int k = 0; k < i; k++)
            nth += after->comms[k].nranks == a->nranks;
        for (int k = 0; k < before->ncomms && at < 0; k++)
            if (before->comms[k].nranks == a->nranks && nth-- == 0)
                at = k;
        if (at < 0)
            continue;
        const struct gv_nlog_comm *b = &before->comms[at];
        out[n] = (struct gv_nlog_change){
            .before = at,
            .after = i,
            .same_ring = same_order(b, a),
            .rings_known = b->nrings && a->nrings};
        compare_edges(b, a, &out[n++]);
    }
    return n;
}
