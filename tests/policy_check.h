/* What the policy's tests share: a plan's edits as text, and what holds for every plan. */
#ifndef GV_POLICY_CHECK_H
#define GV_POLICY_CHECK_H

#include "tests/gv_test.h"

#include "plugin/policy/gv_policy.h"
#include "tests/profile_build.h"

/* "lend 4-5 lend 5-0", "bridge 0,5", "" without edits; counts other than 0 as "lend 4-5 x2". */
static inline const char *gv_check_edits(const struct gv_plan *plan, char *out, size_t size)
{
    size_t used = 0;
    out[0] = 0;
    for (int i = 0; i < plan->nedits && used + 64 < size; i++) {
        const struct gv_edit *edit = &plan->edits[i];
        char list[256], count[16] = "";
        if (edit->count)
            snprintf(count, sizeof(count), " x%d", edit->count);
        if (edit->kind == GV_EDIT_BRIDGE)
            gv_gpuset_format(edit->gpus, list, sizeof(list));
        else
            snprintf(list, sizeof(list), "%d-%d", edit->from, edit->to);
        used += (size_t)snprintf(
            out + used, size - used, "%s%s %.40s%s", i ? " " : "", gv_edit_name(edit->kind), list,
            count);
    }
    return out;
}

static inline bool gv_check_same_island(const struct gv_profile *p, int a, int b)
{
    return !strcmp(p->gpus[a].island, p->gpus[b].island);
}

/* The profile's pairs, looked up once: gv_profile_path_of searches all entries. */
struct gv_check_pairs {
    const struct gv_profile *profile;
    const struct gv_profile_path *path[GV_MAX_GPUS][GV_MAX_GPUS];
};

static inline const struct gv_check_pairs *gv_check_pairs(const struct gv_profile *p)
{
    static struct gv_check_pairs pairs;
    memset(&pairs, 0, sizeof(pairs));
    pairs.profile = p;
    for (int i = 0; i < p->npaths; i++)
        for (gv_gpuset x = p->paths[i].from; x; x &= x - 1)
            for (gv_gpuset y = p->paths[i].to; y; y &= y - 1) {
                pairs.path[gv_gpuset_first(x)][gv_gpuset_first(y)] = &p->paths[i];
                if (p->paths[i].both_directions)
                    pairs.path[gv_gpuset_first(y)][gv_gpuset_first(x)] = &p->paths[i];
            }
    return &pairs;
}

static inline enum gv_p2p gv_check_state(const struct gv_check_pairs *pairs, int a, int b)
{
    return pairs->path[a][b] ? pairs->path[a][b]->p2p : GV_P2P_UNVERIFIED;
}

/* Whether the profile and the host let this pair be turned on. */
static inline bool
gv_check_may_join(const struct gv_policy_in *in, const struct gv_check_pairs *pairs, int a, int b)
{
    enum gv_p2p there = gv_check_state(pairs, a, b), back = gv_check_state(pairs, b, a);
    if (there >= GV_P2P_REFUSED || back >= GV_P2P_REFUSED)
        return false;
    if (in->bad && (gv_gpuset_has(in->bad[a], b) || gv_gpuset_has(in->bad[b], a)))
        return false;
    if (in->verified)
        return gv_gpuset_has(in->verified[a], b) && gv_gpuset_has(in->verified[b], a);
    return there == GV_P2P_VERIFIED && back == GV_P2P_VERIFIED;
}

/* Pairs that NCCL joins by itself on the whole machine (level PXB). */
static inline bool gv_check_own_peer(const struct gv_check_pairs *pairs, int a, int b)
{
    if (gv_check_state(pairs, a, b) == GV_P2P_REFUSED ||
        gv_check_state(pairs, b, a) == GV_P2P_REFUSED)
        return false;
    return gv_check_same_island(pairs->profile, a, b) ||
           (pairs->path[a][b] && pairs->path[a][b]->nvlinks > 0);
}

/* Bit b of joined[a]: the plan turns P2P on for the pair. */
static inline void gv_check_joined(
    const struct gv_check_pairs *pairs, const struct gv_plan *plan, gv_gpuset joined[GV_MAX_GPUS])
{
    memset(joined, 0, GV_MAX_GPUS * sizeof(joined[0]));
    for (int i = 0; i < plan->nedits; i++) {
        const struct gv_edit *edit = &plan->edits[i];
        if (edit->kind == GV_EDIT_LEND) {
            joined[edit->from] |= GV_GPU_BIT(edit->to);
            joined[edit->to] |= GV_GPU_BIT(edit->from);
        }
        for (gv_gpuset x = edit->kind == GV_EDIT_BRIDGE ? edit->gpus : 0; x; x &= x - 1)
            joined[gv_gpuset_first(x)] |= edit->gpus & ~GV_GPU_BIT(gv_gpuset_first(x));
    }
    for (int a = 0; a < pairs->profile->ngpus; a++)
        for (int b = 0; b < pairs->profile->ngpus; b++)
            if (a != b && gv_check_own_peer(pairs, a, b))
                joined[a] &= ~GV_GPU_BIT(b);
}

static inline void
gv_check_edit(const struct gv_policy_in *in, const struct gv_plan *plan, const struct gv_edit *edit)
{
    if (edit->kind == GV_EDIT_BRIDGE) {
        assert_true(edit->gpus == in->gpus);
        assert_true(gv_gpuset_count(edit->gpus) <= 9);
        return;
    }
    assert_true(edit->kind == GV_EDIT_LEND || edit->kind == GV_EDIT_SEPARATE);
    assert_true(edit->from != edit->to);
    assert_true(gv_gpuset_has(in->gpus, edit->from) && gv_gpuset_has(in->gpus, edit->to));
    if (edit->kind != GV_EDIT_LEND)
        return;
    assert_true(plan->veto_ll128);
    const struct gv_profile_gpu *gpus = in->profile->gpus;
    assert_true(gpus[edit->from].sm > 0 && gpus[edit->from].sm != 80);
    assert_true(gpus[edit->to].sm > 0 && gpus[edit->to].sm != 80);
}

/* A ring through all GPUs once, its edges in order. */
static inline void gv_check_ring(const struct gv_policy_in *in, const struct gv_plan *plan)
{
    gv_gpuset seen = 0;
    assert_int_equal(plan->nring, gv_gpuset_count(in->gpus));
    for (int i = 0; i < plan->nring; i++) {
        assert_int_equal(plan->edges[i].from, plan->ring[i]);
        assert_int_equal(plan->edges[i].to, plan->ring[(i + 1) % plan->nring]);
        assert_true(plan->edges[i].transport != GV_TRANSPORT_DEFAULT);
        seen |= GV_GPU_BIT(plan->ring[i]);
    }
    assert_true(seen == in->gpus);
    assert_true(plan->slowest >= -1 && plan->slowest < plan->nring);
}

/* What must hold for every plan of a communicator that the policy looks at. */
static inline void gv_check_plan(const struct gv_policy_in *in, const struct gv_plan *plan)
{
    const struct gv_profile *p = in->profile;
    gv_gpuset joined[GV_MAX_GPUS];
    assert_true(strlen(plan->reason) > 10);
    gv_check_ring(in, plan);
    if (plan->transport == GV_TRANSPORT_DEFAULT)
        assert_int_equal(plan->nedits, 0);
    if (plan->transport == GV_TRANSPORT_P2P)
        for (int i = 0; i < plan->nring; i++)
            assert_int_equal(plan->edges[i].transport, GV_TRANSPORT_P2P);
    for (int i = 0; i < plan->nedits; i++)
        gv_check_edit(in, plan, &plan->edits[i]);
    const struct gv_check_pairs *pairs = gv_check_pairs(p);
    gv_check_joined(pairs, plan, joined);
    for (int a = 0; a < p->ngpus; a++) {
        gv_gpuset own = 0, links = 0;
        for (gv_gpuset rest = joined[a]; rest; rest &= rest - 1)
            assert_true(gv_check_may_join(in, pairs, a, gv_gpuset_first(rest)));
        for (int b = 0; b < p->ngpus; b++) {
            const struct gv_profile_path *path = pairs->path[a][b];
            own |= a != b && gv_check_own_peer(pairs, a, b) ? GV_GPU_BIT(b) : 0;
            links |= a != b && path && path->nvlinks > 0 ? GV_GPU_BIT(b) : 0;
        }
        assert_true(!joined[a] || gv_gpuset_count(own | joined[a]) <= 8);
        bool lent = plan->veto_ll128 && joined[a];
        if (lent && gv_gpuset_count(links | joined[a]) > 1)
            assert_true(plan->nvb_disable);
    }
    if (plan->nvb_disable)
        assert_false(gv_profile_nvlink_chains(p));
}

#endif
