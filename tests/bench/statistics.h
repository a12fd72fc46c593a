/* Order statistics of samples. */
#ifndef GV_BENCH_STATISTICS_H
#define GV_BENCH_STATISTICS_H

#include <stddef.h>
#include <stdlib.h>

static inline int gv_ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static inline void gv_sort(double *samples, size_t n)
{
    qsort(samples, n, sizeof(*samples), gv_ascending);
}

/* Of sorted samples; q from 0 to 1. Half-way samples are averaged, so that 0.5 is the median. */
static inline double gv_quantile(const double *sorted, size_t n, double q)
{
    double at = q * (double)(n - 1);
    size_t low = (size_t)at, high = low + 1 < n ? low + 1 : low;
    return sorted[low] + (at - (double)low) * (sorted[high] - sorted[low]);
}

#endif
