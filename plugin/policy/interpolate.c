#include "plugin/policy/transport.h"

static bool gains(const struct gv_evaluation *says)
{
    return says->verdict == GV_GAIN && !says->refused;
}

/* True if `now` speaks less for the edit. */
static bool weaker(const struct gv_evaluation *now, const struct gv_evaluation *than)
{
    if (gains(now) != gains(than))
        return !gains(now);
    return now->deciding.gain < than->deciding.gain;
}

/* What one measured neighbour says of an edit: its best evaluation among candidates with this
 * edit and lent count. */
static struct gv_evaluation neighbour_says(
    const struct gv_facts *facts, gv_gpuset gpus, enum gv_edit_kind applied, int lend_count)
{
    struct gv_candidate candidates[GV_MAX_CANDIDATES];
    struct gv_evaluation best = {.verdict = GV_NOT_MEASURED};
    int n = gv_candidates(facts, gpus, candidates);
    for (int i = 0; i < n; i++) {
        if (candidates[i].applied != applied || candidates[i].key.lend_count != lend_count)
            continue;
        struct gv_evaluation now = gv_evaluate(facts, gpus, &candidates[i]);
        if (best.verdict == GV_NOT_MEASURED || weaker(&best, &now))
            best = now;
    }
    return best;
}

/* The neighbours on one side: groups of the same islands with fewer, as many, or more GPUs. */
enum side { FEWER, AS_MANY, MORE };

static bool is_neighbour(const struct gv_facts *facts, gv_gpuset gpus)
{
    gv_gpuset mine = facts->in->gpus;
    return gpus != mine && gv_facts_islands(facts, gpus) == gv_facts_islands(facts, mine);
}

/* How many GPUs a neighbour differs by; 0 or less where it is not on that side. */
static int distance_of(const struct gv_facts *facts, gv_gpuset gpus, enum side side)
{
    int more = gv_gpuset_count(gpus) - gv_gpuset_count(facts->in->gpus);
    if (side == AS_MANY)
        return more == 0;
    return side == MORE ? more : -more;
}

/* Finds who speaks for one side: of the measured groups nearest in size the one that gains least.
 * False where it does not gain. */
static bool side_gains(
    const struct gv_facts *facts, enum side side, const struct gv_candidate *candidate,
    gv_gpuset *who, struct gv_evaluation *says)
{
    int nearest = GV_MAX_GPUS;
    *who = 0;
    for (int i = 0; i < facts->ngroups; i++) {
        gv_gpuset gpus = facts->group[i]->gpus;
        bool again = i && gpus == facts->group[i - 1]->gpus;
        int distance = distance_of(facts, gpus, side);
        if (again || !is_neighbour(facts, gpus) || distance <= 0 || distance > nearest)
            continue;
        struct gv_evaluation now =
            neighbour_says(facts, gpus, candidate->applied, candidate->key.lend_count);
        if (now.verdict == GV_NOT_MEASURED || (distance == nearest && !weaker(&now, says)))
            continue;
        nearest = distance;
        *who = gpus;
        *says = now;
    }
    return !*who || gains(says);
}

static struct gv_interpolation interpolate(
    const struct gv_facts *facts, const struct gv_route *route, enum gv_edit_kind applied,
    int lend_count)
{
    struct gv_interpolation out = {.attempt.candidate = {.applied = applied}};
    struct gv_evaluation beside = {.verdict = GV_NOT_MEASURED};
    gv_gpuset as_many;
    out.attempt.candidate.key = gv_plain_key(applied);
    out.attempt.candidate.key.lend_count = lend_count;
    bool lower = side_gains(facts, FEWER, &out.attempt.candidate, &out.lower, &out.at_lower);
    bool upper = side_gains(facts, MORE, &out.attempt.candidate, &out.upper, &out.at_upper);
    bool level = side_gains(facts, AS_MANY, &out.attempt.candidate, &as_many, &beside);
    if (!level) { /* as many GPUs of the same islands do not gain: they stand for both sides */
        out.lower = out.upper = as_many;
        out.at_lower = out.at_upper = beside;
    }
    gv_attempt_build(facts, route, false, &out.attempt);
    out.attempt.accepted =
        out.lower && out.upper && lower && upper && level && !out.attempt.refusal.obstacle;
    return out;
}

/* How far an interpolation came, to name the nearest miss. */
static int progress(const struct gv_interpolation *at)
{
    return at->attempt.accepted + (at->lower != 0) + (at->upper != 0);
}

struct gv_interpolation
gv_transport_interpolated(const struct gv_facts *facts, const struct gv_route *route)
{
    struct gv_interpolation best = interpolate(facts, route, GV_EDIT_LEND, 0);
    for (int count = 1; count <= 18 && !best.attempt.accepted; count++) {
        struct gv_interpolation now = interpolate(facts, route, GV_EDIT_LEND, count);
        if (progress(&now) > progress(&best))
            best = now;
    }
    struct gv_interpolation bridge = {.attempt.accepted = false};
    if (!best.attempt.accepted)
        bridge = interpolate(facts, route, GV_EDIT_BRIDGE, 0);
    bool name_bridge = !best.attempt.accepted && best.attempt.refusal.obstacle == GV_ALL_NVLINK;
    return progress(&bridge) > progress(&best) || name_bridge ? bridge : best;
}
