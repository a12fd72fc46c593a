/* Edges and rings of one communicator, from all that its ranks said. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/log/log.h"

#define CHANNELS 64

static struct gv_nlog_edge *
edge_of(struct gv_nlog_reader *r, struct gv_nlog_comm *c, const struct gv_nlog_event *e)
{
    for (int i = 0; i < c->nedges; i++)
        if (c->edges[i].from == e->hop.from && c->edges[i].to == e->hop.to &&
            c->edges[i].transport == e->hop.transport && !strcmp(c->edges[i].via, e->hop.via))
            return &c->edges[i];
    void *grown = gv_nlog_grow(r, c->edges, c->nedges, sizeof(*c->edges));
    if (!grown)
        return NULL;
    c->edges = grown;
    struct gv_nlog_edge *edge = &c->edges[c->nedges++];
    *edge = (struct gv_nlog_edge){
        .from = e->hop.from, .to = e->hop.to, .transport = e->hop.transport, .line = e->line};
    memcpy(edge->via, e->hop.via, sizeof(edge->via));
    return edge;
}

static void
add_ring(struct gv_nlog_reader *r, struct gv_nlog_comm *c, int channel, const int *order, int n)
{
    int first = 0;
    for (int i = 1; i < n; i++)
        if (order[i] < order[first])
            first = i;
    int *turned = malloc((size_t)n * sizeof(int));
    if (!turned) {
        r->no_memory = true;
        return;
    }
    for (int i = 0; i < n; i++)
        turned[i] = order[(first + i) % n];
    uint64_t bit = channel < CHANNELS ? (uint64_t)1 << channel : 0;
    for (int i = 0; i < c->nrings; i++)
        if (c->rings[i].n == n && !memcmp(c->rings[i].order, turned, (size_t)n * sizeof(int))) {
            c->rings[i].channels |= bit;
            free(turned);
            return;
        }
    void *grown = gv_nlog_grow(r, c->rings, c->nrings, sizeof(*c->rings));
    if (!grown) {
        free(turned);
        return;
    }
    c->rings = grown;
    c->rings[c->nrings++] = (struct gv_nlog_ring){.channels = bit, .order = turned, .n = n};
}

/* Every rank once. */
static bool sound(const int *order, int n, int nranks)
{
    bool seen[GV_NLOG_MAX_RANKS] = {false};
    if (n < 2 || (nranks > 0 && n != nranks))
        return false;
    for (int i = 0; i < n; i++) {
        if (order[i] >= GV_NLOG_MAX_RANKS || seen[order[i]])
            return false;
        seen[order[i]] = true;
    }
    return true;
}

/* Rings whose order the log gives. */
static void rings_listed(struct gv_nlog_reader *r, struct gv_nlog_work *w)
{
    for (int i = 0; i < w->nevents; i++) {
        const struct gv_nlog_event *e = &w->events[i];
        if (e->kind == EVENT_ORDER && sound(e->order, e->n, w->comm.nranks)) {
            if (w->comm.nranks < 0)
                w->comm.nranks = e->n;
            add_ring(r, &w->comm, e->hop.channel, e->order, e->n);
        }
    }
}

static int members(const struct gv_nlog_comm *c)
{
    int n = 0;
    for (int i = 0; i < c->slots; i++)
        n += c->ranks[i].seen;
    return c->nranks > 0 ? c->nranks : n;
}

/* Follows `next` around; a ring only where every rank is met. */
static void
close_ring(struct gv_nlog_reader *r, struct gv_nlog_comm *c, int channel, const int *next)
{
    int order[GV_NLOG_MAX_RANKS], n = 0, all = members(c), at = 0;
    while (at < c->slots && next[at] < 0)
        at++;
    if (all < 1 || all > GV_NLOG_MAX_RANKS || at >= c->slots)
        return;
    for (int start = at; n < all; at = next[at]) {
        if (at < 0 || at >= c->slots || (n && at == start))
            return;
        order[n++] = at;
    }
    if (at == order[0] && sound(order, n, c->nranks))
        add_ring(r, c, channel, order, n);
}

/* Rings from what each rank says of its next one. A rank's first connection of a channel before
 * "Connected all rings" is the ring's; trees come later. */
static void rings_followed(struct gv_nlog_reader *r, struct gv_nlog_work *w, enum gv_nlog_kind kind)
{
    int *next = malloc((size_t)(w->comm.slots + 1) * sizeof(int));
    for (int channel = 0; next && channel < CHANNELS; channel++) {
        bool any = false;
        for (int i = 0; i < w->comm.slots; i++)
            next[i] = -1;
        for (int i = 0; i < w->nevents; i++) {
            const struct gv_nlog_event *e = &w->events[i];
            if (e->kind != kind || e->hop.channel != channel || e->after_rings || e->hop.receive ||
                e->hop.connection || e->hop.from >= w->comm.slots || next[e->hop.from] >= 0)
                continue;
            next[e->hop.from] = e->hop.to;
            any = true;
        }
        if (any)
            close_ring(r, &w->comm, channel, next);
    }
    r->no_memory |= !next;
    free(next);
}

static bool on_ring(const struct gv_nlog_comm *c, int from, int to)
{
    for (int i = 0; i < c->nrings; i++)
        for (int k = 0; k < c->rings[i].n; k++)
            if (c->rings[i].order[k] == from && c->rings[i].order[(k + 1) % c->rings[i].n] == to)
                return true;
    return false;
}

static void edges(struct gv_nlog_reader *r, struct gv_nlog_work *w)
{
    for (int i = 0; i < w->nevents; i++) {
        const struct gv_nlog_event *e = &w->events[i];
        if (e->kind != EVENT_HOP)
            continue;
        struct gv_nlog_edge *edge = edge_of(r, &w->comm, e);
        if (!edge)
            return;
        if (e->hop.channel < CHANNELS)
            edge->channels |= (uint64_t)1 << e->hop.channel;
        edge->ring |= !e->hop.connection && on_ring(&w->comm, edge->from, edge->to);
    }
}

static int order_of_edges(const void *a, const void *b)
{
    const struct gv_nlog_edge *x = a, *y = b;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    if (x->to != y->to)
        return x->to < y->to ? -1 : 1;
    return x->line < y->line ? -1 : x->line > y->line;
}

/* Who speaks of a connection is one of its ends: where no line names the rank's process, this does.
 */
static void speakers(struct gv_nlog_reader *r, struct gv_nlog_work *w)
{
    for (int i = 0; i < w->nevents; i++) {
        const struct gv_nlog_event *e = &w->events[i];
        int rank = e->hop.receive ? e->hop.to : e->hop.from;
        if (e->kind != EVENT_HOP || rank >= w->comm.slots || *w->comm.ranks[rank].host)
            continue;
        const struct gv_nlog_thread *t = &r->threads[e->speaker];
        memcpy(w->comm.ranks[rank].host, t->host, sizeof(t->host));
        w->comm.ranks[rank].pid = t->pid;
        w->comm.ranks[rank].cuda_dev = t->dev;
    }
}

void gv_nlog_build(struct gv_nlog_reader *r, struct gv_nlog_work *w)
{
    speakers(r, w);
    for (int i = 0; i < w->nevents; i++) /* makes the slots that a triple needs */
        if (w->events[i].kind == EVENT_TRIPLE) {
            gv_nlog_label(r, w, w->events[i].hop.from, "");
            gv_nlog_label(r, w, w->events[i].hop.to, "");
        }
    rings_listed(r, w);
    if (!w->comm.nrings)
        rings_followed(r, w, EVENT_TRIPLE);
    if (!w->comm.nrings)
        rings_followed(r, w, EVENT_HOP);
    if (w->comm.nranks < 0 && w->comm.nrings) /* a ring that closes has every rank */
        w->comm.nranks = w->comm.rings[0].n;
    edges(r, w);
    if (w->comm.nedges)
        qsort(w->comm.edges, (size_t)w->comm.nedges, sizeof(*w->comm.edges), order_of_edges);
    if (w->comm.channels < 0 && w->comm.nrings) {
        uint64_t all = 0;
        for (int i = 0; i < w->comm.nrings; i++)
            all |= w->comm.rings[i].channels;
        w->comm.channels = __builtin_popcountll(all);
    }
}
