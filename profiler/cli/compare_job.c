#include <math.h>
#include <stdio.h>

#include "profiler/cli/compare_show.h"
#include "profiler/cli/text.h"

static void print_one(const struct gv_compared *c, int s, const struct gv_job_gain *g)
{
    printf(
        "  %s: %.6g s saved a step (%.6g to %.6g): %.6g s in collectives instead of %.6g\n",
        c->run.steer[s].name, g->saved_s.value, g->saved_s.low, g->saved_s.high, g->tuned_s.value,
        g->base_s.value);
    if (isfinite(g->share.value))
        printf(
            "    %.2f %% of a step of %.6g s (%.2f to %.2f %%), if no collective is hidden behind "
            "computing\n",
            100 * g->share.value, c->job.step_s, 100 * g->share.low, 100 * g->share.high);
    if (g->beyond_s > 0)
        printf(
            "    %.0f %% of that time is at sizes outside the measured ones\n",
            100 * g->beyond_s / g->base_s.value);
    if (g->missing_calls > 0)
        printf(
            "    %.6g calls a step are of operations that were not measured: not counted\n",
            g->missing_calls);
}

void gv_job_text(const struct gv_compared *c)
{
    printf(
        "%sfor the job%s, %d sizes%s\n", gv_style(GV_BOLD), gv_style(GV_PLAIN), c->job.sizes.n,
        c->job.sizes.from_log ? " from NCCL's log" : "");
    for (int s = 0; s < c->run.nsteers; s++) {
        struct gv_job_gain g = gv_job_gain_of(c, s);
        if (s != c->base)
            print_one(c, s, &g);
    }
    puts("");
}
