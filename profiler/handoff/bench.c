/* Set-up of what all ways share. */
#include <stdio.h>
#include <string.h>

#include "profiler/handoff/inside.h"

#define PINNED (GV_CU_HOST_PORTABLE | GV_CU_HOST_DEVICEMAP)
#define TRAFFIC_BYTES ((size_t)64 << 20)
#define PAGE 4096

int gv_bench_fail(struct gv_bench *b, gv_cu_result rc, struct gv_error *err, const char *what)
{
    return gv_cuda_fail(&b->gpus->cuda, rc, err, what);
}

static gv_cu_result make_side(struct gv_bench *b, int i)
{
    const struct gv_cuda *cuda = &b->gpus->cuda;
    struct gv_side *s = &b->side[i];
    const struct gv_device *d = &b->gpus->device[s->gpu];
    s->stream = d->stream[i]; /* two streams where both stages are on one GPU */
    s->traffic = d->stream[2];
    gv_cu_result rc = cuda->ctx_set(d->ctx);
    rc = rc ? rc : cuda->mem_alloc(&s->words, PAGE);
    rc = rc ? rc : cuda->set_words(s->words, 0, PAGE / 4, s->stream);
    rc = rc ? rc : cuda->module_function(&s->gate, d->module, "gv_gate");
    rc = rc ? rc : cuda->module_function(&s->read, d->module, "gv_read_u4p");
    rc = rc ? rc : cuda->event_create(&s->begin, 0);
    rc = rc ? rc : cuda->event_create(&s->end, 0);
    if (!rc && !i)
        rc = cuda->mem_alloc(&b->from, b->o->bytes);
    rc = rc ? rc : cuda->mem_alloc(&s->pulled, TRAFFIC_BYTES);
    return rc ? rc : cuda->host_alloc(&s->host, TRAFFIC_BYTES, PINNED);
}

static gv_cu_result make_shared(struct gv_bench *b)
{
    const struct gv_cuda *cuda = &b->gpus->cuda;
    void *word = NULL;
    gv_cu_result rc = cuda->ctx_set(b->gpus->device[b->side[0].gpu].ctx);
    rc = rc ? rc : cuda->host_alloc(&word, PAGE, PINNED);
    rc = rc ? rc : cuda->event_create(&b->begin, 0);
    rc = rc ? rc : cuda->event_create(&b->end, 0);
    b->gate = word;
    if (word)
        *b->gate = 0;
    if (!rc)
        rc = cuda->ctx_set(b->gpus->device[b->side[1].gpu].ctx);
    return rc ? rc : cuda->event_create(&b->turn, GV_CU_EVENT_NO_TIMING);
}

int gv_bench_init(
    struct gv_bench *b, const struct gv_ab_options *o, struct gv_gpus *gpus, struct gv_error *err)
{
    *b = (struct gv_bench){.o = o, .gpus = gpus, .side = {{.gpu = o->from}, {.gpu = o->to}}};
    if (gv_cuda_graph_open(&gpus->cuda, &b->graph, err))
        return -1;
    for (int i = 0; i < 2; i++) {
        if (b->side[i].gpu < 0 || b->side[i].gpu >= gpus->n)
            return gv_error_set(
                err, "there is no GPU %d; there are 0-%d", b->side[i].gpu, gpus->n - 1);
        if (gv_device_start(gpus, b->side[i].gpu, err))
            return -1;
    }
    if (gv_meter_init(&b->meter, gpus, err))
        return -1;
    b->meter.stop = o->stop;
    gv_cu_result rc = 0;
    for (int i = 0; i < 2 && !rc; i++)
        rc = make_side(b, i);
    rc = rc ? rc : make_shared(b);
    return rc ? gv_bench_fail(b, rc, err, "no memory to measure with") : 0;
}

void gv_bench_finish(struct gv_bench *b)
{
    const struct gv_cuda *cuda = &b->gpus->cuda;
    for (int i = 0; i < 2; i++) {
        struct gv_side *s = &b->side[i];
        if (s->gpu < 0 || s->gpu >= b->gpus->n || !b->gpus->device[s->gpu].ctx)
            continue;
        cuda->ctx_set(b->gpus->device[s->gpu].ctx);
        const gv_cu_ptr memory[] = {s->words, s->pulled, i ? 0 : b->from};
        const gv_cu_event events[] = {s->begin, s->end, i ? b->turn : b->begin, i ? NULL : b->end};
        for (int k = 0; k < 3; k++)
            if (memory[k])
                cuda->mem_free(memory[k]);
        for (int k = 0; k < 4; k++)
            if (events[k])
                cuda->event_destroy(events[k]);
        if (s->host)
            cuda->host_free(s->host);
    }
    if (b->gate)
        cuda->host_free(b->gate);
    if (b->meter.gpus)
        gv_meter_finish(&b->meter);
}

/* Holds a stream until the host opens the gate, so that all is queued before anything runs. */
int gv_gate_queue(struct gv_bench *b, int side, gv_cu_stream stream, struct gv_error *err)
{
    const struct gv_cuda *cuda = &b->gpus->cuda;
    struct gv_gate_args args = {.timeout_ns = 20000000000ull, .value = b->gate_value + 1};
    void *params[] = {&args};
    gv_cu_ptr flag = 0;
    cuda->ctx_set(b->gpus->device[b->side[side].gpu].ctx);
    gv_cu_result rc = cuda->host_pointer(&flag, b->gate, 0);
    args.flag = flag;
    rc = rc ? rc : cuda->launch(b->side[side].gate, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL);
    return rc ? gv_bench_fail(b, rc, err, "the gate does not start") : 0;
}

int gv_traffic_queue(struct gv_bench *b, int side, struct gv_error *err)
{
    const struct gv_cuda *cuda = &b->gpus->cuda;
    struct gv_side *s = &b->side[side];
    if (gv_gate_queue(b, side, s->traffic, err))
        return -1;
    gv_cu_result rc = cuda->event_record(s->begin, s->traffic);
    for (int i = 0; i < s->copies && !rc; i++) {
        rc = cuda->copy_htod(s->pulled, s->host, TRAFFIC_BYTES, s->traffic);
        gv_opener_beat(b->opener);
    }
    rc = rc ? rc : cuda->event_record(s->end, s->traffic);
    return rc ? gv_bench_fail(b, rc, err, "the host traffic does not start") : 0;
}

void gv_traffic_fit(struct gv_bench *b, double us)
{
    for (int i = 0; i < 2; i++) {
        double copies = us * 1e3 * b->side[i].loaded_gbs / (double)TRAFFIC_BYTES;
        b->side[i].copies = copies < 1 ? 1 : copies > 20000 ? 20000 : (int)copies + 1;
    }
}
