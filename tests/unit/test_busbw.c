/* algbw and busbw as nccl-tests' doc/PERFORMANCE.md defines them, and figures that were published
 * with both. */
#include "tests/gv_test.h"

#include <math.h>
#include <stdio.h>

#include "profiler/collective/gv_busbw.h"

static const struct {
    enum gv_op op;
    int n;
    double factor;
} factors[] = {
    {GV_OP_ALL_REDUCE, 2, 1},          {GV_OP_ALL_REDUCE, 4, 1.5},
    {GV_OP_ALL_REDUCE, 8, 1.75},       {GV_OP_ALL_REDUCE, 11, 20.0 / 11},
    {GV_OP_ALL_REDUCE, 1, 0},          {GV_OP_REDUCE_SCATTER, 2, 0.5},
    {GV_OP_REDUCE_SCATTER, 8, 0.875},  {GV_OP_ALL_GATHER, 4, 0.75},
    {GV_OP_ALL_GATHER, 10, 0.9},       {GV_OP_ALL_TO_ALL, 2, 0.5},
    {GV_OP_ALL_TO_ALL, 11, 10.0 / 11}, {GV_OP_BROADCAST, 2, 1},
    {GV_OP_BROADCAST, 11, 1},          {GV_OP_REDUCE, 7, 1},
    {GV_OP_SEND_RECV, 2, 1},           {GV_OP_ALL_GATHER, 1, 0},
};

static void factor_of_each_operation(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(factors) / sizeof(factors[0]); i++) {
        double got = gv_busbw_factor(factors[i].op, factors[i].n);
        if (fabs(got - factors[i].factor) > 1e-12)
            fail_msg(
                "%s over %d: %g, expected %g", gv_op_name(factors[i].op), factors[i].n, got,
                factors[i].factor);
    }
}

/* AllReduce of the reference machine, published with algbw and busbw; and lines of nccl-tests as
 * people posted them: op, ranks, bytes, us, algbw, busbw. */
static const struct {
    enum gv_op op;
    int n;
    uint64_t bytes;
    double us, algbw, busbw;
} lines[] = {
    {GV_OP_ALL_REDUCE, 5, 1 << 30, 153831.2, 6.98, 11.17},
    {GV_OP_ALL_REDUCE, 11, 1 << 30, 256876.0, 4.18, 7.60},
    {GV_OP_ALL_REDUCE, 8, 1 << 20, 100.0, 10.49, 18.35},
    {GV_OP_ALL_GATHER, 8, 1 << 20, 100.0, 10.49, 9.18},
    {GV_OP_BROADCAST, 8, 1 << 20, 100.0, 10.49, 10.49},
};

static void lines_agree(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        double algbw = gv_algbw_gbs(lines[i].bytes, lines[i].us);
        double busbw = gv_busbw_gbs(lines[i].op, lines[i].n, lines[i].bytes, lines[i].us);
        if (fabs(algbw - lines[i].algbw) > 0.006 || fabs(busbw - lines[i].busbw) > 0.006)
            fail_msg("line %zu: algbw %.3f busbw %.3f", i, algbw, busbw);
        double us = gv_busbw_time_us(lines[i].op, lines[i].n, lines[i].bytes, busbw);
        assert_true(fabs(us - lines[i].us) < 1e-6 * lines[i].us);
    }
    assert_true(isnan(gv_algbw_gbs(1024, 0)));
    assert_true(isnan(gv_busbw_time_us(GV_OP_ALL_REDUCE, 2, 1024, 0)));
}

static void sizes_in_whole_pieces(void **state)
{
    (void)state;
    assert_int_equal(gv_op_bytes(GV_OP_ALL_REDUCE, 11, 1003, 4), 1000);
    assert_int_equal(gv_op_bytes(GV_OP_ALL_TO_ALL, 11, 1003, 4), 880);
    assert_int_equal(gv_op_bytes(GV_OP_ALL_TO_ALL, 6, 65536, 4), 65472);
    assert_int_equal(gv_op_bytes(GV_OP_ALL_GATHER, 6, 65536, 8), 65472);
    assert_int_equal(gv_op_bytes(GV_OP_REDUCE_SCATTER, 6, 65536, 1), 65472);
    assert_int_equal(gv_op_bytes(GV_OP_BROADCAST, 6, 1003, 2), 1002);
    assert_int_equal(gv_op_bytes(GV_OP_ALL_GATHER, 3, 8, 4), 0);
    assert_int_equal(gv_op_send_pieces(GV_OP_REDUCE_SCATTER, 5), 5);
    assert_int_equal(gv_op_recv_pieces(GV_OP_REDUCE_SCATTER, 5), 1);
    assert_int_equal(gv_op_recv_pieces(GV_OP_ALL_GATHER, 5), 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(factor_of_each_operation),
        cmocka_unit_test(lines_agree),
        cmocka_unit_test(sizes_in_whole_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
