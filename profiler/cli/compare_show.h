/* A comparison for a person. */
#ifndef GV_CLI_COMPARE_SHOW_H
#define GV_CLI_COMPARE_SHOW_H

#include "profiler/compare/gv_compare.h"
#include "profiler/compare/gv_job.h"

void gv_compared_text(const struct gv_compared *c);
/* What it would bring to c->job, which is there. */
void gv_job_text(const struct gv_compared *c);

#endif
