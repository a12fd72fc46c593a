/* The rules one by one: measured samples in, decision out. Each threshold is tried on both of its
 * sides. */
#include "tests/policy_check.h"

#define P2P GV_TRANSPORT_P2P
#define DEFAULT GV_TRANSPORT_DEFAULT
#define ALL_REDUCE GV_OP_ALL_REDUCE

/* Two switches of four GPUs on one CPU node, all pairs verified. */
static struct gv_build *two_switches(enum gv_provenance_kind kind)
{
    struct gv_build *build = gv_build_new(kind);
    gv_build_gpus(build, 4, "A", 0, 70);
    gv_build_gpus(build, 4, "B", 0, 70);
    gv_build_path(build, "0-3", "0-3", GV_PATH_PIX, 0, GV_P2P_VERIFIED, 12);
    gv_build_path(build, "4-7", "4-7", GV_PATH_PIX, 0, GV_P2P_VERIFIED, 12);
    gv_build_path(build, "0-3", "4-7", GV_PATH_PHB, 0, GV_P2P_VERIFIED, 10);
    return build;
}

static struct gv_plan decide(const struct gv_build *build, const char *gpus)
{
    struct gv_policy_in in = {
        .profile = &build->profile, .gpus = gv_build_set(gpus), .one_node = true};
    struct gv_plan plan;
    gv_policy_decide(&in, &plan);
    gv_check_plan(&in, &plan);
    return plan;
}

/* Decides, compares and releases. `edits` NULL: any. */
static void expect(
    const struct gv_build *build, const char *gpus, enum gv_transport transport, const char *edits,
    const char *reason)
{
    struct gv_plan plan = decide(build, gpus);
    char text[2048];
    print_message("%-7s %s\n", gv_transport_name(plan.transport), plan.reason);
    assert_string_equal(gv_transport_name(plan.transport), gv_transport_name(transport));
    if (edits)
        assert_string_equal(gv_check_edits(&plan, text, sizeof(text)), edits);
    if (!strstr(plan.reason, reason))
        fail_msg("\"%s\" is not in \"%s\"", reason, plan.reason);
    gv_plan_finish(&plan);
}

/* Rule 1: 3 %, and inner ranges that do not touch. */
static void gain(void **state)
{
    (void)state;
    static const struct {
        enum gv_provenance_kind kind;
        const char *base, *tuned;
        enum gv_transport transport;
        bool thin;
        const char *reason;
    } rows[] = {
        /* the step */
        {GV_CUDA, "10 10 10", "10.3 10.3 10.3", P2P, false, "(+3.0 %"},
        {GV_CUDA, "7 7 7", "7.21 7.21 7.21", P2P, false, "(+3.0 %"},
        {GV_CUDA, "10 10 10", "10.29 10.29 10.29", DEFAULT, false, "under the 3 %"},
        {GV_CUDA, "10 10 10", "10 10 10", DEFAULT, false, "under the 3 %"},
        {GV_CUDA, "10 10 10", "9 9 9", DEFAULT, false, "NCCL's own choice is not slower"},
        /* medians, not means: one low sample does not carry a plan, nor does it break one */
        {GV_CUDA, "10 10 10 10 1", "10.2 10.2 10.2 10.2 10.2", DEFAULT, false, "under the 3 %"},
        {GV_CUDA, "10 10 10 10 10", "10.5 10.5 10.5 10.5 1", P2P, false, "(+5.0 %"},
        {GV_CUDA, "9 11", "12 14", DEFAULT, true, "three a side are needed"},
        {GV_PUBLISHED, "9 11", "12 14", P2P, true, "13.00 against 10.00"},
        /* under four samples the whole range counts, from four on the inner one */
        {GV_CUDA, "10 10 10.6", "10.5 10.7 10.8", DEFAULT, false, "the samples overlap"},
        {GV_CUDA, "10 10 10.49", "10.5 10.7 10.8", P2P, false, "measured"},
        {GV_CUDA, "10 10 10.5", "10.5 10.7 10.8", DEFAULT, false, "the samples overlap"},
        {GV_CUDA, "10 10 10 10.6", "10.5 10.7 10.7 10.8", P2P, false, "measured"},
        {GV_CUDA, "10 10 10.6 10.6", "10.5 10.7 10.7 10.8", P2P, false, "measured"},
        {GV_CUDA, "10 10 10.7 10.7", "10.5 10.7 10.7 10.8", DEFAULT, false, "samples overlap"},
        {GV_CUDA, "10 10 10 10", "9.9 9.9 10.7 10.7", DEFAULT, false, "the samples overlap"},
        {GV_CUDA, "10 10 10 10", "9.9 10.5 10.7 10.7", P2P, false, "measured"},
        /* three samples a side where this project measured; else it is said to be thin */
        {GV_CUDA, "10 10 10", "12 12", DEFAULT, true, "three a side are needed"},
        {GV_CUDA, "10 10", "12 12 12", DEFAULT, true, "of 2 and 3 samples"},
        {GV_PUBLISHED, "10 10 10", "12", P2P, true, "one tuned sample is thin evidence"},
        {GV_PUBLISHED, "10", "12 12 12", P2P, true, "one default sample is thin evidence"},
        {GV_IMPORTED, "10 10", "12 12", P2P, true, "two samples a side are thin evidence"},
        {GV_IMPORTED, "10 10 10", "12 12 12", P2P, false, "measured"},
        /* throttled samples (!) are left out */
        {GV_CUDA, "10 10 10", "12 12 12 8! 8! 8!", P2P, false, "12.00 against 10.00"},
        {GV_CUDA, "10 10 10 8!", "12 12 8!", DEFAULT, true, "three a side are needed"},
        {GV_CUDA, "10 10 10 13! 13! 13!", "12 12 12", P2P, false, "12.00 against 10.00"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct gv_build *build = two_switches(rows[i].kind);
        gv_build_measured(
            build, "0-7", ALL_REDUCE, "1G", rows[i].base, GV_EDIT_P2P_LEVEL, rows[i].tuned);
        expect(build, "0-7", rows[i].transport, NULL, rows[i].reason);
        struct gv_plan plan = decide(build, "0-7");
        bool used = rows[i].kind != GV_CUDA || !rows[i].thin;
        assert_int_equal(plan.thin, used && rows[i].thin);
        gv_plan_finish(&plan);
        gv_build_free(build);
    }
}

/* The profile's own thresholds. */
static void thresholds(void **state)
{
    (void)state;
    struct gv_build *build = two_switches(GV_CUDA);
    gv_build_measured(
        build, "0-7", ALL_REDUCE, "1G", "10 10 10", GV_EDIT_P2P_LEVEL, "10.4 10.4 10.4");
    gv_build_measured(
        build, "0-7", GV_OP_BROADCAST, "1G", "10 10 10", GV_EDIT_P2P_LEVEL, "9.6 9.6 9.6");
    expect(build, "0-7", P2P, NULL, "(+4.0 %");
    build->profile.policy.min_gain = 0.05;
    expect(build, "0-7", DEFAULT, NULL, "under the 5 %");
    build->profile.policy.min_gain = 0.01;
    build->profile.policy.max_loss = 0.039;
    expect(build, "0-7", DEFAULT, NULL, "a loss of more than 3.9 % is refused");
    build->profile.policy.min_gain = build->profile.policy.max_loss = NAN; /* 3 and 5 % */
    expect(build, "0-7", P2P, NULL, "(+4.0 %");
    gv_build_measured(
        build, "0-6", ALL_REDUCE, "1G", "10 10 10", GV_EDIT_P2P_LEVEL, "10.25 10.25 10.25");
    expect(build, "0-6", DEFAULT, NULL, "under the 3 %");
    gv_build_measured(build, "0-5", ALL_REDUCE, "1G", "10 10 10", GV_EDIT_P2P_LEVEL, "11 11 11");
    gv_build_measured(
        build, "0-5", GV_OP_BROADCAST, "1G", "10 10 10", GV_EDIT_P2P_LEVEL, "9.4 9.4 9.4");
    expect(build, "0-5", DEFAULT, NULL, "more than 5 % is refused");
    gv_build_free(build);
}

/* Rule 2: other sizes and operations. The largest size at which the two differ decides. */
static void losses(void **state)
{
    (void)state;
    static const struct {
        struct {
            enum gv_op op;
            const char *size, *base, *tuned;
        } measured[3];
        unsigned operations;
        enum gv_transport transport;
        const char *reason;
    } rows[] = {
        /* another size */
        {{{ALL_REDUCE, "1G", "10 10 10", "12 12 12"},
          {ALL_REDUCE, "1M", "10 10 10", "9.5 9.5 9.5"}},
         0,
         P2P,
         "12.00 against 10.00"},
        {{{ALL_REDUCE, "1G", "10 10 10", "12 12 12"},
          {ALL_REDUCE, "1M", "10 10 10", "9.49 9.49 9.49"}},
         0,
         DEFAULT,
         "12.00 against 10.00 GB/s busbw (+20.0 %, AllReduce, 1G), but 9.49 against 10"},
        {{{ALL_REDUCE, "1G", "10 10 10", "9.6 9.6 9.6"},
          {ALL_REDUCE, "1M", "10 10 10", "12 12 12"}},
         0,
         DEFAULT,
         "9.60 against 10.00"},
        {{{ALL_REDUCE, "1G", "10 10 10", "10.1 10.1 10.1"},
          {ALL_REDUCE, "64M", "10 10 10", "12 12 12"}},
         0,
         P2P,
         "AllReduce, 64M"},
        {{{ALL_REDUCE, "1G", "10 10 10", "10.1 10.1 10.1"},
          {ALL_REDUCE, "64M", "10 10 10", "10.2 10.2 10.2"}},
         0,
         DEFAULT,
         "AllReduce, 1G"},
        /* a loss whose samples touch is no difference, and the next size is asked */
        {{{ALL_REDUCE, "1G", "10 10 9.6", "9.6 9.6 9.6"},
          {ALL_REDUCE, "64M", "10 10 10", "12 12 12"}},
         0,
         P2P,
         "AllReduce, 64M"},
        {{{ALL_REDUCE, "1G", "10 10 9.61", "9.6 9.6 9.6"},
          {ALL_REDUCE, "64M", "10 10 10", "12 12 12"}},
         0,
         DEFAULT,
         "AllReduce, 1G"},
        /* another operation */
        {{{ALL_REDUCE, "1G", "10 10 10", "12 12 12"},
          {GV_OP_ALL_GATHER, "1G", "10 10 10", "9.5 9.5 9.5"}},
         0,
         P2P,
         "measured"},
        {{{ALL_REDUCE, "1G", "10 10 10", "12 12 12"},
          {GV_OP_ALL_GATHER, "1G", "10 10 10", "9.4 9.4 9.4"}},
         0,
         DEFAULT,
         "but 9.40 against 10.00 GB/s busbw (-6.0 %, AllGather, 1G): a loss of more"},
        {{{ALL_REDUCE, "1G", "10 10 10", "12 12 12"},
          {GV_OP_ALL_GATHER, "1G", "10 10 10", "9.4 9.4 9.4"}},
         GV_OP_BIT(ALL_REDUCE),
         P2P,
         "measured"},
        /* the loss of a single sample counts too: that is the safe side */
        {{{ALL_REDUCE, "1G", "10 10 10", "12 12 12"}, {GV_OP_ALL_GATHER, "1G", "10", "9"}},
         0,
         DEFAULT,
         "AllGather, 1G): a loss of more"},
        /* NCCL_P2P_LEVEL makes all pairs P2P: its all-to-all says nothing about lent links */
        {{{ALL_REDUCE, "1G", "10 10 10", "12 12 12"},
          {GV_OP_ALL_TO_ALL, "1G", "18 18 18", "2 2 2"}},
         0,
         P2P,
         "edges 3-4 and 7-0"},
        /* a job without AllReduce is decided by what it uses */
        {{{ALL_REDUCE, "1G", "10 10 10", "9 9 9"},
          {GV_OP_ALL_GATHER, "1G", "10 10 10", "12 12 12"}},
         GV_OP_BIT(GV_OP_ALL_GATHER),
         P2P,
         "AllGather, 1G"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct gv_build *build = two_switches(GV_CUDA);
        build->profile.policy.operations = rows[i].operations;
        for (int m = 0; m < 3 && rows[i].measured[m].size; m++)
            gv_build_measured(
                build, "0-7", rows[i].measured[m].op, rows[i].measured[m].size,
                rows[i].measured[m].base, GV_EDIT_P2P_LEVEL, rows[i].measured[m].tuned);
        expect(build, "0-7", rows[i].transport, NULL, rows[i].reason);
        gv_build_free(build);
    }
}

/* A bridge makes all pairs P2P: all-to-all must be measured or excluded. */
static void bridges(void **state)
{
    (void)state;
    static const struct {
        const char *gpus, *alltoall_base, *alltoall_tuned; /* NULL: not measured */
        unsigned operations;
        const char *edits, *reason;
    } rows[] = {
        {"3,4", NULL, NULL, GV_OP_BIT(ALL_REDUCE), "bridge 3-4", "a bridge moves"},
        {"3,4", NULL, NULL, 0, "", "all-to-all under a bridge is neither measured nor excluded"},
        {"3,4", NULL, NULL, GV_OP_BIT(ALL_REDUCE) | GV_OP_BIT(GV_OP_SEND_RECV), "", "neither"},
        {"3,4", NULL, NULL, GV_OP_BIT(ALL_REDUCE) | GV_OP_BIT(GV_OP_ALL_TO_ALL), "", "neither"},
        {"3,4", "10 10 10", "9.6 9.6 9.6", 0, "bridge 3-4", "a bridge moves"},
        {"3,4", "18 18 18", "2 2 2", 0, "", "2.00 against 18.00 GB/s busbw (-88.9 %, AllToAll"},
        {"3,4", "18 18 18", "2 2 2", GV_OP_BIT(ALL_REDUCE), "bridge 3-4", "a bridge moves"},
        {"2-4", NULL, NULL, GV_OP_BIT(ALL_REDUCE), "bridge 2-4", "a bridge moves"},
        {"2-5", NULL, NULL, 0, "lend 3-4 lend 5-2", "edges 3-4 and 5-2"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct gv_build *build = two_switches(GV_CUDA);
        build->profile.policy.operations = rows[i].operations;
        gv_build_measured(
            build, rows[i].gpus, ALL_REDUCE, "1G", "10 10 10", GV_EDIT_P2P_LEVEL, "12 12 12");
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
        struct gv_build *build = two_switches(GV_CUDA);
        build->profile.policy.operations = GV_OP_BIT(ALL_REDUCE);
        struct gv_profile_group *group = gv_build_measured(
            build, "0-7", ALL_REDUCE, "1G", "10 10 10", GV_EDIT_P2P_LEVEL, rows[i].level);
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

static struct gv_profile_variant *
chosen(struct gv_profile_group *group, enum gv_edit_kind edit, int algorithm, int protocol)
{
    struct gv_profile_variant *variant = gv_build_variant(group, edit);
    variant->algorithm = (enum gv_algo)algorithm;
    variant->protocol = (enum gv_proto)protocol;
    return variant;
}

/* A variant that names an algorithm alone says nothing of the transport, whatever stands in for it,
 * and the order of variants in the file does not matter. */
static void variants_of_the_tuner(void **state)
{
    (void)state;
    struct gv_build *build = two_switches(GV_CUDA);
    build->profile.policy.operations = GV_OP_BIT(ALL_REDUCE);
    struct gv_profile_group *group =
        gv_build_group_set(build, gv_build_set("0-7"), ALL_REDUCE, 1 << 30, false);
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
        struct gv_build *build = two_switches(GV_CUDA);
        struct gv_profile_group *group =
            gv_build_measured(build, "0-7", ALL_REDUCE, "1G", "10 10 10", GV_EDIT_NONE, NULL);
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

/* Of several losses the worst is named. */
static void worst_loss(void **state)
{
    (void)state;
    static const char *const samples[][2] = {{"9 9 9", "8 8 8"}, {"8 8 8", "9 9 9"}};
    for (int i = 0; i < 2; i++) {
        struct gv_build *build = two_switches(GV_CUDA);
        gv_build_measured(
            build, "0-7", ALL_REDUCE, "1G", "10 10 10", GV_EDIT_P2P_LEVEL, "12 12 12");
        gv_build_measured(
            build, "0-7", GV_OP_REDUCE, "1M", "10 10 10", GV_EDIT_P2P_LEVEL, samples[i][0]);
        gv_build_measured(
            build, "0-7", GV_OP_REDUCE, "2M", "10 10 10", GV_EDIT_P2P_LEVEL, samples[i][1]);
        expect(build, "0-7", DEFAULT, "", "(-20.0 %, Reduce,");
        gv_build_free(build);
    }
}

/* What a tuner row makes up for is no loss; but send and receive have no rows, and a neighbour's
 * rows are not those of the group that is interpolated. */
static void made_up_losses(void **state)
{
    (void)state;
    static const struct {
        enum gv_op op;
        enum gv_algo algorithm;
        enum gv_proto protocol;
        const char *gpus;
        enum gv_transport transport;
    } rows[] = {
        {ALL_REDUCE, GV_ALGO_TREE, GV_PROTO_LL, "0-7", P2P},
        {ALL_REDUCE, GV_ALGO_RING, GV_PROTO_SIMPLE, "0-7", P2P},
        {GV_OP_REDUCE, GV_ALGO_RING, GV_PROTO_LL, "0-7", P2P},
        {GV_OP_SEND_RECV, GV_ALGO_RING, GV_PROTO_LL, "0-7", DEFAULT},
        {ALL_REDUCE, GV_ALGO_RING, GV_PROTO_LL, "0-5", DEFAULT},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct gv_build *build = two_switches(GV_CUDA);
        gv_build_measured(build, "0-4", ALL_REDUCE, "1G", "10 10 10", GV_EDIT_LEND, "12 12 12");
        gv_build_measured(build, "0-7", ALL_REDUCE, "1G", "10 10 10", GV_EDIT_LEND, "12 12 12");
        struct gv_profile_group *group =
            gv_build_measured(build, "0-7", rows[i].op, "1M", "10 10 10", GV_EDIT_LEND, "9 9 9");
        expect(build, rows[i].gpus, DEFAULT, "", "1M)");
        gv_build_run(chosen(group, GV_EDIT_LEND, rows[i].algorithm, rows[i].protocol), "12 12 12");
        expect(build, rows[i].gpus, rows[i].transport, NULL, "");
        gv_build_free(build);
    }
}

/* A group measured beside others decides, where both sides are there. */
static void loaded_groups(void **state)
{
    (void)state;
    static const struct {
        const char *alone, *beside_base, *beside;
        enum gv_transport transport;
        const char *reason;
    } rows[] = {
        {"12 12 12", "8 8 8", "8 8 8", DEFAULT, "beside other groups"},
        {"10 10 10", "8 8 8", "9 9 9", P2P, "9.00 against 8.00"},
        {"12 12 12", "8 8 8", NULL, P2P, "12.00 against 10.00"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct gv_build *build = two_switches(GV_CUDA);
        gv_build_measured(
            build, "0-7", ALL_REDUCE, "1G", "10 10 10", GV_EDIT_P2P_LEVEL, rows[i].alone);
        struct gv_profile_group *group =
            gv_build_group_set(build, gv_build_set("0-7"), ALL_REDUCE, 1 << 30, true);
        gv_build_run(gv_build_variant(group, GV_EDIT_NONE), rows[i].beside_base);
        if (rows[i].beside)
            gv_build_run(gv_build_variant(group, GV_EDIT_P2P_LEVEL), rows[i].beside);
        expect(build, "0-7", rows[i].transport, NULL, rows[i].reason);
        gv_build_free(build);
    }
}

/* Rule 3: between two measured groups of the same islands, never beyond. */
static void interpolation(void **state)
{
    (void)state;
    static const struct {
        const char *gpus;
        struct {
            const char *gpus, *tuned; /* the default has 10 */
        } measured[4];
        enum gv_transport transport;
        const char *reason;
    } rows[] = {
        {"0-5", {{"0-4", "12 12 12"}, {"0-7", "12 12 12"}}, P2P, "with 0-4 (+20.0 %) and with 0-7"},
        {"0-5", {{"0-4", "12 12 12"}}, DEFAULT, "measured with more GPUs"},
        {"0-5", {{"0-7", "12 12 12"}}, DEFAULT, "measured with fewer GPUs"},
        {"0-5",
         {{NULL, NULL}},
         DEFAULT,
         "fewer or with more GPUs (run gv100 calibrate --groups 0-5)"},
        {"0-5", {{"0-4", "12 12 12"}, {"0-7", "10 10 10"}}, DEFAULT, "0-7 (+0.0 %) does not gain"},
        {"0-5", {{"0-4", "10 10 10"}, {"0-7", "12 12 12"}}, DEFAULT, "0-4 (+0.0 %) does not gain"},
        /* the nearest on each side speak */
        {"0-5", {{"2-4", "10 10 10"}, {"0-4", "12 12 12"}, {"0-7", "12 12 12"}}, P2P, "with 0-4"},
        {"0-5", {{"2-4", "12 12 12"}, {"0-4", "10 10 10"}, {"0-7", "12 12 12"}}, DEFAULT, "0-4"},
        {"0-5", {{"0-4", "12 12 12"}, {"0-6", "10 10 10"}, {"0-7", "12 12 12"}}, DEFAULT, "0-6"},
        /* of several nearest all must gain */
        {"0-5", {{"0-4", "12 12 12"}, {"1-5", "10 10 10"}, {"0-7", "12 12 12"}}, DEFAULT, "1-5"},
        {"0-5", {{"0-4", "12 12 12"}, {"1-5", "11 11 11"}, {"0-7", "12 12 12"}}, P2P, "1-5 (+10.0"},
        /* as many GPUs of the same islands that do not gain block it */
        {"0-5", {{"0-4", "12 12 12"}, {"2-7", "10 10 10"}, {"0-7", "12 12 12"}}, DEFAULT, "2-7"},
        {"0-5", {{"0-4", "12 12 12"}, {"2-7", "12 12 12"}, {"0-7", "12 12 12"}}, P2P, "0-4"},
        /* two samples are none */
        {"0-5", {{"0-4", "12 12"}, {"0-7", "12 12 12"}}, DEFAULT, "measured with fewer GPUs"},
        /* its own measurement counts before any neighbour's */
        {"0-5", {{"0-4", "12 12 12"}, {"0-5", "10 10 10"}, {"0-7", "12 12 12"}}, DEFAULT, "under"},
        /* other islands are no neighbours */
        {"0-3", {{"0-2", "12 12 12"}, {"0-7", "12 12 12"}}, DEFAULT, "one island"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct gv_build *build = two_switches(GV_CUDA);
        for (int m = 0; m < 4 && rows[i].measured[m].gpus; m++)
            gv_build_measured(
                build, rows[i].measured[m].gpus, ALL_REDUCE, "1G", "10 10 10", GV_EDIT_P2P_LEVEL,
                rows[i].measured[m].tuned);
        expect(build, rows[i].gpus, rows[i].transport, NULL, rows[i].reason);
        gv_build_free(build);
    }
}

/* Two GPUs cannot be lent a link (LL128), so only a bridge is measured there: what it gains speaks
 * for lent links in larger groups, but nothing that it does to all-to-all does. */
static void interpolation_from_a_bridge(void **state)
{
    (void)state;
    static const struct {
        const char *bridged, *alltoall;
        enum gv_transport transport;
        const char *reason;
    } rows[] = {
        {"12 12 12", NULL, P2P, "with 3-4 (+20.0 %) and with 0-7"},
        {"12 12 12", "2 2 2", P2P, "with 3-4 (+20.0 %) and with 0-7"},
        {"10 10 10", NULL, DEFAULT, "3-4 (+0.0 %) does not gain"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct gv_build *build = two_switches(GV_CUDA);
        gv_build_measured(
            build, "3,4", ALL_REDUCE, "1G", "10 10 10", GV_EDIT_BRIDGE, rows[i].bridged);
        if (rows[i].alltoall)
            gv_build_measured(
                build, "3,4", GV_OP_ALL_TO_ALL, "1G", "18 18 18", GV_EDIT_BRIDGE, rows[i].alltoall);
        gv_build_measured(build, "0-7", ALL_REDUCE, "1G", "10 10 10", GV_EDIT_LEND, "12 12 12");
        expect(
            build, "0-5", rows[i].transport, rows[i].transport == P2P ? "lend 3-4 lend 5-0" : "",
            rows[i].reason);
        gv_build_free(build);
    }
}

/* A neighbour under rule 2 does not gain either. */
static void interpolation_and_losses(void **state)
{
    (void)state;
    struct gv_build *build = two_switches(GV_CUDA);
    gv_build_measured(build, "0-4", ALL_REDUCE, "1G", "10 10 10", GV_EDIT_P2P_LEVEL, "12 12 12");
    gv_build_measured(build, "0-7", ALL_REDUCE, "1G", "10 10 10", GV_EDIT_P2P_LEVEL, "12 12 12");
    expect(build, "0-5", P2P, "lend 3-4 lend 5-0", "interpolated");
    gv_build_measured(build, "0-7", ALL_REDUCE, "8M", "10 10 10", GV_EDIT_P2P_LEVEL, "9 9 9");
    expect(build, "0-5", DEFAULT, "", "0-7 loses 10.0 % (AllReduce, 8M)");
    gv_build_free(build);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gain),
        cmocka_unit_test(thresholds),
        cmocka_unit_test(losses),
        cmocka_unit_test(bridges),
        cmocka_unit_test(variants),
        cmocka_unit_test(loaded_groups),
        cmocka_unit_test(interpolation),
        cmocka_unit_test(interpolation_and_losses),
        cmocka_unit_test(interpolation_from_a_bridge),
        cmocka_unit_test(variants_of_the_tuner),
        cmocka_unit_test(equal_lists),
        cmocka_unit_test(worst_loss),
        cmocka_unit_test(made_up_losses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
