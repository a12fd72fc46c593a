/* Streams in order, and the virtual clock. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "testbench/cuda/gv_virtual.h"

#define FULL_MS 20000 /* the longest that a gate of the profiler holds a stream */

void gv_virtual_room(struct gv_world *w, const struct gv_vstream *stream)
{
    struct timespec pause = {0, 1000000};
    int most = w->faults.queue;
    for (int ms = 0; most > 0 && stream->queued >= most && ms < FULL_MS; ms++) {
        gv_world_unlock();
        nanosleep(&pause, NULL);
        gv_world_lock();
        gv_virtual_advance(w, stream);
    }
}

void gv_virtual_queue(struct gv_world *w, struct gv_vstream *stream, struct gv_vop *op)
{
    (void)w;
    stream->queued++;
    op->stream = stream;
    if (stream->tail)
        stream->tail->next = op;
    else
        stream->head = op;
    stream->tail = op;
}

static void pop(struct gv_world *w, struct gv_vstream *s)
{
    struct gv_vop *op = s->head;
    s->queued--;
    s->head = op->next;
    if (!s->head)
        s->tail = NULL;
    gv_job_drop(w, op);
    gv_task_finish(w, op);
    free(op);
}

static void set_words(struct gv_world *w, const struct gv_vop *op)
{
    size_t n = op->bytes < w->cap_bytes ? op->bytes / 4 : w->cap_bytes / 4;
    uint32_t *to = (uint32_t *)(uintptr_t)op->to;
    for (size_t i = 0; i < n; i++)
        to[i] = op->value;
}

static void copy_bytes(struct gv_world *w, const struct gv_vop *op)
{
    size_t n = op->bytes < w->cap_bytes ? op->bytes : w->cap_bytes;
    const struct gv_alloc *to = gv_virtual_find(w, op->to), *from = gv_virtual_find(w, op->from);
    unsigned char *bytes = (unsigned char *)(uintptr_t)op->to;
    int a = from ? from->gpu : -1, b = to ? to->gpu : -1;
    memcpy(bytes, (const void *)(uintptr_t)op->from, n);
    bool p2p = a >= 0 && b >= 0 && a != b && (w->gpu[a].peer[b] || w->gpu[b].peer[a]);
    if (p2p && gv_fault_on(w, GV_FAULT_CORRUPT, a, b))
        bytes[n / 2] ^= 0x40;
}

/* ECC errors and lost devices come at a launch of their own. */
static void count_launch(struct gv_world *w, int gpu)
{
    const struct gv_fault_gpu *fault = &w->faults.gpu[gpu];
    int n = ++w->gpu[gpu].launches;
    if (fault->ecc_after && n >= fault->ecc_after)
        w->gpu[gpu].sticky = GV_CU_ECC_UNCORRECTABLE;
    if (fault->lost_after && n >= fault->lost_after)
        w->gpu[gpu].sticky = 719; /* launch failed */
}

static void start(struct gv_world *w, struct gv_vop *op)
{
    op->started = true;
    if (op->kind == GV_VOP_EVENT) {
        op->event->at = w->now_us;
        op->event->reached++;
        op->ran = true;
        return;
    }
    if (op->kind == GV_VOP_WAIT)
        return;
    gv_job_start(w, op);
    if (op->kind == GV_VOP_KERNEL) {
        count_launch(w, op->stream->gpu);
        return;
    }
    if (op->kind == GV_VOP_SET)
        set_words(w, op);
    else
        copy_bytes(w, op);
    op->ran = true;
}

static bool finished(const struct gv_vop *op)
{
    return op->ran && (!op->job || op->job->done);
}

/* One round over the streams. True: something happened. */
static bool round_of_streams(struct gv_world *w)
{
    bool moved = false;
    for (struct gv_vstream *s = w->streams; s; s = s->next) {
        struct gv_vop *op = s->head;
        if (!op || w->gpu[s->gpu].sticky)
            continue;
        if (!op->started) {
            start(w, op);
            moved = true;
        }
        if (op->kind == GV_VOP_WAIT)
            op->ran = op->event->reached >= op->want;
        if (op->kind == GV_VOP_KERNEL && !op->ran)
            moved |= gv_task_run(w, op);
        if (finished(op)) {
            pop(w, s);
            moved = true;
        }
    }
    return moved;
}

/* Moves time to where the next flow ends. False: no flow is under way. */
static bool move_time(struct gv_world *w)
{
    struct gv_job *jobs[256];
    const struct gv_flow *flows[256] = {0};
    double rates[256], step = -1;
    int n = 0, moving = 0;
    for (struct gv_job *job = w->jobs; job && n < 256; job = job->next)
        if (job->active && !job->done && !job->dead)
            jobs[n++] = job;
    for (int i = 0; i < n; i++)
        if (jobs[i]->delay_us <= 0) {
            flows[moving] = &jobs[i]->flow;
            moving++;
        }
    gv_fabric_share(&w->fabric, flows, moving, rates);
    for (int i = 0, k = 0; i < n; i++) {
        jobs[i]->rate = jobs[i]->delay_us > 0 ? 0 : rates[k++] * 1e3; /* bytes a microsecond */
        double us = jobs[i]->delay_us > 0 ? jobs[i]->delay_us : jobs[i]->left_bytes / jobs[i]->rate;
        step = step < 0 || us < step ? us : step;
    }
    if (!n)
        return false;
    w->now_us += step;
    for (int i = 0; i < n; i++) {
        if (jobs[i]->delay_us > 0)
            jobs[i]->delay_us -= step;
        else
            jobs[i]->left_bytes -= step * jobs[i]->rate;
        jobs[i]->done = jobs[i]->delay_us <= 1e-9 && jobs[i]->left_bytes <= 1e-3;
    }
    return true;
}

/* Nothing moves any more: kernels that wait in vain run into their own timeout. Gates do not, since
 * the host may open them yet, and neither does what hangs for good. */
static bool time_out(struct gv_world *w)
{
    double longest = 0;
    for (struct gv_vstream *s = w->streams; s; s = s->next) {
        struct gv_vop *op = s->head;
        if (!op || !op->waiting || op->is_gate || (op->job && op->job->dead))
            continue;
        op->timed_out = true;
        if (op->job)
            op->job->done = true;
        if ((double)op->timeout_ns / 1e3 > longest)
            longest = (double)op->timeout_ns / 1e3;
    }
    w->now_us += longest;
    return longest > 0;
}

static gv_cu_result state(const struct gv_world *w, const struct gv_vstream *stream)
{
    bool busy = false;
    for (const struct gv_vstream *s = w->streams; s; s = s->next) {
        if (stream && s != stream)
            continue;
        if (w->gpu[s->gpu].sticky)
            return w->gpu[s->gpu].sticky;
        busy |= s->head != NULL;
    }
    return busy ? GV_CU_NOT_READY : 0;
}

gv_cu_result gv_virtual_advance(struct gv_world *w, const struct gv_vstream *stream)
{
    for (;;) {
        gv_cu_result rc = state(w, stream);
        if (rc != GV_CU_NOT_READY)
            return rc;
        if (round_of_streams(w) || move_time(w) || time_out(w))
            continue;
        return GV_CU_NOT_READY;
    }
}
