#include "profiler/probe/variants.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool usable(const struct gv_calibration *cal, int a, int b)
{
    return cal->pair[a][b].p2p == GV_P2P_VERIFIED && cal->pair[b][a].p2p == GV_P2P_VERIFIED;
}

int gv_ring_variants(
    const struct gv_calibration *cal, const struct gv_ring *ring, struct gv_ring_variant out[2])
{
    bool crossing = false, bad = false;
    out[0] = out[1] = (struct gv_ring_variant){.edit = GV_EDIT_NONE, .ring = *ring};
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

static int
keep_variant(const struct gv_ring_variant *v, const char *source, struct gv_profile_variant *out)
{
    struct gv_profile_run *run = calloc(1, sizeof(*run));
    *out = (struct gv_profile_variant){
        .edit = v->edit, .algorithm = GV_ALGO_ANY, .protocol = GV_PROTO_ANY};
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
    snprintf(run->source, sizeof(run->source), "%s", source);
    run->count = v->count;
    run->algbw_gbs = NAN;
    out->runs = run;
    out->nruns = 1;
    return 0;
}

int gv_ring_keep(
    struct gv_calibration *cal, const struct gv_item *item, const struct gv_ring_variant *v, int n)
{
    void *grown = realloc(cal->groups, sizeof(*cal->groups) * ((size_t)cal->ngroups + 1));
    if (!grown)
        return -1;
    cal->groups = grown;
    struct gv_profile_group *g = &cal->groups[cal->ngroups];
    *g = (struct gv_profile_group){
        .gpus = item->gpus,
        .op = GV_OP_ALL_REDUCE,
        .bytes = v[0].ring.bytes,
        .loaded = item->beside != 0,
        .shm_edges_known = true,
    };
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
    /* What groups take from each other is a matter of the uplinks, which a model knows no better.
     */
    bool modelled = item->beside && cal->options.virtual_machine;
    const char *source = modelled ? "a model's uplinks, by its PCI tree: nobody measured them" : "";
    cal->ngroups++;
    for (int i = 0; i < n; i++)
        if (!v[i].broken && keep_variant(&v[i], source, &g->variants[g->nvariants++]))
            return -1;
    return 0;
}
