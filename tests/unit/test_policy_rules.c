/* Rules 1 and 2: measured samples in, decision out. Each threshold is tried on both sides. */
#include "tests/policy_rows.h"

#define P2P GV_TRANSPORT_P2P
#define DEFAULT GV_TRANSPORT_DEFAULT
#define AR GV_OP_ALL_REDUCE
#define BC GV_OP_BROADCAST
#define RD GV_OP_REDUCE

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
        struct gv_build *build = gv_build_two_switches();
        build->profile.provenance.kind = rows[i].kind;
        gv_build_measured(build, "0-7", AR, "1G", rows[i].base, GV_EDIT_P2P_LEVEL, rows[i].tuned);
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
    struct gv_build *build = gv_build_two_switches();
    gv_build_measured(build, "0-7", AR, "1G", "10 10 10", GV_EDIT_P2P_LEVEL, "10.4 10.4 10.4");
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
    gv_build_measured(build, "0-6", AR, "1G", "10 10 10", GV_EDIT_P2P_LEVEL, "10.25 10.25 10.25");
    expect(build, "0-6", DEFAULT, NULL, "under the 3 %");
    gv_build_measured(build, "0-5", AR, "1G", "10 10 10", GV_EDIT_P2P_LEVEL, "11 11 11");
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
        {{{AR, "1G", "10 10 10", "12 12 12"}, {AR, "1M", "10 10 10", "9.5 9.5 9.5"}},
         0,
         P2P,
         "12.00 against 10.00"},
        {{{AR, "1G", "10 10 10", "12 12 12"}, {AR, "1M", "10 10 10", "9.49 9.49 9.49"}},
         0,
         DEFAULT,
         "12.00 against 10.00 GB/s busbw (+20.0 %, AllReduce, 1G), but 9.49 against 10"},
        {{{AR, "1G", "10 10 10", "9.6 9.6 9.6"}, {AR, "1M", "10 10 10", "12 12 12"}},
         0,
         DEFAULT,
         "9.60 against 10.00"},
        {{{AR, "1G", "10 10 10", "10.1 10.1 10.1"}, {AR, "64M", "10 10 10", "12 12 12"}},
         0,
         P2P,
         "AllReduce, 64M"},
        {{{AR, "1G", "10 10 10", "10.1 10.1 10.1"}, {AR, "64M", "10 10 10", "10.2 10.2 10.2"}},
         0,
         DEFAULT,
         "AllReduce, 1G"},
        /* a loss whose samples touch is no difference, and the next size is asked */
        {{{AR, "1G", "10 10 9.6", "9.6 9.6 9.6"}, {AR, "64M", "10 10 10", "12 12 12"}},
         0,
         P2P,
         "AllReduce, 64M"},
        {{{AR, "1G", "10 10 9.61", "9.6 9.6 9.6"}, {AR, "64M", "10 10 10", "12 12 12"}},
         0,
         DEFAULT,
         "AllReduce, 1G"},
        /* another operation */
        {{{AR, "1G", "10 10 10", "12 12 12"}, {GV_OP_ALL_GATHER, "1G", "10 10 10", "9.5 9.5 9.5"}},
         0,
         P2P,
         "measured"},
        {{{AR, "1G", "10 10 10", "12 12 12"}, {GV_OP_ALL_GATHER, "1G", "10 10 10", "9.4 9.4 9.4"}},
         0,
         DEFAULT,
         "but 9.40 against 10.00 GB/s busbw (-6.0 %, AllGather, 1G): a loss of more"},
        {{{AR, "1G", "10 10 10", "12 12 12"}, {GV_OP_ALL_GATHER, "1G", "10 10 10", "9.4 9.4 9.4"}},
         GV_OP_BIT(AR),
         P2P,
         "measured"},
        /* the loss of a single sample counts too: that is the safe side */
        {{{AR, "1G", "10 10 10", "12 12 12"}, {GV_OP_ALL_GATHER, "1G", "10", "9"}},
         0,
         DEFAULT,
         "AllGather, 1G): a loss of more"},
        /* NCCL_P2P_LEVEL makes all pairs P2P: its all-to-all says nothing about lent links */
        {{{AR, "1G", "10 10 10", "12 12 12"}, {GV_OP_ALL_TO_ALL, "1G", "18 18 18", "2 2 2"}},
         0,
         P2P,
         "edges 3-4 and 7-0"},
        /* a job without AllReduce is decided by what it uses */
        {{{AR, "1G", "10 10 10", "9 9 9"}, {GV_OP_ALL_GATHER, "1G", "10 10 10", "12 12 12"}},
         GV_OP_BIT(GV_OP_ALL_GATHER),
         P2P,
         "AllGather, 1G"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct gv_build *build = gv_build_two_switches();
        build->profile.policy.operations = rows[i].operations;
        for (int m = 0; m < 3 && rows[i].measured[m].size; m++)
            gv_build_measured(
                build, "0-7", rows[i].measured[m].op, rows[i].measured[m].size,
                rows[i].measured[m].base, GV_EDIT_P2P_LEVEL, rows[i].measured[m].tuned);
        expect(build, "0-7", rows[i].transport, NULL, rows[i].reason);
        gv_build_free(build);
    }
}

/* Of several losses the worst is named. */
static void worst_loss(void **state)
{
    (void)state;
    static const char *const samples[][2] = {{"9 9 9", "8 8 8"}, {"8 8 8", "9 9 9"}};
    for (int i = 0; i < 2; i++) {
        struct gv_build *build = gv_build_two_switches();
        gv_build_measured(build, "0-7", AR, "1G", "10 10 10", GV_EDIT_P2P_LEVEL, "12 12 12");
        gv_build_measured(
            build, "0-7", GV_OP_REDUCE, "1M", "10 10 10", GV_EDIT_P2P_LEVEL, samples[i][0]);
        gv_build_measured(
            build, "0-7", GV_OP_REDUCE, "2M", "10 10 10", GV_EDIT_P2P_LEVEL, samples[i][1]);
        expect(build, "0-7", DEFAULT, "", "(-20.0 %, Reduce,");
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
        {AR, GV_ALGO_TREE, GV_PROTO_LL, "0-7", P2P},
        {AR, GV_ALGO_RING, GV_PROTO_SIMPLE, "0-7", P2P},
        {GV_OP_REDUCE, GV_ALGO_RING, GV_PROTO_LL, "0-7", P2P},
        {GV_OP_SEND_RECV, GV_ALGO_RING, GV_PROTO_LL, "0-7", DEFAULT},
        {AR, GV_ALGO_RING, GV_PROTO_LL, "0-5", DEFAULT},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct gv_build *build = gv_build_two_switches();
        gv_build_measured(build, "0-4", AR, "1G", "10 10 10", GV_EDIT_LEND, "12 12 12");
        gv_build_measured(build, "0-7", AR, "1G", "10 10 10", GV_EDIT_LEND, "12 12 12");
        struct gv_profile_group *group =
            gv_build_measured(build, "0-7", rows[i].op, "1M", "10 10 10", GV_EDIT_LEND, "9 9 9");
        expect(build, rows[i].gpus, DEFAULT, "", "1M)");
        gv_build_run(chosen(group, GV_EDIT_LEND, rows[i].algorithm, rows[i].protocol), "12 12 12");
        expect(build, rows[i].gpus, rows[i].transport, NULL, "");
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
        struct gv_build *build = gv_build_two_switches();
        gv_build_measured(build, "0-7", AR, "1G", "10 10 10", GV_EDIT_P2P_LEVEL, rows[i].alone);
        struct gv_profile_group *group =
            gv_build_group_set(build, gv_build_set("0-7"), AR, 1 << 30, true);
        gv_build_run(gv_build_variant(group, GV_EDIT_NONE), rows[i].beside_base);
        if (rows[i].beside)
            gv_build_run(gv_build_variant(group, GV_EDIT_P2P_LEVEL), rows[i].beside);
        expect(build, "0-7", rows[i].transport, NULL, rows[i].reason);
        gv_build_free(build);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gain),          cmocka_unit_test(thresholds),
        cmocka_unit_test(losses),        cmocka_unit_test(worst_loss),
        cmocka_unit_test(equal_losses),  cmocka_unit_test(made_up_losses),
        cmocka_unit_test(half_a_choice), cmocka_unit_test(loaded_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
