/* Choices for the tuner, measured and written, in; the rows that come of them, to the byte, out. */
#include "tests/policy_rows.h"

#define AR GV_OP_ALL_REDUCE
#define AG GV_OP_ALL_GATHER
#define BC GV_OP_BROADCAST
#define SR GV_OP_SEND_RECV

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
        cmocka_unit_test(choices),
        cmocka_unit_test(choice_before_the_default),
        cmocka_unit_test(many_choices),
        cmocka_unit_test(written_rows),
        cmocka_unit_test(written_and_vetoed),
        cmocka_unit_test(written_and_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
