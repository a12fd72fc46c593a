/* Preload: the calls that make and end communicators. Each registers this rank before NCCL's own
 * function runs; whoever looks up the topology afterwards is matched by thread, or by the GPU that
 * it drives. Groups and nonblocking calls need nothing else: the communicator stays listed until
 * its init thread comes. ncclGroupStart and ncclGroupEnd are on the hot path and left alone. */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/gv_hash.h"
#include "plugin/abi/gv_nccl_abi.h"
#include "plugin/abi/gv_release.h"
#include "plugin/abi/preload_comms.h"
#include "plugin/abi/preload_real.h"
#include "plugin/core/gv_env.h"
#include "plugin/core/gv_object.h"
#include "plugin/core/gv_state.h"

#define CALLER __builtin_return_address(0)

typedef struct gv_nccl_unique_id unique_id;

/* NULL where nothing can be planned in this process, or memory is short. */
static struct gv_comm *announce(uint64_t key, int gpu, int nranks, const void *real)
{
    if (!gv_state()->usable)
        return NULL;
    struct gv_comm *comm = gv_comm_new(key, gpu, nranks, gv_release_of(real));
    if (!comm)
        return NULL;
    comm->library = gv_nccl_of(real);
    gv_comm_list(comm);
    return comm;
}

/* After NCCL's call: `handle` is what it made, NULL where it is not made yet or failed. */
static int finish(struct gv_comm *comm, int result, void *handle)
{
    if (!comm)
        return result;
    if (comm->gpu < 0)
        gv_comm_report(comm); /* no look-up will ever be matched to it */
    bool pending = result == GV_NCCL_SUCCESS || result == GV_NCCL_IN_PROGRESS;
    if (atomic_load(&comm->decided))
        gv_comm_leave(comm);
    if (!pending || atomic_load(&comm->decided))
        gv_comm_unlist(comm);
    if (pending && handle)
        gv_handle_add(handle, comm);
    gv_comm_put(comm);
    return result;
}

/* Outside groups and nonblocking calls NCCL's look-ups come on this very thread. */
#define WITH_THREAD(comm, call)                                                                    \
    do {                                                                                           \
        if (comm)                                                                                  \
            gv_comm_arm(comm);                                                                     \
        result = (call);                                                                           \
        if (comm)                                                                                  \
            gv_comm_drop();                                                                        \
    } while (0)

GV_EXPORT int ncclCommInitRank(void **comm, int nranks, unique_id id, int rank);
GV_EXPORT int ncclCommInitRankConfig(void **comm, int nranks, unique_id id, int rank, void *config);
GV_EXPORT int
ncclCommInitRankScalable(void **comm, int nranks, int rank, int nid, unique_id *ids, void *config);
GV_EXPORT int ncclCommInitAll(void **comms, int ndev, const int *devices);
GV_EXPORT int ncclCommSplit(void *parent, int color, int key, void **comm, void *config);
GV_EXPORT int
ncclCommShrink(void *parent, int *exclude, int nexclude, void **comm, void *config, int flags);
GV_EXPORT int ncclCommDestroy(void *comm);
GV_EXPORT int ncclCommAbort(void *comm);

int ncclCommInitRank(void **comm, int nranks, unique_id id, int rank)
{
    int (*real)(void **, int, unique_id, int) = gv_real(__func__, CALLER);
    if (!real)
        return GV_NCCL_INTERNAL_ERROR;
    uint64_t key = gv_hash_bytes(GV_HASH_START, &id, sizeof(id));
    struct gv_comm *ours = announce(key, gv_state_current_gpu(), nranks, (const void *)real);
    int result;
    WITH_THREAD(ours, real(comm, nranks, id, rank));
    return finish(ours, result, comm ? __atomic_load_n(comm, __ATOMIC_ACQUIRE) : NULL);
}

int ncclCommInitRankConfig(void **comm, int nranks, unique_id id, int rank, void *config)
{
    int (*real)(void **, int, unique_id, int, void *) = gv_real(__func__, CALLER);
    if (!real)
        return GV_NCCL_INTERNAL_ERROR;
    uint64_t key = gv_hash_bytes(GV_HASH_START, &id, sizeof(id));
    struct gv_comm *ours = announce(key, gv_state_current_gpu(), nranks, (const void *)real);
    int result;
    WITH_THREAD(ours, real(comm, nranks, id, rank, config));
    return finish(ours, result, comm ? __atomic_load_n(comm, __ATOMIC_ACQUIRE) : NULL);
}

int ncclCommInitRankScalable(
    void **comm, int nranks, int rank, int nid, unique_id *ids, void *config)
{
    int (*real)(void **, int, int, int, unique_id *, void *) = gv_real(__func__, CALLER);
    if (!real)
        return GV_NCCL_INTERNAL_ERROR;
    size_t size = ids && nid > 0 ? sizeof(*ids) * (size_t)nid : 0;
    uint64_t key = gv_hash_bytes(GV_HASH_START, ids, size);
    struct gv_comm *ours =
        size ? announce(key, gv_state_current_gpu(), nranks, (const void *)real) : NULL;
    int result;
    WITH_THREAD(ours, real(comm, nranks, rank, nid, ids, config));
    return finish(ours, result, comm ? __atomic_load_n(comm, __ATOMIC_ACQUIRE) : NULL);
}

/* All ranks are threads of this process that NCCL starts, so none of them is the caller. */
int ncclCommInitAll(void **comms, int ndev, const int *devices)
{
    int (*real)(void **, int, const int *) = gv_real(__func__, CALLER);
    if (!real)
        return GV_NCCL_INTERNAL_ERROR;
    struct gv_comm *ours[GV_MAX_GPUS] = {0};
    bool sensible = comms && ndev > 0 && ndev <= GV_MAX_GPUS && gv_state()->usable;
    uint64_t key;
    if (sensible && getrandom(&key, sizeof(key), GRND_NONBLOCK) == (ssize_t)sizeof(key))
        for (int i = 0; i < ndev; i++)
            ours[i] = announce(
                key, gv_state_ordinal_gpu(devices ? devices[i] : i), ndev, (const void *)real);
    int result = real(comms, ndev, devices);
    for (int i = 0; sensible && i < ndev; i++)
        finish(ours[i], result, comms[i]);
    return result;
}

/* A child that shares its parent's resources gets the default: its connections are the parent's. */
static bool shares(const struct gv_nccl_config *config, bool shrink)
{
    const char *variable =
        gv_env_get(shrink ? "NCCL_COMM_SHRINK_SHARE_RESOURCES" : "NCCL_COMM_SPLIT_SHARE_RESOURCES");
    if (variable && *variable)
        return strcmp(variable, "0") != 0;
    if (!config)
        return false;
    size_t need = shrink ? offsetof(struct gv_nccl_config, shrink_share) + sizeof(int)
                         : offsetof(struct gv_nccl_config, split_share) + sizeof(int);
    return config->size >= need && (shrink ? config->shrink_share : config->split_share) == 1;
}

/* `tag` tells children of one parent apart: the color, or the ranks left out. `nranks` 0: not known
 * before NCCL has asked everybody. */
static struct gv_comm *
announce_child(void *handle, bool shrink, uint64_t tag, int left_out, const void *real)
{
    struct gv_parent parent;
    if (!gv_state()->usable || !gv_handle_child(handle, shrink, &parent))
        return NULL;
    uint64_t key = gv_hash_u64(parent.key, shrink);
    key = gv_hash_u64(gv_hash_u64(key, parent.child), tag);
    int nranks = shrink && parent.nranks ? parent.nranks - left_out : 0;
    struct gv_comm *comm = announce(key, parent.gpu, nranks, real);
    if (comm)
        atomic_store(&comm->proven, parent.proven);
    return comm;
}

int ncclCommSplit(void *parent, int color, int key, void **comm, void *config)
{
    int (*real)(void *, int, int, void **, void *) = gv_real(__func__, CALLER);
    if (!real)
        return GV_NCCL_INTERNAL_ERROR;
    struct gv_comm *ours = announce_child(parent, false, (uint64_t)color, 0, (const void *)real);
    if (ours && (color < 0 || shares(config, false))) {
        gv_comm_unlist(ours); /* the split is counted all the same, as on the other ranks */
        gv_comm_put(ours);
        ours = NULL;
    }
    int result;
    WITH_THREAD(ours, real(parent, color, key, comm, config));
    return finish(ours, result, comm ? __atomic_load_n(comm, __ATOMIC_ACQUIRE) : NULL);
}

int ncclCommShrink(void *parent, int *exclude, int nexclude, void **comm, void *config, int flags)
{
    int (*real)(void *, int *, int, void **, void *, int) = gv_real(__func__, CALLER);
    if (!real)
        return GV_NCCL_INTERNAL_ERROR;
    size_t size = exclude && nexclude > 0 ? sizeof(*exclude) * (size_t)nexclude : 0;
    uint64_t tag = gv_hash_bytes(GV_HASH_START, exclude, size);
    struct gv_comm *ours = announce_child(parent, true, tag, nexclude, (const void *)real);
    if (ours && shares(config, true)) {
        gv_comm_unlist(ours);
        gv_comm_put(ours);
        ours = NULL;
    }
    int result;
    WITH_THREAD(ours, real(parent, exclude, nexclude, comm, config, flags));
    return finish(ours, result, comm ? __atomic_load_n(comm, __ATOMIC_ACQUIRE) : NULL);
}

int ncclCommDestroy(void *comm)
{
    int (*real)(void *) = gv_real(__func__, CALLER);
    gv_handle_remove(comm);
    return real ? real(comm) : GV_NCCL_INTERNAL_ERROR;
}

int ncclCommAbort(void *comm)
{
    int (*real)(void *) = gv_real(__func__, CALLER);
    gv_handle_remove(comm);
    return real ? real(comm) : GV_NCCL_INTERNAL_ERROR;
}
