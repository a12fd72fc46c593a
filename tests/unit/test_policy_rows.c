/* The tuner's table: variants that name algorithm, protocol or channels in, rows out. */
#include "tests/policy_rows.h"

#define AR GV_OP_ALL_REDUCE
#define AG GV_OP_ALL_GATHER

/* Ranges: from a measured size to the next one, never beyond the largest. */
static void ranges(void **state)
{
    (void)state;
    static const struct {
        struct gv_choice choices[8];
        const char *rows;
    } tables[] = {
        {{{"1K", NONE, RING, LL, 0, "12 12 12"}}, "AllReduce 1K-1K RING/LL +20%"},
        {{{"1K", NONE, RING, LL, 0, "12 12 12"}, {"64K", NONE, RING, LL, 0, "10 10 10"}},
         "AllReduce 1K-65535 RING/LL +20%"},
        {{{"1K", NONE, RING, LL, 0, "12 12 12"}, {"64K", NONE, RING, LL, 0, "12.5 12.5 12.5"}},
         "AllReduce 1K-64K RING/LL +20%"},
        {{{"1K", NONE, RING, LL, 0, "12 12 12"}, {"64K", NONE, TREE, LL, 0, "12 12 12"}},
         "AllReduce 1K-65535 RING/LL +20%; AllReduce 64K-64K TREE/LL +20%"},
        /* it loses at the next size: nothing is said between the two */
        {{{"1K", NONE, RING, LL, 0, "12 12 12"}, {"64K", NONE, RING, LL, 0, "9.4 9.4 9.4"}},
         "AllReduce 1K-1K RING/LL +20%"},
        {{{"1K", NONE, RING, LL, 0, "12 12 12"}, {"64K", NONE, RING, LL, 0, "9.5 9.5 9.5"}},
         "AllReduce 1K-65535 RING/LL +20%"},
        /* a size at which only the default was measured ends the range */
        {{{"1K", NONE, RING, LL, 0, "12 12 12"},
          {"8K", NONE, RING, LL, 0, NULL},
          {"64K", NONE, RING, LL, 0, "12 12 12"}},
         "AllReduce 1K-8191 RING/LL +20%; AllReduce 64K-64K RING/LL +20%"},
        /* rule 1 holds here too; a tie keeps NCCL's choice */
        {{{"1K", NONE, RING, LL, 0, "10.29 10.29 10.29"}}, ""},
        {{{"1K", NONE, RING, LL, 0, "10.3 10.3 10.3"}}, "AllReduce 1K-1K RING/LL +3%"},
        {{{"1K", NONE, RING, LL, 0, "12 12"}}, ""},
        {{{"1K", NONE, RING, LL, 0, "10 12 12"}}, ""},
        {{{"1K", NONE, RING, LL, 0, "8 8 8"}}, ""},
        /* the best of several */
        {{{"1K", NONE, RING, LL, 0, "12 12 12"},
          {"1K", NONE, TREE, LL, 0, "13 13 13"},
          {"1K", NONE, TREE, SIMPLE, 0, "11 11 11"}},
         "AllReduce 1K-1K TREE/LL +30%"},
        /* channels alone, and channels beside a choice */
        {{{"1K", NONE, ANY_A, ANY_P, 2, "12 12 12"}}, "AllReduce 1K-1K any/any 2ch +20%"},
        {{{"1K", NONE, RING, SIMPLE, 4, "12 12 12"}}, "AllReduce 1K-1K RING/SIMPLE 4ch +20%"},
    };
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        struct gv_build *build = gv_build_two_switches();
        for (int c = 0; c < 8 && tables[i].choices[c].size; c++)
            gv_build_choice(build, "0-3", GV_OP_ALL_REDUCE, &tables[i].choices[c]);
        gv_expect_rows(build, "0-3", 22809, tables[i].rows);
        gv_build_free(build);
    }
}

/* Rule 7: rows hold for the NCCL major.minor that they were measured with, plans for others too. */
static void releases(void **state)
{
    (void)state;
    static const struct {
        const char *profile;
        int nccl_version;
        bool rows;
    } cases[] = {
        {"2.28.9", 22809, true},  {"2.28.3", 22809, true},      {"2.28.9", 0, true},
        {"2.28.9", 22707, false}, {"2.28.9", 23007, false},     {"2.8.9", 22809, false},
        {"", 22809, false},       {"unknown", 22809, false},    {"2.28", 22809, true},
        {"3.28.9", 22809, false}, {"2.28.9+cu12", 22809, true},
    };
    static const struct gv_choice choice = {"1G", LEVEL, RING, LL, 0, "14 14 14"};
    static const struct gv_choice plain = {"1G", LEVEL, ANY_A, ANY_P, 0, "12 12 12"};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct gv_build *build = gv_build_two_switches();
        snprintf(
            build->profile.provenance.nccl, sizeof(build->profile.provenance.nccl), "%s",
            cases[i].profile);
        gv_build_choice(build, "0-7", GV_OP_ALL_REDUCE, &plain);
        gv_build_choice(build, "0-7", GV_OP_ALL_REDUCE, &choice);
        struct gv_policy_in in = {
            .profile = &build->profile,
            .gpus = gv_build_set("0-7"),
            .one_node = true,
            .nccl_version = cases[i].nccl_version};
        struct gv_plan plan;
        gv_policy_decide(&in, &plan);
        assert_int_equal(plan.nrows, cases[i].rows);
        assert_int_equal(plan.other_nccl, !cases[i].rows);
        assert_int_equal(plan.transport, GV_TRANSPORT_P2P);
        gv_plan_finish(&plan);
        gv_build_free(build);
    }
}

/* Rows belong to the transport that was chosen, and are held against the default under it. */
static void transports(void **state)
{
    (void)state;
    static const struct {
        struct gv_choice choices[8];
        const char *rows;
    } tables[] = {
        /* default transport: what was measured under an edit says nothing */
        {{{"1G", LEVEL, ANY_A, ANY_P, 0, "10 10 10"},
          {"1G", LEVEL, RING, SIMPLE, 0, "15 15 15"},
          {"1G", NONE, TREE, SIMPLE, 0, "12 12 12"}},
         "AllReduce 1G-1G TREE/SIMPLE +20%"},
        /* P2P: against the 12 of P2P, not the 10 of the default */
        {{{"1G", LEVEL, ANY_A, ANY_P, 0, "12 12 12"},
          {"1G", LEVEL, RING, SIMPLE, 0, "15 15 15"},
          {"1G", NONE, TREE, SIMPLE, 0, "12 12 12"}},
         "AllReduce 1G-1G RING/SIMPLE +25%"},
        {{{"1G", LEVEL, ANY_A, ANY_P, 0, "12 12 12"}, {"1G", LEVEL, RING, SIMPLE, 0, "12 12 12"}},
         ""},
        /* LL128 is never chosen where a link is lent */
        {{{"1G", LEVEL, ANY_A, ANY_P, 0, "12 12 12"},
          {"1G", LEVEL, RING, LL128, 0, "15 15 15"},
          {"1G", LEVEL, RING, LL, 0, "14 14 14"}},
         "AllReduce 1G-1G RING/LL +17%"},
        /* as applied before NCCL_P2P_LEVEL */
        {{{"1G", LEND, ANY_A, ANY_P, 0, "12 12 12"},
          {"1G", LEND, RING, LL, 0, "14 14 14"},
          {"1G", LEVEL, ANY_A, ANY_P, 0, "12 12 12"},
          {"1G", LEVEL, TREE, LL, 0, "15 15 15"}},
         "AllReduce 1G-1G RING/LL +17%"},
        {{{"1G", LEND, ANY_A, ANY_P, 0, "12 12 12"},
          {"1G", LEVEL, ANY_A, ANY_P, 0, "12 12 12"},
          {"1G", LEVEL, TREE, LL, 0, "15 15 15"}},
         "AllReduce 1G-1G TREE/LL +25%"},
    };
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        struct gv_build *build = gv_build_two_switches();
        for (int c = 0; c < 8 && tables[i].choices[c].size; c++)
            gv_build_choice(build, "0-7", GV_OP_ALL_REDUCE, &tables[i].choices[c]);
        gv_expect_rows(build, "0-7", 22809, tables[i].rows);
        gv_build_free(build);
    }
}

/* Several operations: by operation, then size. Send and receive have no rows. */
static void operations(void **state)
{
    (void)state;
    static const struct gv_choice choices[] = {
        {"1M", NONE, RING, LL, 0, "12 12 12"}, {"1K", NONE, RING, LL, 0, "11 11 11"}};
    static const enum gv_op ops[] = {
        GV_OP_ALL_REDUCE, GV_OP_ALL_TO_ALL, GV_OP_BROADCAST, GV_OP_SEND_RECV};
    struct gv_build *build = gv_build_two_switches();
    for (int o = 0; o < 4; o++)
        for (int c = 0; c < 2; c++)
            gv_build_choice(build, "0-3", ops[o], &choices[c]);
    gv_expect_rows(
        build, "0-3", 22809, "Broadcast 1K-1M RING/LL +10%; AllReduce 1K-1M RING/LL +10%");
    gv_expect_rows(build, "0-2", 22809, ""); /* not measured */
    gv_build_free(build);
}

/* Many sizes: the table has an end, and is right up to it. */
static void many(void **state)
{
    (void)state;
    struct gv_build *build = gv_build_two_switches();
    for (int i = 0; i < 600; i++) {
        struct gv_choice choice = {NULL, NONE, RING, i % 2 ? LL : SIMPLE, 0, "12 12 12"};
        char size[32];
        snprintf(size, sizeof(size), "%d", 1024 * (i + 1));
        choice.size = size;
        gv_build_choice(build, "0-3", GV_OP_ALL_REDUCE, &choice);
    }
    struct gv_policy_in in = {
        .profile = &build->profile, .gpus = gv_build_set("0-3"), .one_node = true};
    struct gv_plan plan;
    gv_policy_decide(&in, &plan);
    assert_int_equal(plan.nrows, 600);
    for (int i = 1; i < plan.nrows; i++)
        assert_true(plan.rows[i - 1].max_bytes + 1 == plan.rows[i].min_bytes);
    gv_plan_finish(&plan);
    gv_build_free(build);
}

/* Imported rows: for operations of which no choice was measured, the first that fits, with any
 * NCCL. GPUs 0-3 under one switch. */
static void advice(void **state)
{
    (void)state;
    static const struct {
        struct gv_written rows[3];
        struct gv_choice measured;
        const char *expected;
    } tables[] = {
        {{{AR, 0, 65536, TREE, LL, 2, 1, 4, -1, -1}}, {0}, "AllReduce 0-64K TREE/LL 2ch +nan%"},
        {{{AR, 0, 0, RING, SIMPLE, 0, -1, -1, -1, -1}}, {0}, "AllReduce 0-end RING/SIMPLE +nan%"},
        /* two nodes, other ranks, a pipeline, registered buffers: not these calls, or not known */
        {{{AR, 0, 0, RING, LL, 0, 2, -1, -1, -1}}, {0}, ""},
        {{{AR, 0, 0, RING, LL, 0, -1, 8, -1, -1}}, {0}, ""},
        {{{AR, 0, 0, RING, LL, 0, -1, -1, 1, -1}}, {0}, ""},
        {{{AR, 0, 0, RING, LL, 0, -1, -1, -1, 1}}, {0}, ""},
        /* the first counts, the next fills what it leaves */
        {{{AR, 4096, 8191, TREE, LL, 0, -1, 4, -1, -1},
          {AR, 0, 0, RING, SIMPLE, 0, -1, -1, -1, -1}},
         {0},
         "AllReduce 0-4095 RING/SIMPLE +nan%; AllReduce 4K-8191 TREE/LL +nan%; AllReduce 8K-end "
         "RING/SIMPLE +nan%"},
        /* by operation and size, whatever the order in the file */
        {{{AR, 0, 100, RING, LL, 0, -1, -1, -1, -1}, {AG, 0, 100, RING, LL, 0, -1, -1, -1, -1}},
         {0},
         "AllGather 0-100 RING/LL +nan%; AllReduce 0-100 RING/LL +nan%"},
        /* a measured choice settles its operation, also where it says: NCCL's own */
        {{{AR, 0, 0, TREE, LL, 0, -1, -1, -1, -1}},
         {"1K", NONE, RING, LL, 0, "12 12 12"},
         "AllReduce 1K-1K RING/LL +20%"},
        {{{AR, 0, 0, TREE, LL, 0, -1, -1, -1, -1}}, {"1K", NONE, RING, LL, 0, "10 10 10"}, ""},
        /* NCCL's default alone was measured: no choice was */
        {{{AR, 0, 0, TREE, LL, 0, -1, -1, -1, -1}},
         {"1K", NONE, RING, LL, 0, NULL},
         "AllReduce 0-end TREE/LL +nan%"},
    };
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        struct gv_build *build = gv_build_two_switches();
        for (int k = 0; k < 3 && tables[i].rows[k].nodes; k++)
            gv_build_written(build, &tables[i].rows[k]);
        if (tables[i].measured.size)
            gv_build_choice(build, "0-3", GV_OP_ALL_REDUCE, &tables[i].measured);
        gv_expect_rows(build, "0-3", 22809, tables[i].expected);
        if (!tables[i].measured.size)
            gv_expect_rows(build, "0-3", 22304, tables[i].expected);
        gv_build_free(build);
    }
}

/* What NCCL's own choice loses under P2P is no loss where a row makes up for it: at that size,
 * under that edit, and with the NCCL that the rows hold for. The last figure stands for 1M. */
static void losses_made_up(void **state)
{
    (void)state;
    static const struct {
        struct gv_choice choice;
        int nccl_version;
        const char *rows; /* NULL: the default's transport, so no row of this edit */
    } tables[] = {
        {{"1M", LEVEL, RING, SIMPLE, 0, "11 11 11"},
         22809,
         "AllReduce 1M-1073741823 RING/SIMPLE +22%"},
        {{"1M", LEVEL, RING, SIMPLE, 0, "9.6 9.6 9.6"},
         22809,
         "AllReduce 1M-1073741823 RING/SIMPLE +7%"},
        {{"1M", LEVEL, RING, SIMPLE, 0, "9.4 9.4 9.4"}, 22809, NULL},
        {{"1M", LEVEL, RING, LL128, 0, "11 11 11"}, 22809, NULL}, /* vetoed over lent links */
        {{"1M", NONE, RING, SIMPLE, 0, "9.9 9.9 9.9"}, 22809, NULL},
        {{"1G", LEVEL, RING, SIMPLE, 0, "13 13 13"}, 22809, NULL},
        {{"1M", LEVEL, RING, SIMPLE, 0, "11 11 11"}, 22304, NULL},
    };
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        struct gv_build *build = gv_build_two_switches();
        struct gv_choice large = {"1G", LEVEL, ANY_A, ANY_P, 0, "12 12 12"};
        struct gv_choice small = {"1M", LEVEL, ANY_A, ANY_P, 0, "9 9 9"};
        struct gv_policy_in in = {
            .profile = &build->profile,
            .gpus = gv_build_set("0-7"),
            .one_node = true,
            .nccl_version = tables[i].nccl_version};
        struct gv_plan plan;
        char text[4096];
        gv_build_choice(build, "0-7", GV_OP_ALL_REDUCE, &large);
        gv_build_choice(build, "0-7", GV_OP_ALL_REDUCE, &small);
        gv_build_choice(build, "0-7", GV_OP_ALL_REDUCE, &tables[i].choice);
        gv_policy_decide(&in, &plan);
        assert_int_equal(plan.transport != GV_TRANSPORT_DEFAULT, tables[i].rows != NULL);
        if (tables[i].rows)
            assert_string_equal(gv_check_rows(&plan, text, sizeof(text)), tables[i].rows);
        gv_plan_finish(&plan);
        gv_build_free(build);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges),         cmocka_unit_test(releases), cmocka_unit_test(transports),
        cmocka_unit_test(operations),     cmocka_unit_test(many),     cmocka_unit_test(advice),
        cmocka_unit_test(losses_made_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
