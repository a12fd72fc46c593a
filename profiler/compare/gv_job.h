/* What a difference between variants would bring to a job. */
#ifndef GV_JOB_H
#define GV_JOB_H

#include "profiler/compare/gv_compare.h"

/* Seconds of one step; low and high from the samples' ranges, as the verdicts see them. */
struct gv_bounded {
    double value, low, high;
};

/* Sums over the job's histogram. Times between measured sizes are interpolated; below the smallest
 * one its time is taken, above the largest its bandwidth. */
struct gv_job_gain {
    struct gv_bounded base_s, tuned_s, saved_s; /* a step */
    struct gv_bounded share; /* saved over step; NAN where the step is not known */
    double beyond_s;         /* part of base_s at sizes outside the measured ones */
    double missing_calls;    /* of operations that were not measured: not in the sums */
};

/* Of c->job, variant `other` against the base. */
struct gv_job_gain gv_job_gain_of(const struct gv_compared *c, int other);

/* Microseconds of one call of the row under a variant; NAN where the operation was not measured.
 * `*beyond`: the size is outside the measured ones. */
struct gv_bounded gv_job_time_us(
    const struct gv_compared *c, int steer, const struct gv_histogram_row *row, bool *beyond);

#endif
