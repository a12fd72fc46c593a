/* What a difference would bring to a job. */
#include <math.h>
#include <stdio.h>

#include "profiler/compare/gv_job.h"
#include "profiler/report/view.h"

#define WIDTH 352.0
#define LEFT 104.0
#define BAR 14.0

static void sentence(struct gv_html *h, const struct gv_compared *c, int s)
{
    struct gv_job_gain g = gv_job_gain_of(c, s);
    gv_open(h, "p");
    gv_attr(h, "data-job", c->run.steer[s].name);
    gv_data(h, "data-saved-s", g.saved_s.value);
    gv_data(h, "data-share", g.share.value);
    gv_element(h, "strong", c->run.steer[s].name);
    gv_textf(
        h, ": %.6g s saved a step (%.6g to %.6g), %.6g s in collectives instead of %.6g",
        g.saved_s.value, g.saved_s.low, g.saved_s.high, g.tuned_s.value, g.base_s.value);
    if (isfinite(g.share.value))
        gv_textf(
            h, "; %.2f %% of a step of %.6g s (%.2f to %.2f %%)", 100 * g.share.value,
            c->job.step_s, 100 * g.share.low, 100 * g.share.high);
    gv_text(h, ".");
    if (g.beyond_s > 0)
        gv_textf(
            h, " %.0f %% of that time is at sizes outside the measured ones.",
            100 * g.beyond_s / g.base_s.value);
    if (g.missing_calls > 0)
        gv_textf(
            h, " %.6g calls a step are of operations that were not measured: not counted.",
            g.missing_calls);
    gv_close(h);
}

/* Time of a variant, of the base where s is the base. */
static struct gv_bounded time_of(const struct gv_compared *c, int s)
{
    struct gv_job_gain g = gv_job_gain_of(c, s);
    return s == c->base ? g.base_s : g.tuned_s;
}

static void bar(struct gv_html *h, const struct gv_view *view, int s, double y, double most)
{
    const struct gv_compared *c = view->compared;
    struct gv_bounded t = time_of(c, s);
    double room = WIDTH - LEFT - 66, end = LEFT + t.value / most * room;
    char text[48], name[24];
    gv_open(h, "g");
    gv_attr(h, "data-job-bar", c->run.steer[s].name);
    gv_data(h, "data-seconds", t.value);
    gv_data(h, "data-low", t.low);
    gv_data(h, "data-high", t.high);
    snprintf(name, sizeof(name), "%.15s", c->run.steer[s].name);
    gv_svg_text(h, "name", LEFT - 6, y + 11, "end", name);
    gv_open(h, "rect");
    gv_attrf(h, "class", "mark %s", gv_view_class(view, s));
    gv_at(h, "x", LEFT);
    gv_at(h, "y", y);
    gv_at(h, "width", end - LEFT);
    gv_at(h, "height", BAR);
    gv_close(h);
    if (t.high > t.low) {
        double high = LEFT + t.high / most * room;
        gv_open_class(h, "path", "whisker");
        gv_attrf(h, "d", "M%.1f %.1fH%.1f", LEFT + t.low / most * room, y + BAR / 2, high);
        gv_close(h);
        end = fmax(end, high);
    }
    snprintf(text, sizeof(text), "%.4g s", t.value);
    gv_svg_text(h, "tick", end + 5, y + 11, "start", text);
    gv_close(h);
}

static void draw(struct gv_html *h, const struct gv_view *view)
{
    const struct gv_compared *c = view->compared;
    double most = 0, y = 6;
    for (int s = 0; s < c->run.nsteers; s++)
        most = fmax(most, fmax(time_of(c, s).value, time_of(c, s).high));
    if (!(most > 0))
        return;
    gv_open(h, "figure");
    gv_element(h, "figcaption", "Seconds a step in collectives, with range");
    gv_svg(
        h, "job-time", WIDTH, 6 + c->run.nsteers * (BAR + 8), 1.4, "Seconds a step in collectives",
        "A bar for each variant, its line the range that the samples leave. The sentences above "
        "have the same figures.");
    for (int s = 0; s < c->run.nsteers; s++, y += BAR + 8)
        bar(h, view, s, y, most);
    gv_close_n(h, 2);
}

static void time_cell(
    struct gv_html *h, const struct gv_compared *c, int s, const struct gv_histogram_row *row,
    bool *beyond)
{
    struct gv_bounded t = gv_job_time_us(c, s, row, beyond);
    gv_cell_figure(h, "data-time-us", t.value);
}

static void table(struct gv_html *h, const struct gv_compared *c)
{
    const char *headings[3 + GV_MAX_STEERS] = {"operation", "size", "calls a step"};
    char size[32];
    int n = 3;
    for (int s = 0; s < c->run.nsteers; s++)
        headings[n++] = c->run.steer[s].name;
    gv_table_figures(
        h, "What the job calls, and microseconds of one call", headings, n, ((uint64_t)1 << n) - 2);
    for (int i = 0; i < c->job.sizes.n; i++) {
        const struct gv_histogram_row *row = &c->job.sizes.rows[i];
        bool beyond = false;
        gv_open(h, "tr");
        gv_attr(h, "data-job-row", gv_op_name(row->op));
        gv_attrf(h, "data-size", "%llu", (unsigned long long)row->bytes);
        gv_open(h, "th");
        gv_attr(h, "scope", "row");
        gv_text(h, gv_op_name(row->op));
        gv_close(h);
        gv_open_class(h, "td", "n");
        gv_text(h, gv_size_text(row->bytes, size));
        gv_close(h);
        gv_open_class(h, "td", "n");
        gv_data(h, "data-calls", row->calls / c->job.steps);
        gv_textf(h, "%.6g", row->calls / c->job.steps);
        gv_close(h);
        for (int s = 0; s < c->run.nsteers; s++)
            time_cell(h, c, s, row, &beyond);
        gv_close(h);
    }
    gv_table_end(h);
}

void gv_part_job(struct gv_html *h, const struct gv_view *view)
{
    const struct gv_compared *c = view->compared;
    gv_open(h, "p");
    gv_textf(
        h, "%s, %s%.6g step%s. Between measured sizes times are interpolated.", c->job.file,
        c->job.sizes.from_log ? "a log of NCCL, one process of it, " : "", c->job.steps,
        c->job.steps == 1 ? "" : "s");
    gv_text(h, " It is the most that can be gained: no collective is hidden behind computing.");
    gv_close(h);
    for (int s = 0; s < c->run.nsteers; s++)
        if (s != c->base)
            sentence(h, c, s);
    gv_open_class(h, "div", "pair");
    draw(h, view);
    gv_open_class(h, "div", "beside");
    table(h, c);
    gv_close_n(h, 2);
}
