/* Medians and how far they may be trusted. */
#ifndef GV_STATISTICS_H
#define GV_STATISTICS_H

/* Median of `n` values (which are left as they are); NAN for none. */
double gv_median(const double *values, int n);

/* An interval; both NAN where it cannot be said. */
struct gv_interval {
    double low, high;
};

/* 95 % percentile interval of median(other) / median(base) - 1 by the bootstrap (Efron and
 * Tibshirani, An Introduction to the Bootstrap, 1993, chapter 13): both sides resampled 4000 times,
 * from a fixed seed, so that the same samples give the same interval. Needs three samples a side.
 * With five samples it is rough, and narrower than it should be; the verdict does not use it. */
struct gv_interval
gv_bootstrap_gain(const double *base, int nbase, const double *other, int nother);

#endif
