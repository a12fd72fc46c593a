#include "profiler/probe/gv_geometry.h"

#include <string.h>

#include "kernels/gv_kernels.h"

#define CU_LAUNCH_OUT_OF_RESOURCES 701

static const int unrolls[] = GV_UNROLLS;
static const unsigned blocks[] = {128, 256, 512, 1024};
static const unsigned per_sms[] = {0, 1, 2, 4, 8, 16};
#define BEST 8
#define COUNT(a) (int)(sizeof(a) / sizeof((a)[0]))

static int unroll_of(const struct gv_geometry *g)
{
    int unroll = 1;
    const char *u = strstr(g->kernel, "_u");
    if (u)
        sscanf(u, "_u%d", &unroll);
    return unroll;
}

int gv_geometry_work(
    struct gv_meter *m, int gpu, int stream, const struct gv_geometry *g,
    const struct gv_memory_args *args, double bytes, struct gv_work *out, struct gv_error *err)
{
    gv_u64 tile = (gv_u64)g->block * (gv_u64)unroll_of(g);
    gv_u64 tiles = (args->n16 + tile - 1) / tile;
    unsigned grid = g->per_sm * (unsigned)m->gpus->device[gpu].multiprocessors;
    *out = (struct gv_work){
        .gpu = gpu,
        .stream = stream,
        .kind = GV_WORK_KERNEL,
        .block = g->block,
        .repeat = 1,
        .bytes = bytes,
        .args.memory = *args,
    };
    out->args.memory.chunked = g->chunked;
    out->grid = !g->per_sm || grid > tiles ? (unsigned)tiles : grid;
    return gv_device_function(m->gpus, gpu, g->kernel, &out->function, err);
}

/* Measures one geometry. 0 for one that the device cannot run. */
static int attempt(
    struct gv_meter *m, int gpu, const struct gv_memory_args *args, double bytes, int repeat,
    struct gv_geometry *g, struct gv_error *err)
{
    struct gv_work work;
    struct gv_samples samples;
    g->gbs = 0;
    if (gv_geometry_work(m, gpu, 0, g, args, bytes, &work, err))
        return -1;
    g->grid = work.grid;
    work.repeat = repeat;
    m->last = 0;
    if (gv_meter_run(m, &work, 1, &samples, err))
        return m->last == CU_LAUNCH_OUT_OF_RESOURCES ? 0 : -1;
    g->gbs = gv_meter_gbs(&samples, &work, 0).median;
    return 0;
}

static void keep(struct gv_geometry best[BEST], const struct gv_geometry *g)
{
    int at = BEST;
    while (at && best[at - 1].gbs < g->gbs)
        at--;
    if (at == BEST)
        return;
    memmove(&best[at + 1], &best[at], sizeof(best[0]) * (size_t)(BEST - 1 - at));
    best[at] = *g;
}

static int sweep(
    struct gv_meter *m, int gpu, const char *what, const struct gv_memory_args *args, double bytes,
    struct gv_geometry best[BEST], FILE *trace, struct gv_error *err)
{
    int caches = m->gpus->device[gpu].hinted ? 3 : 2;
    int n = COUNT(unrolls) * caches * COUNT(blocks) * COUNT(per_sms) * 2;
    for (int i = 0; i < n; i++) {
        int k = i;
        struct gv_geometry g = {.per_sm = per_sms[k % COUNT(per_sms)]};
        k /= COUNT(per_sms);
        g.chunked = k % 2;
        if (g.chunked && !g.per_sm)
            continue; /* one tile a block is all the same */
        k /= 2;
        g.block = blocks[k % COUNT(blocks)];
        k /= COUNT(blocks);
        snprintf(
            g.kernel, sizeof(g.kernel), "gv_%s_u%d%c", what, unrolls[k / caches],
            "psh"[k % caches]);
        if (attempt(m, gpu, args, bytes, 1, &g, err))
            return -1;
        if (trace)
            fprintf(
                trace, "  %-14s block %4u, %2u a multiprocessor%s: %7.1f GB/s\n", g.kernel, g.block,
                g.per_sm, g.chunked ? ", in runs" : "", g.gbs);
        keep(best, &g);
    }
    return 0;
}

int gv_geometry_find(
    struct gv_meter *m, int gpu, const char *what, const struct gv_memory_args *args, double bytes,
    struct gv_geometry *out, FILE *trace, struct gv_error *err)
{
    struct gv_geometry best[BEST] = {0};
    int warmups = m->warmups, most = m->max_samples, least = m->min_samples;
    int rc;

    m->warmups = 0, m->min_samples = m->max_samples = 2;
    m->unwatched = true;
    rc = sweep(m, gpu, what, args, bytes, best, trace, err);
    m->warmups = warmups, m->min_samples = least, m->max_samples = most;
    m->unwatched = false;
    for (int i = 0; i < BEST && !rc && best[i].gbs > 0; i++)
        rc = attempt(m, gpu, args, bytes, 4, &best[i], err);
    *out = best[0];
    for (int i = 1; i < BEST; i++)
        if (best[i].gbs > out->gbs)
            *out = best[i];
    if (!rc && out->gbs <= 0)
        return gv_error_set(err, "GPU %d: no geometry of gv_%s runs", gpu, what);
    return rc;
}
