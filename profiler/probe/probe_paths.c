/* What a pair can do: write, read, both ways, latency over verified P2P; through the host where
 * there is none. And the same while the neighbours use the same uplinks. */
#include <stdio.h>
#include <string.h>

#include "profiler/probe/gv_calibration.h"

#define BYTES ((size_t)64 << 20)

static bool verified(const struct gv_calibration *cal, int a, int b)
{
    return cal->pair[a][b].p2p == GV_P2P_VERIFIED && cal->pair[b][a].p2p == GV_P2P_VERIFIED;
}

/* The first pair of a class says most; it stays in the plan longest. */
static void plan(struct gv_calibration *cal, const struct gv_probe *self)
{
    bool seen[GV_PATH_CLASSES] = {0};
    for (int a = 0; a < cal->n; a++)
        for (int b = a + 1; b < cal->n; b++) {
            enum gv_path_class c = cal->path_class[a][b];
            gv_plan_add(
                cal, self, a, b, GV_GPU_BIT(a) | GV_GPU_BIT(b), cal->options.quick ? 0.2 : 0.7,
                seen[c] ? 3 : 7, "path %d-%d", a, b);
            seen[c] = true;
        }
}

struct ends {
    int gpu[2];
    gv_cu_ptr at[2][2]; /* [gpu][source, target] */
};

static int allocate(struct gv_calibration *cal, int a, int b, struct ends *e)
{
    gv_cu_result rc = 0;
    *e = (struct ends){.gpu = {a, b}};
    for (int i = 0; i < 2; i++) {
        cal->gpus.cuda.ctx_set(cal->gpus.device[e->gpu[i]].ctx);
        for (int k = 0; k < 2 && !rc; k++)
            rc = cal->gpus.cuda.mem_alloc(&e->at[i][k], BYTES);
    }
    return rc;
}

static void release(struct gv_calibration *cal, struct ends *e)
{
    for (int i = 0; i < 2; i++) {
        cal->gpus.cuda.ctx_set(cal->gpus.device[e->gpu[i]].ctx);
        for (int k = 0; k < 2; k++)
            if (e->at[i][k])
                cal->gpus.cuda.mem_free(e->at[i][k]);
    }
}

/* GPU i of the ends writes to, or reads from, the other one. */
static int one_way(
    struct gv_calibration *cal, const struct ends *e, int i, bool write, bool kernel,
    struct gv_work *out, struct gv_error *err)
{
    struct gv_geometry g = {.kernel = "gv_copy_u4p", .block = 512, .per_sm = 4};
    gv_cu_ptr to = write ? e->at[!i][1] : e->at[i][1], from = write ? e->at[i][0] : e->at[!i][0];
    struct gv_memory_args args = {.dst = to, .src = from, .n16 = BYTES / 16};
    if (gv_geometry_work(&cal->meter, e->gpu[i], 0, &g, &args, (double)BYTES, out, err))
        return -1;
    if (!kernel)
        *out = (struct gv_work){
            .gpu = e->gpu[i],
            .kind = GV_WORK_COPY,
            .to = to,
            .from = from,
            .copy_bytes = BYTES,
            .bytes = (double)BYTES};
    out->repeat = 2;
    return 0;
}

static struct gv_figure better(struct gv_figure a, struct gv_figure b)
{
    return !b.count || a.median >= b.median ? a : b;
}

/* Kernel and copy engine; the better one is what the path can do. */
static int direction(
    struct gv_calibration *cal, const struct ends *e, int i, bool write, struct gv_figure *out,
    struct gv_error *err)
{
    struct gv_figure found[2];
    for (int kernel = 0; kernel < 2; kernel++) {
        struct gv_work work;
        struct gv_samples samples;
        if (one_way(cal, e, i, write, kernel, &work, err) ||
            gv_meter_run(&cal->meter, &work, 1, &samples, err))
            return -1;
        found[kernel] = gv_meter_gbs(&samples, &work, 0);
    }
    *out = better(found[1], found[0]);
    return 0;
}

static int both_ways(
    struct gv_calibration *cal, const struct ends *e, struct gv_figure *out, struct gv_error *err)
{
    struct gv_figure found[2];
    for (int kernel = 0; kernel < 2; kernel++) {
        struct gv_work works[2];
        struct gv_samples samples;
        if (one_way(cal, e, 0, true, kernel, &works[0], err) ||
            one_way(cal, e, 1, true, kernel, &works[1], err) ||
            gv_meter_run(&cal->meter, works, 2, &samples, err))
            return -1;
        found[kernel] = gv_meter_gbs(&samples, works, -1);
    }
    *out = better(found[1], found[0]);
    return 0;
}

static int over_p2p(struct gv_calibration *cal, const struct ends *e, struct gv_error *err)
{
    int a = e->gpu[0], b = e->gpu[1];
    struct gv_pair_state *x = &cal->pair[a][b], *y = &cal->pair[b][a];
    gv_cu_result rc = gv_peer_on(&cal->gpus, a, b);
    if (!rc)
        rc = gv_peer_on(&cal->gpus, b, a);
    if (rc)
        return gv_cuda_fail(&cal->gpus.cuda, rc, err, "peer access");
    int failed = direction(cal, e, 0, true, &x->write_gbs, err) ||
                 direction(cal, e, 1, true, &y->write_gbs, err) ||
                 (!cal->options.quick && (direction(cal, e, 0, false, &x->read_gbs, err) ||
                                          direction(cal, e, 1, false, &y->read_gbs, err))) ||
                 both_ways(cal, e, &x->both_ways_gbs, err) ||
                 gv_pair_latency(&cal->meter, a, b, 200, &x->latency_us, err);
    y->both_ways_gbs = x->both_ways_gbs;
    y->latency_us = x->latency_us;
    gv_peer_off(&cal->gpus, a, b);
    gv_peer_off(&cal->gpus, b, a);
    return failed ? -1 : 0;
}

/* The driver leads such a copy through host memory. Never recorded as P2P. */
static int over_host(struct gv_calibration *cal, const struct ends *e, struct gv_error *err)
{
    for (int i = 0; i < 2; i++) {
        struct gv_work work;
        struct gv_samples samples;
        if (one_way(cal, e, i, true, false, &work, err) ||
            gv_meter_run(&cal->meter, &work, 1, &samples, err))
            return -1;
        cal->pair[e->gpu[i]][e->gpu[!i]].host_path_gbs = gv_meter_gbs(&samples, &work, 0);
    }
    return 0;
}

static int run(struct gv_calibration *cal, const struct gv_item *item, struct gv_error *err)
{
    struct ends e;
    int failed = 0;
    gv_cu_result rc = allocate(cal, item->a, item->b, &e);
    if (rc == GV_CU_OUT_OF_MEMORY)
        gv_warn_memory(cal, item->gpus, 2 * BYTES);
    else if (rc)
        failed = gv_cuda_fail(&cal->gpus.cuda, rc, err, item->label);
    else
        failed = verified(cal, item->a, item->b) ? over_p2p(cal, &e, err) : over_host(cal, &e, err);
    cal->pair[item->a][item->b].measured = cal->pair[item->b][item->a].measured = !rc && !failed;
    release(cal, &e);
    return failed ? -1 : 0;
}

const struct gv_probe gv_probe_paths = {
    "paths", "p2p", "128 MiB of each GPU", "GB/s", "more", plan, run,
};

/* Loaded: the next GPU of each island writes at the same time over the same uplinks. */
static int neighbour(const struct gv_calibration *cal, int gpu)
{
    for (int k = 1; k < cal->n; k++) {
        int other = (gpu + k) % cal->n;
        if (cal->island[other] == cal->island[gpu])
            return other;
    }
    return -1;
}

static void plan_loaded(struct gv_calibration *cal, const struct gv_probe *self)
{
    if (cal->options.quick)
        return;
    for (int a = 0; a < cal->n; a++)
        for (int b = a + 1; b < cal->n; b++)
            if (cal->path_class[a][b] == GV_PATH_PHB && neighbour(cal, a) >= 0 &&
                neighbour(cal, b) >= 0)
                gv_plan_add(
                    cal, self, a, b, GV_GPU_BIT(a) | GV_GPU_BIT(b), 0.4, 2, "path %d-%d under load",
                    a, b);
}

static int measure_loaded(
    struct gv_calibration *cal, const struct ends *e, const struct ends *beside, int i,
    struct gv_figure *out, struct gv_error *err)
{
    struct gv_work works[2];
    struct gv_samples samples;
    if (one_way(cal, e, i, true, true, &works[0], err) ||
        one_way(cal, beside, i, true, true, &works[1], err) ||
        gv_meter_run(&cal->meter, works, 2, &samples, err))
        return -1;
    *out = gv_meter_gbs(&samples, works, 0);
    return 0;
}

static int run_loaded(struct gv_calibration *cal, const struct gv_item *item, struct gv_error *err)
{
    int a = item->a, b = item->b, c = neighbour(cal, a), d = neighbour(cal, b);
    struct ends e, beside;
    if (!verified(cal, a, b) || !verified(cal, c, d))
        return 0;
    gv_cu_result rc = allocate(cal, a, b, &e), rc2 = allocate(cal, c, d, &beside);
    int failed = 0;
    const int on[4][2] = {{a, b}, {b, a}, {c, d}, {d, c}};
    for (int i = 0; i < 4 && !rc && !rc2; i++)
        rc = gv_peer_on(&cal->gpus, on[i][0], on[i][1]);
    if (!rc && !rc2)
        failed = measure_loaded(cal, &e, &beside, 0, &cal->pair[a][b].loaded_write_gbs, err) ||
                 measure_loaded(cal, &e, &beside, 1, &cal->pair[b][a].loaded_write_gbs, err);
    else
        gv_warn_memory(cal, item->gpus | GV_GPU_BIT(c) | GV_GPU_BIT(d), 2 * BYTES);
    for (int i = 0; i < 4; i++)
        gv_peer_off(&cal->gpus, on[i][0], on[i][1]);
    release(cal, &e);
    release(cal, &beside);
    return failed ? -1 : 0;
}

const struct gv_probe gv_probe_loaded = {
    "loaded", "p2p", "two GPUs under each of two switches", "GB/s", "more", plan_loaded, run_loaded,
};
