/* Medians, and the bootstrap interval of a gain: known cases, and how often it holds the truth. */
#include "tests/gv_test.h"

#include <math.h>

#include "profiler/collective/gv_statistics.h"

static void medians(void **state)
{
    (void)state;
    double odd[] = {3, 1, 2}, even[] = {4, 1, 3, 2};
    assert_true(gv_median(odd, 3) == 2);
    assert_true(gv_median(even, 4) == 2.5);
    assert_true(odd[0] == 3); /* left as it was */
    assert_true(isnan(gv_median(odd, 0)));
}

static void interval_of_known_samples(void **state)
{
    (void)state;
    double base[] = {10, 10, 10, 10, 10}, same[] = {11, 11, 11, 11, 11};
    struct gv_interval i = gv_bootstrap_gain(base, 5, same, 5);
    assert_true(fabs(i.low - 0.1) < 1e-12 && fabs(i.high - 0.1) < 1e-12);
    double wide[] = {9, 10, 11, 12, 13};
    i = gv_bootstrap_gain(base, 5, wide, 5);
    assert_true(i.low > -0.101 && i.low < 0.1 && i.high > 0.1 && i.high < 0.301);
    struct gv_interval again = gv_bootstrap_gain(base, 5, wide, 5);
    assert_true(i.low == again.low && i.high == again.high);
    i = gv_bootstrap_gain(base, 2, wide, 5);
    assert_true(isnan(i.low) && isnan(i.high));
}

static double even(unsigned long *state)
{
    *state = *state * 6364136223846793005ul + 1442695040888963407ul;
    return (double)(*state >> 11) / 9007199254740992.0;
}

/* Twenty samples a side, true gain 5 %: a 95 % interval should hold it nearly always; the
 * percentile method is known to fall a little short on few samples. */
static void interval_holds_the_truth(void **state)
{
    (void)state;
    unsigned long random = 1;
    int held = 0;
    for (int trial = 0; trial < 200; trial++) {
        double base[20], other[20];
        for (int i = 0; i < 20; i++) {
            base[i] = 10 * (1 + 0.05 * (even(&random) + even(&random) - 1));
            other[i] = 10.5 * (1 + 0.05 * (even(&random) + even(&random) - 1));
        }
        struct gv_interval interval = gv_bootstrap_gain(base, 20, other, 20);
        held += interval.low <= 0.05 && 0.05 <= interval.high;
    }
    assert_in_range(held, 170, 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(medians),
        cmocka_unit_test(interval_of_known_samples),
        cmocka_unit_test(interval_holds_the_truth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
