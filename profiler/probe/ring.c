#include "profiler/probe/gv_ring.h"

#include <stdio.h>
#include <string.h>

#include "profiler/probe/gv_pair.h"

#define SLOT16 4096u /* 64 KiB */
#define MAX_BLOCKS 16u
#define CONTROL_BYTES 8192u /* arrived, drained: MAX_BLOCKS words of 128 bytes each */
#define SEED 77u

static int fail(struct gv_meter *m, gv_cu_result rc, struct gv_error *err, const char *what)
{
    m->last = rc;
    return gv_cuda_fail(&m->gpus->cuda, rc, err, what);
}

static int ranks_on(const struct gv_ring *r, int gpu)
{
    int n = 0;
    for (int i = 0; i < r->n; i++)
        n += r->gpu[i] == gpu;
    return n;
}

/* All blocks of a GPU's ranks must be resident together. */
static unsigned blocks_of(const struct gv_meter *m, const struct gv_ring *r)
{
    unsigned blocks = MAX_BLOCKS;
    for (int i = 0; i < r->n; i++) {
        int room = m->gpus->device[r->gpu[i]].multiprocessors / ranks_on(r, r->gpu[i]);
        if (room > 0 && (unsigned)room < blocks)
            blocks = (unsigned)room;
    }
    return blocks;
}

static int
device_alloc(struct gv_meter *m, int gpu, size_t bytes, gv_cu_ptr *out, struct gv_error *err)
{
    char what[64];
    m->gpus->cuda.ctx_set(m->gpus->device[gpu].ctx);
    gv_cu_result rc = m->gpus->cuda.mem_alloc(out, bytes);
    snprintf(what, sizeof(what), "GPU %d: no memory for the ring", gpu);
    return rc ? fail(m, rc, err, what) : 0;
}

static int
host_alloc(struct gv_meter *m, size_t bytes, void **out, gv_cu_ptr *at, struct gv_error *err)
{
    const struct gv_cuda *cuda = &m->gpus->cuda;
    gv_cu_result rc = cuda->host_alloc(out, bytes, GV_CU_HOST_PORTABLE | GV_CU_HOST_DEVICEMAP);
    if (!rc)
        rc = cuda->host_pointer(at, *out, 0);
    return rc ? fail(m, rc, err, "no mapped host memory for the ring") : 0;
}

/* Edge i: the FIFO and the counter of arrivals lie with the receiver, the counter of drained slots
 * with the sender; in host memory both. */
static int
make_edge(struct gv_meter *m, struct gv_ring_setup *s, int i, size_t fifo, struct gv_error *err)
{
    const struct gv_ring *r = &s->ring;
    int next = (i + 1) % r->n;
    struct gv_ring_args *mine = &s->work[i].args.ring, *theirs = &s->work[next].args.ring;
    gv_cu_ptr data, control;
    if (r->shm[i]) {
        if (host_alloc(m, fifo + CONTROL_BYTES, &s->host[i], &data, err))
            return -1;
        control = data + fifo;
        mine->drained = theirs->prev_drained = control + CONTROL_BYTES / 2;
    } else {
        gv_cu_result rc = gv_peer_on(m->gpus, r->gpu[i], r->gpu[next]);
        if (!rc)
            rc = gv_peer_on(m->gpus, r->gpu[next], r->gpu[i]);
        if (rc)
            return fail(m, rc, err, "peer access for the ring");
        s->peer_on[i] = true;
        data = s->memory[next];
        control = data + fifo;
        mine->drained = theirs->prev_drained = s->memory[i] + fifo + CONTROL_BYTES / 2;
    }
    mine->send = theirs->recv = data;
    mine->next_arrived = theirs->arrived = control;
    return 0;
}

static int
make_rank(struct gv_meter *m, struct gv_ring_setup *s, int i, unsigned blocks, struct gv_error *err)
{
    const struct gv_ring *r = &s->ring;
    struct gv_work *w = &s->work[i];
    double n = r->n;
    int stream = 0;
    for (int k = 0; k < i; k++)
        stream += r->gpu[k] == r->gpu[i];
    if (stream >= GV_DEVICE_STREAMS)
        return gv_error_set(err, "more than %d ranks on GPU %d", GV_DEVICE_STREAMS, r->gpu[i]);
    struct gv_ring_args args = {
        .in = s->in[i],
        .out = s->out[i],
        .n16 = r->bytes / 16,
        .result = s->result_at,
        .timeout_ns = 5000000000ull,
        .ring_id = s->result_at,
        .rank = (gv_u32)i,
        .n = (gv_u32)r->n,
        .slot16 = SLOT16,
        .loops = r->loops ? r->loops : 1,
    };
    *w = (struct gv_work){
        .gpu = r->gpu[i],
        .stream = stream,
        .kind = GV_WORK_KERNEL,
        .grid = blocks,
        .block = 256,
        .repeat = 1,
        .bytes = 2 * (n - 1) / n * (double)r->bytes * args.loops,
        .args.ring = args,
    };
    return gv_device_function(m->gpus, r->gpu[i], "gv_ring", &w->function, err);
}

/* The counters that each rank clears before a sample: those in its memory, and those of the edge
 * that it sends over where that one goes through the host. */
static void set_clears(struct gv_ring_setup *s, size_t fifo)
{
    for (int i = 0; i < s->ring.n; i++) {
        s->work[i].clear = s->memory[i] + fifo;
        s->work[i].clear_words = CONTROL_BYTES / 4;
        if (s->ring.shm[i]) {
            s->work[i].clear_host = (char *)s->host[i] + fifo;
            s->work[i].clear_host_bytes = CONTROL_BYTES;
        }
    }
}

static int make(
    struct gv_meter *m, struct gv_ring_setup *s, const struct gv_ring_setup *from,
    struct gv_error *err)
{
    const struct gv_ring *r = &s->ring;
    unsigned blocks = blocks_of(m, r);
    size_t fifo = (size_t)blocks * GV_RING_SLOTS * SLOT16 * 16;
    m->gpus->cuda.ctx_set(m->gpus->device[r->gpu[0]].ctx);
    if (host_alloc(m, 4096, &s->result, &s->result_at, err))
        return -1;
    for (int i = 0; i < r->n; i++) {
        s->in[i] = from ? from->in[i] : 0;
        s->out[i] = from ? from->out[i] : 0;
        if (!from && (device_alloc(m, r->gpu[i], r->bytes, &s->in[i], err) ||
                      device_alloc(m, r->gpu[i], r->bytes, &s->out[i], err)))
            return -1;
        if (device_alloc(m, r->gpu[i], fifo + CONTROL_BYTES, &s->memory[i], err) ||
            make_rank(m, s, i, blocks, err))
            return -1;
    }
    for (int i = 0; i < r->n; i++)
        if (make_edge(m, s, i, fifo, err))
            return -1;
    set_clears(s, fifo);
    return 0;
}

int gv_ring_init(
    struct gv_meter *m, const struct gv_ring *ring, const struct gv_ring_setup *from,
    struct gv_ring_setup *out, struct gv_error *err)
{
    memset(out, 0, sizeof(*out));
    out->ring = *ring;
    if (ring->n < 2)
        return gv_error_set(err, "a ring needs two ranks");
    if (!make(m, out, from, err))
        return 0;
    gv_ring_finish(m, out, !from);
    return -1;
}

void gv_ring_finish(struct gv_meter *m, struct gv_ring_setup *s, bool own_buffers)
{
    const struct gv_cuda *cuda = &m->gpus->cuda;
    for (int i = 0; i < s->ring.n; i++) {
        int gpu = s->ring.gpu[i], next = s->ring.gpu[(i + 1) % s->ring.n];
        cuda->ctx_set(m->gpus->device[gpu].ctx);
        if (s->in[i] && own_buffers)
            cuda->mem_free(s->in[i]);
        if (s->out[i] && own_buffers)
            cuda->mem_free(s->out[i]);
        if (s->memory[i])
            cuda->mem_free(s->memory[i]);
        if (s->host[i])
            cuda->host_free(s->host[i]);
        if (s->peer_on[i]) {
            gv_peer_off(m->gpus, gpu, next);
            gv_peer_off(m->gpus, next, gpu);
        }
    }
    if (s->result)
        cuda->host_free(s->result);
    memset(s, 0, sizeof(*s));
}

/* Launches fill (or check) over each rank's buffer and waits. */
static int over_ranks(
    struct gv_meter *m, struct gv_ring_setup *s, const char *kernel, const gv_cu_ptr *buffers,
    gv_u32 ranks, struct gv_error *err)
{
    struct gv_work works[GV_MAX_GPUS];
    struct gv_samples samples;
    int warmups = m->warmups, least = m->min_samples, most = m->max_samples, rc = 0;
    for (int i = 0; i < s->ring.n && !rc; i++) {
        works[i] = (struct gv_work){
            .gpu = s->work[i].gpu,
            .stream = s->work[i].stream,
            .kind = GV_WORK_KERNEL,
            .grid = 256,
            .block = 256,
            .repeat = 1,
            .args.pattern =
                {.buffer = buffers[i],
                 .n16 = s->ring.bytes / 16,
                 .result = s->result_at + 64 + 16 * (gv_u64)i,
                 .seed = ranks ? SEED : SEED + (gv_u32)i,
                 .ranks = ranks},
        };
        rc = gv_device_function(m->gpus, works[i].gpu, kernel, &works[i].function, err);
    }
    m->warmups = 0, m->min_samples = m->max_samples = 1;
    if (!rc)
        rc = gv_meter_run(m, works, s->ring.n, &samples, err);
    m->warmups = warmups, m->min_samples = least, m->max_samples = most;
    return rc;
}

static double longest(const struct gv_samples *s, int from, int n)
{
    double us = 0;
    for (int i = from; i < from + n; i++)
        us = s->us[0][i] > us ? s->us[0][i] : us;
    return us;
}

static void set_loops(struct gv_ring_setup *s, unsigned loops)
{
    s->ring.loops = loops;
    for (int i = 0; i < s->ring.n; i++)
        s->work[i].args.ring.loops = loops;
}

/* Both rings once. */
static int run_once(
    struct gv_meter *m, struct gv_ring_setup *s, struct gv_ring_setup *beside,
    struct gv_samples *out, struct gv_error *err)
{
    struct gv_work works[GV_MAX_WORKS];
    int n = s->ring.n, all = n + (beside ? beside->ring.n : 0);
    int warmups = m->warmups, least = m->min_samples, most = m->max_samples;
    if (all > GV_MAX_WORKS)
        return gv_error_set(err, "too many ranks");
    memcpy(works, s->work, sizeof(works[0]) * (size_t)n);
    if (beside)
        memcpy(works + n, beside->work, sizeof(works[0]) * (size_t)(all - n));
    *(gv_u64 *)s->result = 0;
    m->warmups = 0, m->min_samples = m->max_samples = 1;
    int rc = gv_meter_run(m, works, all, out, err);
    m->warmups = warmups, m->min_samples = least, m->max_samples = most;
    return rc;
}

int gv_ring_sample(
    struct gv_meter *m, struct gv_ring_setup *s, struct gv_ring_setup *beside, double *busbw_gbs,
    bool *throttled, struct gv_error *err)
{
    struct gv_samples samples;
    double us;
    for (;;) {
        if (run_once(m, s, beside, &samples, err))
            return -1;
        if (*(const gv_u64 *)s->result) {
            gv_error_set(err, "a rank waited in vain");
            return 1;
        }
        us = longest(&samples, 0, s->ring.n);
        if (!beside || longest(&samples, s->ring.n, beside->ring.n) >= us ||
            beside->ring.loops >= 64)
            break;
        set_loops(beside, beside->ring.loops ? 2 * beside->ring.loops : 2);
    }
    *busbw_gbs = us > 0 ? s->work[0].bytes / us * 1e-3 : 0;
    *throttled = samples.throttled[0];
    return 0;
}

/* Says which rank has wrong sums; 1, or 0 where none has. */
static int wrong_rank(const struct gv_ring_setup *s, struct gv_error *err)
{
    for (int i = 0; i < s->ring.n; i++) {
        const gv_u64 *result = (const gv_u64 *)s->result + 8 + 2 * i;
        if (!result[0])
            continue;
        gv_error_set(
            err, "wrong at rank %d (GPU %d), %llu units of 16 bytes, from byte %llu on", i,
            s->ring.gpu[i], result[0], result[1] * 16);
        return 1;
    }
    return 0;
}

int gv_ring_verify(struct gv_meter *m, struct gv_ring_setup *s, struct gv_error *err)
{
    double unused;
    bool throttled;
    memset(s->result, 0, 4096);
    for (int i = 0; i < s->ring.n; i++)
        ((gv_u64 *)s->result)[8 + 2 * i + 1] = ~0ull;
    if (over_ranks(m, s, "gv_fill", s->in, 0, err) || over_ranks(m, s, "gv_fill", s->out, 0, err))
        return -1;
    int rc = gv_ring_sample(m, s, NULL, &unused, &throttled, err);
    if (!rc)
        rc = over_ranks(m, s, "gv_check", s->out, (gv_u32)s->ring.n, err);
    return rc ? rc : wrong_rank(s, err);
}
