/* Every measured group of a profile. */
#include <math.h>
#include <stdio.h>

#include "plugin/policy/samples.h"
#include "profiler/report/view.h"

static const char *plan_of(const struct gv_profile_variant *v, char out[400])
{
    int n = snprintf(out, 400, "%s", v->edit == GV_EDIT_NONE ? "default" : gv_edit_name(v->edit));
    for (int i = 0; i < v->nlend; i++)
        n += snprintf(out + n, (size_t)(400 - n), " %d-%d", v->lend[i][0], v->lend[i][1]);
    if (v->algorithm != GV_ALGO_ANY)
        n += snprintf(out + n, (size_t)(400 - n), ", %s", gv_algo_name(v->algorithm));
    if (v->protocol != GV_PROTO_ANY)
        n += snprintf(out + n, (size_t)(400 - n), ", %s", gv_proto_name(v->protocol));
    if (v->channels)
        snprintf(out + n, (size_t)(400 - n), ", %d channels", v->channels);
    return out;
}

static struct gv_side side_of(const struct gv_profile_group *g, const struct gv_profile_variant *v)
{
    struct gv_variant_key key = {
        .edit = v->edit,
        .algorithm = v->algorithm,
        .protocol = v->protocol,
        .channels = v->channels,
        .lend_count = v->lend_count,
        .lend = v->lend,
        .nlend = v->nlend,
    };
    return gv_side_of(g, &key);
}

static void
row(struct gv_html *h, const struct gv_view *view, const struct gv_profile_group *g, int variant)
{
    struct gv_side side = side_of(g, &g->variants[variant]);
    char text[400], size[32], low[32], high[32];
    gv_open(h, "tr");
    gv_attrf(h, "data-group", "%d", (int)(g - view->profile->groups));
    gv_attrf(h, "data-variant", "%d", variant);
    gv_open(h, "th");
    gv_attr(h, "scope", "row");
    gv_text(h, gv_gpuset_format(gv_view_shown(view, g->gpus), text, sizeof(text)));
    gv_close(h);
    gv_elementf(h, "td", "%s%s", gv_op_name(g->op), g->loaded ? ", beside others" : "");
    gv_element(h, "td", gv_size_text(g->bytes, size));
    gv_element(h, "td", plan_of(&g->variants[variant], text));
    gv_cell_figure(h, "data-busbw-gbs", side.median);
    gv_open_class(h, "td", "n");
    if (side.count)
        gv_textf(
            h, "%s\xe2\x80\x93%s", gv_figure_text(side.low, low), gv_figure_text(side.high, high));
    gv_close(h);
    gv_open_class(h, "td", "n");
    gv_textf(h, "%d", side.count);
    gv_close_n(h, 2);
}

void gv_part_groups(struct gv_html *h, const struct gv_view *view)
{
    static const char *const headings[] = {"GPUs",  "operation", "size",   "plan",
                                           "busbw", "range",     "samples"};
    int n = view->profile->ngroups;
    if (!n) {
        gv_element(h, "p", "The profile has no figures of groups.");
        return;
    }
    gv_open(h, "details"); /* beside a comparison it is background, and long */
    if (!view->compared)
        gv_attr(h, "open", "open");
    gv_elementf(h, "summary", "%d groups: GPUs, operation and size", n);
    gv_table(h, "Groups measured for the profile, busbw in GB/s", headings, 7);
    for (int i = 0; i < n; i++)
        for (int v = 0; v < view->profile->groups[i].nvariants; v++)
            row(h, view, &view->profile->groups[i], v);
    gv_table_end(h);
    gv_close(h);
}
