#include <math.h>
#include <string.h>

#include "base/gv_size.h"
#include "profiler/cli/handoff.h"
#include "profiler/cli/text.h"

static const char *with_spread(const struct gv_figure *f, char out[40])
{
    char median[24];
    gv_ab_duration(f->median, median);
    snprintf(out, 40, "%s", median);
    if (f->count > 1)
        snprintf(out, 40, "%.20s +-%.1f %%", median, 50 * (f->max - f->min) / f->median);
    return out;
}

static void print_ways(const struct gv_ab *ab)
{
    struct gv_table_text t = {.columns = 7};
    const char *heading[] = {"", "hand-off", "cold", "GB/s", "step", "cold", "data"};
    gv_text_row(&t, heading, GV_BOLD);
    for (int m = GV_HANDOFF_HOST_MAPPED; m < GV_HANDOFF_METHODS; m++) {
        const struct gv_ab_way *w = &ab->ways[m];
        char c[5][40];
        if (!w->ran)
            continue;
        snprintf(c[2], 40, "%.2f", (double)ab->options.bytes / w->handoff_us.median * 1e-3);
        const char *row[] = {
            gv_handoff_method_name(w->method), with_spread(&w->handoff_us, c[0]),
            gv_ab_duration(w->cold_us, c[1]),  c[2],
            with_spread(&w->step_us, c[3]),    gv_ab_duration(w->cold_step_us, c[4]),
            w->right ? "right" : "WRONG",
        };
        gv_text_row(&t, row, w->right ? GV_PLAIN : GV_BAD);
    }
    gv_text_print(&t, 2);
    for (int m = GV_HANDOFF_HOST_MAPPED; m < GV_HANDOFF_METHODS; m++)
        if (!ab->ways[m].ran)
            printf(
                "  %s: %s\n", gv_handoff_method_name((enum gv_handoff_method)m), ab->ways[m].why);
}

static const char *used(double gbs, double use, char out[40])
{
    if (isfinite(gbs))
        snprintf(out, 40, "%.2f (%.0f %%)", gbs, 100 * use);
    else
        snprintf(out, 40, "-");
    return out;
}

static void print_links(const struct gv_ab *ab)
{
    struct gv_table_text t = {.columns = 6};
    const char *heading[] = {"host link, GB/s",   "to GPU",       "to host",
                             "both pull at once", "during steps", ""};
    puts("");
    gv_text_row(&t, heading, GV_BOLD);
    for (int i = 0; i < ab->nlinks; i++) {
        const struct gv_ab_link *l = &ab->links[i];
        char c[5][40];
        snprintf(c[0], 40, "GPU %d", l->gpu);
        snprintf(c[1], 40, "%.2f", l->to_device_gbs.median);
        snprintf(c[2], 40, "%.2f", l->to_host_gbs.median);
        const char *row[] = {
            c[0],
            c[1],
            c[2],
            used(i < 2 && ab->nlinks > 1 ? l->together_gbs.median : NAN, l->together_use, c[3]),
            used(l->traffic_gbs, l->traffic_use, c[4]),
            l->saturated ? "saturated" : "",
        };
        gv_text_row(&t, row, l->saturated ? GV_WARN_STYLE : GV_PLAIN);
    }
    gv_text_print(&t, 2);
}

void gv_handoff_print(const struct gv_ab *ab, const struct gv_gpus *gpus, const char *path)
{
    const struct gv_ab_options *o = &ab->options;
    char bytes[32], compute[24];
    printf(
        "GPU %d (%s) to GPU %d (%s), %s a step (%.1f MB), %s of computing%s%s; median of %d\n",
        o->from, gpus->device[o->from].bus_id, o->to, gpus->device[o->to].bus_id,
        gv_size_format(o->bytes, bytes, sizeof(bytes)), (double)o->bytes * 1e-6,
        o->compute_us > 0 ? gv_ab_duration(o->compute_us, compute) : "none",
        o->graph ? ", as a graph" : "", o->host_traffic ? ", host traffic" : "", o->samples);
    print_ways(ab);
    print_links(ab);
    puts("");
    if (isfinite(ab->share) && o->compute_us > 0)
        printf(
            "The hand-off takes %.2f %% of a step through the host: no transport can gain more.\n",
            100 * ab->share);
    printf("%s%s%s\n", gv_style(GV_BOLD), ab->sentence, gv_style(GV_PLAIN));
    if (*path)
        printf("saved in %s\n", path);
}

static json_t *figure(const struct gv_figure *f)
{
    return json_pack(
        "{s:o, s:o, s:o, s:i}", "median", gv_json_number(f->median), "min", gv_json_number(f->min),
        "max", gv_json_number(f->max), "count", f->count);
}

static json_t *way_json(const struct gv_ab_way *w, size_t bytes)
{
    if (!w->ran)
        return json_pack(
            "{s:s, s:b, s:s}", "method", gv_handoff_method_name(w->method), "ran", 0, "why",
            w->why);
    return json_pack(
        "{s:s, s:b, s:b, s:i, s:o, s:o, s:o, s:o, s:o}", "method",
        gv_handoff_method_name(w->method), "ran", 1, "data_ok", w->right, "steps", w->steps,
        "handoff_us", figure(&w->handoff_us), "handoff_cold_us", gv_json_number(w->cold_us),
        "handoff_gbs", gv_json_number((double)bytes / w->handoff_us.median * 1e-3), "step_us",
        figure(&w->step_us), "step_cold_us", gv_json_number(w->cold_step_us));
}

static json_t *link_json(const struct gv_ab_link *l, bool together)
{
    return json_pack(
        "{s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:b}", "gpu", l->gpu, "to_device_gbs",
        figure(&l->to_device_gbs), "to_host_gbs", figure(&l->to_host_gbs), "together_gbs",
        gv_json_number(together ? l->together_gbs.median : NAN), "together_use",
        gv_json_number(l->together_use), "traffic_gbs", gv_json_number(l->traffic_gbs),
        "traffic_use", gv_json_number(l->traffic_use), "saturated", l->saturated);
}

static json_t *name_or_null(enum gv_handoff_method m)
{
    return m ? json_string(gv_handoff_method_name(m)) : json_null();
}

json_t *gv_handoff_json(const struct gv_ab *ab, const struct gv_gpus *gpus, const char *path)
{
    const struct gv_ab_options *o = &ab->options;
    json_t *ways = json_array(), *links = json_array();
    for (int m = GV_HANDOFF_HOST_MAPPED; m < GV_HANDOFF_METHODS; m++)
        json_array_append_new(ways, way_json(&ab->ways[m], o->bytes));
    for (int i = 0; i < ab->nlinks; i++)
        json_array_append_new(links, link_json(&ab->links[i], ab->nlinks > 1));
    return json_pack(
        "{s:i, s:i, s:s, s:s, s:I, s:f, s:b, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:s, s:s, "
        "s:o}",
        "from", o->from, "to", o->to, "from_bus_id", gpus->device[o->from].bus_id, "to_bus_id",
        gpus->device[o->to].bus_id, "bytes", (json_int_t)o->bytes, "compute_us", o->compute_us,
        "graph", o->graph, "host_traffic", o->host_traffic, "ways", ways, "links", links, "host",
        name_or_null(ab->host), "peer", name_or_null(ab->peer), "share", gv_json_number(ab->share),
        "gain", gv_json_number(ab->gain), "above_noise", ab->above_noise, "verdict",
        gv_ab_verdict_name(ab->verdict), "sentence", ab->sentence, "profile",
        *path ? json_string(path) : json_null());
}
