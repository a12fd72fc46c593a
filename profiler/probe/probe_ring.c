/* Ring AllReduce of the groups by our own kernels: as NCCL would do it by default (host memory
 * where an edge crosses the host bridge), and with P2P on those edges, sample by sample in turn. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/probe/gv_calibration.h"
#include "profiler/probe/gv_ring.h"

static void plan(struct gv_calibration *cal, const struct gv_probe *self)
{
    gv_gpuset by_shape[GV_MAX_GPUS];
    const gv_gpuset *groups = cal->options.groups;
    int n = cal->options.ngroups;
    char text[256];
    if (!n) {
        n = gv_shape_groups(cal, by_shape);
        groups = by_shape;
    }
    for (int i = 0; i < n; i++)
        gv_plan_add(
            cal, self, -1, -1, groups[i], cal->options.quick ? 1 : 9, 8, "ring AllReduce over %s",
            gv_gpuset_format(groups[i], text, sizeof(text)));
}

static bool usable(const struct gv_calibration *cal, int a, int b)
{
    return cal->pair[a][b].p2p == GV_P2P_VERIFIED && cal->pair[b][a].p2p == GV_P2P_VERIFIED;
}

struct variant {
    enum gv_edit_kind edit;
    struct gv_ring ring;
    struct gv_ring_setup setup;
    double samples[GV_MAX_SAMPLES];
    bool throttled[GV_MAX_SAMPLES], any_throttled, broken;
    int count;
};

/* The variants of a group. NCCL's default where every edge that it pairs by default is verified,
 * else those edges through host memory ("separate"); and P2P on the crossing edges, where each of
 * them is verified or is none for NCCL either, since the driver refuses it. */
static int
variants_of(const struct gv_calibration *cal, const struct gv_ring *ring, struct variant out[2])
{
    bool crossing = false, bad = false;
    out[0] = out[1] = (struct variant){.edit = GV_EDIT_NONE, .ring = *ring};
    for (int i = 0; i < ring->n; i++) {
        int a = ring->gpu[i], b = ring->gpu[(i + 1) % ring->n];
        bool paired = gv_shape_default_p2p(cal, a, b), good = usable(cal, a, b);
        out[0].ring.shm[i] = !paired || !good;
        out[1].ring.shm[i] = !good;
        crossing |= !paired && good;
        if (paired && !good)
            out[0].edit = GV_EDIT_SEPARATE;
        bad |= !good && (paired || cal->pair[a][b].p2p != GV_P2P_REFUSED);
    }
    out[1].edit = GV_EDIT_P2P_LEVEL;
    return crossing && !bad ? 2 : 1;
}

static bool steady(const struct gv_meter *m, const struct variant *v)
{
    struct gv_figure f = gv_figure_of(v->samples, v->count);
    return v->count >= m->min_samples && f.max - f.min <= m->spread * f.median;
}

/* A ring that gives wrong sums, or none, is no figure; P2P that it turned on is not trusted any
 * more, whatever the check of the pair said. */
static void distrust(
    struct gv_calibration *cal, const struct gv_item *item, struct variant *v,
    const struct gv_error *why)
{
    v->broken = true;
    gv_warn(
        cal, "%s, %s: %s; not recorded", item->label,
        v->edit == GV_EDIT_P2P_LEVEL ? "with P2P across the host bridge" : "as by default",
        why->text);
    for (int i = 0; i < v->ring.n; i++) {
        int a = v->ring.gpu[i], b = v->ring.gpu[(i + 1) % v->ring.n];
        if (v->ring.shm[i] || gv_shape_default_p2p(cal, a, b))
            continue;
        cal->pair[a][b].p2p = cal->pair[b][a].p2p = GV_P2P_UNVERIFIED;
        snprintf(
            cal->pair[a][b].note, sizeof(cal->pair[a][b].note), "an AllReduce over it was wrong");
        memcpy(cal->pair[b][a].note, cal->pair[a][b].note, sizeof(cal->pair[b][a].note));
    }
}

static int verify(
    struct gv_calibration *cal, const struct gv_item *item, struct variant *v, int n,
    struct gv_error *err)
{
    for (int i = 0; i < n; i++) {
        int rc = gv_ring_verify(&cal->meter, &v[i].setup, err);
        if (rc < 0)
            return -1;
        if (rc)
            distrust(cal, item, &v[i], err);
    }
    return 0;
}

static int one_sample(
    struct gv_calibration *cal, const struct gv_item *item, struct variant *v, struct gv_error *err)
{
    int rc =
        gv_ring_sample(&cal->meter, &v->setup, &v->samples[v->count], &v->throttled[v->count], err);
    if (rc < 0)
        return -1;
    if (rc)
        distrust(cal, item, v, err);
    v->any_throttled |= v->throttled[v->count];
    v->count++;
    return 0;
}

/* Default and forced in turn, so that a drift of the machine touches both alike. */
static int measure(
    struct gv_calibration *cal, const struct gv_item *item, struct variant *v, int n,
    struct gv_error *err)
{
    int most = cal->meter.max_samples < GV_MAX_SAMPLES ? cal->meter.max_samples : GV_MAX_SAMPLES;
    bool all = false;
    if (verify(cal, item, v, n, err))
        return -1;
    for (int s = 0; s < most && !all; s++) {
        all = true;
        for (int i = 0; i < n; i++) {
            if (v[i].broken)
                continue;
            if (one_sample(cal, item, &v[i], err))
                return -1;
            all &= v[i].broken || steady(&cal->meter, &v[i]);
        }
    }
    return 0;
}

static int keep_variant(const struct variant *v, struct gv_profile_variant *out)
{
    struct gv_profile_run *run = calloc(1, sizeof(*run));
    *out = (struct gv_profile_variant){
        .edit = v->edit, .algorithm = GV_ALGO_RING, .protocol = GV_PROTO_SIMPLE};
    if (!run)
        return -1;
    run->busbw_gbs = malloc(sizeof(double) * (size_t)v->count);
    if (v->any_throttled)
        run->throttled = malloc(sizeof(bool) * (size_t)v->count);
    if (!run->busbw_gbs || (v->any_throttled && !run->throttled)) {
        free(run->busbw_gbs);
        free(run);
        return -1;
    }
    memcpy(run->busbw_gbs, v->samples, sizeof(double) * (size_t)v->count);
    if (run->throttled)
        memcpy(run->throttled, v->throttled, sizeof(bool) * (size_t)v->count);
    snprintf(run->name, sizeof(run->name), "gv100 ring");
    run->count = v->count;
    run->algbw_gbs = NAN;
    out->algorithm = GV_ALGO_ANY;
    out->protocol = GV_PROTO_ANY;
    out->runs = run;
    out->nruns = 1;
    return 0;
}

static int keep_group(
    struct gv_calibration *cal, gv_gpuset gpus, const struct variant *v, int n, uint64_t bytes)
{
    void *grown = realloc(cal->groups, sizeof(*cal->groups) * ((size_t)cal->ngroups + 1));
    if (!grown)
        return -1;
    cal->groups = grown;
    struct gv_profile_group *g = &cal->groups[cal->ngroups];
    *g = (struct gv_profile_group){
        .gpus = gpus, .op = GV_OP_ALL_REDUCE, .bytes = bytes, .shm_edges_known = true};
    const struct gv_ring *ring = &v[0].ring;
    g->nring = ring->n;
    memcpy(g->ring, ring->gpu, sizeof(g->ring));
    for (int i = 0; i < ring->n; i++)
        if (ring->shm[i]) {
            g->shm_edges[g->nshm_edges][0] = ring->gpu[i];
            g->shm_edges[g->nshm_edges++][1] = ring->gpu[(i + 1) % ring->n];
        }
    g->variants = calloc((size_t)n, sizeof(*g->variants));
    if (!g->variants)
        return -1;
    cal->ngroups++;
    for (int i = 0; i < n; i++)
        if (!v[i].broken && keep_variant(&v[i], &g->variants[g->nvariants++]))
            return -1;
    return 0;
}

static size_t ring_bytes(const struct gv_calibration *cal)
{
    size_t most = cal->options.quick ? (size_t)128 << 20 : (size_t)1 << 30;
    size_t bytes = cal->options.memory_bytes / 3;
    return bytes > most ? most : bytes & ~(size_t)0xfffff;
}

static int set_up(struct gv_calibration *cal, struct variant *v, int n, struct gv_error *err)
{
    size_t bytes = ring_bytes(cal);
    for (;;) {
        for (int i = 0; i < n; i++)
            v[i].ring.bytes = bytes;
        cal->meter.last = 0;
        if (!gv_ring_init(&cal->meter, &v[0].ring, NULL, &v[0].setup, err))
            break;
        if (cal->meter.last != GV_CU_OUT_OF_MEMORY || bytes <= (size_t)1 << 20)
            return -1;
        bytes /= 2;
    }
    if (n == 1 || !gv_ring_init(&cal->meter, &v[1].ring, &v[0].setup, &v[1].setup, err))
        return 0;
    gv_ring_finish(&cal->meter, &v[0].setup, true);
    return -1;
}

static int run(struct gv_calibration *cal, const struct gv_item *item, struct gv_error *err)
{
    struct gv_ring ring = {0};
    struct variant *v = calloc(2, sizeof(*v));
    if (!v)
        return gv_error_set(err, "out of memory");
    ring.n = gv_shape_ring(cal, item->gpus, ring.gpu);
    int n = variants_of(cal, &ring, v);
    int rc = set_up(cal, v, n, err);
    if (rc && cal->meter.last == GV_CU_OUT_OF_MEMORY) {
        gv_warn_memory(cal, item->gpus, (size_t)16 << 20);
        rc = 0;
        goto done;
    }
    if (!rc) {
        rc = measure(cal, item, v, n, err);
        for (int i = n - 1; i >= 0; i--)
            gv_ring_finish(&cal->meter, &v[i].setup, i == 0);
    }
    bool any = !v[0].broken || (n > 1 && !v[1].broken);
    if (!rc && any && keep_group(cal, item->gpus, v, n, v[0].ring.bytes))
        rc = gv_error_set(err, "out of memory");
    for (int i = 0; i < n && !rc; i++)
        if (v[i].any_throttled)
            gv_warn(cal, "%s: a GPU throttled; those samples are marked", item->label);
done:
    free(v);
    return rc;
}

const struct gv_probe gv_probe_ring = {
    "ring", "ring", "2 buffers and a FIFO on each GPU", "GB/s busbw", "more", plan, run,
};
