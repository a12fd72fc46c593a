#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/gv_size.h"
#include "profiler/cli/show.h"
#include "profiler/cli/text.h"
#include "profiler/handoff/gv_handoff_ab.h"

static void row(struct gv_table_text *t, const struct gv_profile_handoff *h)
{
    char pair[40], bytes[32], compute[24], a[24], b[24], c[24], d[24];
    snprintf(pair, sizeof(pair), "%d to %d", h->from, h->to);
    const char *const cells[] = {
        pair,
        gv_size_format(h->bytes, bytes, sizeof(bytes)),
        gv_ab_duration(h->compute_us, compute),
        gv_ab_duration(h->host_us.median, a),
        gv_ab_duration(h->peer_us.median, b),
        gv_ab_duration(h->host_step_us.median, c),
        gv_ab_duration(h->peer_step_us.median, d),
        h->peer_us.count ? gv_handoff_verdict_name(h->verdict) : "no direct path",
    };
    gv_text_row(t, cells, h->verdict == GV_HANDOFF_GAIN ? GV_GOOD : GV_PLAIN);
}

void gv_show_handoffs(const struct gv_profile *p)
{
    struct gv_table_text t = {.columns = 8};
    const char *const head[] = {"GPUs",   "bytes", "computes", "by host",
                                "direct", "step",  "direct",   "verdict"};
    gv_text_row(&t, head, GV_DIM);
    for (int i = 0; i < p->nhandoffs; i++)
        row(&t, &p->handoffs[i]);
    gv_text_print(&t, 2);
}

static json_t *figure(const struct gv_figure *f)
{
    if (!f->count)
        return json_null();
    return json_pack(
        "{s:f, s:f, s:f, s:i}", "median", f->median, "min", f->min, "max", f->max, "count",
        f->count);
}

static json_t *word(const char *text)
{
    return *text ? json_string(text) : json_null();
}

json_t *gv_show_handoff_json(const struct gv_profile_handoff *h)
{
    return json_pack(
        "{s:i, s:i, s:I, s:o, s:b, s:b, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:s}", "from", h->from,
        "to", h->to, "bytes", (json_int_t)h->bytes, "compute_us", gv_json_number(h->compute_us),
        "graph", h->graph, "host_traffic", h->host_traffic, "data_ok", h->data_ok, "host_method",
        word(h->host_method), "peer_method", word(h->peer_method), "host_us", figure(&h->host_us),
        "peer_us", figure(&h->peer_us), "host_step_us", figure(&h->host_step_us), "peer_step_us",
        figure(&h->peer_step_us), "verdict", gv_handoff_verdict_name(h->verdict));
}
