/* What a difference between variants would bring to a job. */
#ifndef GV_JOB_H
#define GV_JOB_H

#include "profiler/compare/gv_compare.h"
#include "profiler/compare/gv_histogram.h"

/* Seconds of one step; low and high from the samples' ranges, as the verdicts see them. */
struct gv_bounded {
    double value, low, high;
};

/* Sums over the histogram. Times between measured sizes are interpolated; below the smallest one
 * its time is taken, above the largest its bandwidth. */
struct gv_job_gain {
    struct gv_bounded base_s, tuned_s, saved_s; /* a step */
    double step_s;                              /* the whole step, as given; NAN not known */
    struct gv_bounded share; /* saved over step; NAN where the step is not known */
    double beyond_s;         /* part of base_s at sizes outside the measured ones */
    double missing_calls;    /* of operations that were not measured: not in the sums */
};

/* `steps`: how many the histogram covers. `step_s` NAN: not known. */
struct gv_job_gain gv_job_gain_of(
    const struct gv_compared *c, int other, const struct gv_histogram *h, double steps,
    double step_s);

json_t *gv_job_gain_json(
    const struct gv_compared *c, const struct gv_histogram *h, double steps, double step_s);

#endif
