/* The tuner's table: variants that name algorithm, protocol or channels in, rows out. */
#include "tests/policy_check.h"

/* One measured choice at one size. The default has 10 at every size. */
struct choice {
    const char *size;
    enum gv_edit_kind edit;
    enum gv_algo algorithm;
    enum gv_proto protocol;
    int channels;
    const char *samples;
};

#define NONE GV_EDIT_NONE
#define LEVEL GV_EDIT_P2P_LEVEL
#define LEND GV_EDIT_LEND
#define ANY_A GV_ALGO_ANY
#define ANY_P GV_PROTO_ANY
#define RING GV_ALGO_RING
#define TREE GV_ALGO_TREE
#define AR GV_OP_ALL_REDUCE
#define AG GV_OP_ALL_GATHER
#define LL GV_PROTO_LL
#define LL128 GV_PROTO_LL128
#define SIMPLE GV_PROTO_SIMPLE

static struct gv_build *two_switches(void)
{
    struct gv_build *build = gv_build_new(GV_CUDA);
    gv_build_gpus(build, 4, "A", 0, 70);
    gv_build_gpus(build, 4, "B", 0, 70);
    gv_build_path(build, "0-3", "0-3", GV_PATH_PIX, 0, GV_P2P_VERIFIED, 12);
    gv_build_path(build, "4-7", "4-7", GV_PATH_PIX, 0, GV_P2P_VERIFIED, 12);
    gv_build_path(build, "0-3", "4-7", GV_PATH_PHB, 0, GV_P2P_VERIFIED, 10);
    return build;
}

static void
add_choice(struct gv_build *build, const char *gpus, enum gv_op op, const struct choice *choice)
{
    uint64_t bytes = 0;
    gv_size_parse(choice->size, &bytes, NULL);
    struct gv_profile_group *group =
        gv_build_group_set(build, gv_build_set(gpus), op, bytes, false);
    if (!group->nvariants)
        gv_build_run(gv_build_variant(group, GV_EDIT_NONE), "10 10 10");
    if (!choice->samples)
        return;
    struct gv_profile_variant *variant = gv_build_variant(group, choice->edit);
    variant->algorithm = choice->algorithm;
    variant->protocol = choice->protocol;
    variant->channels = choice->channels;
    gv_build_run(variant, choice->samples);
}

/* "AllReduce 1K-65535 RING/LL 2ch +20%"; sizes in bytes where they are no round number. */
static const char *rows_text(const struct gv_plan *plan, char *out, size_t size)
{
    size_t used = 0;
    out[0] = 0;
    for (int i = 0; i < plan->nrows && used + 128 < size; i++) {
        const struct gv_tuner_row *row = &plan->rows[i];
        char from[32], to[32], channels[16] = "";
        if (row->channels)
            snprintf(channels, sizeof(channels), " %dch", row->channels);
        used += (size_t)snprintf(
            out + used, size - used, "%s%s %s-%s %s/%s%s %+.0f%%", i ? "; " : "",
            gv_op_name(row->op), gv_size_format(row->min_bytes, from, sizeof(from)),
            row->max_bytes == UINT64_MAX ? "end" : gv_size_format(row->max_bytes, to, sizeof(to)),
            row->algorithm < 0 ? "any" : gv_algo_name(row->algorithm),
            row->protocol < 0 ? "any" : gv_proto_name(row->protocol), channels, row->gain * 100);
    }
    return out;
}

static void
expect(const struct gv_build *build, const char *gpus, int nccl_version, const char *rows)
{
    struct gv_policy_in in = {
        .profile = &build->profile,
        .gpus = gv_build_set(gpus),
        .one_node = true,
        .nccl_version = nccl_version};
    struct gv_plan plan;
    char text[4096];
    gv_policy_decide(&in, &plan);
    assert_string_equal(rows_text(&plan, text, sizeof(text)), rows);
    assert_int_equal(plan.rows != NULL, plan.nrows > 0);
    gv_plan_finish(&plan);
    assert_null(plan.rows);
}

/* Ranges: from a measured size to the next one, never beyond the largest. */
static void ranges(void **state)
{
    (void)state;
    static const struct {
        struct choice choices[8];
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
        struct gv_build *build = two_switches();
        for (int c = 0; c < 8 && tables[i].choices[c].size; c++)
            add_choice(build, "0-3", GV_OP_ALL_REDUCE, &tables[i].choices[c]);
        expect(build, "0-3", 22809, tables[i].rows);
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
    static const struct choice choice = {"1G", LEVEL, RING, LL, 0, "14 14 14"};
    static const struct choice plain = {"1G", LEVEL, ANY_A, ANY_P, 0, "12 12 12"};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct gv_build *build = two_switches();
        snprintf(
            build->profile.provenance.nccl, sizeof(build->profile.provenance.nccl), "%s",
            cases[i].profile);
        add_choice(build, "0-7", GV_OP_ALL_REDUCE, &plain);
        add_choice(build, "0-7", GV_OP_ALL_REDUCE, &choice);
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
        struct choice choices[8];
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
        struct gv_build *build = two_switches();
        for (int c = 0; c < 8 && tables[i].choices[c].size; c++)
            add_choice(build, "0-7", GV_OP_ALL_REDUCE, &tables[i].choices[c]);
        expect(build, "0-7", 22809, tables[i].rows);
        gv_build_free(build);
    }
}

/* Several operations: by operation, then size. Send and receive have no rows. */
static void operations(void **state)
{
    (void)state;
    static const struct choice choices[] = {
        {"1M", NONE, RING, LL, 0, "12 12 12"}, {"1K", NONE, RING, LL, 0, "11 11 11"}};
    static const enum gv_op ops[] = {
        GV_OP_ALL_REDUCE, GV_OP_ALL_TO_ALL, GV_OP_BROADCAST, GV_OP_SEND_RECV};
    struct gv_build *build = two_switches();
    for (int o = 0; o < 4; o++)
        for (int c = 0; c < 2; c++)
            add_choice(build, "0-3", ops[o], &choices[c]);
    expect(build, "0-3", 22809, "Broadcast 1K-1M RING/LL +10%; AllReduce 1K-1M RING/LL +10%");
    expect(build, "0-2", 22809, ""); /* not measured */
    gv_build_free(build);
}

/* Many sizes: the table has an end, and is right up to it. */
static void many(void **state)
{
    (void)state;
    struct gv_build *build = two_switches();
    for (int i = 0; i < 600; i++) {
        struct choice choice = {NULL, NONE, RING, i % 2 ? LL : SIMPLE, 0, "12 12 12"};
        char size[32];
        snprintf(size, sizeof(size), "%d", 1024 * (i + 1));
        choice.size = size;
        add_choice(build, "0-3", GV_OP_ALL_REDUCE, &choice);
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

/* Choices that somebody wrote down: 1 and any are told apart by -1. */
struct written {
    enum gv_op op;
    uint64_t min_bytes, max_bytes;
    enum gv_algo algorithm;
    enum gv_proto protocol;
    int channels, nodes, ranks, pipe_ops, registered;
};

static void add_written(struct gv_build *build, const struct written *w)
{
    struct gv_profile *p = &build->profile;
    p->tuner = gv_build_grow(p->tuner, p->ntuner, sizeof(*p->tuner));
    p->tuner[p->ntuner++] = (struct gv_profile_tuner){
        .op = w->op,
        .min_bytes = w->min_bytes,
        .max_bytes = w->max_bytes,
        .algorithm = w->algorithm,
        .protocol = w->protocol,
        .channels = w->channels,
        .nodes = w->nodes,
        .ranks = w->ranks,
        .pipe_ops = w->pipe_ops,
        .registered = w->registered};
}

/* Imported rows: for operations of which no choice was measured, the first that fits, with any
 * NCCL. GPUs 0-3 under one switch. */
static void advice(void **state)
{
    (void)state;
    static const struct {
        struct written rows[3];
        struct choice measured;
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
        struct gv_build *build = two_switches();
        for (int k = 0; k < 3 && tables[i].rows[k].nodes; k++)
            add_written(build, &tables[i].rows[k]);
        if (tables[i].measured.size)
            add_choice(build, "0-3", GV_OP_ALL_REDUCE, &tables[i].measured);
        expect(build, "0-3", 22809, tables[i].expected);
        if (!tables[i].measured.size)
            expect(build, "0-3", 22304, tables[i].expected);
        gv_build_free(build);
    }
}

/* What NCCL's own choice loses under P2P is no loss where a row makes up for it: at that size,
 * under that edit, and with the NCCL that the rows hold for. The last figure stands for 1M. */
static void losses_made_up(void **state)
{
    (void)state;
    static const struct {
        struct choice choice;
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
        struct gv_build *build = two_switches();
        struct choice large = {"1G", LEVEL, ANY_A, ANY_P, 0, "12 12 12"};
        struct choice small = {"1M", LEVEL, ANY_A, ANY_P, 0, "9 9 9"};
        struct gv_policy_in in = {
            .profile = &build->profile,
            .gpus = gv_build_set("0-7"),
            .one_node = true,
            .nccl_version = tables[i].nccl_version};
        struct gv_plan plan;
        char text[4096];
        add_choice(build, "0-7", GV_OP_ALL_REDUCE, &large);
        add_choice(build, "0-7", GV_OP_ALL_REDUCE, &small);
        add_choice(build, "0-7", GV_OP_ALL_REDUCE, &tables[i].choice);
        gv_policy_decide(&in, &plan);
        assert_int_equal(plan.transport != GV_TRANSPORT_DEFAULT, tables[i].rows != NULL);
        if (tables[i].rows)
            assert_string_equal(rows_text(&plan, text, sizeof(text)), tables[i].rows);
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
