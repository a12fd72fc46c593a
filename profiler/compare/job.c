#include "profiler/compare/gv_job.h"

#include <math.h>
#include <string.h>

#include "profiler/collective/gv_busbw.h"
#include "profiler/compare/number.h"

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

struct gv_job_gain gv_job_gain_of(
    const struct gv_compared *c, int other, const struct gv_histogram *h, double steps,
    double step_s)
{
    struct gv_job_gain g = {.step_s = step_s};
    for (int i = 0; i < h->n; i++) {
        const struct gv_histogram_row *row = &h->rows[i];
        bool beyond, ignored;
        struct gv_bounded base = time_at(c, c->base, row->op, row->bytes, &beyond);
        struct gv_bounded tuned = time_at(c, other, row->op, row->bytes, &ignored);
        if (!isfinite(base.value) || !isfinite(tuned.value)) {
            g.missing_calls += row->calls / steps;
            continue;
        }
        double scale = row->calls / steps * 1e-6;
        g.base_s = sum(g.base_s, scaled(base, scale));
        g.tuned_s = sum(g.tuned_s, scaled(tuned, scale));
        g.beyond_s += beyond ? base.value * scale : 0;
    }
    g.saved_s = (struct gv_bounded){
        g.base_s.value - g.tuned_s.value, g.base_s.low - g.tuned_s.high,
        g.base_s.high - g.tuned_s.low};
    g.share = scaled(g.saved_s, 1 / step_s); /* NAN where the step is not known */
    return g;
}

static json_t *bounded(struct gv_bounded b)
{
    return json_pack(
        "{s:o, s:o, s:o}", "value", gv_json_number(b.value), "low", gv_json_number(b.low), "high",
        gv_json_number(b.high));
}

json_t *gv_job_gain_json(
    const struct gv_compared *c, const struct gv_histogram *h, double steps, double step_s)
{
    json_t *list = json_array();
    for (int s = 0; s < c->run.nsteers; s++) {
        struct gv_job_gain g = gv_job_gain_of(c, s, h, steps, step_s);
        if (s == c->base)
            continue;
        json_array_append_new(
            list, json_pack(
                      "{s:s, s:o, s:o, s:o, s:o, s:o, s:f, s:f}", "variant", c->run.steer[s].name,
                      "base_s", bounded(g.base_s), "variant_s", bounded(g.tuned_s), "saved_s",
                      bounded(g.saved_s), "step_s", gv_json_number(step_s), "share",
                      bounded(g.share), "beyond_s", g.beyond_s, "missing_calls", g.missing_calls));
    }
    return list;
}
