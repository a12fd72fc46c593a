#include "profiler/cli/explain.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/gv_error.h"
#include "plugin/policy/samples.h"

/* AllReduce first, the largest size, and measured beside other groups before measured alone: the
 * order in which the policy believes them. */
static const struct gv_profile_group *group_of(const struct gv_profile *p, gv_gpuset gpus)
{
    const struct gv_profile_group *best = NULL;
    for (int i = 0; i < p->ngroups; i++) {
        const struct gv_profile_group *g = &p->groups[i];
        if (g->gpus != gpus)
            continue;
        bool better = !best || (g->op == GV_OP_ALL_REDUCE) > (best->op == GV_OP_ALL_REDUCE) ||
                      (g->op == best->op && g->bytes > best->bytes) ||
                      (g->op == best->op && g->bytes == best->bytes && g->loaded);
        if (better)
            best = g;
    }
    return best;
}

enum gv_transport gv_default_transport(const struct gv_explained *x, int from, int to)
{
    if (x->group && x->group->shm_edges_known) {
        for (int i = 0; i < x->group->nshm_edges; i++)
            if (x->group->shm_edges[i][0] == from && x->group->shm_edges[i][1] == to)
                return GV_TRANSPORT_SHM;
        for (int i = 0; i < x->group->nring; i++)
            if (x->group->ring[i] == from && x->group->ring[(i + 1) % x->group->nring] == to)
                return GV_TRANSPORT_P2P;
    }
    return gv_facts_joined(&x->facts, from, to) ? GV_TRANSPORT_P2P : GV_TRANSPORT_SHM;
}

/* The pairs that the plan turns on and this host has not verified. */
static bool unproven(const struct gv_explained *x, int *from, int *to)
{
    for (int i = 0; i < x->plan.nring; i++) {
        const struct gv_ring_edge *e = &x->plan.edges[i];
        if (e->transport == GV_TRANSPORT_P2P &&
            gv_default_transport(x, e->from, e->to) != GV_TRANSPORT_P2P &&
            !gv_source_pair_verified(x->source, e->from, e->to)) {
            *from = e->from;
            *to = e->to;
            return true;
        }
    }
    return false;
}

static void prove(struct gv_explained *x)
{
    int from, to;
    char why[GV_ERROR_TEXT + GV_ERROR_FILE + 32];
    if (x->plan.transport == GV_TRANSPORT_DEFAULT || x->plan.transport == GV_TRANSPORT_SHM) {
        x->proof = GV_PROOF_NOT_NEEDED;
        snprintf(x->proof_text, sizeof(x->proof_text), "not needed: no P2P is turned on");
    } else if (!x->source->has_machine) {
        x->proof = GV_PROOF_NO_MACHINE;
        snprintf(x->proof_text, sizeof(x->proof_text), "not asked for: no machine was looked at");
    } else if (x->source->own_word) {
        x->proof = GV_PROOF_HELD;
        snprintf(
            x->proof_text, sizeof(x->proof_text),
            "by the profile's own word: it was measured here, or GV100_ASSUME_VERIFIED=1 is set");
    } else if (!x->source->verified) {
        x->proof = GV_PROOF_MISSING;
        snprintf(
            x->proof_text, sizeof(x->proof_text), "no, so a job here keeps the default: %s",
            gv_error_format(&x->source->no_stamp, why, sizeof(why)));
    } else if (unproven(x, &from, &to)) {
        x->proof = GV_PROOF_MISSING;
        snprintf(
            x->proof_text, sizeof(x->proof_text),
            "no, so a job here keeps the default: P2P between GPU %d and GPU %d is not verified",
            x->source->from_profile[from], x->source->from_profile[to]);
    } else {
        x->proof = GV_PROOF_HELD;
        snprintf(
            x->proof_text, sizeof(x->proof_text), "yes, on %s, %s", x->source->stamp.host,
            x->source->stamp.date);
    }
}

void gv_explain(
    const struct gv_source *source, gv_gpuset gpus, unsigned operations, int nccl_version,
    struct gv_explained *out)
{
    memset(out, 0, sizeof(*out));
    out->source = source;
    out->gpus = gpus;
    gv_source_bad(source, out->bad);
    out->in = (struct gv_policy_in){
        .profile = source->profile,
        .gpus = gpus,
        .nranks = gv_gpuset_count(gpus),
        .nnodes = 1,
        .one_node = true,
        .operations = operations,
        .nccl_version = nccl_version,
        .bad = out->bad,
    };
    gv_facts_init(&out->facts, &out->in);
    gv_policy_decide(&out->in, &out->plan);
    out->group = group_of(source->profile, gpus);
    prove(out);
}

void gv_explained_finish(struct gv_explained *x)
{
    gv_plan_finish(&x->plan);
    gv_facts_finish(&x->facts);
}

const char *gv_edit_words(enum gv_edit_kind kind)
{
    switch (kind) {
    case GV_EDIT_NONE:
        return "default";
    case GV_EDIT_LEND:
        return "lent links";
    case GV_EDIT_BRIDGE:
        return "bridge";
    case GV_EDIT_SEPARATE:
        return "separated";
    case GV_EDIT_P2P_LEVEL:
        return "P2P across PHB";
    default:
        return "?";
    }
}

static double median_of(const struct gv_profile_group *g, const struct gv_profile_variant *v)
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
    return gv_side_of(g, &key).median;
}

/* A variant of the plan's own edit counts before P2P_LEVEL, which has the same transports. */
double gv_explained_busbw(const struct gv_explained *x, bool tuned)
{
    double found = NAN;
    for (int i = 0; x->group && i < x->group->nvariants; i++) {
        const struct gv_profile_variant *v = &x->group->variants[i];
        if (v->algorithm != GV_ALGO_ANY || v->protocol != GV_PROTO_ANY || v->channels)
            continue;
        if (!tuned && v->edit == GV_EDIT_NONE)
            return median_of(x->group, v);
        if (!tuned || v->edit == GV_EDIT_NONE)
            continue;
        if (x->plan.nedits && v->edit == x->plan.edits[0].kind)
            return median_of(x->group, v);
        if (v->edit == GV_EDIT_P2P_LEVEL && x->plan.transport == GV_TRANSPORT_P2P)
            found = median_of(x->group, v);
    }
    return found;
}
