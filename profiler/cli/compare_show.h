/* A comparison for a person. */
#ifndef GV_CLI_COMPARE_SHOW_H
#define GV_CLI_COMPARE_SHOW_H

#include "profiler/compare/gv_compare.h"
#include "profiler/compare/gv_job.h"

void gv_compared_text(const struct gv_compared *c);
void gv_job_gain_text(
    const struct gv_compared *c, const struct gv_histogram *h, double steps, double step_s);

#endif
