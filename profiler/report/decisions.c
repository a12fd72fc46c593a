/* What was decided, by whom and why. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "profiler/collective/gv_release.h"
#include "profiler/report/view.h"

static void variant(struct gv_html *h, const struct gv_view *view, int s)
{
    const struct gv_compared *c = view->compared;
    const struct gv_steer *steer = &c->run.steer[s];
    const struct gv_wiring *w = &c->run.wiring[s];
    const struct gv_compared_ring *ring = &c->ring[s];
    char version[16];
    gv_open_class(h, "article", "card");
    gv_attr(h, "data-variant", steer->name);
    gv_element(h, "h3", steer->name);
    gv_open(h, "dl");
    gv_fact(
        h, "asked for",
        !strcmp(steer->force, "default") ? "NCCL left alone"
        : steer->force[0]                ? steer->force
                                         : "what the plugin decides by the profile");
    gv_fact(h, "the plugin's word", w->decided);
    gv_fact(h, "transport", w->plugin_transport);
    if (w->nccl_version > 0)
        gv_fact(h, "NCCL", gv_nccl_format(w->nccl_version, version));
    if (w->channels > 0)
        gv_factf(h, "channels", "%d", w->channels);
    if (ring->slowest >= 0)
        gv_factf(
            h, "slowest hop", "%d \xe2\x86\x92 %d, %s", ring->edge[ring->slowest].from,
            ring->edge[ring->slowest].to, ring->edge[ring->slowest].transport);
    gv_close_n(h, 2);
}

static void say_edit(struct gv_str *out, const struct gv_view *view, const struct gv_edit *e)
{
    char set[256];
    gv_str_add(out, out->len ? "; " : "");
    if (e->kind == GV_EDIT_BRIDGE)
        gv_str_addf(
            out, "bridge above %s",
            gv_gpuset_format(gv_view_shown(view, e->gpus), set, sizeof(set)));
    else
        gv_str_addf(
            out, "%s %d-%d", gv_edit_name(e->kind), view->from_profile[e->from],
            view->from_profile[e->to]);
    if (e->kind == GV_EDIT_LEND && e->count)
        gv_str_addf(out, " (%d NVLinks)", e->count);
}

static void size_cell(struct gv_html *h, uint64_t bytes)
{
    char text[32];
    gv_open_class(h, "td", "n");
    gv_text(h, bytes > INT64_MAX ? "no end" : gv_size_text(bytes, text));
    gv_close(h);
}

static void rows(struct gv_html *h, const struct gv_plan *plan)
{
    static const char *const headings[] = {"operation", "from",     "to",  "algorithm",
                                           "protocol",  "channels", "gain"};
    gv_table(h, "The tuner's table", headings, 7);
    for (int i = 0; i < plan->nrows; i++) {
        const struct gv_tuner_row *r = &plan->rows[i];
        gv_open(h, "tr");
        gv_element(h, "td", gv_op_name(r->op));
        size_cell(h, r->min_bytes);
        size_cell(h, r->max_bytes);
        gv_element(h, "td", gv_algo_name(r->algorithm));
        gv_element(h, "td", gv_proto_name(r->protocol));
        if (r->channels)
            gv_elementf(h, "td", "%d", r->channels);
        else
            gv_element(h, "td", "NCCL's");
        gv_open_class(h, "td", "n");
        if (isfinite(r->gain)) {
            gv_data(h, "data-gain", r->gain);
            gv_textf(h, "%+.1f %%", 100 * r->gain);
        } else
            gv_text(h, "imported, not measured");
        gv_close_n(h, 2);
    }
    gv_table_end(h);
}

static void say_plan(struct gv_html *h, const struct gv_view *view, const struct gv_plan *plan)
{
    struct gv_str edits = {0};
    for (int i = 0; i < plan->nedits; i++)
        say_edit(&edits, view, &plan->edits[i]);
    gv_open(h, "dl");
    gv_fact(h, "transport", gv_transport_name(plan->transport));
    gv_fact(h, "edits", edits.data ? edits.data : "none: NCCL gets no file");
    gv_factf(
        h, "evidence", "%s%s", gv_evidence_name(plan->evidence),
        plan->thin ? ", thin: under three samples on a side" : "");
    if (isfinite(plan->gain)) {
        gv_element(h, "dt", "gain");
        gv_open(h, "dd");
        gv_data(h, "data-gain", plan->gain);
        gv_textf(h, "%+.1f %%", 100 * plan->gain);
        gv_close(h);
    }
    gv_fact(h, "reason", plan->reason);
    if (plan->other_nccl)
        gv_fact(h, "note", "measured with another release of NCCL: no algorithms, transport alone");
    gv_close(h);
    if (plan->nrows)
        rows(h, plan);
    gv_str_free(&edits);
}

static void decide(struct gv_html *h, const struct gv_view *view, gv_gpuset gpus, int nccl_version)
{
    struct gv_policy_in in = {
        .profile = view->profile,
        .gpus = gpus,
        .nranks = gv_gpuset_count(gpus),
        .nnodes = 1,
        .one_node = true,
        .nccl_version = nccl_version,
    };
    struct gv_plan plan;
    char set[256];
    gv_gpuset_format(gv_view_shown(view, gpus), set, sizeof(set));
    gv_policy_decide(&in, &plan);
    gv_open_class(h, "article", plan.nrows ? "card wide" : "card");
    gv_attr(h, "data-gpus", set);
    gv_elementf(h, "h3", "The policy on GPUs %s", set);
    say_plan(h, view, &plan);
    gv_close(h);
    gv_plan_finish(&plan);
}

/* Every set of GPUs that the profile measured, once. */
static void decide_all(struct gv_html *h, const struct gv_view *view)
{
    const struct gv_profile *p = view->profile;
    for (int i = 0; i < p->ngroups; i++) {
        bool seen = false;
        for (int j = 0; j < i; j++)
            seen |= p->groups[j].gpus == p->groups[i].gpus;
        if (!seen)
            decide(h, view, p->groups[i].gpus, 0);
    }
}

void gv_part_decisions(struct gv_html *h, const struct gv_view *view)
{
    const struct gv_compared *c = view->compared;
    gv_open_class(h, "div", "cards");
    for (int s = 0; c && s < c->run.nsteers; s++)
        variant(h, view, s);
    gv_gpuset gpus = gv_view_profile_gpus(view);
    /* With several ranks on a GPU, or GPUs that the profile does not know, there is no plan. */
    if (c && view->profile && gv_gpuset_count(gpus) == c->run.nranks)
        decide(h, view, gpus, c->run.nccl_version);
    if (!c)
        decide_all(h, view);
    gv_close(h);
    if (view->profile)
        gv_element(
            h, "p",
            "The policy's word is from the profile alone. A job keeps NCCL's default where this "
            "host has not verified the P2P that a plan turns on (gv100 verify).");
}
