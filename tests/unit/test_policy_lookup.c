/* What the rules rest on: the profile's pairs, its groups by search, samples, candidates, choices.
 * Each look-up at the edges of what it finds. */
#include "tests/policy_rows.h"

#include "plugin/policy/rows.h"

#define NONE GV_EDIT_NONE
#define LEND GV_EDIT_LEND
#define LEVEL GV_EDIT_P2P_LEVEL
#define BRIDGE GV_EDIT_BRIDGE
#define SEPARATE GV_EDIT_SEPARATE
#define ANY_A GV_ALGO_ANY
#define ANY_P GV_PROTO_ANY
#define RING GV_ALGO_RING
#define TREE GV_ALGO_TREE
#define LL GV_PROTO_LL
#define LL128 GV_PROTO_LL128
#define SIMPLE GV_PROTO_SIMPLE
#define AR GV_OP_ALL_REDUCE
#define AG GV_OP_ALL_GATHER
#define BC GV_OP_BROADCAST
#define RD GV_OP_REDUCE
#define SR GV_OP_SEND_RECV
#define G (1u << 30)
#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

static struct gv_policy_in asked(const struct gv_build *build, const char *gpus)
{
    return (struct gv_policy_in){
        .profile = &build->profile, .gpus = gv_build_set(gpus), .one_node = true};
}

/* Decides and compares; `edits` NULL: any. */
static void expect(
    const struct gv_build *build, const char *gpus, enum gv_transport transport, const char *edits,
    const char *reason)
{
    struct gv_policy_in in = asked(build, gpus);
    struct gv_plan plan;
    char text[2048];
    gv_policy_decide(&in, &plan);
    gv_check_plan(&in, &plan);
    print_message("%-7s %s\n", gv_transport_name(plan.transport), plan.reason);
    assert_string_equal(gv_transport_name(plan.transport), gv_transport_name(transport));
    if (edits)
        assert_string_equal(gv_check_edits(&plan, text, sizeof(text)), edits);
    if (!strstr(plan.reason, reason))
        fail_msg("\"%s\" is not in \"%s\"", reason, plan.reason);
    gv_plan_finish(&plan);
}

/* ---- pairs and thresholds ---- */

/* Two GPUs of two switches: joined by what their path says. */
static void paths(void **state)
{
    (void)state;
    static const struct {
        enum gv_path_class nccl_class;
        int nvlinks;
        bool nvlink, near;
    } rows[] = {
        {GV_PATH_PHB, 0, false, false}, {GV_PATH_PHB, 1, true, false},
        {GV_PATH_PHB, 2, true, false},  {GV_PATH_UNKNOWN, 1, true, false},
        {GV_PATH_NVL, 0, true, false}, /* their number is not known */
        {GV_PATH_NVL, 4, true, false},  {GV_PATH_PIX, 0, false, true},
        {GV_PATH_PXB, 0, false, true},  {GV_PATH_PXB, 1, true, true},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct gv_build *build = gv_build_new(GV_CUDA);
        struct gv_facts facts;
        gv_build_gpus(build, 1, "A", 0, 70);
        gv_build_gpus(build, 1, "B", 0, 70);
        gv_build_path(build, "0", "1", rows[i].nccl_class, rows[i].nvlinks, GV_P2P_VERIFIED, 10);
        struct gv_policy_in in = asked(build, "0-1");
        gv_facts_init(&facts, &in);
        assert_int_equal(gv_gpuset_has(facts.nvlink[0], 1), rows[i].nvlink);
        assert_int_equal(gv_gpuset_has(facts.near[0], 1), rows[i].near);
        assert_true(gv_facts_p2p_gbs(&facts, 0, 1) == 10);
        gv_facts_finish(&facts);
        memset(&build->profile.paths[0].write_gbs, 0, sizeof(struct gv_figure));
        gv_facts_init(&facts, &in);
        assert_true(isnan(gv_facts_p2p_gbs(&facts, 0, 1))); /* not known, not 0 GB/s */
        gv_facts_finish(&facts);
        gv_build_free(build);
    }
}

/* A GPU with NVLinks to two others, wherever it stands. */
static void chains(void **state)
{
    (void)state;
    static const struct {
        const char *middle, *ends;
        bool chains;
    } rows[] = {{"0", "1-2", true}, {"1", "0,2", true}, {"2", "0-1", true}, {"0", "1", false}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct gv_build *build = gv_build_new(GV_CUDA);
        gv_build_gpus(build, 3, "A", 0, 70);
        gv_build_path(build, rows[i].middle, rows[i].ends, GV_PATH_NVL, 1, GV_P2P_VERIFIED, 20);
        assert_int_equal(gv_profile_nvlink_chains(&build->profile), rows[i].chains);
        gv_build_free(build);
    }
}

/* From 0 on the profile's own threshold holds; what is below, or no number, is none. */
static void thresholds(void **state)
{
    (void)state;
    static const struct {
        double written, min_gain, max_loss;
    } rows[] = {{0, 0, 0}, {0.01, 0.01, 0.01}, {-0.5, 0.03, 0.05}, {NAN, 0.03, 0.05}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct gv_build *build = gv_build_two_switches();
        struct gv_policy_in in = asked(build, "0-7");
        struct gv_facts facts;
        build->profile.policy.min_gain = build->profile.policy.max_loss = rows[i].written;
        gv_facts_init(&facts, &in);
        assert_true(facts.min_gain == rows[i].min_gain);
        assert_true(facts.max_loss == rows[i].max_loss);
        gv_facts_finish(&facts);
        gv_build_free(build);
    }
}

/* NCCL's default level by processor, release and number of GPUs, and whether a bad pair puts the
 * process under PXB. */
static void levels(void **state)
{
    (void)state;
    static const struct {
        const char *vendor;
        int nccl_version;
        bool two_sys, three_sys, pxb;
    } rows[] = {
        {"intel", 22203, false, false, false}, {"intel", 22304, false, false, false},
        {"amd", 22299, true, true, true},      {"amd", 22300, true, false, true},
        {"amd", 22301, true, false, true},     {"amd", 0, true, false, true},
        {"ibm", 22299, true, true, true},      {"ibm", 22300, false, false, false},
        {"ibm", 22301, false, false, false},   {"ibm", 0, false, false, true},
        {"arm", 22299, false, false, false},   {"zhaoxin", 22299, false, false, false},
        {"", 22299, false, false, true},       {"", 22300, false, false, true},
        {"arm", 0, false, false, false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct gv_build *build = gv_build_two_switches();
        gv_gpuset bad[GV_MAX_GPUS] = {0};
        const char *gpus[] = {"0-1", "0-2"};
        snprintf(
            build->profile.cpu_vendor, sizeof(build->profile.cpu_vendor), "%s", rows[i].vendor);
        for (int k = 0; k < 2; k++) {
            struct gv_policy_in in = asked(build, gpus[k]);
            struct gv_facts facts;
            in.nccl_version = rows[i].nccl_version;
            gv_facts_init(&facts, &in);
            assert_int_equal(facts.level_sys, k ? rows[i].three_sys : rows[i].two_sys);
            assert_false(facts.level_pxb);
            gv_facts_finish(&facts);
        }
        assert_false(gv_policy_level_pxb(&build->profile, rows[i].nccl_version, bad));
        bad[0] = GV_GPU_BIT(1);
        assert_int_equal(
            gv_policy_level_pxb(&build->profile, rows[i].nccl_version, bad), rows[i].pxb);
        gv_build_free(build);
    }
}

static void releases(void **state)
{
    (void)state;
    static const struct {
        const char *profile;
        int nccl_version;
        bool same;
    } rows[] = {
        {"2.28.9", 22809, true},   {"2.28.3", 22800, true}, {"2.28.3", 22799, false},
        {"2.28.3", 22900, false},  {"3.0.1", 30000, true},  {"2.99.99", 29999, true},
        {"2.99.99", 30000, false}, {"3.0.1", 29999, false}, {"2.2.1", 20201, true},
        {"2", 20000, false},       {"", 22809, false},      {"x.28", 22809, false},
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        assert_int_equal(gv_same_nccl(rows[i].profile, rows[i].nccl_version), rows[i].same);
}

/* ---- groups ---- */

/* By GPUs, operation, size, then alone before loaded, whatever the order in the file. */
static void groups_in_order(void **state)
{
    (void)state;
    static const struct {
        const char *gpus;
        enum gv_op op;
        uint64_t bytes;
        bool loaded;
    } sorted[] = {
        {"0-1", AG, 1, false}, {"0-1", AR, 0, false}, {"0-1", AR, 1, false}, {"0-1", AR, 1, true},
        {"0-1", AR, 2, true},  {"1-2", AG, 1, false}, {"1-2", AR, 1, false}, {"1-2", AR, 1, true},
        {"0-2", AG, 0, false}, {"0-2", AG, 2, false}, {"0-2", AR, 1, false},
    };
    static const struct {
        const char *gpus;
        enum gv_op op;
        int first, end;
        const char *sizes;
    } rows[] = {
        {"0-1", AG, 0, 1, "1"},    {"0-1", AR, 1, 5, "0 1 2"}, {"1-2", AG, 5, 6, "1"},
        {"1-2", AR, 6, 8, "1"},    {"0-2", AG, 8, 10, "0 2"},  {"0-2", AR, 10, 11, "1"},
        {"0-1", BC, 0, 0, NULL},   {"0-1", SR, 5, 5, NULL},    {"1-2", SR, 8, 8, NULL},
        {"0-2", SR, 11, 11, NULL},
    };
    /* 3 and 5 have no divisor in common with their number: each is there once */
    static const size_t steps[] = {1, COUNT(sorted) - 1, 3, 5};
    for (size_t s = 0; s < COUNT(steps); s++) {
        struct gv_build *build = gv_build_two_switches();
        for (size_t i = 0; i < COUNT(sorted); i++) {
            size_t k = i * steps[s] % COUNT(sorted);
            gv_build_group_set(
                build, gv_build_set(sorted[k].gpus), sorted[k].op, sorted[k].bytes,
                sorted[k].loaded);
        }
        struct gv_policy_in in = asked(build, "0-7");
        struct gv_facts facts;
        gv_facts_init(&facts, &in);
        assert_int_equal(facts.ngroups, COUNT(sorted));
        for (size_t i = 0; i < COUNT(sorted); i++) {
            const struct gv_profile_group *group = facts.group[i];
            assert_true(group->gpus == gv_build_set(sorted[i].gpus));
            assert_int_equal(group->op, sorted[i].op);
            assert_int_equal(group->bytes, sorted[i].bytes);
            assert_int_equal(group->loaded, sorted[i].loaded);
        }
        for (size_t i = 0; i < COUNT(rows); i++) {
            int end = -1;
            char text[64] = "";
            uint64_t *sizes;
            gv_gpuset gpus = gv_build_set(rows[i].gpus);
            assert_int_equal(gv_facts_groups(&facts, gpus, rows[i].op, &end), rows[i].first);
            assert_int_equal(end, rows[i].end);
            int n = gv_sizes(&facts, gpus, rows[i].op, &sizes);
            for (int k = 0; k < n; k++)
                snprintf(
                    text + strlen(text), sizeof(text) - strlen(text), "%s%d", k ? " " : "",
                    (int)sizes[k]);
            assert_string_equal(text, rows[i].sizes ? rows[i].sizes : "");
            assert_int_equal(sizes != NULL, rows[i].sizes != NULL);
            free(sizes);
        }
        gv_facts_finish(&facts);
        assert_null(facts.group);
        assert_int_equal(facts.ngroups, 0);
        gv_build_free(build);
    }
}

/* ---- samples ---- */

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

/* ---- candidates ---- */

/* `n` variants that lend one pair each: 0-4 to 3-7, then with one more link, and so on. */
static void add_lists(struct gv_build *build, const char *gpus, int n, const char *samples)
{
    struct gv_profile_group *group =
        gv_build_measured(build, gpus, AR, "1G", "10 10 10", NONE, NULL);
    for (int i = 0; i < n; i++) {
        struct gv_profile_variant *variant = gv_build_variant(group, LEND);
        variant->nlend = 1;
        variant->lend[0][0] = i % 16 / 4;
        variant->lend[0][1] = 4 + i % 4;
        variant->lend_count = i / 16;
        gv_build_run(variant, samples);
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

/* Of equal losses the first is named: by operation, then the smaller size. */
static void equal_losses(void **state)
{
    (void)state;
    static const struct {
        enum gv_op ops[2];
        const char *sizes[2], *named;
    } rows[] = {
        {{RD, RD}, {"1M", "2M"}, "Reduce, 1M)"},
        {{RD, RD}, {"2M", "1M"}, "Reduce, 1M)"},
        {{RD, BC}, {"1M", "2M"}, "Broadcast, 2M)"},
        {{BC, RD}, {"2M", "1M"}, "Broadcast, 2M)"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct gv_build *build = gv_build_two_switches();
        gv_build_measured(build, "0-7", AR, "1G", "10 10 10", LEVEL, "12 12 12");
        for (int k = 0; k < 2; k++)
            gv_build_measured(
                build, "0-7", rows[i].ops[k], rows[i].sizes[k], "10 10 10", LEVEL, "9 9 9");
        expect(build, "0-7", GV_TRANSPORT_DEFAULT, "", rows[i].named);
        gv_build_free(build);
    }
}

/* A row of the tuner names both, so an algorithm or a protocol alone makes up for no loss. */
static void half_a_choice(void **state)
{
    (void)state;
    static const struct {
        enum gv_algo algorithm;
        enum gv_proto protocol;
        enum gv_transport transport;
    } rows[] = {
        {TREE, LL, GV_TRANSPORT_P2P},
        {RING, SIMPLE, GV_TRANSPORT_P2P},
        {GV_ALGO_PAT, SIMPLE, GV_TRANSPORT_P2P},
        {TREE, ANY_P, GV_TRANSPORT_DEFAULT},
        {RING, ANY_P, GV_TRANSPORT_DEFAULT},
        {ANY_A, LL, GV_TRANSPORT_DEFAULT},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct gv_build *build = gv_build_two_switches();
        struct gv_choice choice = {"1M", LEND, rows[i].algorithm, rows[i].protocol, 0, "12 12 12"};
        gv_build_measured(build, "0-7", AR, "1G", "10 10 10", LEND, "12 12 12");
        gv_build_measured(build, "0-7", AR, "1M", "10 10 10", LEND, "9 9 9");
        gv_build_choice(build, "0-7", AR, &choice);
        expect(build, "0-7", rows[i].transport, NULL, "");
        gv_build_free(build);
    }
}

/* ---- neighbours ---- */

/* Of equal neighbours the one with the lower GPUs is named, in whatever order they were measured.
 */
static void equal_neighbours(void **state)
{
    (void)state;
    static const char *const gpus[][3] = {
        {"0-4", "1-5", "0-7"}, {"1-5", "0-4", "0-7"}, {"0-7", "1-5", "0-4"}};
    for (size_t i = 0; i < COUNT(gpus); i++) {
        struct gv_build *build = gv_build_two_switches();
        for (int k = 0; k < 3; k++)
            gv_build_measured(build, gpus[i][k], AR, "1G", "10 10 10", LEVEL, "12 12 12");
        expect(build, "0-5", GV_TRANSPORT_P2P, NULL, "with 0-4 (+20.0 %) and with 0-7");
        gv_build_free(build);
    }
}

/* Neighbours speak for an edit with as many links; no GPU has more than 18. */
static void lent_counts(void **state)
{
    (void)state;
    static const struct {
        int fewer, more;
        const char *edits;
    } rows[] = {
        {0, 0, "lend 3-4 lend 5-0"},
        {1, 1, "lend 3-4 x1 lend 5-0 x1"},
        {2, 2, "lend 3-4 x2 lend 5-0 x2"},
        {18, 18, "lend 3-4 x18 lend 5-0 x18"},
        {19, 19, ""},
        {1, 2, ""},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct gv_build *build = gv_build_two_switches();
        for (int k = 0; k < 2; k++) {
            struct gv_profile_group *group =
                gv_build_measured(build, k ? "0-7" : "0-4", AR, "1G", "10 10 10", LEND, "12 12 12");
            group->variants[1].lend_count = k ? rows[i].more : rows[i].fewer;
        }
        expect(
            build, "0-5", rows[i].edits[0] ? GV_TRANSPORT_P2P : GV_TRANSPORT_DEFAULT, rows[i].edits,
            "");
        gv_build_free(build);
    }
}

/* A neighbour with as many candidates as there can be. */
static void neighbour_of_many(void **state)
{
    (void)state;
    struct gv_build *build = gv_build_two_switches();
    gv_build_measured(build, "3-4", AR, "1G", "10 10 10", LEND, "12 12 12");
    add_lists(build, "0-7", GV_MAX_CANDIDATES, "11 11 11");
    expect(build, "0-5", GV_TRANSPORT_P2P, NULL, "0-7 (+10.0 %)");
    gv_build_free(build);
}

/* ---- the tuner's table ---- */

static void choices(void **state)
{
    (void)state;
    static const struct {
        const char *gpus;
        struct gv_choice choices[4];
        const char *rows;
    } tables[] = {
        /* the best of several, wherever it stands */
        {"0-3",
         {{"1K", NONE, TREE, LL, 0, "12 12 12"}, {"1K", NONE, RING, LL, 0, "14 14 14"}},
         "AllReduce 1K-1K RING/LL +40%"},
        {"0-3",
         {{"1K", NONE, RING, LL, 0, "12 12 12"}, {"1K", NONE, TREE, LL, 0, "14 14 14"}},
         "AllReduce 1K-1K TREE/LL +40%"},
        /* of equal ones the first by algorithm, protocol, channels */
        {"0-3",
         {{"1K", NONE, RING, LL, 0, "12 12 12"}, {"1K", NONE, TREE, LL, 0, "12 12 12"}},
         "AllReduce 1K-1K TREE/LL +20%"},
        {"0-3",
         {{"1K", NONE, RING, SIMPLE, 0, "12 12 12"}, {"1K", NONE, RING, LL, 2, "12 12 12"}},
         "AllReduce 1K-1K RING/LL 2ch +20%"},
        {"0-3",
         {{"1K", NONE, RING, LL, 2, "12 12 12"}, {"1K", NONE, RING, LL, 1, "12 12 12"}},
         "AllReduce 1K-1K RING/LL 1ch +20%"},
        /* half a choice is none, and keeps no whole one back */
        {"0-3",
         {{"1K", NONE, RING, ANY_P, 0, "14 14 14"},
          {"1K", NONE, ANY_A, LL, 0, "14 14 14"},
          {"1K", NONE, RING, LL, 0, "12 12 12"}},
         "AllReduce 1K-1K RING/LL +20%"},
        {"0-3",
         {{"1K", NONE, RING, ANY_P, 4, "14 14 14"}, {"1K", NONE, ANY_A, ANY_P, 2, "12 12 12"}},
         "AllReduce 1K-1K any/any 2ch +20%"},
        /* a row over two sizes has the lower gain */
        {"0-3",
         {{"1K", NONE, RING, LL, 0, "12 12 12"}, {"2K", NONE, RING, LL, 0, "11 11 11"}},
         "AllReduce 1K-2K RING/LL +10%"},
        /* NCCL_P2P_LEVEL stands in for a bridge and for lent links, not for a separation */
        {"3-4",
         {{"1G", BRIDGE, ANY_A, ANY_P, 0, "12 12 12"},
          {"1G", LEVEL, ANY_A, ANY_P, 0, "12 12 12"},
          {"1G", LEVEL, RING, SIMPLE, 0, "15 15 15"}},
         "AllReduce 1G-1G RING/SIMPLE +25%"},
        {"0-1",
         {{"1G", SEPARATE, ANY_A, ANY_P, 0, "12 12 12"},
          {"1G", LEVEL, ANY_A, ANY_P, 0, "12 12 12"},
          {"1G", LEVEL, RING, SIMPLE, 0, "15 15 15"}},
         ""},
    };
    for (size_t i = 0; i < COUNT(tables); i++) {
        struct gv_build *build = gv_build_two_switches();
        build->profile.policy.operations = GV_OP_BIT(AR);
        for (int c = 0; c < 4 && tables[i].choices[c].size; c++)
            gv_build_choice(build, tables[i].gpus, AR, &tables[i].choices[c]);
        gv_expect_rows(build, tables[i].gpus, 22809, tables[i].rows);
        gv_build_free(build);
    }
}

/* A variant counts wherever it stands in its group, the first too. */
static void choice_before_the_default(void **state)
{
    (void)state;
    for (int gains = 0; gains < 2; gains++) {
        struct gv_build *build = gv_build_two_switches();
        struct gv_written written = {AR, 0, 0, TREE, SIMPLE, 0, -1, -1, -1, -1};
        struct gv_profile_group *group =
            gv_build_group_set(build, gv_build_set("0-3"), AR, 1024, false);
        struct gv_profile_variant *variant = gv_build_variant(group, NONE);
        variant->algorithm = RING;
        variant->protocol = LL;
        gv_build_run(variant, gains ? "12 12 12" : "10 10 10");
        gv_build_run(gv_build_variant(group, NONE), "10 10 10");
        gv_build_written(build, &written);
        gv_expect_rows(build, "0-3", 22809, gains ? "AllReduce 1K-1K RING/LL +20%" : "");
        gv_build_free(build);
    }
}

/* 256 choices of one operation are looked at, each counted once; the last one gains most. */
static void many_choices(void **state)
{
    (void)state;
    static const struct {
        int choices;
        const char *rows;
    } rows[] = {
        {255, "AllReduce 1K-1K TREE/LL 255ch +30%"},
        {256, "AllReduce 1K-1K TREE/LL 256ch +30%"},
        {257, "AllReduce 1K-1K TREE/LL 1ch +20%"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct gv_build *build = gv_build_two_switches();
        struct gv_choice choice = {"512", NONE, TREE, LL, 1, "10 10 10"};
        gv_build_choice(build, "0-3", AR, &choice);
        choice.size = "1K";
        for (; choice.channels <= rows[i].choices; choice.channels++) {
            choice.samples = choice.channels == rows[i].choices ? "13 13 13" : "12 12 12";
            gv_build_choice(build, "0-3", AR, &choice);
        }
        gv_expect_rows(build, "0-3", 22809, rows[i].rows);
        gv_build_free(build);
    }
}

#define ANY_CALL -1, -1, -1, -1

/* Written rows that meet, overlap and cover each other: the first counts, to the byte. */
static void written_rows(void **state)
{
    (void)state;
    static const struct {
        struct gv_written rows[3];
        const char *expected;
    } tables[] = {
        {{{AR, 0, 100, TREE, LL, 0, ANY_CALL}, {AR, 100, 200, RING, LL, 0, ANY_CALL}},
         "AllReduce 0-100 TREE/LL +nan%; AllReduce 101-200 RING/LL +nan%"},
        {{{AR, 100, 200, TREE, LL, 0, ANY_CALL}, {AR, 0, 100, RING, LL, 0, ANY_CALL}},
         "AllReduce 0-99 RING/LL +nan%; AllReduce 100-200 TREE/LL +nan%"},
        {{{AR, 0, 100, TREE, LL, 0, ANY_CALL}, {AR, 101, 200, RING, LL, 0, ANY_CALL}},
         "AllReduce 0-100 TREE/LL +nan%; AllReduce 101-200 RING/LL +nan%"},
        {{{AR, 100, 200, TREE, LL, 0, ANY_CALL}, {AR, 100, 300, RING, LL, 0, ANY_CALL}},
         "AllReduce 100-200 TREE/LL +nan%; AllReduce 201-300 RING/LL +nan%"},
        {{{AR, 100, 200, TREE, LL, 0, ANY_CALL}, {AR, 0, 200, RING, LL, 0, ANY_CALL}},
         "AllReduce 0-99 RING/LL +nan%; AllReduce 100-200 TREE/LL +nan%"},
        {{{AR, 100, 200, TREE, LL, 0, ANY_CALL}, {AR, 100, 200, RING, LL, 0, ANY_CALL}},
         "AllReduce 100-200 TREE/LL +nan%"},
        {{{AR, 0, 100, TREE, LL, 0, ANY_CALL}, {AR, 0, 200, RING, LL, 0, ANY_CALL}},
         "AllReduce 0-100 TREE/LL +nan%; AllReduce 101-200 RING/LL +nan%"},
        {{{AR, 100, 0, TREE, LL, 0, ANY_CALL}, {AR, 0, 0, RING, LL, 0, ANY_CALL}},
         "AllReduce 0-99 RING/LL +nan%; AllReduce 100-end TREE/LL +nan%"},
        {{{AR, 10, 19, TREE, LL, 0, ANY_CALL},
          {AR, 30, 39, TREE, LL, 0, ANY_CALL},
          {AR, 0, 100, RING, LL, 0, ANY_CALL}},
         "AllReduce 0-9 RING/LL +nan%; AllReduce 10-19 TREE/LL +nan%; AllReduce 20-29 RING/LL "
         "+nan%; AllReduce 30-39 TREE/LL +nan%; AllReduce 40-100 RING/LL +nan%"},
        /* the first and the last operation that a tuner is asked about, not the one behind */
        {{{AR, 1, 2, RING, LL, 0, ANY_CALL},
          {BC, 1, 2, RING, LL, 0, ANY_CALL},
          {SR, 1, 2, RING, LL, 0, ANY_CALL}},
         "Broadcast 1-2 RING/LL +nan%; AllReduce 1-2 RING/LL +nan%"},
        /* where no link is lent LL128 may be chosen */
        {{{AR, 0, 100, RING, LL128, 0, ANY_CALL}}, "AllReduce 0-100 RING/LL128 +nan%"},
    };
    for (size_t i = 0; i < COUNT(tables); i++) {
        struct gv_build *build = gv_build_two_switches();
        for (int k = 0; k < 3 && tables[i].rows[k].nodes; k++)
            gv_build_written(build, &tables[i].rows[k]);
        gv_expect_rows(build, "0-3", 22809, tables[i].expected);
        gv_build_free(build);
    }
}

/* Over lent links a written LL128 is passed over for the next row. */
static void written_and_vetoed(void **state)
{
    (void)state;
    static const struct gv_written rows[] = {
        {AR, 0, 100, RING, LL128, 0, ANY_CALL}, {AR, 0, 200, TREE, LL, 0, ANY_CALL}};
    struct gv_build *build = gv_build_two_switches();
    gv_build_written(build, &rows[0]);
    gv_build_written(build, &rows[1]);
    gv_build_measured(build, "0-7", AR, "1G", "10 10 10", LEND, "12 12 12");
    gv_expect_rows(build, "0-7", 22809, "AllReduce 0-200 TREE/LL +nan%");
    gv_expect_rows(
        build, "0-3", 22809, "AllReduce 0-100 RING/LL128 +nan%; AllReduce 101-200 TREE/LL +nan%");
    gv_build_free(build);
}

/* Written rows stand back where any choice was measured, and for those GPUs and operation alone. */
static void written_and_measured(void **state)
{
    (void)state;
    static const struct {
        const char *gpus;
        enum gv_op op;
        struct gv_choice measured;
        bool used;
    } rows[] = {
        {"0-3", AR, {"1K", NONE, RING, ANY_P, 0, "10 10 10"}, false},
        {"0-3", AR, {"1K", NONE, ANY_A, LL, 0, "10 10 10"}, false},
        {"0-3", AR, {"1K", NONE, ANY_A, ANY_P, 2, "10 10 10"}, false},
        {"0-3", AR, {"1K", LEVEL, ANY_A, ANY_P, 0, "10 10 10"}, true},
        {"0-3", AG, {"1K", NONE, RING, LL, 0, "10 10 10"}, true},
        {"0-4", AR, {"1K", NONE, RING, LL, 0, "10 10 10"}, true},
        {"0-2", AR, {"1K", NONE, RING, LL, 0, "10 10 10"}, true},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct gv_build *build = gv_build_two_switches();
        struct gv_written written = {AR, 0, 0, TREE, SIMPLE, 0, ANY_CALL};
        gv_build_written(build, &written);
        gv_build_choice(build, rows[i].gpus, rows[i].op, &rows[i].measured);
        gv_expect_rows(
            build, "0-3", 22809, rows[i].used ? "AllReduce 0-end TREE/SIMPLE +nan%" : "");
        gv_build_free(build);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths),
        cmocka_unit_test(chains),
        cmocka_unit_test(thresholds),
        cmocka_unit_test(levels),
        cmocka_unit_test(releases),
        cmocka_unit_test(groups_in_order),
        cmocka_unit_test(same_variant),
        cmocka_unit_test(usable),
        cmocka_unit_test(steps),
        cmocka_unit_test(twice),
        cmocka_unit_test(many_candidates),
        cmocka_unit_test(candidates_in_order),
        cmocka_unit_test(equal_losses),
        cmocka_unit_test(half_a_choice),
        cmocka_unit_test(equal_neighbours),
        cmocka_unit_test(lent_counts),
        cmocka_unit_test(neighbour_of_many),
        cmocka_unit_test(choices),
        cmocka_unit_test(choice_before_the_default),
        cmocka_unit_test(many_choices),
        cmocka_unit_test(written_rows),
        cmocka_unit_test(written_and_vetoed),
        cmocka_unit_test(written_and_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
