/* Why a group, in one sentence made from the profile's figures. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "profiler/place/gv_place.h"

static const char *ring_words(const struct gv_place *place, const struct gv_group_place *g)
{
    bool two = gv_gpuset_count(g->gpus) == 2;
    switch (gv_place_ring_class(place, g->gpus)) {
    case GV_PATH_NVL:
        return two ? "joined by NVLink" : "a ring of NVLinks";
    case GV_PATH_PIX:
        return "under one PCIe switch";
    case GV_PATH_PXB:
        return "under one tree of PCIe switches";
    case GV_PATH_PHB:
        return g->p2p ? "P2P across the host bridge (PHB)" : "through host memory across PHB";
    case GV_PATH_SYS:
        return "across CPU nodes, through host memory";
    default:
        return "paths not known";
    }
}

static size_t
add_ring(const struct gv_place *place, const struct gv_group_place *g, char *out, size_t size)
{
    char list[256];
    int n = snprintf(out, size, "%s", ring_words(place, g));
    const struct gv_measured_set *like = g->like >= 0 ? &place->measured[g->like] : NULL;
    if (g->known == GV_KNOWN_MEASURED && like->p2p && !isnan(like->busbw[0]))
        n += snprintf(
            out + n, size - (size_t)n, ": measured %.2f GB/s, %.2f by default", g->busbw_gbs,
            like->busbw[0]);
    else if (g->known == GV_KNOWN_MEASURED)
        n += snprintf(out + n, size - (size_t)n, ": measured %.2f GB/s", g->busbw_gbs);
    else if (g->known == GV_KNOWN_INFERRED)
        n += snprintf(
            out + n, size - (size_t)n, ": %.2f GB/s as measured for GPUs %s", g->busbw_gbs,
            gv_gpuset_format(like->gpus, list, sizeof(list)));
    else
        n += snprintf(out + n, size - (size_t)n, ": nothing like it was measured");
    return (size_t)n;
}

static void add_memory(const struct gv_group_place *g, char *out, size_t size)
{
    if (isnan(g->copy_gbs))
        snprintf(out, size, "memory bandwidth not measured");
    else
        snprintf(
            out, size, "%.0f GB/s memory copy%s", g->copy_gbs,
            gv_gpuset_count(g->gpus) > 1 ? " on the slowest" : "");
}

static void
add_worth(const struct gv_place *place, const struct gv_group_place *g, char *out, size_t size)
{
    bool alone = true, joined = false;
    for (gv_gpuset rest = g->gpus; rest; rest &= rest - 1) {
        alone &= !place->p2p[gv_gpuset_first(rest)];
        joined |= place->nvlink[gv_gpuset_first(rest)] != 0;
    }
    snprintf(
        out, size,
        alone    ? "no P2P with any other GPU: others miss it least"
        : joined ? "takes an NVLink from others"
                 : "others miss it little: no NVLink");
}

const char *gv_place_reason(
    const struct gv_place *place, enum gv_work work, const struct gv_group_place *g, char *out,
    size_t size)
{
    bool one = gv_gpuset_count(g->gpus) == 1;
    out[0] = '\0';
    if (work == GV_WORK_INDEPENDENT)
        add_worth(place, g, out, size);
    else if (work == GV_WORK_MEMORY || one)
        add_memory(g, out, size);
    else
        add_ring(place, g, out, size);
    if (work == GV_WORK_MEMORY && !one) {
        size_t n = strlen(out);
        n += (size_t)snprintf(out + n, size - n, "; ");
        add_ring(place, g, out + n, size - n);
    }
    return out;
}
