/* The host links of the two GPUs, alone and at once. */
#include <math.h>
#include <string.h>

#include "profiler/handoff/inside.h"

#define BYTES ((size_t)64 << 20)
#define ROUNDS 48
#define PIECE (BYTES / 2)

static struct gv_work pull(const struct gv_bench *b, int side, bool down)
{
    const struct gv_side *s = &b->side[side];
    gv_cu_ptr host = (gv_cu_ptr)(uintptr_t)s->host;
    return (struct gv_work){
        .gpu = s->gpu,
        .stream = 2,
        .kind = GV_WORK_COPY,
        .to = down ? host : s->pulled,
        .from = down ? s->pulled : host,
        .copy_bytes = BYTES,
        .repeat = 2,
        .bytes = BYTES,
    };
}

static int alone(struct gv_bench *b, int side, struct gv_ab_link *link, struct gv_error *err)
{
    struct gv_samples samples;
    for (int down = 0; down < 2; down++) {
        struct gv_work work = pull(b, side, down);
        if (gv_meter_run(&b->meter, &work, 1, &samples, err))
            return -1;
        *(down ? &link->to_host_gbs : &link->to_device_gbs) = gv_meter_gbs(&samples, &work, 0);
    }
    b->side[side].gbs = b->side[side].loaded_gbs = link->to_device_gbs.median;
    return 0;
}

/* Both pull, each so much that they would end together at these rates: whoever ends later has the
 * rest of the way for itself. */
static int pull_both(
    struct gv_bench *b, struct gv_ab *ab, const double gbs[2], int samples_least,
    struct gv_error *err)
{
    struct gv_samples samples;
    struct gv_work works[2];
    struct gv_meter meter = b->meter;
    meter.min_samples = samples_least;
    meter.max_samples = samples_least > 1 ? meter.max_samples : 1;
    for (int i = 0; i < 2; i++) {
        works[i] = pull(b, i, false);
        works[i].copy_bytes = PIECE;
        works[i].bytes = PIECE;
        works[i].repeat = (int)fmax(1, lround(ROUNDS * gbs[i] / fmax(gbs[0], gbs[1])));
    }
    int rc = gv_meter_run(&meter, works, 2, &samples, err);
    b->meter.gate_value = meter.gate_value;
    memcpy(b->meter.begin, meter.begin, sizeof(meter.begin));
    memcpy(b->meter.end, meter.end, sizeof(meter.end));
    for (int i = 0; i < 2 && !rc; i++)
        ab->links[i].together_gbs = gv_meter_gbs(&samples, works, i);
    return rc;
}

/* What each gets is found by trying. */
static int together(struct gv_bench *b, struct gv_ab *ab, struct gv_error *err)
{
    double gbs[2] = {b->side[0].gbs, b->side[1].gbs};
    for (int pass = 0; pass < 4; pass++) {
        if (pull_both(b, ab, gbs, pass < 3 ? 1 : b->meter.min_samples, err))
            return -1;
        for (int i = 0; i < 2; i++)
            gbs[i] = ab->links[i].together_gbs.median;
    }
    for (int i = 0; i < 2; i++) {
        struct gv_ab_link *link = &ab->links[i];
        link->together_use = gbs[i] / link->to_device_gbs.median;
        b->side[i].loaded_gbs = gbs[i];
    }
    return 0;
}

int gv_links_measure(struct gv_bench *b, struct gv_ab *ab, struct gv_error *err)
{
    ab->nlinks = b->o->from == b->o->to ? 1 : 2;
    for (int i = 0; i < 2; i++) {
        struct gv_ab_link *link = &ab->links[i];
        link->gpu = b->side[i].gpu;
        link->together_use = link->traffic_gbs = link->traffic_use = NAN;
        if (alone(b, i, link, err))
            return -1;
    }
    return ab->nlinks == 2 ? together(b, ab, err) : 0;
}
