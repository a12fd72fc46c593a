/* A communicator's init, as one rank goes through it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "testbench/host/engine.h"

uint64_t gvh_hash(const void *data, size_t size, uint64_t seed)
{
    const unsigned char *at = data;
    uint64_t hash = 14695981039346656037u ^ seed;
    for (size_t i = 0; at && i < size; i++)
        hash = (hash ^ at[i]) * 1099511628211u;
    hash ^= hash >> 29;
    return hash * 0x9e3779b97f4a7c15u;
}

static int gather(struct gvh_comm *comm, const void *mine, size_t size, void *all)
{
    char why[128];
    int rc = gvh_boot_gather(&comm->boot, mine, size, all, why);
    return rc ? gvh_fail(comm, rc, "bootstrap: %s", why) : GVH_SUCCESS;
}

struct split_info {
    int color, order;
};

/* Who of the parent goes with this rank, ordered by key, then by rank in the parent. */
static int count_split(struct gvh_comm *comm, const struct split_info *all)
{
    int n = 0, rank = 0;
    for (int r = 0; r < comm->parent->nranks; r++) {
        if (all[r].color != comm->color)
            continue;
        n++;
        if (all[r].order < comm->order || (all[r].order == comm->order && r < comm->parent->rank))
            rank++;
    }
    comm->nranks = n;
    comm->rank = rank;
    return n;
}

static bool is_excluded(const struct gvh_comm *comm, int rank)
{
    for (int i = 0; i < comm->nexcluded; i++)
        if (comm->excluded[i] == rank)
            return true;
    return false;
}

static void count_shrink(struct gvh_comm *comm)
{
    comm->nranks = comm->rank = 0;
    for (int r = 0; r < comm->parent->nranks; r++) {
        if (is_excluded(comm, r))
            continue;
        if (r == comm->parent->rank)
            comm->rank = comm->nranks;
        comm->nranks++;
    }
}

/* A child's id comes from its parent's, the count of splits (from 2.24) and the color. */
static void child_id(struct gvh_comm *comm)
{
    uint64_t from[2] = {comm->parent->id, 0};
    int splits = comm->excluded || !gvh_release()->split_counts ? 0 : comm->parent->splits;
    from[1] = (uint64_t)(unsigned)splits << 32 | (unsigned)(comm->excluded ? 0 : comm->color);
    comm->id = gvh_hash(from, sizeof(from), 7);
    from[0] = comm->parent->key;
    from[1] = (uint64_t)(unsigned)comm->parent->children << 32 | (unsigned)comm->color;
    comm->key = gvh_hash(from, sizeof(from), 9);
}

/* NCCL's own gather over the parent; a rank without a color leaves after it. */
static int join_family(struct gvh_comm *comm)
{
    struct split_info mine = {comm->color, comm->order}, all[GVH_MAX_RANKS];
    char why[128];

    if (comm->excluded) {
        count_shrink(comm);
    } else {
        int rc = gvh_boot_gather(&comm->parent->boot, &mine, sizeof(mine), all, why);
        if (rc)
            return gvh_fail(comm, rc, "split: %s", why);
        count_split(comm, all);
    }
    child_id(comm);
    return GVH_SUCCESS;
}

static int open_boot(struct gvh_comm *comm)
{
    return gvh_boot_open(
        &comm->boot, comm->key, comm->rank, comm->nranks, comm->nranks / comm->nnodes, comm->abort);
}

static int init_net(struct gvh_comm *comm)
{
    gvh_step("net");
    bool inherits = comm->inherits && gvh_release()->share_skips_net;
    int rc = inherits ? gvh_net_inherit(comm) : gvh_net_init(comm);
    if (rc)
        return rc;
    gvh_step("register");
    return open_boot(comm);
}

struct peer_info {
    int gpu, version;
    int pid;
};

static int check_peers(struct gvh_comm *comm, const struct peer_info *all)
{
    int members = 0;
    for (int r = 0; r < comm->boot.nlocal; r++) {
        comm->devices[r] = all[r].gpu;
        members += all[r].pid == gvh_process();
        if (all[r].version != gvh_release()->version)
            return gvh_fail(
                comm, GVH_INVALID_USAGE, "Mismatched NCCL version detected : rank %d", r);
        if (r != comm->rank && all[r].gpu == all[comm->rank].gpu)
            return gvh_fail(
                comm, GVH_INVALID_USAGE, "Duplicate GPU detected : rank %d and rank %d", comm->rank,
                r);
    }
    return gvh_clique_join(comm, members);
}

static int exchange_peers(struct gvh_comm *comm)
{
    struct peer_info mine = {gvh_gpu(comm->device), gvh_release()->version, gvh_process()};
    struct peer_info all[GVH_MAX_RANKS];

    gvh_lookups(GVH_AT_PEERS);
    int rc = gather(comm, &mine, sizeof(mine), all);
    return rc ? rc : check_peers(comm, all);
}

/* NCCL's own defaults matter to no one here; what counts is that the plugin sees finite, positive
 * numbers which it may change. */
static void preset_constants(struct gvh_tuner_constants *c)
{
    double *at = (double *)c;
    for (size_t i = 0; i < sizeof(*c) / sizeof(double); i++)
        at[i] = 1.0 + (double)i;
}

static int init_tuner(struct gvh_comm *comm)
{
    int rc;
    gvh_step("tuner");
    preset_constants(&comm->constants);
    if (!gvh_release()->tuner_first)
        gvh_read_choice(&comm->choice);
    rc = gvh_tuner_load(comm);
    if (gvh_release()->tuner_first)
        gvh_read_choice(&comm->choice);
    return rc;
}

static int run_steps(struct gvh_comm *comm)
{
    int rc = init_net(comm);
    if (!rc)
        rc = exchange_peers(comm);
    if (rc)
        return rc;
    gvh_step("lookup");
    if ((rc = gvh_topo(comm)))
        return rc;
    if ((rc = gather(comm, &comm->rank, sizeof(int), NULL))) /* graphs are made alike */
        return rc;
    gvh_step("connect");
    gvh_lookups(GVH_AT_CONNECT);
    gvh_report(comm);
    if ((rc = gvh_peers_ring(comm)) || (rc = init_tuner(comm)))
        return rc;
    if (comm->eval)
        comm->channels = comm->eval->channels;
    gvh_lookups(GVH_AT_READY);
    if ((rc = gvh_check_answers(comm)))
        return rc;
    gvh_step("ready");
    return gather(comm, &comm->rank, sizeof(int), NULL);
}

int gvh_init_rank(struct gvh_comm *comm)
{
    struct gvh_comm *former = gvh_current(comm);
    int device = gvh_get_device(), rc = GVH_SUCCESS;

    gvh_set_device(comm->device);
    if (comm->parent)
        rc = join_family(comm);
    if (!rc && !(comm->parent && comm->color < 0))
        rc = run_steps(comm);
    if (rc) {
        if (!comm->boot.file) /* failed before it met the others: they are told all the same */
            open_boot(comm);
        gvh_boot_give_up(&comm->boot, rc);
        GVH_INFO("init of rank %d ends with %d (%s)", comm->rank, rc, gvh_result_name(rc));
    }
    gvh_set_device(device);
    gvh_current(former);
    if (comm->handle)
        __atomic_store_n(
            comm->handle, comm->parent && comm->color < 0 && !rc ? NULL : comm, __ATOMIC_RELEASE);
    __atomic_store_n(&comm->result, rc, __ATOMIC_RELEASE);
    return rc;
}
