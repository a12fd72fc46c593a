/* What an operation moves, as a flow of the fabric model. Operations that belong together (the two
 * halves of a pair check, the ranks of a ring) are one flow, which begins when all of them run. */
#include <stdlib.h>

#include "testbench/cuda/gv_virtual.h"

double gv_virtual_noise(struct gv_world *w)
{
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    double even = (double)(w->random >> 11) / (double)(1ull << 53);
    return 1 + w->faults.noise * (2 * even - 1);
}

static void
add_part(const struct gv_world *w, struct gv_job *job, int gpu, const struct gv_twin_part *part)
{
    const struct gv_alloc *a = gv_virtual_find(w, part->at);
    const struct gv_fabric *f = &w->fabric;
    if (!a || part->bytes <= 0)
        return;
    if (a->gpu < 0)
        (part->write ? gv_flow_to_host : gv_flow_to_device)(&job->flow, f, gpu, 1);
    else if (a->gpu == gpu)
        gv_flow_memory(&job->flow, f, gpu, 1);
    else
        (part->write ? gv_flow_write : gv_flow_read)(&job->flow, f, gpu, a->gpu, 1);
    if (a->gpu >= 0 && a->gpu != gpu && gv_fault_on(w, GV_FAULT_DEAD, gpu, a->gpu))
        job->dead = true;
    if (part->bytes > job->left_bytes)
        job->left_bytes = part->bytes;
}

static double hop_us(const struct gv_world *w, int gpu, uint64_t at)
{
    const struct gv_alloc *a = gv_virtual_find(w, at);
    if (!a || a->gpu < 0)
        return w->fabric.host_latency_us;
    return w->fabric.caps[gv_fabric_class(&w->fabric, gpu, a->gpu)].latency_us;
}

/* The rank whose FIFO this rank fills, in its memory or in host memory. */
static void add_ring_edge(const struct gv_world *w, struct gv_job *job, const struct gv_vop *op)
{
    const struct gv_ring_args *mine = (const void *)op->args;
    const struct gv_alloc *a = gv_virtual_find(w, mine->send);
    for (int i = 0; i < job->n; i++) {
        const struct gv_ring_args *other = (const void *)job->member[i]->args;
        if (other->recv != mine->send)
            continue;
        int from = op->stream->gpu, to = job->member[i]->stream->gpu;
        gv_flow_ring_edge(&job->flow, &w->fabric, from, to, a && a->gpu < 0);
        job->dead |= a && a->gpu >= 0 && gv_fault_on(w, GV_FAULT_DEAD, from, to);
    }
}

static void add_member(struct gv_world *w, struct gv_job *job, const struct gv_vop *op)
{
    struct gv_twin_traffic t = {0};
    op->twin->traffic(op->args, &t);
    int gpu = op->stream->gpu;
    const struct gv_gate_args *gate = (const void *)op->args;
    if (op->is_gate && gate->value == ~0u)
        job->delay_us += (double)gate->timeout_ns * 1e-3;
    if (t.ring) {
        add_ring_edge(w, job, op);
        job->left_bytes = t.part[0].bytes;
        return;
    }
    for (int i = 0; i < t.nparts; i++)
        add_part(w, job, gpu, &t.part[i]);
    if (t.hops > 0)
        job->delay_us += t.hops * hop_us(w, gpu, t.part[0].at);
}

static void activate(struct gv_world *w, struct gv_job *job)
{
    for (int i = 0; i < job->n; i++)
        if (job->member[i]->kind == GV_VOP_KERNEL)
            add_member(w, job, job->member[i]);
    double factor = gv_virtual_noise(w);
    job->left_bytes *= factor;
    job->delay_us *= factor;
    job->active = true;
    job->done = job->left_bytes <= 0 && job->delay_us <= 0 && !job->dead;
}

static struct gv_job *new_job(struct gv_world *w, uint64_t couple, int expected)
{
    struct gv_job *job = calloc(1, sizeof(*job));
    if (!job)
        abort();
    job->couple = couple;
    job->expected = expected;
    gv_flow_init(&job->flow);
    job->next = w->jobs;
    w->jobs = job;
    return job;
}

static struct gv_job *find_couple(struct gv_world *w, uint64_t couple)
{
    for (struct gv_job *job = w->jobs; job && couple; job = job->next)
        if (job->couple == couple && !job->active)
            return job;
    return NULL;
}

/* A copy by the driver: host memory, one GPU, P2P, or staged where neither side sees the other. */
static void start_copy(struct gv_world *w, struct gv_job *job, const struct gv_vop *op)
{
    const struct gv_fabric *f = &w->fabric;
    const struct gv_alloc *to = gv_virtual_find(w, op->to), *from = gv_virtual_find(w, op->from);
    int a = from ? from->gpu : -1, b = to ? to->gpu : -1;
    job->left_bytes = (double)op->bytes;
    if (op->kind == GV_VOP_SET && b < 0)
        job->left_bytes = 0;
    else if (op->kind == GV_VOP_SET)
        gv_flow_memory(&job->flow, f, b, 1);
    else if (a < 0 && b < 0)
        job->left_bytes = 0;
    else if (a < 0)
        gv_flow_to_device(&job->flow, f, b, 1);
    else if (b < 0)
        gv_flow_to_host(&job->flow, f, a, 1);
    else if (a == b)
        gv_flow_memory(&job->flow, f, a, 2);
    else if (w->gpu[a].peer[b] || w->gpu[b].peer[a]) {
        gv_flow_write(&job->flow, f, a, b, 1);
        job->dead = gv_fault_on(w, GV_FAULT_DEAD, a, b) || gv_fault_on(w, GV_FAULT_HUNG, a, b);
    } else
        gv_flow_staged(&job->flow, f, a, b, 1);
}

void gv_job_start(struct gv_world *w, struct gv_vop *op)
{
    struct gv_twin_traffic t = {0};
    if (op->kind == GV_VOP_KERNEL)
        op->twin->traffic(op->args, &t);
    struct gv_job *job = find_couple(w, t.couple);
    if (!job)
        job = new_job(w, t.couple, t.couple ? t.couple_count : 1);
    op->job = job;
    job->member[job->n++] = op;
    if (op->kind != GV_VOP_KERNEL)
        start_copy(w, job, op);
    if (job->n >= job->expected || job->n == GV_MAX_GPUS)
        activate(w, job);
}

void gv_job_drop(struct gv_world *w, struct gv_vop *op)
{
    struct gv_job *job = op->job;
    op->job = NULL;
    if (!job)
        return;
    int kept = 0;
    for (int i = 0; i < job->n; i++)
        if (job->member[i] != op)
            job->member[kept++] = job->member[i];
    job->n = kept;
    if (kept)
        return;
    struct gv_job **at = &w->jobs;
    while (*at != job)
        at = &(*at)->next;
    *at = job->next;
    gv_flow_finish(&job->flow);
    free(job);
}
