/* Samples in, the two sides compared out: which count, whose they are, when a step is reached. */
#include "tests/policy_expect.h"

#include "plugin/policy/rows.h"

#define AR GV_OP_ALL_REDUCE
#define G (1u << 30)

static void same_variant(void **state)
{
    (void)state;
    static const struct {
        enum gv_edit_kind edit;
        int count, variant_pairs;
        int variant[3][2];
        int key_pairs;
        int key[3][2];
        bool same;
    } rows[] = {
        {LEND, 0, 1, {{1, 5}}, 1, {{1, 5}}, true},
        {LEND, 0, 1, {{1, 5}}, 1, {{5, 1}}, true},
        {LEND, 0, 1, {{1, 5}}, 1, {{1, 6}}, false},
        {LEND, 0, 1, {{1, 5}}, 1, {{2, 5}}, false},
        {LEND, 0, 1, {{1, 5}}, 1, {{5, 2}}, false},
        {LEND, 0, 1, {{1, 5}}, 1, {{2, 1}}, false},
        {LEND, 0, 2, {{1, 5}, {2, 6}}, 2, {{6, 2}, {1, 5}}, true},
        {LEND, 0, 2, {{1, 5}, {2, 6}}, 2, {{1, 5}, {2, 7}}, false},
        {LEND, 0, 2, {{1, 5}, {2, 6}, {3, 7}}, 2, {{1, 5}, {3, 7}}, false}, /* behind its end */
        {LEND, 0, 2, {{1, 5}, {2, 6}}, 1, {{1, 5}}, false},
        {LEND, 1, 1, {{1, 5}}, 1, {{1, 5}}, false}, /* another number of links */
        {SEPARATE, 0, 1, {{0, 1}}, 1, {{1, 0}}, true},
        {SEPARATE, 0, 1, {{0, 1}}, 1, {{0, 2}}, false},
        {BRIDGE, 0, 1, {{0, 1}}, 1, {{0, 2}}, true}, /* no pairs of its own */
        {LEVEL, 0, 1, {{0, 1}}, 0, {{0, 0}}, true},
        {NONE, 0, 1, {{0, 1}}, 0, {{0, 0}}, true},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct gv_profile_variant variant = {
            .edit = rows[i].edit,
            .lend_count = rows[i].count,
            .nlend = rows[i].variant_pairs,
            .algorithm = ANY_A,
            .protocol = ANY_P};
        struct gv_variant_key key = gv_plain_key(rows[i].edit);
        memcpy(variant.lend, rows[i].variant, sizeof(rows[i].variant));
        key.lend = rows[i].key;
        key.nlend = rows[i].key_pairs;
        assert_int_equal(gv_variant_is(&variant, &key), rows[i].same);
    }
}

static void
assert_side(const struct gv_side *side, int count, double median, double low, double high)
{
    assert_int_equal(side->count, count);
    assert_true(side->median == median || (isnan(side->median) && isnan(median)));
    assert_true(side->low == low || (isnan(side->low) && isnan(low)));
    assert_true(side->high == high || (isnan(side->high) && isnan(high)));
}

/* Which samples are usable: finite, above 0, not throttled. */
static void usable(void **state)
{
    (void)state;
    static const struct {
        const char *samples; /* NULL: no such variant */
        int count;
        double median, low, high;
    } rows[] = {
        {"12 10 11", 3, 11, 10, 12},       {"0 10 12", 2, 11, 10, 12},
        {"-0.5 10 12", 2, 11, 10, 12},     {"0.5 10 12", 3, 10, 0.5, 12},
        {"nan inf 10", 1, 10, 10, 10},     {"12! 10", 1, 10, 10, 10},
        {"10 10 12 12 12", 5, 12, 10, 12}, {"0 nan", 0, NAN, NAN, NAN},
        {NULL, 0, NAN, NAN, NAN},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct gv_build *build = gv_build_two_switches();
        struct gv_variant_key key = gv_plain_key(LEND);
        struct gv_profile_group *group =
            gv_build_measured(build, "0-7", AR, "1G", "7 7 7", LEND, rows[i].samples);
        struct gv_side side = gv_side_of(group, &key);
        assert_side(&side, rows[i].count, rows[i].median, rows[i].low, rows[i].high);
        gv_build_free(build);
    }
}

/* The steps themselves are enough; figures within rounding (1e-9) of a step have reached it. */
static void steps(void **state)
{
    (void)state;
    static const struct {
        double min_gain, max_loss;
        const char *base, *other;
        enum gv_verdict verdict;
        bool loses;
    } rows[] = {
        {1, 0.05, "10 10 10", "20 20 20", GV_GAIN, false},
        {1.000000001, 0.05, "10 10 10", "20 20 20", GV_GAIN, false},
        {1.00000001, 0.05, "10 10 10", "20 20 20", GV_SAME, false},
        {1, 0.5, "20 20 20", "10 10 10", GV_LOSS, false},
        {1.000000001, 0.499999999, "20 20 20", "10 10 10", GV_LOSS, false},
        {1.00000001, 0.49999999, "20 20 20", "10 10 10", GV_SAME, true},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct gv_build *build = gv_build_two_switches();
        struct gv_policy_in in = asked(build, "0-7");
        struct gv_variant_key none = gv_plain_key(NONE), lend = gv_plain_key(LEND);
        struct gv_facts facts;
        gv_build_measured(build, "0-7", AR, "1G", rows[i].base, LEND, rows[i].other);
        build->profile.policy.min_gain = rows[i].min_gain;
        build->profile.policy.max_loss = rows[i].max_loss;
        gv_facts_init(&facts, &in);
        struct gv_comparison now = gv_measured(&facts, in.gpus, AR, G, &none, &lend);
        assert_int_equal(now.verdict, rows[i].verdict);
        assert_int_equal(gv_loses(&facts, &now), rows[i].loses);
        gv_facts_finish(&facts);
        gv_build_free(build);
    }
}

/* Two groups of the same GPUs, operation and size, both loaded: one counts, in any order. */
static void twice(void **state)
{
    (void)state;
    static const struct {
        const char *one, *two;
        int count;
        double median, low, high;
    } rows[] = {
        {"10 10", "11 11 11", 3, 11, 11, 11},
        {"12 12 12", "11 11 11", 3, 11, 11, 11},
        {"9 10 11", "9.5 10 12", 3, 10, 9, 11},
        {"9 10 11", "9 10 10.5", 3, 10, 9, 10.5},
        {"9 9 9", "10 10 10 10", 4, 10, 10, 10},
        {"10 10 10", "10 10 10", 3, 10, 10, 10},
        {"", "12", 1, 12, 12, 12},
    };
    for (size_t i = 0; i < 2 * COUNT(rows); i++) {
        struct gv_build *build = gv_build_two_switches();
        struct gv_policy_in in = asked(build, "0-7");
        struct gv_variant_key none = gv_plain_key(NONE);
        struct gv_facts facts;
        for (unsigned k = 0; k < 2; k++) {
            struct gv_profile_group *group = gv_build_group_set(build, in.gpus, AR, k + 1, true);
            gv_build_run(
                gv_build_variant(group, NONE), k == i % 2 ? rows[i / 2].one : rows[i / 2].two);
        }
        build->profile.groups[0].bytes = build->profile.groups[1].bytes = G;
        gv_facts_init(&facts, &in);
        struct gv_comparison now = gv_measured(&facts, in.gpus, AR, G, &none, &none);
        assert_true(now.loaded && now.op == AR && now.bytes == G);
        assert_side(
            &now.base, rows[i / 2].count, rows[i / 2].median, rows[i / 2].low, rows[i / 2].high);
        gv_facts_finish(&facts);
        gv_build_free(build);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_variant),
        cmocka_unit_test(usable),
        cmocka_unit_test(steps),
        cmocka_unit_test(twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
