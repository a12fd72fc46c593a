/* Algorithm and protocol of one collective: NCCL's costs, what the tuner makes of them, the user's
 * NCCL_ALGO and NCCL_PROTO, and the release's way to take the smallest. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testbench/host/engine.h"

#define NALGO GV_NCCL_NUM_ALGO
#define NPROTO GV_NCCL_NUM_PROTO

typedef float table[NALGO][NPROTO];

static void base_table(struct gvh_comm *comm, int func, uint64_t bytes, table costs)
{
    for (int a = 0; a < NALGO; a++)
        for (int p = 0; p < NPROTO; p++)
            costs[a][p] = -1;
    if (!comm->eval)
        return;
    gv_nccl_costs(comm->eval, gvh_release()->version, (enum gv_nccl_func)func, bytes, 1, costs);
    for (int a = 0; a < NALGO; a++)
        for (int p = 0; p < NPROTO; p++)
            if (!(comm->choice.algos >> a & 1) || !(comm->choice.protos >> p & 1))
                costs[a][p] = -1;
}

/* What v1 and v2 tuners set: a pair, or nothing unless both are set. */
struct pair {
    int algo, proto;
};

static int ask_pair(struct gvh_comm *comm, int func, uint64_t bytes, struct pair *pair, int *nch)
{
    const struct gvh_tuner *t = comm->tuner;
    if (t->version == 1)
        return t->v1->get_coll_info(func, bytes, 0, 0, 1, &pair->algo, &pair->proto, nch);
    return t->v2->get_coll_info(
        comm->tuner_ctx, func, bytes, 0, 0, 1, &pair->algo, &pair->proto, nch);
}

static int ask_table(struct gvh_comm *comm, int func, uint64_t bytes, float *costs, int *nch)
{
    const struct gvh_tuner *t = comm->tuner;
    float **rows = (float **)costs; /* NCCL's own cast: the block itself, not a table of rows */
    int nalgo = gvh_release()->nalgo;

    switch (t->version) {
    case 3:
        return t->v3->get_coll_info(comm->tuner_ctx, func, bytes, 1, rows, nalgo, NPROTO, nch);
    case 4:
        return t->v4->get_coll_info(comm->tuner_ctx, func, bytes, 1, rows, nalgo, NPROTO, 0, nch);
    case 5:
        return t->v5->get_coll_info(comm->tuner_ctx, func, bytes, 1, rows, nalgo, NPROTO, 0, nch);
    default:
        return t->v6->get_coll_info(comm->tuner_ctx, func, bytes, 1, rows, nalgo, NPROTO, 0, nch);
    }
}

/* From 2.22 a pair becomes a cost of 0, but only where NCCL had offered it; 2.19 to 2.21 take the
 * pair itself. */
static void apply_pair(struct pair pair, table costs)
{
    if (pair.algo < 0 || pair.algo >= NALGO || pair.proto < 0 || pair.proto >= NPROTO)
        return;
    if (gvh_release()->version < 22200 || costs[pair.algo][pair.proto] != -1)
        costs[pair.algo][pair.proto] = 0;
}

/* From 2.31 only cells that NCCL itself offered are taken back. */
static int ask_tuner(struct gvh_comm *comm, int func, uint64_t bytes, table costs, int *nch)
{
    struct pair pair = {-1, -1};
    table before;
    int rc;

    gvh_trace("tuner.getCollInfo %d %lu", func, (unsigned long)bytes);
    if (comm->tuner->version <= 2) {
        rc = ask_pair(comm, func, bytes, &pair, nch);
        apply_pair(pair, costs);
    } else {
        memcpy(before, costs, sizeof(before));
        rc = ask_table(comm, func, bytes, &costs[0][0], nch);
        for (int i = 0; gvh_release()->negative_wins && i < NALGO * NPROTO; i++)
            if ((&before[0][0])[i] < 0)
                (&costs[0][0])[i] = -1;
    }
    return rc == GVH_IN_PROGRESS ? GVH_SUCCESS : rc;
}

static bool takes(table costs, int a, int p, bool offered, float best)
{
    float cost = costs[a][p];
    if (gvh_release()->negative_wins)
        return offered && cost < best;
    return cost >= 0 && cost < best;
}

static void smallest(table costs, table offered, int *algo, int *proto)
{
    float best = gvh_release()->time_limit;
    *algo = *proto = -1;
    for (int a = 0; a < gvh_release()->nalgo; a++)
        for (int p = 0; p < NPROTO; p++)
            if (takes(costs, a, p, offered[a][p] >= 0, best)) {
                best = costs[a][p];
                *algo = a;
                *proto = p;
            }
}

int gvh_choose(struct gvh_comm *comm, int func, uint64_t bytes)
{
    table costs, offered;
    int channels = 0, rc = GVH_SUCCESS;

    if (comm->eval && comm->eval->approximate) {
        GVH_INFO("the ring crosses the network: costs are not modelled, nothing is chosen");
        return GVH_SUCCESS;
    }
    base_table(comm, func, bytes, costs);
    memcpy(offered, costs, sizeof(offered));
    if (comm->tuner)
        rc = ask_tuner(comm, func, bytes, costs, &channels);
    if (rc)
        return gvh_fail(comm, rc, "the tuner's getCollInfo returned %d", rc);
    smallest(costs, offered, &comm->algorithm, &comm->protocol);
    comm->channels = comm->eval->channels;
    /* 2.19 takes any number, later ones cap it */
    if (channels > 0 && (channels < comm->channels || gvh_release()->version < 22000))
        comm->channels = channels;
    if (comm->algorithm < 0)
        return gvh_fail(
            comm, GVH_INTERNAL_ERROR, "Error : no algorithm/protocol available for function %d",
            func);
    return GVH_SUCCESS;
}
