#include "plugin/policy/transport.h"

#include <stdlib.h>
#include <string.h>

static gv_gpuset set_of(const int *ring, int n)
{
    gv_gpuset set = 0;
    for (int i = 0; i < n; i++)
        if (ring[i] >= 0 && ring[i] < GV_MAX_GPUS)
            set |= GV_GPU_BIT(ring[i]);
    return set;
}

/* By all that is shown of a ring, so that the order of equal groups in the file does not matter. */
static int by_ring(const struct gv_profile_group *a, const struct gv_profile_group *b)
{
    int order = memcmp(a->ring, b->ring, sizeof(a->ring));
    if (!order)
        order = (int)b->shm_edges_known - (int)a->shm_edges_known;
    return order ? order : memcmp(a->shm_edges, b->shm_edges, sizeof(a->shm_edges));
}

/* Which of two groups' rings is shown: the deciding operation's, the larger size's, the loaded
 * one's, then by the ring itself. */
static bool
better_ring(enum gv_op op, const struct gv_profile_group *a, const struct gv_profile_group *b)
{
    if ((a->op == op) != (b->op == op))
        return a->op == op;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes;
    if (a->op != b->op)
        return a->op > b->op;
    if (a->loaded != b->loaded)
        return a->loaded;
    return by_ring(a, b) < 0;
}

const struct gv_profile_group *gv_measured_ring(const struct gv_facts *facts, gv_gpuset gpus)
{
    const struct gv_profile_group *best = NULL;
    const enum gv_op first = GV_OP_BROADCAST;
    for (int i = gv_facts_group(facts, gpus, first, 0); i < facts->ngroups; i++) {
        const struct gv_profile_group *group = facts->group[i];
        if (group->gpus != gpus)
            break;
        if (group->nring != gv_gpuset_count(gpus) || set_of(group->ring, group->nring) != gpus)
            continue;
        if (!best || better_ring(gv_deciding_op(facts), group, best))
            best = group;
    }
    return best;
}

/* A ring has at most as many edges as there is room for pairs, a variant's list fewer. A profile is
 * refused where a list has a pair twice; of the rings only one of two GPUs has, and two GPUs are
 * never lent a link (GV_ALL_NVLINK). */
static void lend_pair(struct gv_lent *lent, int a, int b)
{
    lent->pair[lent->count][0] = a;
    lent->pair[lent->count++][1] = b;
}

/* The crossing edges of the measured ring. Those that the driver refuses stay on SHM, as they did
 * when the variant was measured. False where no ring is known. */
static bool lend_on_measured_ring(const struct gv_facts *facts, struct gv_lent *lent)
{
    const struct gv_profile_group *group = gv_measured_ring(facts, facts->in->gpus);
    *lent = (struct gv_lent){.count = 0};
    for (int i = 0; group && i < group->nring; i++) {
        int a = group->ring[i], b = group->ring[(i + 1) % group->nring];
        if (!gv_facts_joined(facts, a, b) && !gv_facts_refused(facts, a, b))
            lend_pair(lent, a, b);
    }
    return group != NULL;
}

/* The crossings of the best ring; a single block has none of them (the one that stands there is
 * nobody's). A crossing left on SHM is an obstacle, unless the driver refuses it and `partly`
 * allows that: what was measured had it on SHM too. */
static struct gv_refusal lend_on_route(
    const struct gv_facts *facts, const struct gv_route *route, bool partly, struct gv_lent *lent)
{
    *lent = (struct gv_lent){.count = 0};
    for (int i = 0; i < route->count; i++) {
        struct gv_crossing crossing = route->crossing[i];
        if (crossing.kind == GV_CROSSING_LENT)
            lend_pair(lent, crossing.from, crossing.to);
        if (crossing.kind != GV_CROSSING_SHM)
            continue;
        enum gv_obstacle obstacle = gv_lend_obstacle(facts, crossing.from, crossing.to);
        if (!obstacle) /* the pair could be lent a link, but its GPU carries one already */
            obstacle = facts->chains ? GV_NVB : GV_PEERS;
        if (!partly || obstacle != GV_REFUSED)
            return (struct gv_refusal){obstacle, crossing.from, crossing.to};
    }
    return gv_lent_check(facts, facts->in->gpus, lent);
}

static int by_pair(const void *a, const void *b)
{
    const int *x = a, *y = b;
    return x[0] != y[0] ? x[0] - y[0] : x[1] - y[1];
}

static void lend_listed(const struct gv_variant_key *key, struct gv_lent *lent)
{
    *lent = (struct gv_lent){.count = 0};
    for (int i = 0; i < key->nlend; i++) {
        int a = key->lend[i][0], b = key->lend[i][1];
        lend_pair(lent, a < b ? a : b, a < b ? b : a);
    }
    qsort(lent->pair, (size_t)lent->count, sizeof(*lent->pair), by_pair);
}

/* Makes LEND concrete: the pairs that were measured, else the measured ring's crossings where all
 * of them can be lent links, else the best ring's. */
static void build_lend(
    const struct gv_facts *facts, const struct gv_route *route, bool partly,
    struct gv_attempt *attempt)
{
    gv_gpuset gpus = facts->in->gpus;
    attempt->on_measured_ring = false;
    if (attempt->candidate.key.nlend) {
        lend_listed(&attempt->candidate.key, &attempt->lent);
        attempt->refusal = gv_lent_check(facts, gpus, &attempt->lent);
        return;
    }
    if (partly && lend_on_measured_ring(facts, &attempt->lent)) {
        attempt->refusal = gv_lent_check(facts, gpus, &attempt->lent);
        attempt->on_measured_ring = !attempt->refusal.obstacle;
        if (attempt->on_measured_ring)
            return;
    }
    attempt->refusal = lend_on_route(facts, route, partly, &attempt->lent);
}

/* A bridge makes all pairs P2P, so what all-to-all does under it must be measured, or the job must
 * have said that it does none. */
static bool operations_known(const struct gv_facts *facts, const struct gv_candidate *candidate)
{
    static const enum gv_op all_pairs[] = {GV_OP_ALL_TO_ALL, GV_OP_SEND_RECV};
    gv_gpuset gpus = facts->in->gpus;
    if (!facts->operations)
        return gv_has_measured(facts, gpus, candidate, GV_OP_ALL_TO_ALL);
    for (int i = 0; i < 2; i++)
        if (gv_facts_uses(facts, all_pairs[i]) &&
            !gv_has_measured(facts, gpus, candidate, all_pairs[i]))
            return false;
    return true;
}

static void build_bridge(const struct gv_facts *facts, struct gv_attempt *attempt)
{
    attempt->refusal = gv_bridge_check(facts, facts->in->gpus);
    if (!attempt->refusal.obstacle && !operations_known(facts, &attempt->candidate))
        attempt->refusal = (struct gv_refusal){GV_OPERATIONS, -1, -1};
}

static void build_separate(const struct gv_facts *facts, struct gv_attempt *attempt)
{
    const struct gv_variant_key *key = &attempt->candidate.key;
    bool any = gv_separate_listed(facts, key->lend, key->nlend, &attempt->separation);
    bool by_level = attempt->separation.level_pxb && !facts->level_pxb;
    attempt->refusal.obstacle = !any ? GV_NOTHING_CROSSES : by_level ? GV_LEVEL : GV_NO_OBSTACLE;
}

void gv_attempt_build(
    const struct gv_facts *facts, const struct gv_route *route, bool measured_here,
    struct gv_attempt *attempt)
{
    attempt->refusal = (struct gv_refusal){GV_NOTHING_CROSSES, -1, -1};
    if (attempt->candidate.applied == GV_EDIT_LEND)
        build_lend(facts, route, measured_here, attempt);
    if (attempt->candidate.applied == GV_EDIT_BRIDGE)
        build_bridge(facts, attempt);
    if (attempt->candidate.applied == GV_EDIT_SEPARATE)
        build_separate(facts, attempt);
}

/* Whether `other` is to be taken rather than `best`, both accepted or both not. By rule 1 where
 * both were measured at the same size, so that a tie keeps the one that touches less. */
static bool
better(const struct gv_facts *facts, const struct gv_attempt *best, const struct gv_attempt *other)
{
    const struct gv_comparison *a = &best->evaluation.deciding, *b = &other->evaluation.deciding;
    bool a_known = best->evaluation.verdict != GV_NOT_MEASURED;
    bool b_known = other->evaluation.verdict != GV_NOT_MEASURED;
    if (!a_known || !b_known)
        return b_known || (!a_known && !a->other.count && b->other.count);
    if (!best->accepted && best->refusal.obstacle == GV_ALL_NVLINK)
        return other->candidate.applied == GV_EDIT_BRIDGE; /* its obstacle is the one to name */
    if (a->bytes == b->bytes && a->loaded == b->loaded)
        return gv_compare(facts, a->other, b->other).verdict == GV_GAIN;
    return b->gain > a->gain + facts->min_gain;
}

struct gv_attempt gv_transport_measured(const struct gv_facts *facts, const struct gv_route *route)
{
    struct gv_candidate candidates[GV_MAX_CANDIDATES];
    struct gv_attempt best = {.candidate.applied = GV_EDIT_NONE};
    int n = gv_candidates(facts, facts->in->gpus, candidates);
    for (int i = 0; i < n; i++) {
        struct gv_attempt attempt = {.candidate = candidates[i]};
        attempt.evaluation = gv_evaluate(facts, facts->in->gpus, &candidates[i]);
        gv_attempt_build(facts, route, true, &attempt);
        attempt.accepted = attempt.evaluation.verdict == GV_GAIN && !attempt.evaluation.refused &&
                           !attempt.refusal.obstacle;
        bool first = best.candidate.applied == GV_EDIT_NONE;
        if (first || (attempt.accepted && !best.accepted) ||
            (attempt.accepted == best.accepted && better(facts, &best, &attempt)))
            best = attempt;
    }
    return best;
}
