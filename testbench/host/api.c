/* The public calls: what they check, whether they form a group, where their job goes. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "testbench/host/engine.h"

/* Communicators are kept, so that what became of them can be read to the end. */
static struct {
    pthread_mutex_t lock;
    struct kept {
        struct gvh_comm comm;
        struct kept *next;
    } * list;
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct gvh_comm *new_comm(void)
{
    struct kept *k = calloc(1, sizeof(*k));
    if (!k)
        abort();
    k->comm.tag = gvh_tag();
    k->comm.nnodes = 1;
    k->comm.blocking = 1;
    k->comm.algorithm = k->comm.protocol = -1;
    k->comm.choice = (struct gvh_choice){~0u, ~0u};
    k->comm.abort = &k->comm.abort_flag;
    k->comm.result = GVH_IN_PROGRESS;
    pthread_mutex_lock(&kept.lock);
    k->next = kept.list;
    kept.list = k;
    pthread_mutex_unlock(&kept.lock);
    return &k->comm;
}

int ncclGetVersion(int *version)
{
    *version = gvh_release()->version;
    return GVH_SUCCESS;
}

static void setup_once(void)
{
    gvh_lookups(GVH_AT_SETUP);
}

static int setup(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int rc = gvh_env_init();
    if (!rc)
        pthread_once(&once, setup_once);
    return rc;
}

int pncclGetVersion(int *version)
{
    return ncclGetVersion(version);
}

int ncclGetUniqueId(ncclUniqueId *id)
{
    int rc = setup();
    if (rc)
        return gvh_fail(NULL, rc, "the env plugin's init returned %d", rc);
    gvh_getenv("NCCL_COMM_ID");
    memset(id, 0, sizeof(*id));
    return getrandom(id->internal, 16, 0) == 16 ? GVH_SUCCESS : GVH_SYSTEM_ERROR;
}

/* Fields that the caller's release did not have yet lie beyond `size`. */
#define HAS(config, field)                                                                         \
    ((config) && (config)->size >= offsetof(ncclConfig_t, field) + sizeof((config)->field))

static int read_config(struct gvh_comm *comm, const ncclConfig_t *config)
{
    if (config && config->magic != GV_HOST_CONFIG_MAGIC)
        return gvh_fail(
            comm, GVH_INVALID_ARGUMENT,
            "ncclConfig_t argument not initialized via NCCL_CONFIG_INITIALIZER");
    if (HAS(config, blocking) && config->blocking != GV_HOST_UNDEF)
        comm->blocking = config->blocking;
    if (HAS(config, split_share) && config->split_share != GV_HOST_UNDEF)
        comm->share = config->split_share == 1;
    int64_t share = gvh_param("NCCL_COMM_SPLIT_SHARE_RESOURCES", -1);
    if (share >= 0)
        comm->share = share == 1;
    const char *name = gvh_getenv("NCCL_NET");
    if (!name && HAS(config, net_name))
        name = config->net_name;
    comm->net_name = name ? strdup(name) : NULL;
    gvh_lookups(GVH_AT_CONFIG);
    return GVH_SUCCESS;
}

static int nodes(void)
{
    const char *text = getenv("GV_HOST_NODES");
    int n = text ? atoi(text) : 1;
    return n > 0 ? n : 1;
}

static int
init_rank(ncclComm_t *out, int nranks, const ncclUniqueId *id, int rank, const ncclConfig_t *config)
{
    int rc = setup();
    if (rc)
        return gvh_fail(NULL, rc, "the env plugin's init returned %d", rc);
    if (nranks < 1 || nranks > GVH_MAX_RANKS || rank < 0 || rank >= nranks)
        return gvh_fail(NULL, GVH_INVALID_ARGUMENT, "Invalid rank requested : %d/%d", rank, nranks);
    struct gvh_comm *comm = new_comm();
    comm->rank = rank;
    comm->nranks = nranks;
    comm->nnodes = nranks % nodes() == 0 ? nodes() : 1;
    comm->device = gvh_get_device();
    comm->id = gvh_hash(id, sizeof(*id), 0);
    comm->key = gvh_hash(id, sizeof(*id), 3);
    __atomic_store_n(out, comm, __ATOMIC_RELEASE); /* another thread may abort it from now on */
    if ((rc = read_config(comm, config)))
        return rc;
    gvh_getenv("NCCL_COMM_ID");
    return gvh_launch(comm);
}

/* Ends the group that the call itself opened. */
static int end(int rc, const ncclComm_t *comm)
{
    int ended = gvh_group_end();
    if (rc)
        return rc;
    ncclComm_t made = comm ? __atomic_load_n(comm, __ATOMIC_ACQUIRE) : NULL;
    if (made && !made->blocking)
        return __atomic_load_n(&made->result, __ATOMIC_ACQUIRE);
    return ended;
}

int ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank)
{
    return init_rank(comm, nranks, &id, rank, NULL);
}

int ncclCommInitRankConfig(
    ncclComm_t *comm, int nranks, ncclUniqueId id, int rank, ncclConfig_t *config)
{
    gvh_group_start();
    return end(init_rank(comm, nranks, &id, rank, config), comm);
}

int ncclCommInitRankScalable(
    ncclComm_t *comm, int nranks, int rank, int nids, ncclUniqueId *ids, ncclConfig_t *config)
{
    if (nids < 1 || nids > nranks)
        return GVH_INVALID_ARGUMENT;
    gvh_group_start();
    return end(init_rank(comm, nranks, &ids[0], rank, config), comm);
}

int ncclCommInitAll(ncclComm_t *comms, int ndev, const int *devices)
{
    ncclUniqueId id;
    if (!comms || ndev < 0 || ndev > GVH_MAX_RANKS)
        return GVH_INVALID_ARGUMENT;
    int device = gvh_get_device();
    int rc = ncclGetUniqueId(&id);
    if (rc)
        return rc;
    gvh_group_start();
    for (int i = 0; i < ndev; i++) {
        gvh_set_device(devices ? devices[i] : i);
        init_rank(&comms[i], ndev, &id, i, NULL);
    }
    rc = gvh_group_end();
    gvh_set_device(device);
    return rc;
}

static struct gvh_comm *
new_child(struct gvh_comm *parent, ncclComm_t *out, const ncclConfig_t *config, bool inherits)
{
    struct gvh_comm *child = new_comm();
    child->parent = parent;
    child->device = parent->device;
    child->nnodes = parent->nnodes;
    child->inherits = inherits;
    if (inherits)
        child->abort = parent->abort;
    child->blocking = parent->blocking;
    child->share = parent->share;
    if (config)
        read_config(child, config);
    else
        child->net_name = parent->net_name ? strdup(parent->net_name) : NULL;
    child->handle = out;
    *out = NULL;
    parent->children++;
    return child;
}

int ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *out, ncclConfig_t *config)
{
    if (!comm || comm->result)
        return GVH_INVALID_ARGUMENT;
    gvh_group_start();
    struct gvh_comm *child = new_child(comm, out, config, comm->share);
    child->color = color;
    child->order = key;
    comm->splits++;
    return end(gvh_launch(child), out);
}

int ncclCommShrink(
    ncclComm_t comm, int *excluded, int nexcluded, ncclComm_t *out, ncclConfig_t *config, int flags)
{
    if (!comm || comm->result || nexcluded < 1)
        return GVH_INVALID_ARGUMENT;
    gvh_group_start();
    /* Bit 0 of flags is the error mode, which shares nothing. */
    struct gvh_comm *child = new_child(comm, out, config, comm->share && !(flags & 1));
    child->excluded = malloc((size_t)nexcluded * sizeof(int));
    memcpy(child->excluded, excluded, (size_t)nexcluded * sizeof(int));
    child->nexcluded = nexcluded;
    return end(gvh_launch(child), out);
}

int ncclCommGetAsyncError(ncclComm_t comm, int *error)
{
    *error = comm ? __atomic_load_n(&comm->result, __ATOMIC_ACQUIRE) : GVH_INVALID_ARGUMENT;
    return GVH_SUCCESS;
}

static void wait_ready(struct gvh_comm *comm)
{
    while (__atomic_load_n(&comm->result, __ATOMIC_ACQUIRE) == GVH_IN_PROGRESS)
        nanosleep(&(struct timespec){0, 200000}, NULL);
}

int ncclCommFinalize(ncclComm_t comm)
{
    return comm ? GVH_SUCCESS : GVH_INVALID_ARGUMENT; /* plugins hear nothing of it */
}

static void *leave(void *comm)
{
    return (void *)(intptr_t)gvh_clique_leave(comm);
}

/* A group's job from 2.24 on: a thread of its own, or the caller's where that is how sole jobs run.
 */
static int reclaim(struct gvh_comm *comm)
{
    pthread_t thread;
    void *rc = NULL;

    wait_ready(comm);
    if (gvh_release()->version < 22400 || gvh_release()->sole_job_inline)
        return gvh_clique_leave(comm);
    if (pthread_create(&thread, NULL, leave, comm))
        return GVH_SYSTEM_ERROR;
    pthread_join(thread, &rc);
    return (int)(intptr_t)rc;
}

int ncclCommDestroy(ncclComm_t comm)
{
    return comm ? reclaim(comm) : GVH_SUCCESS;
}

int ncclCommAbort(ncclComm_t comm)
{
    if (!comm)
        return GVH_SUCCESS;
    __atomic_store_n(comm->abort, 1, __ATOMIC_RELEASE);
    return reclaim(comm);
}

int ncclCommCount(ncclComm_t comm, int *count)
{
    *count = comm->nranks;
    return GVH_SUCCESS;
}

int ncclCommUserRank(ncclComm_t comm, int *rank)
{
    *rank = comm->rank;
    return GVH_SUCCESS;
}

int ncclCommCuDevice(ncclComm_t comm, int *device)
{
    *device = comm->device;
    return GVH_SUCCESS;
}

const char *ncclGetErrorString(int result)
{
    return gvh_result_name(result);
}

const char *ncclGetLastError(ncclComm_t comm)
{
    return comm ? comm->error : "";
}

void gv_host_result(ncclComm_t comm, struct gv_host_result *out)
{
    *out = (struct gv_host_result){
        .rank = comm->rank,
        .nranks = comm->nranks,
        .device = comm->device,
        .comm_id = comm->id,
        .eval = comm->eval,
        .topology_file = comm->topo_file,
        .topology_path = comm->topo_path,
        .algorithm = comm->algorithm,
        .protocol = comm->protocol,
        .channels = comm->channels,
        .error = comm->error,
    };
}
