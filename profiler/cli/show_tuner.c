/* The profile's `tuner`: choices that somebody wrote, without figures. */
#include <stdio.h>
#include <string.h>

#include "base/gv_size.h"
#include "profiler/cli/show.h"
#include "profiler/cli/text.h"

/* A condition that may be any. */
static const char *any(int value, char out[16])
{
    snprintf(out, 16, "%d", value);
    return value < 0 ? "any" : out;
}

/* Whether rows of this kind are ever used (the policy's own rule, plugin/policy/advise.c). */
static bool usable(const struct gv_profile_tuner *t)
{
    return (t->nodes == -1 || t->nodes == 1) && t->pipe_ops == -1 && t->registered == -1;
}

static void row(struct gv_table_text *t, const struct gv_profile_tuner *r)
{
    char sizes[80], low[32], high[32], choice[40], channels[16], nodes[16], ranks[16];
    snprintf(
        sizes, sizeof(sizes), "%s to %s", gv_size_format(r->min_bytes, low, sizeof(low)),
        r->max_bytes ? gv_size_format(r->max_bytes, high, sizeof(high)) : "any");
    snprintf(
        choice, sizeof(choice), "%s/%s", gv_algo_name(r->algorithm), gv_proto_name(r->protocol));
    snprintf(channels, sizeof(channels), "%d", r->channels);
    const char *const cells[] = {
        gv_op_name(r->op),
        sizes,
        choice,
        r->channels ? channels : "NCCL's",
        any(r->nodes, nodes),
        any(r->ranks, ranks),
        usable(r) ? r->source : "never used",
    };
    gv_text_row(t, cells, usable(r) ? GV_PLAIN : GV_DIM);
}

void gv_show_tuner(const struct gv_profile *p)
{
    struct gv_table_text t = {.columns = 7};
    const char *const head[] = {"operation", "bytes", "choice", "channels",
                                "nodes",     "ranks", "from"};
    gv_text_row(&t, head, GV_DIM);
    for (int i = 0; i < p->ntuner; i++)
        row(&t, &p->tuner[i]);
    gv_text_print(&t, 2);
}

static json_t *number(int value)
{
    return value < 0 ? json_null() : json_integer(value);
}

json_t *gv_show_tuner_json(const struct gv_profile_tuner *t)
{
    bool ends = t->max_bytes && t->max_bytes <= INT64_MAX; /* JSON has no larger integer */
    return json_pack(
        "{s:s, s:I, s:o, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:s, s:b}", "op", gv_op_name(t->op),
        "min_bytes", (json_int_t)t->min_bytes, "max_bytes",
        ends ? json_integer((json_int_t)t->max_bytes) : json_null(), "algorithm",
        gv_algo_name(t->algorithm), "protocol", gv_proto_name(t->protocol), "channels",
        number(t->channels ? t->channels : -1), "nodes", number(t->nodes), "ranks",
        number(t->ranks), "pipe_ops", number(t->pipe_ops), "registered", number(t->registered),
        "source", t->source, "used", usable(t));
}
