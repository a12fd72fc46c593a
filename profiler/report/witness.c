/* What nccl-tests said under the same plans. */
#include <math.h>

#include "profiler/report/view.h"

/* This tool's own figure for the same variant, operation and size; NAN where it has none. */
static double own_of(const struct gv_compared *c, const struct gv_witness *w)
{
    for (int k = 0; k < c->run.ncases; k++)
        if (c->run.cases[k].op == w->op && c->run.cases[k].bytes == w->bytes &&
            c->run.cases[k].in_place == w->in_place)
            return gv_compared_side_of(c, w->steer, k).busbw_gbs;
    return NAN;
}

static void row(struct gv_html *h, const struct gv_compared *c, const struct gv_witness *w)
{
    char size[32];
    double own = own_of(c, w);
    gv_open(h, "tr");
    gv_attr(h, "data-witness", c->run.steer[w->steer].name);
    gv_attr(h, "data-operation", gv_op_name(w->op));
    gv_attr(h, "data-in-place", w->in_place ? "true" : "false");
    gv_attrf(h, "data-size", "%llu", (unsigned long long)w->bytes);
    gv_open(h, "th");
    gv_attr(h, "scope", "row");
    gv_text(h, c->run.steer[w->steer].name);
    gv_close(h);
    gv_elementf(h, "td", "%s%s", gv_op_name(w->op), w->in_place ? ", in place" : "");
    gv_open_class(h, "td", "n");
    gv_text(h, gv_size_text(w->bytes, size));
    gv_close(h);
    gv_cell_figure(h, "data-own", own);
    gv_cell_figure(h, "data-bus-bw", w->busbw_gbs);
    gv_open_class(h, "td", "n");
    if (isfinite(own) && isfinite(w->busbw_gbs) && own > 0)
        gv_textf(h, "%+.1f %%", 100 * (w->busbw_gbs / own - 1));
    else
        gv_text(h, "-");
    gv_close(h);
    gv_close(h);
}

void gv_part_witness(struct gv_html *h, const struct gv_view *view)
{
    static const char *const headings[] = {"variant", "operation", "size",
                                           "gv100",   "witness",   "difference"};
    const struct gv_compared *c = view->compared;
    gv_elementf(h, "p", "%s, run once under each plan.", c->witness_program);
    gv_table_figures(h, "busbw in GB/s, here and by the witness", headings, 6, 0x3c);
    for (int i = 0; i < c->nwitness; i++)
        row(h, c, &c->witness[i]);
    gv_table_end(h);
}
