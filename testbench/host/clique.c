#include <stdlib.h>

#include "testbench/host/engine.h"

struct gvh_clique {
    uint64_t key;
    int members, arrived, joined;
    struct gvh_comm *comm[GVH_MAX_RANKS];
    struct gvh_clique *next;
};

static struct {
    pthread_mutex_t lock;
    struct gvh_clique *list;
} cliques = {.lock = PTHREAD_MUTEX_INITIALIZER};

int gvh_clique_join(struct gvh_comm *comm, int members)
{
    struct gvh_clique *c;
    pthread_mutex_lock(&cliques.lock);
    for (c = cliques.list; c && c->key != comm->key; c = c->next)
        ;
    if (!c && (c = calloc(1, sizeof(*c)))) {
        c->key = comm->key;
        c->members = members;
        c->next = cliques.list;
        cliques.list = c;
    }
    if (c)
        c->comm[c->joined++] = comm;
    comm->clique = c;
    pthread_mutex_unlock(&cliques.lock);
    return c ? GVH_SUCCESS : GVH_SYSTEM_ERROR;
}

static int free_member(struct gvh_comm *comm)
{
    struct gvh_comm *former = gvh_current(comm);
    gvh_set_device(comm->device);
    int rc = gvh_tuner_finalize(comm);
    if (!comm->inherits) {
        int net = gvh_net_finalize(comm);
        rc = rc ? rc : net;
    }
    gvh_current(former);
    return rc;
}

/* In the thread of the last one to arrive. */
int gvh_clique_leave(struct gvh_comm *comm)
{
    struct gvh_clique *c = comm->clique;
    int rc = GVH_SUCCESS;

    if (!c) /* its init never got so far; NCCL frees nothing of the plugins then */
        return GVH_SUCCESS;
    pthread_mutex_lock(&cliques.lock);
    bool last = ++c->arrived == c->members;
    pthread_mutex_unlock(&cliques.lock);
    for (int i = 0; last && i < c->joined; i++) {
        int one = free_member(c->comm[i]);
        rc = rc ? rc : one;
    }
    return rc;
}
