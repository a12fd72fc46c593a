/* What tests of decisions share: machines of plain islands, a question, an answer compared. */
#ifndef GV_POLICY_EXPECT_H
#define GV_POLICY_EXPECT_H

#include "tests/policy_check.h"

/* Short names, so that tables stay readable. */
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

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

/* Islands of so many GPUs each ("44": two of four) on one CPU node, all pairs verified. A path that
 * is added later counts before these. */
static inline struct gv_build *islands(const char *sizes)
{
    struct gv_build *build = gv_build_new(GV_CUDA);
    gv_gpuset before = 0;
    for (int i = 0; sizes[i]; i++) {
        char island[2] = {(char)('A' + i), 0};
        int n = sizes[i] - '0', first = build->profile.ngpus;
        gv_gpuset here = (GV_GPU_BIT(n) - 1) << first;
        gv_build_gpus(build, n, island, 0, 70);
        gv_build_path_sets(build, here, here, GV_PATH_PIX, 0, GV_P2P_VERIFIED, 12);
        if (before)
            gv_build_path_sets(build, before, here, GV_PATH_PHB, 0, GV_P2P_VERIFIED, 10);
        before |= here;
    }
    return build;
}

/* Two switches of four GPUs. */
static inline struct gv_build *gv_build_two_switches(void)
{
    return islands("44");
}

/* A variant that names what a tuner would. */
static inline struct gv_profile_variant *
chosen(struct gv_profile_group *group, enum gv_edit_kind edit, int algorithm, int protocol)
{
    struct gv_profile_variant *variant = gv_build_variant(group, edit);
    variant->algorithm = (enum gv_algo)algorithm;
    variant->protocol = (enum gv_proto)protocol;
    return variant;
}

/* `n` variants that lend one pair each: 0-4 to 3-7, then with one more link, and so on. */
static inline void add_lists(struct gv_build *build, const char *gpus, int n, const char *samples)
{
    struct gv_profile_group *group =
        gv_build_measured(build, gpus, GV_OP_ALL_REDUCE, "1G", "10 10 10", GV_EDIT_NONE, NULL);
    for (int i = 0; i < n; i++) {
        struct gv_profile_variant *variant = gv_build_variant(group, GV_EDIT_LEND);
        variant->nlend = 1;
        variant->lend[0][0] = i % 16 / 4;
        variant->lend[0][1] = 4 + i % 4;
        variant->lend_count = i / 16;
        gv_build_run(variant, samples);
    }
}

/* On one node, nothing known of the host. */
static inline struct gv_policy_in asked(const struct gv_build *build, const char *gpus)
{
    return (struct gv_policy_in){
        .profile = &build->profile, .gpus = gv_build_set(gpus), .one_node = true};
}

static inline struct gv_plan decide(const struct gv_build *build, const char *gpus)
{
    struct gv_policy_in in = asked(build, gpus);
    struct gv_plan plan;
    gv_policy_decide(&in, &plan);
    gv_check_plan(&in, &plan);
    print_message("%-7s %s\n", gv_transport_name(plan.transport), plan.reason);
    return plan;
}

/* Decides, compares and releases the plan. `edits` NULL: any. */
static inline void expect(
    const struct gv_build *build, const char *gpus, enum gv_transport transport, const char *edits,
    const char *reason)
{
    struct gv_plan plan = decide(build, gpus);
    char text[2048];
    assert_string_equal(gv_transport_name(plan.transport), gv_transport_name(transport));
    if (edits)
        assert_string_equal(gv_check_edits(&plan, text, sizeof(text)), edits);
    if (!strstr(plan.reason, reason))
        fail_msg("\"%s\" is not in \"%s\"", reason, plan.reason);
    gv_plan_finish(&plan);
    assert_null(plan.rows);
    assert_int_equal(plan.nrows, 0);
}

/* The same, and releases the build too. */
static inline void expect_once(
    struct gv_build *build, const char *gpus, enum gv_transport transport, const char *edits,
    const char *reason)
{
    expect(build, gpus, transport, edits, reason);
    gv_build_free(build);
}

#endif
