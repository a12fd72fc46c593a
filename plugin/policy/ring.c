#include "plugin/policy/ring.h"

#include <math.h>
#include <string.h>

static bool pair_in(const int (*pairs)[2], int n, int a, int b)
{
    for (int i = 0; i < n; i++)
        if ((pairs[i][0] == a && pairs[i][1] == b) || (pairs[i][0] == b && pairs[i][1] == a))
            return true;
    return false;
}

static bool is_p2p(const struct gv_facts *facts, const struct gv_ring_view *view, int a, int b)
{
    if (view->lent && pair_in(view->lent->pair, view->lent->count, a, b))
        return true;
    if (view->separation)
        return gv_separation_joins(facts, view->separation, a, b);
    if (view->bridge)
        return !gv_facts_refused(facts, a, b);
    const struct gv_profile_group *group = view->measured;
    if (group && group->shm_edges_known)
        return !pair_in(group->shm_edges, group->nshm_edges, a, b);
    return gv_facts_joined(facts, a, b);
}

static enum gv_path_class class_of(const struct gv_facts *facts, int a, int b)
{
    const struct gv_profile_path *path = facts->path[a][b];
    if (path && path->nccl_class != GV_PATH_UNKNOWN)
        return path->nccl_class;
    return gv_gpuset_has(facts->nvlink[a], b) ? GV_PATH_NVL : GV_PATH_UNKNOWN;
}

static double shm_gbs(const struct gv_facts *facts, int a, int b)
{
    const struct gv_profile_path *path = facts->path[a][b];
    return path ? path->host_path_gbs.median : NAN;
}

static struct gv_ring_edge
edge_of(const struct gv_facts *facts, const struct gv_ring_view *view, int a, int b)
{
    bool p2p = is_p2p(facts, view, a, b);
    return (struct gv_ring_edge){
        .from = a,
        .to = b,
        .path = class_of(facts, a, b),
        .transport = p2p ? GV_TRANSPORT_P2P : GV_TRANSPORT_SHM,
        .gbs = p2p ? gv_facts_p2p_gbs(facts, a, b) : shm_gbs(facts, a, b),
    };
}

/* An edge whose figure is not known is slower than any that is, if it is on SHM; a P2P edge without
 * a figure says nothing. */
static bool slower(const struct gv_ring_edge *edge, const struct gv_ring_edge *than)
{
    bool unknown = isnan(edge->gbs), than_unknown = isnan(than->gbs);
    if (unknown || than_unknown)
        return unknown && edge->transport == GV_TRANSPORT_SHM && !than_unknown;
    return edge->gbs < than->gbs;
}

static int slowest_of(const struct gv_plan *plan)
{
    int slowest = -1;
    for (int i = 0; i < plan->nring; i++) {
        const struct gv_ring_edge *edge = &plan->edges[i];
        if (isnan(edge->gbs) && edge->transport != GV_TRANSPORT_SHM)
            continue;
        if (slowest < 0 || slower(edge, &plan->edges[slowest]))
            slowest = i;
    }
    return slowest;
}

void gv_ring_fill(
    const struct gv_facts *facts, const struct gv_ring_view *view, struct gv_plan *plan)
{
    plan->ring_measured = view->measured != NULL;
    if (view->measured) {
        plan->nring = view->measured->nring;
        memcpy(plan->ring, view->measured->ring, (size_t)plan->nring * sizeof(*plan->ring));
    } else {
        plan->nring = gv_route_ring(facts, view->route, plan->ring);
    }
    for (int i = 0; i < plan->nring; i++)
        plan->edges[i] = edge_of(facts, view, plan->ring[i], plan->ring[(i + 1) % plan->nring]);
    plan->slowest = slowest_of(plan);
}

enum gv_transport gv_ring_transport(const struct gv_plan *plan)
{
    int p2p = 0;
    for (int i = 0; i < plan->nring; i++)
        p2p += plan->edges[i].transport == GV_TRANSPORT_P2P;
    return p2p == plan->nring ? GV_TRANSPORT_P2P : p2p ? GV_TRANSPORT_MIXED : GV_TRANSPORT_SHM;
}
