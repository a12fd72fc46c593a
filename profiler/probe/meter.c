#include "profiler/probe/gv_meter.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/gv_error.h"

static int call(struct gv_meter *m, gv_cu_result rc, struct gv_error *err, const char *what)
{
    if (!rc)
        return 0;
    m->last = rc;
    return gv_cuda_fail(&m->gpus->cuda, rc, err, what);
}

int gv_meter_init(struct gv_meter *m, struct gv_gpus *gpus, struct gv_error *err)
{
    void *word = NULL;
    *m = (struct gv_meter){
        .gpus = gpus,
        .warmups = 1,
        .min_samples = 5,
        .max_samples = 20,
        .spread = 0.02,
        .deadline_s = 30,
    };
    int first = 0;
    while (first < gpus->n && !gpus->device[first].ctx)
        first++;
    if (first == gpus->n)
        return gv_error_set(err, "no GPU was started");
    if (call(m, gpus->cuda.ctx_set(gpus->device[first].ctx), err, "the context is gone") ||
        call(
            m, gpus->cuda.host_alloc(&word, 4096, GV_CU_HOST_PORTABLE | GV_CU_HOST_DEVICEMAP), err,
            "no mapped host memory"))
        return -1;
    m->gate = word;
    *m->gate = 0;
    return 0;
}

void gv_meter_finish(struct gv_meter *m)
{
    const struct gv_cuda *cuda = &m->gpus->cuda;
    for (int i = 0; i < m->gpus->n; i++)
        for (int s = 0; s < GV_DEVICE_STREAMS; s++)
            if (m->begin[i][s]) {
                cuda->ctx_set(m->gpus->device[i].ctx);
                cuda->event_destroy(m->begin[i][s]);
                cuda->event_destroy(m->end[i][s]);
            }
    if (m->gate)
        cuda->host_free(m->gate);
    memset(m, 0, sizeof(*m));
}

static int make_events(struct gv_meter *m, const struct gv_work *w, struct gv_error *err)
{
    const struct gv_cuda *cuda = &m->gpus->cuda;
    if (m->begin[w->gpu][w->stream])
        return 0;
    /* An event belongs to the context in which it is made, and only that context's streams take it.
     */
    return call(m, cuda->ctx_set(m->gpus->device[w->gpu].ctx), err, "the context is gone") ||
                   call(m, cuda->event_create(&m->begin[w->gpu][w->stream], 0), err, "no event") ||
                   call(m, cuda->event_create(&m->end[w->gpu][w->stream], 0), err, "no event")
               ? -1
               : 0;
}

/* Holds the work's stream until the host opens the gate. */
static int enqueue_gate(struct gv_meter *m, const struct gv_work *w, struct gv_error *err)
{
    const struct gv_cuda *cuda = &m->gpus->cuda;
    struct gv_gate_args args = {.timeout_ns = 20000000000ull, .value = m->gate_value + 1};
    void *params[] = {&args};
    gv_cu_function function;
    gv_cu_ptr flag = 0;

    if (gv_device_function(m->gpus, w->gpu, "gv_gate", &function, err) ||
        call(m, cuda->host_pointer(&flag, m->gate, 0), err, "the gate is not mapped"))
        return -1;
    args.flag = flag;
    return call(
        m,
        cuda->launch(
            function, 1, 1, 1, 32, 1, 1, 0, m->gpus->device[w->gpu].stream[w->stream], params,
            NULL),
        err, "the gate does not start");
}

/* Queues the gate, and behind it the work between two events. */
static int enqueue(struct gv_meter *m, const struct gv_work *w, struct gv_error *err)
{
    const struct gv_cuda *cuda = &m->gpus->cuda;
    gv_cu_stream stream = m->gpus->device[w->gpu].stream[w->stream];
    void *params[] = {(void *)&w->args};

    if (make_events(m, w, err) || enqueue_gate(m, w, err) ||
        call(m, cuda->event_record(m->begin[w->gpu][w->stream], stream), err, "no event"))
        return -1;
    for (int r = 0; r < w->repeat; r++) {
        bool kernel = w->kind == GV_WORK_KERNEL;
        gv_cu_result rc =
            kernel
                ? cuda->launch(w->function, w->grid, 1, 1, w->block, 1, 1, 0, stream, params, NULL)
                : cuda->copy_async(w->to, w->from, w->copy_bytes, stream);
        if (call(m, rc, err, kernel ? "a kernel does not start" : "a copy fails"))
            return -1;
    }
    return call(m, cuda->event_record(m->end[w->gpu][w->stream], stream), err, "no event");
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* What to look at after a device failed. */
static int
failed(struct gv_meter *m, const struct gv_device *d, gv_cu_result rc, struct gv_error *err)
{
    char what[160];
    snprintf(
        what, sizeof(what), "GPU %d (%s) failed while it was measured; %s", d->index, d->bus_id,
        rc == GV_CU_ECC_UNCORRECTABLE
            ? "see nvidia-smi -q -d ECC, and replace the card if it happens again"
            : "look for Xid in dmesg, and whether nvidia-smi still lists it");
    return call(m, rc, err, what);
}

static int wait_for(struct gv_meter *m, const struct gv_work *w, double until, struct gv_error *err)
{
    const struct gv_device *d = &m->gpus->device[w->gpu];
    struct timespec pause = {0, 20000};
    m->gpus->cuda.ctx_set(d->ctx);
    for (;;) {
        gv_cu_result rc = m->gpus->cuda.stream_query(d->stream[w->stream]);
        if (!rc)
            return 0;
        if (rc != GV_CU_NOT_READY) {
            return failed(m, d, rc, err);
        }
        if (now_s() > until) {
            m->timed_out = true;
            return gv_error_set(
                err, "GPU %d (%s) did not finish within %.0f s", d->index, d->bus_id,
                m->deadline_s);
        }
        nanosleep(&pause, NULL);
    }
}

/* Sets the words that a kernel counts in to zero, before anything of the sample starts. */
static int clear(struct gv_meter *m, const struct gv_work *works, int n, struct gv_error *err)
{
    const struct gv_cuda *cuda = &m->gpus->cuda;
    for (int i = 0; i < n; i++) {
        const struct gv_work *w = &works[i];
        const struct gv_device *d = &m->gpus->device[w->gpu];
        if (w->clear_host)
            memset(w->clear_host, 0, w->clear_host_bytes);
        if (!w->clear)
            continue;
        cuda->ctx_set(d->ctx);
        if (call(
                m, cuda->set_words(w->clear, 0, w->clear_words, d->stream[w->stream]), err,
                "counters cannot be cleared"))
            return -1;
    }
    for (int i = 0; i < n; i++)
        if (works[i].clear && wait_for(m, &works[i], now_s() + m->deadline_s, err))
            return -1;
    return 0;
}

/* One sample: all queued, gate opened, all waited for. On failure the gate is opened too, so that
 * nothing stays behind it. */
static int
sample(struct gv_meter *m, const struct gv_work *works, int n, double *us, struct gv_error *err)
{
    int rc = clear(m, works, n, err);
    for (int i = 0; i < n && !rc; i++)
        rc = enqueue(m, &works[i], err);
    __atomic_store_n(m->gate, ++m->gate_value, __ATOMIC_SEQ_CST);
    double until = now_s() + m->deadline_s;
    for (int i = 0; i < n && !rc; i++)
        rc = wait_for(m, &works[i], until, err);
    for (int i = 0; i < n && !rc; i++) {
        float ms = 0;
        rc = call(
            m,
            m->gpus->cuda.event_elapsed(
                &ms, m->begin[works[i].gpu][works[i].stream],
                m->end[works[i].gpu][works[i].stream]),
            err, "no time");
        us[i] = 1e3 * (double)ms;
    }
    return rc;
}

static double longest(const double *us, int n)
{
    double most = 0;
    for (int i = 0; i < n; i++)
        most = us[i] > most ? us[i] : most;
    return most;
}

static bool steady(const struct gv_meter *m, const struct gv_samples *s)
{
    double total[GV_MAX_SAMPLES];
    if (s->count < m->min_samples)
        return false;
    for (int i = 0; i < s->count; i++)
        total[i] = longest(s->us[i], s->nworks);
    struct gv_figure f = gv_figure_of(total, s->count);
    return f.max - f.min <= m->spread * f.median;
}

static unsigned long long throttled(const struct gv_meter *m, const struct gv_work *works, int n)
{
    unsigned long long reasons = 0;
    for (int i = 0; i < n && !m->unwatched; i++)
        reasons |= gv_device_throttle(m->gpus, works[i].gpu);
    return reasons;
}

int gv_meter_run(
    struct gv_meter *m, const struct gv_work *works, int n, struct gv_samples *out,
    struct gv_error *err)
{
    int most = m->max_samples < GV_MAX_SAMPLES ? m->max_samples : GV_MAX_SAMPLES;
    double unused[GV_MAX_WORKS];
    memset(out, 0, sizeof(*out));
    m->stopped = m->timed_out = false;
    out->nworks = n;
    for (int i = 0; i < m->warmups; i++)
        if (sample(m, works, n, unused, err))
            return -1;
    while (out->count < most && !steady(m, out)) {
        if (m->stop && *m->stop) {
            m->stopped = true;
            return gv_error_set(err, "stopped");
        }
        unsigned long long before = throttled(m, works, n);
        if (sample(m, works, n, out->us[out->count], err))
            return -1;
        unsigned long long seen = before | throttled(m, works, n);
        out->throttled[out->count++] = seen != 0;
        out->throttle_reasons |= seen;
    }
    return 0;
}

struct gv_figure gv_figure_unknown(void)
{
    return (struct gv_figure){NAN, NAN, NAN, 0};
}

struct gv_figure gv_figure_of(const double *values, int n)
{
    double sorted[4 * GV_MAX_SAMPLES];
    if (n <= 0)
        return gv_figure_unknown();
    if (n > 4 * GV_MAX_SAMPLES)
        n = 4 * GV_MAX_SAMPLES;
    for (int i = 0; i < n; i++) {
        int at = i;
        for (; at && sorted[at - 1] > values[i]; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = values[i];
    }
    double median = n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
    return (struct gv_figure){median, sorted[0], sorted[n - 1], n};
}

struct gv_figure gv_meter_gbs(const struct gv_samples *s, const struct gv_work *works, int w)
{
    double values[GV_MAX_SAMPLES], bytes = 0;
    int n = 0, clean = 0;
    for (int i = 0; i < s->nworks; i++)
        if (w < 0 || w == i)
            bytes += works[i].bytes * works[i].repeat;
    for (int i = 0; i < s->count; i++)
        clean += !s->throttled[i];
    for (int i = 0; i < s->count; i++) {
        double us = w < 0 ? longest(s->us[i], s->nworks) : s->us[i][w];
        if (us > 0 && (!clean || !s->throttled[i]))
            values[n++] = bytes / us * 1e-3;
    }
    return gv_figure_of(values, n);
}

struct gv_figure gv_meter_us(const struct gv_samples *s, double per)
{
    double values[GV_MAX_SAMPLES];
    for (int i = 0; i < s->count; i++)
        values[i] = s->us[i][0] / per;
    return gv_figure_of(values, s->count);
}
