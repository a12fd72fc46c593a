/* What the rules look up in a profile: pairs, thresholds, levels, releases, groups by search. */
#include "tests/policy_expect.h"

#include "plugin/policy/rows.h"

#define AR GV_OP_ALL_REDUCE
#define AG GV_OP_ALL_GATHER
#define BC GV_OP_BROADCAST
#define SR GV_OP_SEND_RECV

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths),  cmocka_unit_test(chains),   cmocka_unit_test(thresholds),
        cmocka_unit_test(levels), cmocka_unit_test(releases), cmocka_unit_test(groups_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
