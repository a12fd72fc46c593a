/* Variants measured side by side in, the edit that is used out; and candidates in their order. */
#include "tests/policy_expect.h"

#include "plugin/policy/rows.h"

#define P2P GV_TRANSPORT_P2P
#define DEFAULT GV_TRANSPORT_DEFAULT
#define AR GV_OP_ALL_REDUCE

/* A bridge makes all pairs P2P: all-to-all must be measured or excluded. */
static void bridges(void **state)
{
    (void)state;
    static const struct {
        const char *gpus, *alltoall_base, *alltoall_tuned; /* NULL: not measured */
        unsigned operations;
        const char *edits, *reason;
    } rows[] = {
        {"3,4", NULL, NULL, GV_OP_BIT(AR), "bridge 3-4", "a bridge moves"},
        {"3,4", NULL, NULL, 0, "", "all-to-all under a bridge is neither measured nor excluded"},
        {"3,4", NULL, NULL, GV_OP_BIT(AR) | GV_OP_BIT(GV_OP_SEND_RECV), "", "neither"},
        {"3,4", NULL, NULL, GV_OP_BIT(AR) | GV_OP_BIT(GV_OP_ALL_TO_ALL), "", "neither"},
        {"3,4", "10 10 10", "9.6 9.6 9.6", 0, "bridge 3-4", "a bridge moves"},
        {"3,4", "18 18 18", "2 2 2", 0, "", "2.00 against 18.00 GB/s busbw (-88.9 %, AllToAll"},
        {"3,4", "18 18 18", "2 2 2", GV_OP_BIT(AR), "bridge 3-4", "a bridge moves"},
        {"2-4", NULL, NULL, GV_OP_BIT(AR), "bridge 2-4", "a bridge moves"},
        {"2-5", NULL, NULL, 0, "lend 3-4 lend 5-2", "edges 3-4 and 5-2"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct gv_build *build = gv_build_two_switches();
        build->profile.policy.operations = rows[i].operations;
        gv_build_measured(build, rows[i].gpus, AR, "1G", "10 10 10", GV_EDIT_P2P_LEVEL, "12 12 12");
        if (rows[i].alltoall_base)
            gv_build_measured(
                build, rows[i].gpus, GV_OP_ALL_TO_ALL, "1G", rows[i].alltoall_base,
                GV_EDIT_P2P_LEVEL, rows[i].alltoall_tuned);
        expect(
            build, rows[i].gpus, rows[i].edits[0] ? P2P : DEFAULT, rows[i].edits, rows[i].reason);
        gv_build_free(build);
    }
}

/* Variants that were measured as they are applied, side by side. */
static void variants(void **state)
{
    (void)state;
    static const struct {
        const char *lend, *lend_twice, *listed, *bridge, *level; /* samples, base is 10 */
        const char *edits;
    } rows[] = {
        {"12 12 12", NULL, NULL, NULL, NULL, "lend 3-4 lend 7-0"},
        {"12 12 12", "13 13 13", NULL, NULL, NULL, "lend 3-4 x2 lend 7-0 x2"},
        {"12 12 12", "12.2 12.2 12.2", NULL, NULL, NULL, "lend 3-4 lend 7-0"},
        {"12 12 12", NULL, NULL, "13 13 13", NULL, "bridge 0-7"},
        {"12 12 12", NULL, NULL, "12.3 12.3 12.3", NULL, "lend 3-4 lend 7-0"},
        {"13 13 13", NULL, NULL, "12 12 12", NULL, "lend 3-4 lend 7-0"},
        {NULL, NULL, "12 12 12", NULL, NULL, "lend 0-6 lend 1-5"},
        {"12 12 12", NULL, "13 13 13", NULL, NULL, "lend 0-6 lend 1-5"},
        /* NCCL_P2P_LEVEL speaks only for what was not measured itself */
        {"9 9 9", NULL, NULL, NULL, "12 12 12", "bridge 0-7"},
        {"9 9 9", NULL, NULL, "9 9 9", "12 12 12", ""},
        {NULL, NULL, NULL, "9 9 9", "12 12 12", "lend 3-4 lend 7-0"},
        {"12 12 12", NULL, NULL, NULL, "9 9 9", "lend 3-4 lend 7-0"},
        /* so does a bridge for lent links, and touches less */
        {NULL, NULL, NULL, "12 12 12", NULL, "lend 3-4 lend 7-0"},
        {NULL, NULL, NULL, "9 9 9", NULL, ""},
        {"9 9 9", NULL, NULL, "12 12 12", NULL, "bridge 0-7"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct gv_build *build = gv_build_two_switches();
        build->profile.policy.operations = GV_OP_BIT(AR);
        struct gv_profile_group *group =
            gv_build_measured(build, "0-7", AR, "1G", "10 10 10", GV_EDIT_P2P_LEVEL, rows[i].level);
        if (rows[i].lend)
            gv_build_run(gv_build_variant(group, GV_EDIT_LEND), rows[i].lend);
        if (rows[i].lend_twice) {
            struct gv_profile_variant *variant = gv_build_variant(group, GV_EDIT_LEND);
            variant->lend_count = 2;
            gv_build_run(variant, rows[i].lend_twice);
        }
        if (rows[i].listed) {
            struct gv_profile_variant *variant = gv_build_variant(group, GV_EDIT_LEND);
            variant->nlend = 2;
            memcpy(variant->lend, (int[2][2]){{5, 1}, {0, 6}}, sizeof(int[2][2]));
            gv_build_run(variant, rows[i].listed);
        }
        if (rows[i].bridge)
            gv_build_run(gv_build_variant(group, GV_EDIT_BRIDGE), rows[i].bridge);
        expect(build, "0-7", rows[i].edits[0] ? P2P : DEFAULT, rows[i].edits, "GB/s busbw");
        gv_build_free(build);
    }
}

/* A variant that names an algorithm alone says nothing of the transport, whatever stands in for it,
 * and the order of variants in the file does not matter. */
static void variants_of_the_tuner(void **state)
{
    (void)state;
    struct gv_build *build = gv_build_two_switches();
    build->profile.policy.operations = GV_OP_BIT(AR);
    struct gv_profile_group *group =
        gv_build_group_set(build, gv_build_set("0-7"), AR, 1 << 30, false);
    gv_build_run(gv_build_variant(group, GV_EDIT_BRIDGE), "12 12 12");
    gv_build_run(gv_build_variant(group, GV_EDIT_NONE), "10 10 10");
    gv_build_run(chosen(group, GV_EDIT_LEND, GV_ALGO_RING, GV_PROTO_ANY), "13 13 13");
    expect(build, "0-7", P2P, "lend 3-4 lend 7-0", "GB/s busbw");
    gv_build_free(build);
}

/* Of lists that rule 1 cannot tell apart the one with the lower GPUs is lent, in whatever order the
 * file has them. */
static void equal_lists(void **state)
{
    (void)state;
    static const struct {
        int a[2][2], b[2][2];
        const char *edits;
    } rows[] = {
        {{{1, 5}, {0, 6}}, {{2, 5}, {0, 6}}, "lend 0-6 lend 1-5"},
        {{{1, 5}, {0, 6}}, {{1, 4}, {0, 6}}, "lend 0-6 lend 1-4"},
        {{{1, 5}, {2, 6}}, {{1, 5}, {3, 6}}, "lend 1-5 lend 2-6"},
        {{{1, 5}, {2, 7}}, {{1, 5}, {2, 6}}, "lend 1-5 lend 2-6"},
    };
    for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
        struct gv_build *build = gv_build_two_switches();
        struct gv_profile_group *group =
            gv_build_measured(build, "0-7", AR, "1G", "10 10 10", GV_EDIT_NONE, NULL);
        for (int k = 0; k < 2; k++) {
            struct gv_profile_variant *variant = gv_build_variant(group, GV_EDIT_LEND);
            bool first = (k == 0) == (i % 2 == 0);
            variant->nlend = 2;
            memcpy(variant->lend, first ? rows[i / 2].a : rows[i / 2].b, sizeof(rows[0].a));
            gv_build_run(variant, "12 12 12");
        }
        expect(build, "0-7", P2P, rows[i / 2].edits, "GB/s busbw");
        gv_build_free(build);
    }
}

/* As many candidates as are looked at, and no more. */
static void many_candidates(void **state)
{
    (void)state;
    static const struct {
        int lists, candidates;
    } rows[] = {{1, 1}, {63, 63}, {64, 64}, {65, 64}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct gv_build *build = gv_build_two_switches();
        struct gv_policy_in in = asked(build, "0-7");
        struct gv_candidate candidates[GV_MAX_CANDIDATES + 1];
        struct gv_facts facts;
        add_lists(build, "0-7", rows[i].lists, "10 10 10");
        candidates[GV_MAX_CANDIDATES].applied = GV_EDIT_KINDS;
        gv_facts_init(&facts, &in);
        assert_int_equal(gv_candidates(&facts, in.gpus, candidates), rows[i].candidates);
        assert_int_equal(candidates[GV_MAX_CANDIDATES].applied, GV_EDIT_KINDS);
        gv_facts_finish(&facts);
        gv_build_free(build);
    }
}

/* In an order of their own, each once however many sizes it was measured at. "edit by edit measured
 * xN pairs". */
static void candidates_in_order(void **state)
{
    (void)state;
    struct variant {
        enum gv_edit_kind edit;
        int count, pairs;
        int pair[2][2];
    };
    static const struct {
        struct variant variants[4];
        const char *expected;
    } rows[] = {
        {{{LEND, 0, 0, {{0}}}}, "lend lend x0"},
        {{{LEVEL, 0, 0, {{0}}}}, "lend p2p-level x0, bridge p2p-level x0"},
        {{{BRIDGE, 0, 0, {{0}}}, {LEVEL, 0, 0, {{0}}}},
         "lend bridge x0, lend p2p-level x0, bridge bridge x0"},
        {{{SEPARATE, 0, 0, {{0}}}, {BRIDGE, 0, 0, {{0}}}, {LEND, 2, 0, {{0}}}, {LEND, 0, 0, {{0}}}},
         "lend lend x0, lend lend x2, bridge bridge x0, separate separate x0"},
        {{{LEND, 0, 2, {{1, 5}, {2, 6}}}, {LEND, 0, 2, {{1, 5}, {2, 4}}}, {LEND, 0, 1, {{3, 7}}}},
         "lend lend x0 3-7, lend lend x0 1-5 2-4, lend lend x0 1-5 2-6"},
        {{{LEND, 0, 1, {{1, 5}}}, {LEND, 0, 1, {{5, 1}}}, {LEND, 0, 1, {{0, 7}}}},
         "lend lend x0 0-7, lend lend x0 1-5"}, /* a pair is one, however it is written */
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct gv_build *build = gv_build_two_switches();
        struct gv_policy_in in = asked(build, "0-7");
        struct gv_candidate candidates[GV_MAX_CANDIDATES];
        struct gv_facts facts;
        char text[512] = "";
        for (uint64_t bytes = 1; bytes < 3; bytes++)
            for (int v = 0; v < 4 && rows[i].variants[v].edit; v++) {
                const struct variant *from = &rows[i].variants[v];
                struct gv_profile_variant *variant = gv_build_variant(
                    gv_build_group_set(build, in.gpus, AR, bytes, false), from->edit);
                variant->lend_count = from->count;
                variant->nlend = from->pairs;
                memcpy(variant->lend, from->pair, sizeof(from->pair));
            }
        gv_facts_init(&facts, &in);
        int n = gv_candidates(&facts, in.gpus, candidates);
        for (int c = 0; c < n; c++) {
            const struct gv_variant_key *key = &candidates[c].key;
            size_t used = strlen(text);
            used += (size_t)snprintf(
                text + used, sizeof(text) - used, "%s%s %s x%d", c ? ", " : "",
                gv_edit_name(candidates[c].applied), gv_edit_name(key->edit), key->lend_count);
            for (int p = 0; p < key->nlend; p++)
                used += (size_t)snprintf(
                    text + used, sizeof(text) - used, " %d-%d", key->lend[p][0], key->lend[p][1]);
        }
        assert_string_equal(text, rows[i].expected);
        gv_facts_finish(&facts);
        gv_build_free(build);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bridges),
        cmocka_unit_test(variants),
        cmocka_unit_test(variants_of_the_tuner),
        cmocka_unit_test(equal_lists),
        cmocka_unit_test(many_candidates),
        cmocka_unit_test(candidates_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
