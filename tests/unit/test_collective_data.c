/* The check of results: right ones pass in any order of summing, a single wrong bit does not. */
#include "tests/gv_test.h"

#include <math.h>
#include <string.h>

#include "profiler/collective/data.h"

#define COUNT 4099

/* Sums as ranks of a ring would: each addition rounded to the type, beginning at `start`. */
static void reduce(enum gv_type type, enum gv_redop redop, int n, int start, unsigned char *out)
{
    unsigned char one[8];
    for (uint64_t i = 0; i < COUNT; i++) {
        unsigned char *at = out + i * (uint64_t)gv_type_bytes(type);
        gv_data_fill(type, redop, start, i, 1, at);
        for (int k = 1; k < n; k++) {
            gv_data_fill(type, redop, (start + k) % n, i, 1, one);
            double a = gv_type_load(type, at), b = gv_type_load(type, one);
            double joined = redop == GV_REDOP_SUM    ? a + b
                            : redop == GV_REDOP_PROD ? a * b
                            : redop == GV_REDOP_MAX  ? fmax(a, b)
                                                     : fmin(a, b);
            gv_type_store(type, joined, at);
        }
    }
}

static void floats_within_the_bound(void **state)
{
    (void)state;
    static const enum gv_type types[] = {
        GV_TYPE_HALF, GV_TYPE_BFLOAT16, GV_TYPE_FLOAT, GV_TYPE_DOUBLE};
    unsigned char got[COUNT * 8];
    for (int t = 0; t < 4; t++)
        for (int op = 0; op < GV_REDOP_AVG; op++)
            for (int n = 2; n <= 11; n += 3) {
                struct gv_expected e;
                assert_int_equal(gv_expected_init(&e, types[t], (enum gv_redop)op, n, -1), 0);
                for (int start = 0; start < n; start += n - 1) {
                    reduce(types[t], (enum gv_redop)op, n, start, got);
                    if (gv_expected_wrong(&e, 0, COUNT, got))
                        fail_msg(
                            "%s %s over %d", gv_type_name(types[t]),
                            gv_redop_name((enum gv_redop)op), n);
                }
                gv_expected_finish(&e);
            }
}

static void one_summand_too_few_is_seen(void **state)
{
    (void)state;
    float got[COUNT];
    struct gv_expected e;
    gv_expected_init(&e, GV_TYPE_FLOAT, GV_REDOP_SUM, 4, -1);
    reduce(GV_TYPE_FLOAT, GV_REDOP_SUM, 4, 0, (unsigned char *)got);
    assert_int_equal(gv_expected_wrong(&e, 0, COUNT, got), 0);
    got[17] -= (float)gv_data_real(3, 17, 22);
    got[COUNT - 1] = NAN;
    assert_int_equal(gv_expected_wrong(&e, 0, COUNT, got), 2);
    /* the same data one element further on is wrong nearly everywhere */
    assert_true(gv_expected_wrong(&e, 1, COUNT, got) > COUNT * 9 / 10);
    gv_expected_finish(&e);
}

static void integers_to_the_bit(void **state)
{
    (void)state;
    struct gv_expected e;
    int32_t got[COUNT];
    gv_expected_init(&e, GV_TYPE_INT32, GV_REDOP_SUM, 3, -1);
    for (uint64_t i = 0; i < COUNT; i++)
        got[i] =
            (int32_t)(uint32_t)(gv_data_integer(0, i) + gv_data_integer(1, i) + gv_data_integer(2, i));
    assert_int_equal(gv_expected_wrong(&e, 0, COUNT, got), 0);
    got[5] ^= 1;
    assert_int_equal(gv_expected_wrong(&e, 0, COUNT, got), 1);
    gv_expected_finish(&e);
}

static void a_copy_is_one_ranks_data(void **state)
{
    (void)state;
    struct gv_expected mine, other;
    static unsigned char got[(GV_DATA_PERIOD + 100) * 2];
    gv_expected_init(&mine, GV_TYPE_BFLOAT16, GV_REDOP_SUM, 4, 2);
    gv_expected_init(&other, GV_TYPE_BFLOAT16, GV_REDOP_SUM, 4, 1);
    gv_expected_copy(&mine, 70000, GV_DATA_PERIOD + 100, got); /* over a period's end */
    assert_int_equal(gv_expected_wrong(&mine, 70000, GV_DATA_PERIOD + 100, got), 0);
    assert_true(gv_expected_wrong(&other, 70000, 1000, got) > 900);
    gv_expected_finish(&mine);
    gv_expected_finish(&other);
}

static void bounds_are_the_derived_ones(void **state)
{
    (void)state;
    double u = 0x1p-24;
    assert_true(fabs(gv_data_bound(GV_TYPE_FLOAT, GV_REDOP_SUM, 11, true) - 10 * u) < 1e-9);
    assert_true(gv_data_bound(GV_TYPE_FLOAT, GV_REDOP_AVG, 2, true) > 3 * u);
    assert_true(gv_data_bound(GV_TYPE_FLOAT, GV_REDOP_MAX, 11, true) == 0);
    assert_true(gv_data_bound(GV_TYPE_INT64, GV_REDOP_SUM, 11, true) == 0);
    assert_true(gv_data_bound(GV_TYPE_HALF, GV_REDOP_SUM, 11, false) == 0);
}

static void half_and_bfloat16_round_to_even(void **state)
{
    (void)state;
    static const struct {
        double value;
        uint16_t half, bfloat16;
    } rows[] = {
        {1, 0x3c00, 0x3f80},       {-2, 0xc000, 0xc000},          {65504, 0x7bff, 0x4780},
        {65520, 0x7c00, 0x4780},   {1 + 0x1p-11, 0x3c00, 0x3f80}, {1 + 3 * 0x1p-11, 0x3c02, 0x3f80},
        {0x1p-24, 0x0001, 0x3380}, {1 + 0x1p-8, 0x3c04, 0x3f80},  {1 + 3 * 0x1p-8, 0x3c0c, 0x3f82},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(gv_half_from_double(rows[i].value), rows[i].half);
        assert_int_equal(gv_bfloat16_from_double(rows[i].value), rows[i].bfloat16);
    }
    for (unsigned b = 0; b < 0x7c00; b++)
        assert_int_equal(gv_half_from_double(gv_half_to_double((uint16_t)b)), b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(floats_within_the_bound),
        cmocka_unit_test(one_summand_too_few_is_seen),
        cmocka_unit_test(integers_to_the_bit),
        cmocka_unit_test(a_copy_is_one_ranks_data),
        cmocka_unit_test(bounds_are_the_derived_ones),
        cmocka_unit_test(half_and_bfloat16_round_to_even),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
