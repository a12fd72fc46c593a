/* What a comparison is worth to a job. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/collective/gv_busbw.h"
#include "profiler/compare/gv_job.h"
#include "profiler/compare/number.h"
#include "profiler/compare/parts.h"

/* Median and inner range of the time of one case. */
static struct gv_bounded time_of(const struct gv_compared *c, int s, int k)
{
    const struct gv_case *what = &c->run.cases[k];
    struct gv_compared_side side = gv_compared_side_of(c, s, k);
    struct gv_bounded t = {NAN, NAN, NAN};
    if (!side.busbw.count)
        return t;
    t.value = gv_busbw_time_us(what->op, c->run.nranks, what->bytes, side.busbw.median);
    t.low = gv_busbw_time_us(what->op, c->run.nranks, what->bytes, side.busbw.high);
    t.high = gv_busbw_time_us(what->op, c->run.nranks, what->bytes, side.busbw.low);
    return t;
}

struct around {
    int below, above; /* cases next to the size; -1 none */
};

static struct around find_around(const struct gv_compared *c, int s, enum gv_op op, uint64_t bytes)
{
    struct around a = {-1, -1};
    for (int k = 0; k < c->run.ncases; k++) {
        const struct gv_case *what = &c->run.cases[k];
        if (what->op != op || what->in_place || !isfinite(time_of(c, s, k).value))
            continue;
        if (what->bytes <= bytes && (a.below < 0 || what->bytes > c->run.cases[a.below].bytes))
            a.below = k;
        if (what->bytes >= bytes && (a.above < 0 || what->bytes < c->run.cases[a.above].bytes))
            a.above = k;
    }
    return a;
}

static struct gv_bounded scaled(struct gv_bounded t, double by)
{
    return (struct gv_bounded){t.value * by, t.low * by, t.high * by};
}

static struct gv_bounded sum(struct gv_bounded a, struct gv_bounded b)
{
    return (struct gv_bounded){a.value + b.value, a.low + b.low, a.high + b.high};
}

/* Microseconds of one call; NAN where the operation was not measured. */
static struct gv_bounded
time_at(const struct gv_compared *c, int s, enum gv_op op, uint64_t bytes, bool *beyond)
{
    struct around a = find_around(c, s, op, bytes);
    *beyond = a.below < 0 || a.above < 0;
    if (a.below < 0 && a.above < 0)
        return (struct gv_bounded){NAN, NAN, NAN};
    if (a.below < 0)
        return time_of(c, s, a.above);
    double from = (double)c->run.cases[a.below].bytes;
    if (a.above < 0)
        return scaled(time_of(c, s, a.below), (double)bytes / from);
    double to = (double)c->run.cases[a.above].bytes;
    double part = to > from ? ((double)bytes - from) / (to - from) : 0;
    return sum(scaled(time_of(c, s, a.below), 1 - part), scaled(time_of(c, s, a.above), part));
}

struct gv_bounded gv_job_time_us(
    const struct gv_compared *c, int steer, const struct gv_histogram_row *row, bool *beyond)
{
    return time_at(c, steer, row->op, row->bytes, beyond);
}

struct gv_job_gain gv_job_gain_of(const struct gv_compared *c, int other)
{
    struct gv_job_gain g = {.beyond_s = 0};
    for (int i = 0; i < c->job.sizes.n; i++) {
        const struct gv_histogram_row *row = &c->job.sizes.rows[i];
        bool beyond, ignored;
        struct gv_bounded base = gv_job_time_us(c, c->base, row, &beyond);
        struct gv_bounded tuned = gv_job_time_us(c, other, row, &ignored);
        if (!isfinite(base.value) || !isfinite(tuned.value)) {
            g.missing_calls += row->calls / c->job.steps;
            continue;
        }
        double scale = row->calls / c->job.steps * 1e-6;
        g.base_s = sum(g.base_s, scaled(base, scale));
        g.tuned_s = sum(g.tuned_s, scaled(tuned, scale));
        g.beyond_s += beyond ? base.value * scale : 0;
    }
    g.saved_s = (struct gv_bounded){
        g.base_s.value - g.tuned_s.value, g.base_s.low - g.tuned_s.high,
        g.base_s.high - g.tuned_s.low};
    g.share = scaled(g.saved_s, 1 / c->job.step_s); /* NAN where the step is not known */
    return g;
}

static json_t *bounded(struct gv_bounded b)
{
    return json_pack(
        "{s:o, s:o, s:o}", "value", gv_json_number(b.value), "low", gv_json_number(b.low), "high",
        gv_json_number(b.high));
}

static json_t *sizes(const struct gv_histogram *h)
{
    json_t *list = json_array();
    for (int i = 0; i < h->n; i++)
        json_array_append_new(
            list, json_pack(
                      "{s:s, s:I, s:f}", "operation", gv_op_name(h->rows[i].op), "size",
                      (json_int_t)h->rows[i].bytes, "calls", h->rows[i].calls));
    return list;
}

static json_t *gain(const struct gv_compared *c, int s)
{
    struct gv_job_gain g = gv_job_gain_of(c, s);
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:f, s:f}", "variant", gv_json_text(c->run.steer[s].name),
        "base_s", bounded(g.base_s), "variant_s", bounded(g.tuned_s), "saved_s", bounded(g.saved_s),
        "share", bounded(g.share), "beyond_s", g.beyond_s, "missing_calls", g.missing_calls);
}

json_t *gv_compared_job_json(const struct gv_compared *c)
{
    if (!c->job.file[0])
        return json_null();
    json_t *list = json_array();
    for (int s = 0; s < c->run.nsteers; s++)
        if (s != c->base)
            json_array_append_new(list, gain(c, s));
    return json_pack(
        "{s:o, s:b, s:f, s:o, s:o, s:o}", "file", gv_json_text(c->job.file), "from_log",
        c->job.sizes.from_log, "steps", c->job.steps, "step_s", gv_json_number(c->job.step_s),
        "sizes", sizes(&c->job.sizes), "gains", list);
}

static int load_row(const struct gv_loading *l, const json_t *r, struct gv_histogram_row *out)
{
    const char *name = json_string_value(json_object_get(r, "operation"));
    json_int_t bytes = json_integer_value(json_object_get(r, "size"));
    int op = name ? gv_op_from_name(name) : -1;
    double calls = gv_load_number(json_object_get(r, "calls"));
    if (op < 0 || bytes < 0 || !(calls > 0))
        return gv_load_bad(l, "job.sizes");
    *out = (struct gv_histogram_row){(enum gv_op)op, (uint64_t)bytes, calls};
    return 0;
}

int gv_compared_job_load(const struct gv_loading *l, const json_t *object)
{
    struct gv_compared_job *job = &l->out->job;
    const json_t *list = json_object_get(object, "sizes");
    size_t n = json_array_size(list);
    job->step_s = NAN;
    if (!object || json_is_null(object))
        return 0;
    gv_load_text(job->file, sizeof(job->file), object, "file");
    job->steps = gv_load_number(json_object_get(object, "steps"));
    job->step_s = gv_load_number(json_object_get(object, "step_s"));
    job->sizes.from_log = json_is_true(json_object_get(object, "from_log"));
    if (!n || n > 1 << 20 || !(job->steps > 0) || !job->file[0])
        return gv_load_bad(l, "job");
    job->sizes.rows = calloc(n, sizeof(*job->sizes.rows));
    if (!job->sizes.rows)
        return gv_error_set(l->err, "out of memory");
    for (size_t i = 0; i < n; i++)
        if (load_row(l, json_array_get(list, i), &job->sizes.rows[job->sizes.n++]))
            return -1;
    return 0;
}
