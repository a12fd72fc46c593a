/* Steps over one way: compute, hand over, compute; the next step begins when this one is done. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "profiler/handoff/inside.h"

#define SAMPLE_US 1e5
#define STEPS 20
#define DEADLINE_S 120

struct way {
    struct gv_bench *b;
    struct gv_ab *ab;
    struct gv_ab_way *out;
    gv_handoff *h;
    double compute_us;
    int steps;
    gv_cu_exec exec; /* the captured steps */
};

#define CU(w, call, err, what)                                                                     \
    do {                                                                                           \
        gv_cu_result cu_rc = (call);                                                               \
        if (cu_rc)                                                                                 \
            return gv_bench_fail((w)->b, cu_rc, err, what);                                        \
    } while (0)

/* A kernel that lasts as long as it is told, on one multiprocessor: it waits for a word of its own
 * GPU that nobody writes. */
static gv_cu_result spin(struct way *w, int side)
{
    const struct gv_side *s = &w->b->side[side];
    const struct gv_cuda *cuda = &w->b->gpus->cuda;
    struct gv_gate_args args = {
        .flag = s->words,
        .timeout_ns = (gv_u64)(w->compute_us / 2 * 1e3),
        .value = ~0u,
    };
    void *params[] = {&args};
    if (!args.timeout_ns)
        return 0;
    cuda->ctx_set(w->b->gpus->device[s->gpu].ctx);
    return cuda->launch(s->gate, 1, 1, 1, 32, 1, 1, 0, s->stream, params, NULL);
}

static bool in_place(enum gv_handoff_method m)
{
    return m == GV_HANDOFF_HOST_MAPPED || m == GV_HANDOFF_PEER_READ;
}

static gv_cu_result read_there(struct way *w, const void *at)
{
    const struct gv_side *s = &w->b->side[1];
    const struct gv_device *d = &w->b->gpus->device[s->gpu];
    const struct gv_cuda *cuda = &w->b->gpus->cuda;
    struct gv_memory_args args = {
        .dst = s->words + 64,
        .src = (gv_u64)(uintptr_t)at,
        .n16 = w->b->o->bytes / 16,
    };
    void *params[] = {&args};
    unsigned grid = d->multiprocessors > 0 ? 4 * (unsigned)d->multiprocessors : 256;
    cuda->ctx_set(d->ctx);
    return cuda->launch(s->read, grid, 1, 1, 256, 1, 1, 0, s->stream, params, NULL);
}

static int step(struct way *w, struct gv_error *err)
{
    struct gv_bench *b = w->b;
    const struct gv_cuda *cuda = &b->gpus->cuda;
    void *at = NULL, *from = (void *)(uintptr_t)b->from, *target;
    /* A producer of this way writes where it is read: nothing is copied before. */
    if (w->out->method == GV_HANDOFF_PEER_READ && !gv_handoff_target(w->h, &target))
        from = NULL;
    CU(w, spin(w, 0), err, "the producer does not start");
    if (gv_handoff_send(
            w->h, from, (struct CUstream_st *)b->side[0].stream,
            (struct CUstream_st *)b->side[1].stream, &at)) {
        struct gv_handoff_state state;
        gv_handoff_query(w->h, &state);
        return gv_error_set(err, "the hand-off failed: %s", state.reason);
    }
    if (in_place(w->out->method))
        CU(w, read_there(w, at), err, "the consumer does not read");
    CU(w, spin(w, 1), err, "the consumer does not start");
    gv_handoff_done(w->h, (struct CUstream_st *)b->side[1].stream);
    cuda->ctx_set(b->gpus->device[b->side[1].gpu].ctx);
    CU(w, cuda->event_record(b->turn, b->side[1].stream), err, "no event");
    cuda->ctx_set(b->gpus->device[b->side[0].gpu].ctx);
    CU(w, b->graph.stream_wait(b->side[0].stream, b->turn, 0), err, "no event");
    return 0;
}

static int steps(struct way *w, struct gv_error *err)
{
    for (int i = 0; i < w->steps; i++) {
        if (step(w, err))
            return -1;
        if (w->b->opener)
            gv_opener_beat(w->b->opener);
    }
    return 0;
}

static void drop_graph(struct way *w)
{
    if (w->exec)
        w->b->graph.exec_destroy(w->exec);
    w->exec = NULL;
}

static int capture(struct way *w, struct gv_error *err)
{
    const struct gv_cuda_graph *g = &w->b->graph;
    gv_cu_stream stream = w->b->side[0].stream;
    gv_cu_graph graph = NULL;
    drop_graph(w);
    w->b->gpus->cuda.ctx_set(w->b->gpus->device[w->b->side[0].gpu].ctx);
    CU(w, g->capture_begin(stream, GV_CU_CAPTURE_RELAXED), err, "no capture");
    int rc = steps(w, err);
    gv_cu_result ended = g->capture_end(stream, &graph);
    if (!rc && ended)
        rc = gv_bench_fail(w->b, ended, err, "the steps cannot be captured");
    if (!rc && (ended = g->graph_instantiate(&w->exec, graph, 0)))
        rc = gv_bench_fail(w->b, ended, err, "the graph cannot be made");
    if (graph)
        g->graph_destroy(graph);
    return rc;
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A lost GPU is the hand-off's business too: it says so, once. */
static int lost(struct way *w, int gpu, gv_cu_result rc, struct gv_error *err)
{
    char what[96];
    gv_handoff_failed(w->h, rc);
    snprintf(what, sizeof(what), "GPU %d failed in the middle of a step", gpu);
    return gv_bench_fail(w->b, rc, err, what);
}

static int wait_for(struct way *w, int side, gv_cu_stream stream, struct gv_error *err)
{
    struct timespec pause = {0, 20000};
    const struct gv_bench *b = w->b;
    int gpu = b->side[side].gpu;
    double until = now_s() + DEADLINE_S;
    b->gpus->cuda.ctx_set(b->gpus->device[gpu].ctx);
    for (;;) {
        gv_cu_result rc = b->gpus->cuda.stream_query(stream);
        if (!rc)
            return 0;
        if (rc != GV_CU_NOT_READY)
            return lost(w, gpu, rc, err);
        for (int i = 0; i < 2; i++) { /* the other one may be lost */
            gv_cu_result other = b->gpus->cuda.stream_query(b->side[i].stream);
            if (other && other != GV_CU_NOT_READY)
                return lost(w, b->side[i].gpu, other, err);
        }
        if (b->o->stop && *b->o->stop)
            return gv_error_set(err, "stopped");
        if (now_s() > until)
            return gv_error_set(err, "a step did not end within %d s", DEADLINE_S);
        nanosleep(&pause, NULL);
    }
}

static int queue(struct way *w, struct gv_error *err)
{
    struct gv_bench *b = w->b;
    const struct gv_cuda *cuda = &b->gpus->cuda;
    gv_cu_stream stream = b->side[0].stream;
    for (int i = 0; i < 2 && b->o->host_traffic && b->side[i].copies; i++)
        if ((!i || b->o->from != b->o->to) && gv_traffic_queue(b, i, err))
            return -1;
    if (gv_gate_queue(b, 0, stream, err))
        return -1;
    CU(w, cuda->event_record(b->begin, stream), err, "no event");
    if (b->o->graph)
        CU(w, b->graph.graph_launch(w->exec, stream), err, "the graph does not start");
    else if (steps(w, err))
        return -1;
    cuda->ctx_set(b->gpus->device[b->side[0].gpu].ctx);
    CU(w, cuda->event_record(b->end, stream), err, "no event");
    return 0;
}

/* Microseconds of all steps of one sample. */
static int sample(struct way *w, double *us, struct gv_error *err)
{
    struct gv_bench *b = w->b;
    struct gv_opener opener;
    float ms = 0;
    if (b->o->graph && !w->exec && capture(w, err))
        return -1;
    gv_opener_start(&opener, b);
    b->opener = &opener;
    int rc = queue(w, err);
    gv_opener_finish(&opener);
    b->opener = NULL;
    b->gate_value = opener.value;
    struct gv_error *also = rc ? NULL : err; /* what was queued ends first in any case */
    for (int i = 0; i < 2; i++)
        if (wait_for(w, i, b->side[i].stream, also))
            return -1;
    if (rc)
        return -1;
    for (int i = 0; i < 2 && b->o->host_traffic && b->side[i].copies; i++)
        if (wait_for(w, i, b->side[i].traffic, err))
            return -1;
    b->gpus->cuda.ctx_set(b->gpus->device[b->side[0].gpu].ctx);
    CU(w, b->gpus->cuda.event_elapsed(&ms, b->begin, b->end), err, "no time");
    *us = (double)ms * 1e3;
    return 0;
}

/* Rates of the traffic during the last sample. */
static void keep_traffic(struct gv_bench *b, struct gv_ab *ab)
{
    for (int i = 0; i < ab->nlinks && b->o->host_traffic && b->side[i].copies; i++) {
        const struct gv_side *s = &b->side[i];
        float ms = 0;
        b->gpus->cuda.ctx_set(b->gpus->device[s->gpu].ctx);
        if (b->gpus->cuda.event_elapsed(&ms, s->begin, s->end) || ms <= 0)
            continue;
        ab->links[i].traffic_gbs = (double)s->copies * (64 << 20) / (double)ms * 1e-6;
        ab->links[i].traffic_use = ab->links[i].traffic_gbs / s->gbs;
    }
}

/* One cold step, then warm samples; what was captured holds for one number of steps. */
static int series(
    struct way *w, double compute_us, struct gv_ab *ab, double *cold, double samples[],
    struct gv_error *err)
{
    const struct gv_ab_options *o = w->b->o;
    int n = o->samples;
    w->compute_us = compute_us;
    w->steps = 1;
    drop_graph(w);
    gv_traffic_fit(w->b, compute_us);
    if (sample(w, cold, err))
        return -1;
    double us = *cold, fit = SAMPLE_US / (us > 1 ? us : 1);
    w->steps = o->steps ? o->steps : fit < 1 ? 1 : fit > STEPS ? STEPS : (int)fit;
    drop_graph(w);
    for (int i = -1; i < n; i++) { /* the first warms up */
        gv_traffic_fit(w->b, us * w->steps);
        if (sample(w, &us, err))
            return -1;
        us /= w->steps;
        if (i >= 0)
            samples[i] = us;
    }
    if (compute_us > 0 || o->compute_us <= 0)
        keep_traffic(w->b, ab);
    drop_graph(w);
    return 0;
}

static bool right(gv_handoff *h)
{
    uint64_t wrong = 1;
    return !gv_handoff_verify(h, &wrong) && !wrong;
}

static int make(struct way *w, struct gv_error *err)
{
    const struct gv_ab_options *o = w->b->o;
    bool peer = w->out->method >= GV_HANDOFF_PEER_COPY;
    struct gv_handoff_options options = {
        .struct_bytes = sizeof(options),
        .source = o->from,
        .destination = o->to,
        .bytes = o->bytes,
        .mode = peer ? GV_HANDOFF_PEER : GV_HANDOFF_HOST,
        .method = w->out->method,
        .driver = o->cuda_path,
        .log = o->log,
    };
    struct gv_handoff_state state;
    const struct gv_ab_way *copy = &w->ab->ways[GV_HANDOFF_PEER_COPY];
    char text[GV_ERROR_TEXT];
    if (w->out->method == GV_HANDOFF_PEER_READ && !copy->ran) { /* the path is the same */
        snprintf(w->out->why, sizeof(w->out->why), "%s", copy->why);
        return 1;
    }
    if (gv_handoff_create(&options, &w->h, text, sizeof(text))) {
        w->h = NULL;
        return gv_error_set(err, "%s", text);
    }
    gv_handoff_query(w->h, &state);
    if (state.method == w->out->method)
        return 0;
    snprintf(w->out->why, sizeof(w->out->why), "%s", state.reason);
    return 1;
}

static int measure(struct way *w, struct gv_ab *ab, struct gv_error *err)
{
    const struct gv_ab_options *o = w->b->o;
    struct gv_ab_way *out = w->out;
    double samples[GV_MAX_SAMPLES];
    out->right = right(w->h);
    if (series(w, 0, ab, &out->cold_us, samples, err))
        return -1;
    out->handoff_us = gv_figure_of(samples, o->samples);
    memcpy(out->step_samples, samples, sizeof(samples));
    out->cold_step_us = out->cold_us;
    if (o->compute_us > 0 &&
        series(w, o->compute_us, ab, &out->cold_step_us, out->step_samples, err))
        return -1;
    out->step_us = gv_figure_of(out->step_samples, o->samples);
    out->steps = w->steps;
    out->right &= right(w->h);
    out->ran = true;
    return 0;
}

/* A path that was left in the middle is no figure of that path, and no failure of the machine. */
static bool was_left(struct way *w)
{
    struct gv_handoff_state state;
    gv_handoff_query(w->h, &state);
    if (state.method == w->out->method || state.failed)
        return false;
    w->out->ran = false;
    snprintf(w->out->why, sizeof(w->out->why), "%s", state.reason);
    return true;
}

int gv_way_measure(
    struct gv_bench *b, struct gv_ab *ab, enum gv_handoff_method method, struct gv_error *err)
{
    struct way w = {.b = b, .ab = ab, .out = &ab->ways[method]};
    w.out->method = method;
    w.out->cold_us = w.out->cold_step_us = NAN;
    w.out->handoff_us = w.out->step_us = gv_figure_unknown();
    int rc = make(&w, err);
    if (!rc) {
        rc = measure(&w, ab, err);
        rc = was_left(&w) ? 0 : rc;
    }
    drop_graph(&w);
    gv_handoff_destroy(w.h);
    return rc < 0 ? -1 : 0;
}
