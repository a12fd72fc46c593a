#include "plugin/policy/reason.h"
#include "plugin/policy/ring.h"
#include "plugin/policy/rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One decision under way. */
struct decision {
    struct gv_facts facts;
    struct gv_blocks blocks;
    struct gv_route own;  /* the ring without edits */
    struct gv_route lent; /* the ring with all links lent that may be */
    struct gv_plan *plan;
    struct gv_str reason;
};

static void finish_reason(struct gv_plan *plan, struct gv_str *reason)
{
    snprintf(
        plan->reason, sizeof(plan->reason), "%s", reason->failed ? "out of memory" : reason->data);
    gv_str_free(reason);
}

/* What must hold before the profile is asked at all; NULL where it does. */
static const char *not_for_us(const struct gv_policy_in *in)
{
    const struct gv_profile *profile = in->profile;
    if (!profile || profile->ngpus <= 0 || profile->ngpus > GV_MAX_GPUS)
        return "no profile";
    if (!in->gpus)
        return "no GPU is known to be in this communicator";
    if (profile->ngpus < GV_MAX_GPUS && in->gpus >> profile->ngpus)
        return "the communicator has GPUs that the profile does not know";
    if (in->nnodes > 1)
        return "the communicator spans several nodes";
    if (in->nranks && in->nranks != gv_gpuset_count(in->gpus))
        return "the communicator has not exactly one rank on each of its GPUs";
    if (!in->one_node)
        return "it is not proven that all ranks are on this node (GV100_SINGLE_NODE=1 says so)";
    return gv_gpuset_count(in->gpus) < 2 ? "one GPU: there is no ring" : NULL;
}

/* NCCL's default, shown on the measured ring where there is one. */
static void show_default_ring(struct decision *d)
{
    struct gv_ring_view view = {
        .measured = gv_measured_ring(&d->facts, d->facts.in->gpus), .route = &d->own};
    gv_ring_fill(&d->facts, &view, d->plan);
}

static bool decided_bad(struct decision *d)
{
    struct gv_separation apart;
    struct gv_plan *plan = d->plan;
    if (!gv_separate_bad(&d->facts, &apart))
        return false;
    for (int i = 0; i < apart.count; i++)
        plan->edits[plan->nedits++] = (struct gv_edit){
            .kind = GV_EDIT_SEPARATE, .from = apart.pair[i][0], .to = apart.pair[i][1]};
    plan->level_pxb = apart.level_pxb;
    plan->evidence = GV_EVIDENCE_MEASURED;
    gv_blocks_init(&d->blocks, &d->facts, d->facts.in->gpus, apart.moved);
    gv_route_find(&d->facts, &d->blocks, NULL, &d->own);
    struct gv_ring_view view = {.route = &d->own, .separation = &apart};
    gv_ring_fill(&d->facts, &view, plan);
    plan->transport = gv_ring_transport(plan);
    struct gv_refusal bad = {GV_BAD, apart.first[0], apart.first[1]};
    gv_reason_obstacle(&d->reason, &d->facts, &bad);
    gv_str_addf(
        &d->reason, ", so %s: it is separated and uses SHM",
        plan->level_pxb ? "NCCL_P2P_LEVEL=PXB is answered" : "the pair must not be joined");
    return true;
}

static void lend_edits(const struct gv_attempt *attempt, struct gv_plan *plan)
{
    for (int i = 0; i < attempt->lent.count; i++)
        plan->edits[plan->nedits++] = (struct gv_edit){
            .kind = GV_EDIT_LEND,
            .from = attempt->lent.pair[i][0],
            .to = attempt->lent.pair[i][1],
            .count = attempt->candidate.key.lend_count};
    plan->nvb_disable = attempt->lent.nvb_disable;
    plan->veto_ll128 = true;
}

static void separate_edits(const struct gv_attempt *attempt, struct gv_plan *plan)
{
    for (int i = 0; i < attempt->separation.count; i++)
        plan->edits[plan->nedits++] = (struct gv_edit){
            .kind = GV_EDIT_SEPARATE,
            .from = attempt->separation.pair[i][0],
            .to = attempt->separation.pair[i][1]};
    plan->level_pxb = attempt->separation.level_pxb;
}

/* Writes an accepted attempt into the plan: edits, ring, transport. */
static void apply(struct decision *d, const struct gv_attempt *attempt, bool measured_here)
{
    struct gv_plan *plan = d->plan;
    gv_gpuset gpus = d->facts.in->gpus;
    struct gv_ring_view view = {.route = &d->own};
    gv_gpuset lent[GV_MAX_GPUS];
    switch (attempt->candidate.applied) {
    case GV_EDIT_LEND:
        lend_edits(attempt, plan);
        gv_lent_pairs(&attempt->lent, lent);
        gv_route_find(&d->facts, &d->blocks, lent, &d->own);
        view.lent = &attempt->lent;
        view.measured = attempt->on_measured_ring ? gv_measured_ring(&d->facts, gpus) : NULL;
        break;
    case GV_EDIT_BRIDGE:
        plan->edits[plan->nedits++] =
            (struct gv_edit){.kind = GV_EDIT_BRIDGE, .from = -1, .to = -1, .gpus = gpus};
        view.bridge = true;
        view.measured = measured_here ? gv_measured_ring(&d->facts, gpus) : NULL;
        break;
    default:
        separate_edits(attempt, plan);
        view.separation = &attempt->separation;
        gv_blocks_init(&d->blocks, &d->facts, gpus, attempt->separation.moved);
        gv_route_find(&d->facts, &d->blocks, NULL, &d->own);
        break;
    }
    gv_ring_fill(&d->facts, &view, plan);
    plan->transport = gv_ring_transport(plan);
}

static bool decided_measured(struct decision *d, const struct gv_attempt *attempt)
{
    if (!attempt->accepted)
        return false;
    apply(d, attempt, true);
    d->plan->evidence = GV_EVIDENCE_MEASURED;
    d->plan->thin = attempt->evaluation.deciding.thin;
    d->plan->gain = attempt->evaluation.deciding.gain;
    gv_reason_measured(&d->reason, attempt);
    return true;
}

static bool decided_interpolated(struct decision *d, const struct gv_interpolation *between)
{
    if (!between->attempt.accepted)
        return false;
    apply(d, &between->attempt, false);
    d->plan->evidence = GV_EVIDENCE_INTERPOLATED;
    d->plan->thin = between->at_lower.deciding.thin || between->at_upper.deciding.thin;
    gv_reason_interpolated(&d->reason, between);
    return true;
}

/* The pairs of the ring that stay on SHM because the driver refuses their P2P: on the measured ring
 * where there is one. */
static int refused_edges(const struct decision *d, int pairs[GV_MAX_GPUS][2])
{
    int n = 0;
    const struct gv_plan *plan = d->plan;
    for (int i = 0; i < plan->nring; i++) {
        int a = plan->edges[i].from, b = plan->edges[i].to;
        bool twice = n && pairs[0][0] == b && pairs[0][1] == a;
        if (!gv_facts_refused(&d->facts, a, b) || twice)
            continue;
        pairs[n][0] = a;
        pairs[n++][1] = b;
    }
    return n;
}

static bool explained_by_refusal(struct decision *d)
{
    int pairs[GV_MAX_GPUS][2];
    int n = refused_edges(d, pairs);
    bool blocked = false;
    /* a crossing that is refused is on SHM: neither joined nor lent a link */
    for (int i = 0; i < d->lent.count; i++)
        blocked |= gv_facts_refused(&d->facts, d->lent.crossing[i].from, d->lent.crossing[i].to);
    if (!blocked || !n)
        return false;
    gv_reason_pairs(&d->reason, pairs, n);
    gv_str_add(&d->reason, n > 1 ? " have" : " has");
    gv_str_add(&d->reason, " no P2P (refused by the driver), so the ring stays bound by SHM");
    return true;
}

static void append_default_figure(struct decision *d)
{
    struct gv_side side = gv_default_side(&d->facts, d->facts.in->gpus);
    if (side.count)
        gv_str_addf(&d->reason, "; measured %.2f GB/s busbw", side.median);
}

static void explain_default(
    struct decision *d, const struct gv_attempt *attempt, const struct gv_interpolation *between)
{
    bool compared = attempt->evaluation.deciding.other.count > 0;
    bool gains = attempt->evaluation.verdict == GV_GAIN;
    if (!d->own.missing && !compared) {
        gv_str_add(
            &d->reason, d->blocks.count > 1
                            ? "NCCL joins all edges of the ring by P2P itself"
                            : "one island: NCCL joins all edges of the ring by P2P itself");
        append_default_figure(d);
        return;
    }
    bool refused = explained_by_refusal(d);
    if (refused && !compared)
        append_default_figure(d);
    if (refused && compared) {
        gv_str_add(&d->reason, "; measured ");
        gv_reason_comparison(&d->reason, &attempt->evaluation.deciding);
    }
    if (refused && !(compared && gains))
        return;
    if (refused)
        gv_str_add(&d->reason, "; ");
    if (compared)
        gv_reason_not_accepted(&d->reason, &d->facts, attempt);
    else
        gv_reason_not_measured(&d->reason, &d->facts, between);
}

static void decide_default(
    struct decision *d, const struct gv_attempt *attempt, const struct gv_interpolation *between)
{
    show_default_ring(d);
    const struct gv_comparison *deciding = &attempt->evaluation.deciding;
    if (attempt->evaluation.verdict != GV_NOT_MEASURED) {
        d->plan->evidence = GV_EVIDENCE_MEASURED;
        d->plan->thin = deciding->thin;
        d->plan->gain = deciding->gain;
    }
    explain_default(d, attempt, between);
}

static void fill_rows(struct decision *d, const struct gv_attempt *attempt)
{
    if (!d->plan->other_nccl)
        gv_rows_fill(
            &d->facts, attempt && attempt->accepted ? &attempt->candidate : NULL,
            d->plan->veto_ll128, d->plan);
    gv_rows_advise(&d->facts, d->plan->veto_ll128, d->plan);
}

static void decide(struct decision *d)
{
    gv_gpuset lendable[GV_MAX_GPUS];
    struct gv_interpolation between = {.attempt.accepted = false};
    gv_blocks_init(&d->blocks, &d->facts, d->facts.in->gpus, 0);
    gv_route_find(&d->facts, &d->blocks, NULL, &d->own);
    gv_lendable(&d->facts, d->facts.in->gpus, lendable);
    gv_route_find(&d->facts, &d->blocks, lendable, &d->lent);
    if (decided_bad(d))
        return;
    struct gv_attempt attempt = gv_transport_measured(&d->facts, &d->lent);
    bool unknown = attempt.evaluation.verdict == GV_NOT_MEASURED;
    if (unknown && d->own.missing)
        between = gv_transport_interpolated(&d->facts, &d->lent);
    if (decided_measured(d, &attempt) || !decided_interpolated(d, &between)) {
        if (!attempt.accepted)
            decide_default(d, &attempt, &between);
        fill_rows(d, &attempt);
    }
}

void gv_policy_decide(const struct gv_policy_in *in, struct gv_plan *out)
{
    memset(out, 0, sizeof(*out));
    out->gain = NAN;
    out->slowest = -1;
    const char *why_not = not_for_us(in);
    if (why_not) {
        snprintf(out->reason, sizeof(out->reason), "%s", why_not);
        return;
    }
    out->other_nccl =
        in->nccl_version && !gv_same_nccl(in->profile->provenance.nccl, in->nccl_version);
    struct decision d = {.plan = out};
    gv_facts_init(&d.facts, in);
    decide(&d);
    gv_facts_finish(&d.facts);
    finish_reason(out, &d.reason);
}

void gv_plan_finish(struct gv_plan *plan)
{
    free(plan->rows);
    plan->rows = NULL;
    plan->nrows = 0;
}

const char *gv_evidence_name(enum gv_evidence e)
{
    static const char *const names[] = {"none", "measured", "interpolated"};
    return (unsigned)e < 3 ? names[e] : "none";
}

const char *gv_transport_name(enum gv_transport t)
{
    static const char *const names[] = {"default", "p2p", "shm", "mixed"};
    return (unsigned)t < 4 ? names[t] : "default";
}
