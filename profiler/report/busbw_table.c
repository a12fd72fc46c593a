/* The tables beside the pictures of busbw. */
#include <math.h>
#include <stdio.h>

#include "profiler/report/busbw.h"

bool gv_same_series(const struct gv_case *a, const struct gv_case *b)
{
    return a->op == b->op && a->type == b->type && a->redop == b->redop &&
           a->in_place == b->in_place;
}

const char *gv_series_name(const struct gv_case *what, char out[96])
{
    snprintf(
        out, 96, "%s, %s%s%s%s", gv_op_name(what->op), gv_type_name(what->type),
        gv_op_reduces(what->op) ? ", " : "",
        gv_op_reduces(what->op) ? gv_redop_name(what->redop) : "",
        what->in_place ? ", in place" : "");
    return out;
}

/* Median, and below it the inner range. */
static void side_cell(struct gv_html *h, const struct gv_compared_side *side, const char *which)
{
    char median[32], low[32], high[32];
    gv_open_class(h, "td", "n");
    gv_attr(h, "data-side", which);
    gv_data(h, "data-bus-bw", side->busbw.median);
    gv_data(h, "data-low", side->busbw.low);
    gv_data(h, "data-high", side->busbw.high);
    gv_text(h, gv_figure_text(side->busbw.median, median));
    if (side->busbw.count) {
        gv_open(h, "br");
        gv_close(h);
        gv_open(h, "small");
        gv_textf(
            h, "%s\xe2\x80\x93%s", gv_figure_text(side->busbw.low, low),
            gv_figure_text(side->busbw.high, high));
        gv_close(h);
    }
    gv_close(h);
}

static void gain_cell(struct gv_html *h, const struct gv_compared_row *row)
{
    gv_open_class(h, "td", "n");
    gv_data(h, "data-gain", row->gain);
    gv_data(h, "data-gain-low", row->interval.low);
    gv_data(h, "data-gain-high", row->interval.high);
    if (isfinite(row->gain))
        gv_textf(h, "%+.1f %%", 100 * row->gain);
    else
        gv_text(h, "-");
    if (isfinite(row->interval.low)) {
        gv_open(h, "br");
        gv_close(h);
        gv_elementf(
            h, "small", "%+.1f to %+.1f", 100 * row->interval.low, 100 * row->interval.high);
    }
    gv_close(h);
}

/* The row's start: what names the case, and its size. */
static void open_row(struct gv_html *h, const struct gv_series *s, int variant, int k)
{
    const struct gv_case *what = &s->view->compared->run.cases[k];
    char size[32];
    gv_open(h, "tr");
    gv_attr(h, "data-variant", s->view->compared->run.steer[variant].name);
    gv_attr(h, "data-operation", gv_op_name(what->op));
    gv_attrf(h, "data-size", "%llu", (unsigned long long)what->bytes);
    gv_attr(h, "data-in-place", what->in_place ? "true" : "false");
    gv_open(h, "th");
    gv_attr(h, "scope", "row");
    gv_text(h, gv_size_text(what->bytes, size));
    gv_open(h, "br");
    gv_close(h);
    gv_elementf(h, "small", "%llu", (unsigned long long)what->bytes);
    gv_close(h);
}

static void row(struct gv_html *h, const struct gv_series *s, const struct gv_compared_row *r)
{
    const char *verdict = gv_judgement(r->verdict);
    open_row(h, s, r->other, r->k);
    side_cell(h, &r->base, "base");
    side_cell(h, &r->tuned, "variant");
    gain_cell(h, r);
    gv_open(h, "td");
    gv_attrf(h, "class", "verdict %s", r->verdict == GV_NOT_MEASURED ? "none" : verdict);
    gv_text(h, verdict);
    gv_close_n(h, 2);
}

static void table_alone(struct gv_html *h, const struct gv_series *s)
{
    const struct gv_compared *c = s->view->compared;
    char caption[200], name[96];
    snprintf(caption, sizeof(caption), "%s: busbw in GB/s", gv_series_name(s->like, name));
    const char *const headings[] = {"size", c->run.steer[c->base].name, "time, us"};
    gv_table_figures(h, caption, headings, 3, 6);
    for (int k = 0; k < c->run.ncases; k++) {
        if (!gv_same_series(&c->run.cases[k], s->like))
            continue;
        struct gv_compared_side side = gv_compared_side_of(c, c->base, k);
        open_row(h, s, c->base, k);
        side_cell(h, &side, "base");
        gv_cell_figure(h, "data-time-us", side.time_us);
        gv_close(h);
    }
    gv_table_end(h);
}

static void table(struct gv_html *h, const struct gv_series *s, int other)
{
    const struct gv_compared *c = s->view->compared;
    char caption[200], name[96];
    snprintf(
        caption, sizeof(caption), "%s: %s against %s, busbw in GB/s", gv_series_name(s->like, name),
        c->run.steer[other].name, c->run.steer[c->base].name);
    const char *const headings[] = {
        "size", c->run.steer[c->base].name, c->run.steer[other].name, "gain, 95 %", "verdict"};
    gv_table_figures(h, caption, headings, 5, 14);
    for (int i = 0; i < c->nrows; i++)
        if (c->rows[i].other == other && gv_same_series(&c->run.cases[c->rows[i].k], s->like))
            row(h, s, &c->rows[i]);
    gv_table_end(h);
}

void gv_series_tables(struct gv_html *h, const struct gv_series *s)
{
    const struct gv_compared *c = s->view->compared;
    for (int v = 0; v < c->run.nsteers; v++)
        if (v != c->base)
            table(h, s, v);
    if (c->run.nsteers == 1)
        table_alone(h, s);
}
