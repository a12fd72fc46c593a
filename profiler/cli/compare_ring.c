#include <math.h>
#include <stdio.h>
#include <string.h>

#include "profiler/cli/compare_live.h"
#include "profiler/cli/source.h"

static const struct gv_profile_path *path_of(const struct gv_source *source, int from, int to)
{
    if (!source || source->to_profile[from] < 0 || source->to_profile[to] < 0)
        return NULL;
    return gv_profile_path_of(source->profile, source->to_profile[from], source->to_profile[to]);
}

static void
describe(struct gv_compared_edge *edge, const struct gv_wire *wire, const struct gv_source *source)
{
    const struct gv_profile_path *path = path_of(source, wire->from, wire->to);
    bool shm = gv_transport_is_shm(wire->transport);
    *edge = (struct gv_compared_edge){.from = wire->from, .to = wire->to, .gbs = NAN};
    memcpy(edge->transport, wire->transport, sizeof(edge->transport));
    if (!path)
        return;
    if (path->nccl_class != GV_PATH_UNKNOWN)
        snprintf(edge->path, sizeof(edge->path), "%s", gv_path_class_name(path->nccl_class));
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

void gv_compared_rings(struct gv_compared *c, const struct gv_source *source)
{
    for (int s = 0; s < c->run.nsteers; s++) {
        const struct gv_wiring *w = &c->run.wiring[s];
        struct gv_compared_ring *ring = &c->ring[s];
        ring->n = w->nring;
        for (int i = 0; i < w->nring; i++)
            describe(&ring->edge[i], &w->edge[i], source);
        ring->slowest = slowest(ring);
    }
}
