#include "testbench/host/engine.h"

/* CUDA's limit of peer mappings holds for the GPU, whatever communicator asked. */
static struct {
    pthread_mutex_t lock;
    uint64_t mapped[GV_NCCL_MAX_GPUS];
} peers = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int map(struct gvh_comm *comm, int gpu, int peer)
{
    pthread_mutex_lock(&peers.lock);
    uint64_t with = peers.mapped[gpu] | (uint64_t)1 << peer;
    bool fits = __builtin_popcountll(with) <= GV_NCCL_MAX_PEERS;
    if (fits)
        peers.mapped[gpu] = with;
    pthread_mutex_unlock(&peers.lock);
    if (fits)
        return GVH_SUCCESS;
    return gvh_fail(
        comm, GVH_CUDA_ERROR,
        "GPU %d failed to peer with device %d: 711 peer mapping resources exhausted", gpu, peer);
}

/* The GPU whose memory is mapped to reach rank `to`: the one in between for an indirect path. */
static int map_rank(struct gvh_comm *comm, int to)
{
    const struct gv_nccl_pair *pair = &comm->eval->pair[comm->rank][to];
    if (to == comm->rank || !pair->p2p)
        return GVH_SUCCESS;
    return map(comm, comm->devices[comm->rank], comm->devices[pair->via >= 0 ? pair->via : to]);
}

static int rank_of(const struct gvh_comm *comm, int gpu)
{
    int r = 0;
    while (r < comm->eval->n && comm->devices[r] != gpu)
        r++;
    return r;
}

int gvh_peers_ring(struct gvh_comm *comm)
{
    const struct gv_nccl_eval_out *eval = comm->eval;
    int at = 0;
    while (at < eval->n && eval->ring[at] != comm->devices[comm->rank])
        at++;
    int next = rank_of(comm, eval->ring[(at + 1) % eval->n]);
    int prev = rank_of(comm, eval->ring[(at + eval->n - 1) % eval->n]);
    int rc = map_rank(comm, next);
    return rc ? rc : map_rank(comm, prev);
}

int gvh_peers_all(struct gvh_comm *comm)
{
    int rc = GVH_SUCCESS;
    for (int r = 0; !rc && r < comm->eval->n; r++)
        rc = map_rank(comm, r);
    return rc;
}
