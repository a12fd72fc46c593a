/* The rings of a comparison, with what the profile knows of their edges. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "profiler/compare/gv_compare.h"

static void describe(
    struct gv_compared_edge *edge, const struct gv_wire *wire, const struct gv_profile *profile,
    const int *to_profile)
{
    const struct gv_profile_path *path = NULL;
    bool shm = gv_transport_is_shm(wire->transport);
    *edge = (struct gv_compared_edge){.from = wire->from, .to = wire->to, .gbs = NAN};
    memcpy(edge->transport, wire->transport, sizeof(edge->transport));
    if (profile && to_profile[wire->from] >= 0 && to_profile[wire->to] >= 0)
        path = gv_profile_path_of(profile, to_profile[wire->from], to_profile[wire->to]);
    if (!path)
        return;
    if (path->nccl_class != GV_PATH_UNKNOWN)
        snprintf(edge->path, sizeof(edge->path), "%s", gv_path_class_name(path->nccl_class));
    if (edge->transport[0])
        edge->gbs = shm ? path->host_path_gbs.median : path->write_gbs.median;
}

static int slowest(const struct gv_compared_ring *ring)
{
    int lowest = -1, shm = -1, others = 0;
    bool all = true;
    for (int i = 0; i < ring->n; i++) {
        const struct gv_compared_edge *e = &ring->edge[i];
        bool is_shm = gv_transport_is_shm(e->transport);
        others += !is_shm;
        if (is_shm && shm < 0)
            shm = i;
        if (!isfinite(e->gbs))
            all = false;
        else if (lowest < 0 || e->gbs < ring->edge[lowest].gbs)
            lowest = i;
    }
    if (all)
        return lowest;
    return shm >= 0 && others ? shm : -1;
}

void gv_compared_rings(
    struct gv_compared *c, const struct gv_profile *profile, const int to_profile[GV_MAX_GPUS])
{
    for (int s = 0; s < c->run.nsteers; s++) {
        const struct gv_wiring *w = &c->run.wiring[s];
        struct gv_compared_ring *ring = &c->ring[s];
        ring->n = w->nring;
        for (int i = 0; i < w->nring; i++)
            describe(&ring->edge[i], &w->edge[i], profile, to_profile);
        ring->slowest = slowest(ring);
    }
}
