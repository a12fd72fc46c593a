/* The tuner's table: rows in, NCCL's cost table out. */
#include "tests/gv_test.h"

#include <string.h>

#include "plugin/core/gv_table.h"

#define NALGO 7
#define NPROTO 3
#define NONE -1.0f

static struct gv_plan plan_of(struct gv_tuner_row *rows, int nrows, bool veto)
{
    struct gv_plan plan = {.rows = rows, .nrows = nrows, .veto_ll128 = veto};
    return plan;
}

/* What NCCL 2.28.9 does with a table: the smallest cell that is not negative, the first one on a
 * tie. */
static int cheapest(const float *costs)
{
    int best = -1;
    for (int i = 0; i < NALGO * NPROTO; i++)
        if (costs[i] >= 0 && (best < 0 || costs[i] < costs[best]))
            best = i;
    return best;
}

static void fill(float *costs)
{
    for (int i = 0; i < NALGO * NPROTO; i++)
        costs[i] = 10.0f + (float)i;
    costs[GV_ALGO_NVLS * NPROTO + GV_PROTO_SIMPLE] = NONE;
    costs[GV_ALGO_TREE * NPROTO + GV_PROTO_LL] = 1.0f; /* NCCL's own choice */
}

static void rows_decide_by_operation_and_size(void **state)
{
    (void)state;
    struct gv_tuner_row rows[] = {
        {GV_OP_ALL_REDUCE, 1024, 4095, GV_ALGO_RING, GV_PROTO_LL, 0, 0.1},
        {GV_OP_ALL_REDUCE, 4096, 1 << 20, GV_ALGO_RING, GV_PROTO_SIMPLE, 4, 0.1},
        {GV_OP_ALL_REDUCE, 1 << 21, 1 << 30, GV_ALGO_NVLS, GV_PROTO_SIMPLE, 8, 0.1},
        {GV_OP_BROADCAST, 0, UINT64_MAX, GV_ALGO_ANY, GV_PROTO_ANY, 2, 0.1},
    };
    static const int tree_ll = GV_ALGO_TREE * NPROTO + GV_PROTO_LL;
    static const int ring_ll = GV_ALGO_RING * NPROTO + GV_PROTO_LL;
    static const int ring_simple = GV_ALGO_RING * NPROTO + GV_PROTO_SIMPLE;
    static const struct {
        int func;
        uint64_t bytes;
        int cell, channels;
    } table[] = {
        {GV_OP_ALL_REDUCE, 0, tree_ll, 0},
        {GV_OP_ALL_REDUCE, 1023, tree_ll, 0},
        {GV_OP_ALL_REDUCE, 1024, ring_ll, 0},
        {GV_OP_ALL_REDUCE, 4095, ring_ll, 0},
        {GV_OP_ALL_REDUCE, 4096, ring_simple, 4},
        {GV_OP_ALL_REDUCE, 1 << 20, ring_simple, 4},
        {GV_OP_ALL_REDUCE, (1 << 20) + 1, tree_ll, 0},
        {GV_OP_ALL_REDUCE, 1 << 21, tree_ll,
         0}, /* NVLS is not offered: nothing is touched, channels neither */
        {GV_OP_ALL_REDUCE, 1ull << 40, tree_ll, 0},
        {GV_OP_BROADCAST, 77, tree_ll, 2},
        {GV_OP_BROADCAST, UINT64_MAX, tree_ll, 2},
        {GV_OP_REDUCE, 4096, tree_ll, 0},
        {11, 4096, tree_ll, 0}, /* an operation that only later releases have */
        {-1, 4096, tree_ll, 0},
    };
    struct gv_plan plan = plan_of(rows, 4, false);
    struct gv_table *t = gv_table_new(&plan);
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        float costs[NALGO * NPROTO];
        int channels = 0;
        fill(costs);
        gv_table_apply(t, table[i].func, table[i].bytes, costs, NALGO, NPROTO, &channels);
        assert_int_equal(cheapest(costs), table[i].cell);
        assert_int_equal(channels, table[i].channels);
        assert_true(costs[GV_ALGO_NVLS * NPROTO + GV_PROTO_SIMPLE] == NONE);
    }
    gv_table_free(t);
}

static void lent_links_veto_ll128(void **state)
{
    (void)state;
    struct gv_tuner_row row = {GV_OP_ALL_REDUCE, 0, 1 << 20, GV_ALGO_RING, GV_PROTO_LL128, 0, 0.2};
    struct gv_plan plan = plan_of(&row, 1, true);
    struct gv_table *t = gv_table_new(&plan);
    float costs[NALGO * NPROTO];
    int channels = 0;
    fill(costs);
    costs[GV_ALGO_TREE * NPROTO + GV_PROTO_LL128] = 0.5f;
    costs[GV_ALGO_COLLNET_CHAIN * NPROTO + GV_PROTO_LL128] = NONE;
    gv_table_apply(t, GV_OP_ALL_REDUCE, 4096, costs, NALGO, NPROTO, &channels);
    assert_int_equal(cheapest(costs), GV_ALGO_TREE * NPROTO + GV_PROTO_LL);
    assert_true(costs[GV_ALGO_RING * NPROTO + GV_PROTO_LL128] == 1e9f);
    assert_true(costs[GV_ALGO_COLLNET_CHAIN * NPROTO + GV_PROTO_LL128] == NONE);
    gv_table_free(t);
}

/* 2.22 offers six algorithms: a row that names the seventh must not write behind the table. */
static void smaller_tables_are_respected(void **state)
{
    (void)state;
    struct gv_tuner_row row = {GV_OP_ALL_REDUCE, 0, 1 << 20, GV_ALGO_PAT, GV_PROTO_SIMPLE, 3, 0.2};
    struct gv_plan plan = plan_of(&row, 1, false);
    struct gv_table *t = gv_table_new(&plan);
    float costs[6 * NPROTO + 3] = {0};
    int channels = 0;
    for (int i = 0; i < 6 * NPROTO + 3; i++)
        costs[i] = 5;
    gv_table_apply(t, GV_OP_ALL_REDUCE, 4096, costs, 6, NPROTO, &channels);
    for (int i = 0; i < 6 * NPROTO + 3; i++)
        assert_true(costs[i] == 5);
    assert_int_equal(channels, 0);
    gv_table_free(t);
}

/* Tuner v1 and v2 name one pair, which old NCCL takes unchecked. */
static void pairs_only_where_always_available(void **state)
{
    (void)state;
    static const struct {
        enum gv_op op;
        enum gv_algo algo;
        enum gv_proto proto;
        int algorithm, protocol;
    } table[] = {
        {GV_OP_ALL_REDUCE, GV_ALGO_RING, GV_PROTO_SIMPLE, GV_ALGO_RING, GV_PROTO_SIMPLE},
        {GV_OP_ALL_REDUCE, GV_ALGO_TREE, GV_PROTO_LL, GV_ALGO_TREE, GV_PROTO_LL},
        {GV_OP_BROADCAST, GV_ALGO_TREE, GV_PROTO_LL, -1, -1},
        {GV_OP_ALL_REDUCE, GV_ALGO_RING, GV_PROTO_LL128, -1, -1},
        {GV_OP_ALL_REDUCE, GV_ALGO_NVLS, GV_PROTO_SIMPLE, -1, -1},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct gv_tuner_row row = {table[i].op, 0, 1 << 20, table[i].algo, table[i].proto, 0, 0.2};
        struct gv_plan plan = plan_of(&row, 1, false);
        struct gv_table *t = gv_table_new(&plan);
        int algorithm = -1, protocol = -1, channels = 0;
        gv_table_apply_pair(t, (int)table[i].op, 64, &algorithm, &protocol, &channels);
        assert_int_equal(algorithm, table[i].algorithm);
        assert_int_equal(protocol, table[i].protocol);
        gv_table_free(t);
    }
}

static bool advises(const struct gv_advice *advice)
{
    return !advice->no_choice || advice->channels;
}

/* Against a search from the first row to the last, for many rows and every size near their ends. */
static void index_agrees_with_linear_search(void **state)
{
    (void)state;
    enum { N = 4096 };
    struct gv_tuner_row *rows = calloc(N, sizeof(*rows));
    uint64_t at = 1, seed = 88172645463325252ull;
    for (int i = 0; i < N; i++) {
        seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
        uint64_t gap = i % 3 ? 0 : seed % 50;
        uint64_t length = 1 + seed % (i % 7 ? 90 : 100000 + (uint64_t)i * 4000);
        rows[i] = (struct gv_tuner_row){GV_OP_ALL_REDUCE,
                                        at + gap,
                                        at + gap + length,
                                        GV_ALGO_RING,
                                        i % 2 ? GV_PROTO_LL : GV_PROTO_SIMPLE,
                                        1 + i % 200,
                                        0.1};
        at = at + gap + length + 1;
    }
    struct gv_plan plan = plan_of(rows, N, false);
    struct gv_table *t = gv_table_new(&plan);
    const struct gv_op_table *op = t->ops[GV_OP_ALL_REDUCE];
    assert_int_equal(op->nrows, N);
    for (int i = 0; i < N; i++) {
        const uint64_t sizes[] = {
            rows[i].min_bytes - 1, rows[i].min_bytes, rows[i].max_bytes, rows[i].max_bytes + 1};
        for (int k = 0; k < 4; k++) {
            const struct gv_tuner_row *expected = NULL;
            for (int j = i > 0 ? i - 1 : 0; j < N && j < i + 2; j++)
                if (rows[j].min_bytes <= sizes[k] && sizes[k] <= rows[j].max_bytes)
                    expected = &rows[j];
            const struct gv_advice *got = gv_table_find(op, sizes[k]);
            assert_int_equal(advises(got), expected != NULL);
            if (expected)
                assert_true(got->max_bytes == expected->max_bytes);
        }
    }
    assert_false(advises(gv_table_find(op, UINT64_MAX)));
    gv_table_free(t);
    free(rows);
}

static void senseless_rows_are_left_out(void **state)
{
    (void)state;
    struct gv_tuner_row rows[] = {
        {GV_OP_ALL_REDUCE, 100, 200, GV_ALGO_RING, GV_PROTO_LL, 0, 0.1},
        {GV_OP_ALL_REDUCE, 150, 300, GV_ALGO_RING, GV_PROTO_SIMPLE, 0, 0.1}, /* overlaps */
        {GV_OP_ALL_REDUCE, 400, 350, GV_ALGO_RING, GV_PROTO_SIMPLE, 0, 0.1}, /* backwards */
        {GV_OP_ALL_REDUCE, 500, 600, GV_ALGO_RING, GV_PROTO_ANY, 0, 0.1},    /* half a pair */
        {GV_OP_ALL_REDUCE, 700, 800, GV_ALGO_ANY, GV_PROTO_ANY, 0, 0.1},     /* says nothing */
        {GV_OP_ALL_REDUCE, 900, 1000, GV_ALGO_ANY, GV_PROTO_ANY, 2, 0.1},
    };
    struct gv_plan plan = plan_of(rows, 6, false);
    struct gv_table *t = gv_table_new(&plan);
    assert_int_equal(t->ops[GV_OP_ALL_REDUCE]->nrows, 2);
    assert_null(t->ops[GV_OP_BROADCAST]);
    gv_table_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_decide_by_operation_and_size),
        cmocka_unit_test(lent_links_veto_ll128),
        cmocka_unit_test(smaller_tables_are_respected),
        cmocka_unit_test(pairs_only_where_always_available),
        cmocka_unit_test(index_agrees_with_linear_search),
        cmocka_unit_test(senseless_rows_are_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
