/* All of it, in order. */
#include <string.h>

#include "profiler/handoff/inside.h"

int gv_ab_run(
    struct gv_gpus *gpus, const struct gv_ab_options *options, struct gv_ab *ab,
    struct gv_error *err)
{
    struct gv_bench b;
    memset(ab, 0, sizeof(*ab));
    ab->options = *options;
    if (ab->options.samples < 5)
        ab->options.samples = GV_AB_SAMPLES;
    if (ab->options.samples > GV_MAX_SAMPLES)
        ab->options.samples = GV_MAX_SAMPLES;
    int rc = gv_bench_init(&b, &ab->options, gpus, err);
    rc = rc ? rc : gv_links_measure(&b, ab, err);
    for (int m = GV_HANDOFF_HOST_MAPPED; m < GV_HANDOFF_METHODS && !rc; m++)
        rc = gv_way_measure(&b, ab, (enum gv_handoff_method)m, err);
    gv_bench_finish(&b);
    if (!rc)
        gv_ab_judge(ab);
    return rc;
}
