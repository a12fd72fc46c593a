/* busbw over size, one picture for each operation, with the range of each point. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "profiler/report/busbw.h"

#define WIDTH 352.0
#define HEIGHT 236.0
#define LEFT 34.0
#define RIGHT 14.0
#define TOP 24.0
#define BOTTOM 34.0

static double x_of(const struct gv_series *s, double bytes)
{
    double span = s->high - s->low, inner = WIDTH - LEFT - RIGHT - 20;
    double part = span > 0 ? (log2(bytes) - s->low) / span : 0.5;
    return LEFT + 10 + part * inner;
}

static double y_of(const struct gv_series *s, double gbs)
{
    return HEIGHT - BOTTOM - gbs / s->most * (HEIGHT - TOP - BOTTOM);
}

static void measure(struct gv_series *s)
{
    const struct gv_compared *c = s->view->compared;
    double most = 0;
    s->low = INFINITY;
    s->high = -INFINITY;
    for (int k = 0; k < c->run.ncases; k++) {
        if (!gv_same_series(&c->run.cases[k], s->like))
            continue;
        double at = log2((double)c->run.cases[k].bytes);
        s->low = fmin(s->low, at);
        s->high = fmax(s->high, at);
        for (int v = 0; v < c->run.nsteers; v++) {
            struct gv_compared_side side = gv_compared_side_of(c, v, k);
            most = fmax(most, fmax(side.busbw_gbs, side.busbw.high)); /* fmax drops NAN */
        }
    }
    s->step = gv_axis_step(most);
    s->most = most > 0 ? ceil(most / s->step - 1e-9) * s->step : 1;
}

static void draw_axes(struct gv_html *h, const struct gv_series *s)
{
    const struct gv_compared *c = s->view->compared;
    char text[32];
    double last = -INFINITY;
    int steps = (int)(s->most / s->step + 1e-3);
    for (int i = 0; i <= steps; i++) {
        double gbs = i * s->step;
        double y = y_of(s, gbs);
        gv_svg_line(h, gbs > 0 ? "grid" : "axis", LEFT, y, WIDTH - RIGHT, y);
        snprintf(text, sizeof(text), "%g", gbs);
        gv_svg_text(h, "tick", LEFT - 5, y + 4, "end", text);
    }
    gv_svg_text(h, "tick", 2, 11, "start", "GB/s");
    for (int k = 0; k < c->run.ncases; k++) {
        double x = x_of(s, (double)c->run.cases[k].bytes);
        if (!gv_same_series(&c->run.cases[k], s->like))
            continue;
        gv_svg_line(h, "axis", x, HEIGHT - BOTTOM, x, HEIGHT - BOTTOM + 4);
        if (x - last < 38)
            continue;
        last = x;
        gv_svg_text(
            h, "tick", x, HEIGHT - BOTTOM + 16, "middle",
            gv_size_text(c->run.cases[k].bytes, text));
    }
    gv_svg_text(h, "tick", (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 4, "middle", "size, bytes");
}

/* The k of the series' next point of variant `v` that has samples, from `k` on; ncases: none. */
static int next_point(const struct gv_series *s, int v, int k)
{
    const struct gv_compared *c = s->view->compared;
    while (k < c->run.ncases && (!gv_same_series(&c->run.cases[k], s->like) ||
                                 !gv_compared_side_of(c, v, k).busbw.count))
        k++;
    return k;
}

static void draw_line(struct gv_html *h, const struct gv_series *s, int v)
{
    const struct gv_compared *c = s->view->compared;
    int k = next_point(s, v, 0), n = 0;
    if (k >= c->run.ncases)
        return;
    struct gv_str d = {0};
    for (; k < c->run.ncases; k = next_point(s, v, k + 1))
        gv_str_addf(
            &d, "%s%.1f %.1f", n++ ? "L" : "M", x_of(s, (double)c->run.cases[k].bytes),
            y_of(s, gv_compared_side_of(c, v, k).busbw.median));
    gv_open(h, "path");
    gv_attrf(h, "class", "line %s", gv_view_class(s->view, v));
    gv_attr(h, "d", d.data ? d.data : "");
    gv_close(h);
    gv_str_free(&d);
}

/* Ranges of two variants at one size stand beside each other. */
static void draw_point(struct gv_html *h, const struct gv_series *s, int v, int k)
{
    const struct gv_compared *c = s->view->compared;
    const struct gv_case *what = &c->run.cases[k];
    struct gv_compared_side side = gv_compared_side_of(c, v, k);
    double x = x_of(s, (double)what->bytes), y = y_of(s, side.busbw.median);
    double aside = x + 3.0 * (v % 2 ? 1 : -1);
    char size[32], median[32], low[32], high[32];
    const char *class = gv_view_class(s->view, v);
    gv_open(h, "path");
    gv_attrf(h, "class", "range %s", class);
    gv_attrf(
        h, "d", "M%.1f %.1fV%.1fM%.1f %.1fh6M%.1f %.1fh6", aside, y_of(s, side.busbw.low),
        y_of(s, side.busbw.high), aside - 3, y_of(s, side.busbw.low), aside - 3,
        y_of(s, side.busbw.high));
    gv_close(h);
    gv_mark_open(h, s->view, v, x, y);
    gv_attr(h, "data-variant", c->run.steer[v].name);
    gv_attr(h, "data-operation", gv_op_name(what->op));
    gv_attrf(h, "data-size", "%llu", (unsigned long long)what->bytes);
    gv_attr(h, "data-in-place", what->in_place ? "true" : "false");
    gv_data(h, "data-bus-bw", side.busbw.median);
    gv_data(h, "data-low", side.busbw.low);
    gv_data(h, "data-high", side.busbw.high);
    gv_open(h, "title");
    gv_textf(
        h, "%s, %s: %s GB/s (%s to %s, %d samples)", c->run.steer[v].name,
        gv_size_text(what->bytes, size), gv_figure_text(side.busbw.median, median),
        gv_figure_text(side.busbw.low, low), gv_figure_text(side.busbw.high, high),
        side.busbw.count);
    gv_close_n(h, 2);
}

static void draw(struct gv_html *h, const struct gv_series *s)
{
    const struct gv_compared *c = s->view->compared;
    char id[32], title[160], name[96];
    snprintf(id, sizeof(id), "busbw-%d", s->number);
    snprintf(title, sizeof(title), "busbw over size: %s", gv_series_name(s->like, name));
    gv_svg(
        h, id, WIDTH, HEIGHT, 1.4, title,
        "Bus bandwidth in GB/s over the size in bytes, a line for each variant, with the range of "
        "each point. The table beside it has the same figures.");
    draw_axes(h, s);
    for (int v = 0; v < c->run.nsteers; v++)
        draw_line(h, s, v);
    for (int v = 0; v < c->run.nsteers; v++)
        for (int k = next_point(s, v, 0); k < c->run.ncases; k = next_point(s, v, k + 1))
            draw_point(h, s, v, k);
    gv_close(h);
}

static void one_series(struct gv_html *h, struct gv_series *s)
{
    char name[96];
    measure(s);
    gv_open_class(h, "div", "pair");
    gv_open(h, "figure");
    gv_element(h, "figcaption", gv_series_name(s->like, name));
    gv_view_key(h, s->view);
    draw(h, s);
    gv_close(h);
    gv_open_class(h, "div", "beside");
    gv_series_tables(h, s);
    gv_close_n(h, 2);
}

void gv_part_busbw(struct gv_html *h, const struct gv_view *view)
{
    const struct gv_compared *c = view->compared;
    int number = 0;
    gv_element(
        h, "p",
        "Medians; bars and small figures are the range from the second sample to the last but one "
        "(under four samples all). busbw is as nccl-tests defines it. The interval of a gain is a "
        "95 % bootstrap; the verdict is the policy's rule and does not use it.");
    for (int k = 0; k < c->run.ncases; k++) {
        bool seen = false;
        for (int i = 0; i < k; i++)
            seen |= gv_same_series(&c->run.cases[i], &c->run.cases[k]);
        struct gv_series s = {.view = view, .like = &c->run.cases[k], .number = number};
        if (seen)
            continue;
        number++;
        one_series(h, &s);
    }
}
