/* Machines made by chance: 2 to 64 GPUs, 1 to 8 islands, pairs in every state, measurements of any
 * outcome. Whatever is decided must be sound, the same for the same facts in another order, and no
 * bolder when a verification is taken away. */
#include "tests/policy_machines.h"

static struct gv_policy_in question(const struct gv_profile *p, gv_gpuset gpus)
{
    return (struct gv_policy_in){
        .profile = p, .gpus = gpus, .one_node = true, .nccl_version = 22809};
}

static int p2p_edges(const struct gv_plan *plan)
{
    int n = 0;
    for (int i = 0; i < plan->nring; i++)
        n += plan->edges[i].transport == GV_TRANSPORT_P2P;
    return n;
}

static bool turns_on(const struct gv_plan *plan)
{
    return plan->nedits && plan->edits[0].kind != GV_EDIT_SEPARATE;
}

static void sound(void **state)
{
    (void)state;
    int lent = 0, bridged = 0, separated = 0, left = 0;
    uint64_t end = (uint64_t)gv_test_rounds(300);
    for (uint64_t number = 0; number < end; number++) {
        struct gv_build *build = any_machine(number, false);
        for (int i = 0; i < build->profile.ngroups + 10; i++) {
            struct gv_policy_in in = question(&build->profile, communicator(&build->profile, i));
            struct gv_plan plan;
            gv_policy_decide(&in, &plan);
            gv_check_plan(&in, &plan);
            enum gv_edit_kind kind = plan.nedits ? plan.edits[0].kind : GV_EDIT_NONE;
            lent += kind == GV_EDIT_LEND;
            bridged += kind == GV_EDIT_BRIDGE;
            separated += kind == GV_EDIT_SEPARATE;
            left += kind == GV_EDIT_NONE;
            gv_plan_finish(&plan);
        }
        gv_build_free(build);
    }
    print_message(
        "%d lent, %d bridged, %d separated, %d default\n", lent, bridged, separated, left);
    int enough = end == 300 ? 100 : 1;
    assert_true(lent > enough && bridged > enough && separated > enough && left > enough);
}

static void shuffle(void *list, int n, size_t size)
{
    char *at = list, swap[1024];
    assert_true(size <= sizeof(swap));
    for (int i = n - 1; i > 0; i--) {
        size_t j = chance((unsigned)i + 1), k = (size_t)i;
        memcpy(swap, at + j * size, size);
        memcpy(at + j * size, at + k * size, size);
        memcpy(at + k * size, swap, size);
    }
}

static void shuffle_profile(struct gv_profile *p)
{
    shuffle(p->paths, p->npaths, sizeof(p->paths[0]));
    shuffle(p->groups, p->ngroups, sizeof(p->groups[0]));
    for (int g = 0; g < p->ngroups; g++) {
        struct gv_profile_group *group = &p->groups[g];
        shuffle(group->variants, group->nvariants, sizeof(group->variants[0]));
        for (int v = 0; v < group->nvariants; v++)
            for (int r = 0; r < group->variants[v].nruns; r++)
                if (!group->variants[v].runs[r].throttled[0])
                    shuffle(group->variants[v].runs[r].busbw_gbs, 1, sizeof(double));
    }
}

static void same_plan(const struct gv_plan *a, const struct gv_plan *b)
{
    assert_string_equal(a->reason, b->reason);
    assert_int_equal(a->transport, b->transport);
    assert_int_equal(a->nedits, b->nedits);
    assert_memory_equal(a->edits, b->edits, (size_t)a->nedits * sizeof(a->edits[0]));
    assert_int_equal(a->nring, b->nring);
    assert_memory_equal(a->ring, b->ring, (size_t)a->nring * sizeof(a->ring[0]));
    assert_int_equal(a->slowest, b->slowest);
    assert_true(a->gain == b->gain || (isnan(a->gain) && isnan(b->gain)));
    assert_int_equal(a->thin, b->thin);
    assert_int_equal(a->evidence, b->evidence);
    assert_int_equal(a->nvb_disable, b->nvb_disable);
    assert_int_equal(a->nrows, b->nrows);
    for (int i = 0; i < a->nrows; i++) {
        assert_int_equal(a->rows[i].min_bytes, b->rows[i].min_bytes);
        assert_int_equal(a->rows[i].max_bytes, b->rows[i].max_bytes);
        assert_int_equal(a->rows[i].algorithm, b->rows[i].algorithm);
        assert_int_equal(a->rows[i].protocol, b->rows[i].protocol);
    }
}

static void order_of_facts(void **state)
{
    (void)state;
    uint64_t end = 1000 + (uint64_t)gv_test_rounds(150);
    for (uint64_t number = 1000; number < end; number++) {
        struct gv_build *build = any_machine(number, false), *other = any_machine(number, false);
        gv_gpuset sets[64];
        int n = 0;
        for (int i = 0; i < build->profile.ngroups && n < 40; i++)
            sets[n++] = build->profile.groups[i].gpus;
        for (int i = 0; i < 5; i++)
            sets[n++] = any_set(&build->profile);
        shuffle_profile(&other->profile);
        for (int i = 0; i < n; i++) {
            struct gv_policy_in in = question(&build->profile, sets[i]);
            struct gv_policy_in again = question(&other->profile, sets[i]);
            struct gv_plan a, b;
            gv_policy_decide(&in, &a);
            gv_policy_decide(&again, &b);
            same_plan(&a, &b);
            gv_plan_finish(&a);
            gv_plan_finish(&b);
        }
        gv_build_free(build);
        gv_build_free(other);
    }
}

/* A pair of the plan's lent links, mostly; else any. */
static void any_pair(const struct gv_profile *p, const struct gv_plan *plan, int *a, int *b)
{
    *a = (int)chance((unsigned)p->ngpus);
    *b = (int)chance((unsigned)p->ngpus);
    if (plan->nedits && plan->edits[0].kind == GV_EDIT_LEND && in_percent(70)) {
        *a = plan->edits[0].to;
        *b = plan->edits[0].from;
    }
}

/* The first communicator of the machine for which P2P is turned on, or its last one. */
static struct gv_plan first_plan(const struct gv_profile *p, struct gv_policy_in *in)
{
    struct gv_plan plan;
    for (int i = 0;; i++) {
        in->gpus = p->groups[i].gpus;
        gv_policy_decide(in, &plan);
        if (turns_on(&plan) || i == p->ngroups - 1)
            return plan;
        gv_plan_finish(&plan);
    }
}

/* Takes verifications away, one after the other. */
static int
take_away(const struct gv_profile *p, struct gv_policy_in *in, gv_gpuset *verified, bool monotone)
{
    struct gv_plan before = first_plan(p, in);
    int dropped = 0;
    for (int step = 0; step < 30; step++) {
        struct gv_plan after;
        int a, b;
        any_pair(p, &before, &a, &b);
        verified[a] &= ~GV_GPU_BIT(b);
        gv_policy_decide(in, &after);
        gv_check_plan(in, &after);
        if (monotone) {
            assert_true(turns_on(&before) || !turns_on(&after));
            assert_true(p2p_edges(&after) <= p2p_edges(&before));
        }
        dropped += turns_on(&before) && !turns_on(&after);
        gv_plan_finish(&before);
        before = after;
    }
    gv_plan_finish(&before);
    return dropped;
}

/* Taking a verification away turns nothing on: a default plan stays default, and no edge of the
 * ring more is P2P. On machines with many islands the search for a ring is not exhaustive, and
 * where NVLinks are, another ring may be allowed that the better one hid: there each plan has to be
 * sound, no more. The host's word is used, so that the profile need not be changed. */
static void fewer_verifications(void **state)
{
    (void)state;
    int dropped = 0;
    uint64_t rounds = (uint64_t)gv_test_rounds(200);
    for (uint64_t number = 2000; number < 2000 + rounds; number++) {
        bool plain = number < 2000 + rounds * 3 / 4;
        struct gv_build *build = any_machine(number, plain);
        gv_gpuset verified[GV_MAX_GPUS];
        for (int a = 0; a < GV_MAX_GPUS; a++)
            verified[a] = ~(gv_gpuset)0;
        struct gv_policy_in in = question(&build->profile, 0);
        in.verified = verified;
        dropped += take_away(&build->profile, &in, verified, plain);
        gv_build_free(build);
    }
    print_message("%d plans went back to the default\n", dropped);
    assert_true(dropped > gv_test_rounds(10));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sound),
        cmocka_unit_test(order_of_facts),
        cmocka_unit_test(fewer_verifications),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
