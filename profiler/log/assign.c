/* Whose communicator a line is about. NCCL names it in few lines; the others are told by the thread
 * that speaks, by its process and device, and by what must agree between them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/log/log.h"

void *gv_nlog_grow(struct gv_nlog_reader *r, void *array, int n, size_t size)
{
    if (n & (n - 1) && n) /* room for the next power of two is there */
        return array;
    void *grown = reallocarray(array, n ? (size_t)n * 2 : 1, size);
    if (!grown)
        r->no_memory = true;
    return grown;
}

bool gv_nlog_slot(struct gv_nlog_reader *r, struct gv_nlog_work *w, int rank)
{
    int n = w->comm.slots;
    if (rank < 0 || rank >= GV_NLOG_MAX_RANKS)
        return false;
    if (rank < n)
        return true;
    int more = rank + 1 > 2 * n ? rank + 1 : 2 * n;
    void *ranks = reallocarray(w->comm.ranks, (size_t)more, sizeof(*w->comm.ranks));
    if (ranks)
        w->comm.ranks = ranks;
    void *pointers = reallocarray(w->pointers, (size_t)more, sizeof(*w->pointers));
    if (pointers)
        w->pointers = pointers;
    void *connected = reallocarray(w->connected, (size_t)more, sizeof(*w->connected));
    if (connected)
        w->connected = connected;
    if (!ranks || !pointers || !connected) {
        r->no_memory = true;
        return false;
    }
    for (int i = n; i < more; i++) {
        w->comm.ranks[i] = (struct gv_nlog_rank){.pid = -1, .cuda_dev = -1, .nvml_dev = -1};
        w->pointers[i][0] = 0;
        w->connected[i] = false;
    }
    w->comm.slots = more;
    return true;
}

static int new_comm(struct gv_nlog_reader *r, int nranks, unsigned line)
{
    if (r->nwork >= GV_NLOG_MAX_COMMS)
        return -1;
    void *grown = gv_nlog_grow(r, r->work, r->nwork, sizeof(*r->work));
    if (!grown)
        return -1;
    r->work = grown;
    r->work[r->nwork] = (struct gv_nlog_work){
        .comm = {.nranks = nranks, .nnodes = -1, .channels = -1, .line = line}, .named = true};
    return r->nwork++;
}

bool gv_nlog_fits(
    const struct gv_nlog_reader *r, const struct gv_nlog_work *w, int rank, const char *label)
{
    char bus[20];
    if (w->comm.nranks > 0 && rank >= w->comm.nranks)
        return false;
    if (!*label || rank >= w->comm.slots || !w->comm.ranks[rank].seen)
        return true;
    const struct gv_nlog_rank *known = &w->comm.ranks[rank];
    if (r->bus_labels)
        return !*known->bus_id || !gv_nlog_bus_id(label, bus) || !strcmp(bus, known->bus_id);
    return known->nvml_dev < 0 || known->nvml_dev == atoi(label);
}

void gv_nlog_label(struct gv_nlog_reader *r, struct gv_nlog_work *w, int rank, const char *label)
{
    if (!gv_nlog_slot(r, w, rank))
        return;
    struct gv_nlog_rank *known = &w->comm.ranks[rank];
    known->seen = true;
    if (!*label)
        return;
    if (r->bus_labels && !*known->bus_id)
        gv_nlog_bus_id(label, known->bus_id);
    else if (!r->bus_labels && known->nvml_dev < 0)
        known->nvml_dev = atoi(label);
}

static bool same_process(const struct gv_nlog_rank *rank, const struct gv_nlog_thread *t)
{
    return rank->pid == t->pid && !strcmp(rank->host, t->host);
}

/* The communicator whose rank `rank` of this process has this ncclComm. */
static int by_pointer(
    const struct gv_nlog_reader *r, const struct gv_nlog_thread *t, const struct gv_nlog_member *m)
{
    for (int i = r->nwork - 1; i >= 0; i--) {
        const struct gv_nlog_work *w = &r->work[i];
        if (m->rank < w->comm.slots && w->comm.nranks == m->nranks &&
            !strcmp(w->pointers[m->rank], m->pointer) && same_process(&w->comm.ranks[m->rank], t))
            return i;
    }
    return -1;
}

static int by_key(const struct gv_nlog_reader *r, const struct gv_nlog_member *m)
{
    for (int i = r->nwork - 1; *m->key && i >= 0; i--) {
        const struct gv_nlog_comm *c = &r->work[i].comm;
        /* a rank that starts again with the key of an earlier one is another communicator */
        bool again = m->rank < c->slots && *r->work[i].pointers[m->rank] &&
                     strcmp(r->work[i].pointers[m->rank], m->pointer) != 0;
        if (!strcmp(r->work[i].key, m->key) && c->nranks == m->nranks && !again)
            return i;
    }
    return -1;
}

/* Whether what a rank's own connections say fits a communicator without an id. */
static bool may_join(
    const struct gv_nlog_reader *r, const struct gv_nlog_work *w, const struct gv_nlog_thread *t,
    const struct gv_nlog_member *m)
{
    if (*w->key || w->comm.nranks != m->nranks)
        return false;
    if (m->rank < w->comm.slots && *w->pointers[m->rank])
        return false;
    if (m->rank < w->comm.slots && *m->bus_id && *w->comm.ranks[m->rank].bus_id &&
        strcmp(w->comm.ranks[m->rank].bus_id, m->bus_id))
        return false;
    for (int i = 0; i < t->npending; i++) {
        const struct gv_nlog_event *e = &t->pending[i];
        if (e->kind == EVENT_HOP && (!gv_nlog_fits(r, w, e->hop.from, e->hop.from_label) ||
                                     !gv_nlog_fits(r, w, e->hop.to, e->hop.to_label)))
            return false;
    }
    return true;
}

static int find_comm(
    struct gv_nlog_reader *r, const struct gv_nlog_thread *t, const struct gv_nlog_member *m,
    unsigned line)
{
    int found = by_pointer(r, t, m);
    if (found >= 0 && (!*m->key || !*r->work[found].key || !strcmp(m->key, r->work[found].key)))
        return found;
    found = by_key(r, m);
    for (int i = 0; found < 0 && !*m->key && i < r->nwork; i++)
        if (may_join(r, &r->work[i], t, m))
            found = i;
    return found >= 0 ? found : new_comm(r, m->nranks, line);
}

static void add_event(struct gv_nlog_reader *r, int comm, struct gv_nlog_event *e)
{
    struct gv_nlog_work *w = &r->work[comm];
    void *grown = gv_nlog_grow(r, w->events, w->nevents, sizeof(*w->events));
    if (!grown) {
        free(e->order);
        return;
    }
    w->events = grown;
    w->events[w->nevents++] = *e;
    if (e->kind == EVENT_CHANNELS)
        w->comm.channels = e->channels;
    if (e->kind != EVENT_HOP)
        return;
    gv_nlog_label(r, w, e->hop.from, e->hop.from_label);
    gv_nlog_label(r, w, e->hop.to, e->hop.to_label);
}

static void give_pending(struct gv_nlog_reader *r, struct gv_nlog_thread *t, int comm)
{
    for (int i = 0; i < t->npending; i++)
        add_event(r, comm, &t->pending[i]);
    t->npending = 0;
}

/* The communicator that this process calls `pointer`, -1. */
static int
parent_of(const struct gv_nlog_reader *r, const struct gv_nlog_thread *t, const char *pointer)
{
    for (int i = r->nwork - 1; i >= 0; i--)
        for (int k = 0; k < r->work[i].comm.slots; k++)
            if (!strcmp(r->work[i].pointers[k], pointer) &&
                same_process(&r->work[i].comm.ranks[k], t))
                return i;
    return -1;
}

/* ncclCommSplit's lines have no commId before 2.28, but parent, count and color. */
static void
split_key(const struct gv_nlog_reader *r, const struct gv_nlog_thread *t, struct gv_nlog_member *m)
{
    int parent = *m->parent && !*m->key ? parent_of(r, t, m->parent) : -1;
    if (parent >= 0)
        snprintf(m->key, sizeof(m->key), "%d/%d/%d", parent, m->split, m->color);
}

void gv_nlog_take_member(
    struct gv_nlog_reader *r, int thread, const struct gv_nlog_member *line_says, unsigned line)
{
    struct gv_nlog_thread *t = &r->threads[thread];
    struct gv_nlog_member member = *line_says, *m = &member;
    split_key(r, t, m);
    int at = find_comm(r, t, m, line);
    if (at < 0)
        return;
    struct gv_nlog_work *w = &r->work[at];
    if (*m->id)
        memcpy(w->comm.id, m->id, sizeof(w->comm.id));
    if (*m->key)
        memcpy(w->key, m->key, sizeof(w->key));
    if (m->nnodes > 0)
        w->comm.nnodes = m->nnodes;
    if (gv_nlog_slot(r, w, m->rank)) {
        struct gv_nlog_rank *rank = &w->comm.ranks[m->rank];
        rank->seen = true;
        memcpy(rank->host, t->host, sizeof(rank->host));
        rank->pid = t->pid;
        rank->cuda_dev = m->cuda_dev >= 0      ? m->cuda_dev
                         : rank->cuda_dev >= 0 ? rank->cuda_dev
                                               : t->dev;
        rank->nvml_dev = m->nvml_dev >= 0 ? m->nvml_dev : rank->nvml_dev;
        if (*m->bus_id)
            memcpy(rank->bus_id, m->bus_id, sizeof(rank->bus_id));
        memcpy(w->pointers[m->rank], m->pointer, sizeof(m->pointer));
    }
    if (!m->start)
        give_pending(r, t, at);
    /* Before 2.17 the only line is the last one: what this thread says next is of another. */
    t->comm = m->complete && !*m->key ? -1 : at;
}

/* The latest communicator of this process and device that a connection fits; one whose rings are
 * not yet connected first. */
static int by_device(
    const struct gv_nlog_reader *r, const struct gv_nlog_thread *t, const struct gv_nlog_event *e)
{
    int connected = -1;
    for (int i = r->nwork - 1; i >= 0; i--) {
        const struct gv_nlog_work *w = &r->work[i];
        for (int k = 0; k < w->comm.slots; k++) {
            const struct gv_nlog_rank *rank = &w->comm.ranks[k];
            if (!rank->seen || rank->cuda_dev != t->dev || !same_process(rank, t))
                continue;
            if (e->kind == EVENT_HOP && ((e->hop.from != k && e->hop.to != k) ||
                                         !gv_nlog_fits(r, w, e->hop.from, e->hop.from_label) ||
                                         !gv_nlog_fits(r, w, e->hop.to, e->hop.to_label)))
                continue;
            if (!w->connected[k])
                return i;
            connected = connected < 0 ? i : connected;
        }
    }
    return connected;
}

/* Marks a rank as connected, and its later connections as being of trees or of send and receive. */
static void
mark(struct gv_nlog_reader *r, int comm, const struct gv_nlog_thread *t, struct gv_nlog_event *e)
{
    struct gv_nlog_work *w = &r->work[comm];
    for (int k = 0; k < w->comm.slots; k++) {
        const struct gv_nlog_rank *rank = &w->comm.ranks[k];
        if (!rank->seen || rank->cuda_dev != t->dev || !same_process(rank, t))
            continue;
        e->after_rings = w->connected[k];
        if (e->kind == EVENT_CONNECTED)
            w->connected[k] = true;
    }
}

static void
keep_pending(struct gv_nlog_reader *r, struct gv_nlog_thread *t, struct gv_nlog_event *e)
{
    for (int i = 0; i < t->npending; i++)
        if (t->pending[i].kind == EVENT_CONNECTED)
            e->after_rings = true;
    void *grown = gv_nlog_grow(r, t->pending, t->npending, sizeof(*t->pending));
    if (!grown) {
        free(e->order);
        return;
    }
    t->pending = grown;
    t->pending[t->npending++] = *e;
}

void gv_nlog_take_event(struct gv_nlog_reader *r, int thread, struct gv_nlog_event *e)
{
    struct gv_nlog_thread *t = &r->threads[thread];
    e->speaker = thread;
    int at = t->comm >= 0 ? t->comm : by_device(r, t, e);
    if (at >= 0 && e->kind == EVENT_HOP &&
        (!gv_nlog_fits(r, &r->work[at], e->hop.from, e->hop.from_label) ||
         !gv_nlog_fits(r, &r->work[at], e->hop.to, e->hop.to_label)))
        at = by_device(r, t, e);
    if (at < 0) {
        keep_pending(r, t, e);
        return;
    }
    mark(r, at, t, e);
    add_event(r, at, e);
}

/* Whether what a thread says can be of this communicator: ranks that it has, no other process
 * behind a rank that is known. */
static bool can_be_of(
    const struct gv_nlog_reader *r, const struct gv_nlog_work *w, const struct gv_nlog_thread *t)
{
    for (int i = 0; i < t->npending; i++) {
        const struct gv_nlog_event *e = &t->pending[i];
        int rank = e->hop.receive ? e->hop.to : e->hop.from;
        if (e->kind == EVENT_ORDER && e->n != w->comm.nranks)
            return false;
        if (e->kind != EVENT_HOP && e->kind != EVENT_TRIPLE)
            continue;
        if (!gv_nlog_fits(r, w, e->hop.from, e->hop.from_label) ||
            !gv_nlog_fits(r, w, e->hop.to, e->hop.to_label))
            return false;
        if (rank < w->comm.slots && *w->comm.ranks[rank].host &&
            !same_process(&w->comm.ranks[rank], t))
            return false;
    }
    return true;
}

/* An excerpt: one communicator is named at all, and all that is left can be of it. */
static bool one_alone(const struct gv_nlog_reader *r)
{
    if (r->nwork != 1 || r->work[0].comm.nranks < 0)
        return false;
    for (int i = 0; i < r->nthreads; i++)
        if (!can_be_of(r, &r->work[0], &r->threads[i]))
            return false;
    return true;
}

void gv_nlog_finish(struct gv_nlog_reader *r)
{
    int left = one_alone(r) ? 0 : -1; /* gathers what no line names */
    for (int i = 0; i < r->nthreads; i++) {
        struct gv_nlog_thread *t = &r->threads[i];
        bool worth = false;
        for (int k = 0; k < t->npending; k++)
            worth |= t->pending[k].kind == EVENT_HOP || t->pending[k].kind == EVENT_ORDER ||
                     t->pending[k].kind == EVENT_TRIPLE;
        if (!worth)
            continue;
        if (left < 0) {
            left = new_comm(r, -1, t->pending[0].line);
            if (left < 0)
                return;
            r->work[left].named = false;
        }
        if (t->pending[0].line < r->work[left].comm.line)
            r->work[left].comm.line = t->pending[0].line;
        give_pending(r, t, left);
    }
    for (int i = 0; i < r->nwork; i++)
        gv_nlog_build(r, &r->work[i]);
}
