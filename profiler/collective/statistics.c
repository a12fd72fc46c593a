#include "profiler/collective/gv_statistics.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 4000
#define MOST 256

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_of_sorted(const double *v, int n)
{
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

double gv_median(const double *values, int n)
{
    double *sorted = n > 0 ? malloc(sizeof(*sorted) * (size_t)n) : NULL;
    if (!sorted)
        return NAN;
    memcpy(sorted, values, sizeof(*sorted) * (size_t)n);
    qsort(sorted, (size_t)n, sizeof(*sorted), ascending);
    double median = median_of_sorted(sorted, n);
    free(sorted);
    return median;
}

static uint64_t next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static double resampled_median(const double *values, int n, uint64_t *state)
{
    double drawn[MOST];
    for (int i = 0; i < n; i++)
        drawn[i] = values[(next(state) >> 11) % (uint64_t)n];
    qsort(drawn, (size_t)n, sizeof(*drawn), ascending);
    return median_of_sorted(drawn, n);
}

struct gv_interval gv_bootstrap_gain(const double *base, int nbase, const double *other, int nother)
{
    struct gv_interval out = {NAN, NAN};
    uint64_t state = 0x9e3779b97f4a7c15u;
    if (nbase < 3 || nother < 3 || nbase > MOST || nother > MOST)
        return out;
    double *gain = malloc(sizeof(*gain) * ROUNDS);
    if (!gain)
        return out;
    for (int i = 0; i < ROUNDS; i++) {
        double b = resampled_median(base, nbase, &state);
        gain[i] = resampled_median(other, nother, &state) / b - 1;
    }
    qsort(gain, ROUNDS, sizeof(*gain), ascending);
    out.low = gain[ROUNDS * 25 / 1000];
    out.high = gain[ROUNDS * 975 / 1000 - 1];
    free(gain);
    return out;
}
