/* Stage hand-offs: both paths, as part of a step, and the verdict. */
#include <math.h>
#include <stdio.h>

#include "profiler/report/view.h"

static int shown(const struct gv_view *view, int gpu)
{
    return view->from_profile[gpu] < 0 ? gpu : view->from_profile[gpu];
}

static double share_of(const struct gv_profile_handoff *x)
{
    return 100 * x->host_us.median / x->host_step_us.median;
}

static void row(struct gv_html *h, const struct gv_view *view, const struct gv_profile_handoff *x)
{
    char size[32];
    gv_open(h, "tr");
    gv_attr(h, "data-verdict", gv_handoff_verdict_name(x->verdict));
    gv_elementf(h, "th", "%d to %d", shown(view, x->from), shown(view, x->to));
    gv_element(h, "td", gv_size_text(x->bytes, size));
    gv_cell_figure(h, "data-compute-us", x->compute_us);
    gv_cell_figure(h, "data-host-us", x->host_us.median);
    gv_cell_figure(h, "data-peer-us", x->peer_us.median);
    gv_cell_figure(h, "data-host-step-us", x->host_step_us.median);
    gv_cell_figure(h, "data-peer-step-us", x->peer_step_us.median);
    gv_cell_figure(h, "data-share-percent", share_of(x));
    gv_elementf(
        h, "td", "%s%s%s",
        x->peer_us.count ? gv_handoff_verdict_name(x->verdict) : "no direct path",
        x->graph ? ", as a graph" : "", x->host_traffic ? ", host traffic" : "");
    gv_close(h);
}

void gv_part_handoffs(struct gv_html *h, const struct gv_view *view)
{
    static const char *const headings[] = {
        "GPUs",
        "Bytes",
        "Computes, \xc2\xb5s",
        "By host, \xc2\xb5s",
        "Direct, \xc2\xb5s",
        "Step by host, \xc2\xb5s",
        "Step direct, \xc2\xb5s",
        "Share, %",
        "Verdict"};
    const struct gv_profile *p = view->profile;
    gv_element(
        h, "p",
        "One buffer a step, from the GPU of one stage to the GPU of the next, through host memory "
        "and directly. The share is the part of a step through the host that its hand-off takes: "
        "no transport can gain more.");
    gv_table(h, "Stage hand-offs, medians", headings, 9);
    for (int i = 0; i < p->nhandoffs; i++)
        row(h, view, &p->handoffs[i]);
    gv_table_end(h);
}
