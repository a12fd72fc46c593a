#include "plugin/abi/preload_comms.h"
#include "plugin/core/gv_locks.h"

#include <stdlib.h>

struct known {
    void *handle;
    struct gv_comm *comm;
    unsigned splits, shrinks;
    struct known *next;
};

/* Communicators alive in this process, by handle. A job has a handful, so a list does. */
static struct known *all;

/* Under the lock. Takes the handle's record out of the list. */
static struct known *unlink_known(void *handle)
{
    for (struct known **p = &all; *p; p = &(*p)->next) {
        struct known *k = *p;
        if (k->handle != handle)
            continue;
        *p = k->next;
        return k;
    }
    return NULL;
}

static void forget(struct known *k)
{
    if (!k)
        return;
    gv_comm_unlist(k->comm);
    gv_comm_put(k->comm);
    free(k);
}

void gv_handle_add(void *handle, struct gv_comm *comm)
{
    struct known *k = calloc(1, sizeof(*k));
    if (!k)
        return;
    k->handle = handle;
    k->comm = comm;
    gv_comm_hold(comm);
    gv_lock(GV_LOCK_HANDLES);
    struct known *before = unlink_known(handle);
    k->next = all;
    all = k;
    gv_unlock(GV_LOCK_HANDLES);
    forget(before);
}

void gv_handle_remove(void *handle)
{
    gv_lock(GV_LOCK_HANDLES);
    struct known *k = unlink_known(handle);
    gv_unlock(GV_LOCK_HANDLES);
    forget(k);
}

bool gv_handle_child(void *handle, bool shrink, struct gv_parent *out)
{
    bool found = false;
    gv_lock(GV_LOCK_HANDLES);
    for (struct known *k = all; k && !found; k = k->next) {
        if (k->handle != handle)
            continue;
        found = true;
        *out = (struct gv_parent){
            .key = k->comm->key,
            .gpu = k->comm->gpu,
            .nranks = k->comm->nranks,
            .nccl_version = k->comm->nccl_version,
            .proven = atomic_load(&k->comm->proven),
            .child = shrink ? k->shrinks++ : k->splits++,
        };
    }
    gv_unlock(GV_LOCK_HANDLES);
    return found;
}
