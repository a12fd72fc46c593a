/* Which communicator the calling thread is making. */
#include <pthread.h>
#include <stddef.h>

#include "plugin/core/gv_comm.h"
#include "plugin/core/gv_locks.h"

/* The thread's communicator, and whether its look-ups belong to it. The first key's destructor
 * gives the communicator back when a thread ends in the middle of an init; the library is never
 * unloaded, so the destructor is always there. No _Thread_local: in a library that was opened late
 * the loader allocates those at first use, and ends the process where it cannot. */
static pthread_key_t mine_key, armed_key;
static bool have_keys;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Communicators whose init thread is not known yet. */
static struct gv_comm *listed;

static void thread_ends(void *comm)
{
    gv_comm_put(comm);
}

static void make_keys(void)
{
    have_keys =
        !pthread_key_create(&mine_key, thread_ends) && !pthread_key_create(&armed_key, NULL);
}

static bool keys(void)
{
    pthread_once(&once, make_keys);
    return have_keys;
}

static struct gv_comm *mine(void)
{
    return keys() ? pthread_getspecific(mine_key) : NULL;
}

static bool armed(void)
{
    return keys() && pthread_getspecific(armed_key);
}

/* What cannot be remembered is not armed: the thread's look-ups then belong to nobody. */
static void set_armed(bool on)
{
    if (armed() != on)
        pthread_setspecific(armed_key, on ? &have_keys : NULL);
}

/* Takes over the caller's hold on `comm`. */
static void keep(struct gv_comm *comm)
{
    struct gv_comm *before = mine();
    if (have_keys && !pthread_setspecific(mine_key, comm))
        gv_comm_put(before);
    else
        gv_comm_put(comm);
}

void gv_comm_arm(struct gv_comm *comm)
{
    gv_comm_hold(comm);
    keep(comm);
    set_armed(mine() == comm);
}

void gv_comm_disarm(void)
{
    set_armed(false);
}

void gv_comm_drop(void)
{
    set_armed(false);
    if (mine())
        keep(NULL);
}

void gv_comm_list(struct gv_comm *comm)
{
    gv_comm_hold(comm);
    gv_lock(GV_LOCK_LISTED);
    comm->next = listed;
    listed = comm;
    gv_unlock(GV_LOCK_LISTED);
}

/* Under the lock. True if it was there: the list's hold is the caller's then. */
static bool take_off(struct gv_comm *comm)
{
    for (struct gv_comm **p = &listed; *p; p = &(*p)->next) {
        if (*p != comm)
            continue;
        *p = comm->next;
        return true;
    }
    return false;
}

void gv_comm_unlist(struct gv_comm *comm)
{
    gv_lock(GV_LOCK_LISTED);
    bool found = take_off(comm);
    gv_unlock(GV_LOCK_LISTED);
    if (found)
        gv_comm_put(comm);
}

static bool may_ask(const struct gv_comm *comm, const void *asker)
{
    return !comm->library || !asker || comm->library == asker;
}

/* A look-up comes after NCCL's all-gather, and all ranks have registered before that. */
static bool is_complete(const struct gv_comm *comm)
{
    struct gv_registry_entry *entry = atomic_load(&comm->entry);
    return !entry || !comm->nranks || gv_registry_members(entry).count >= comm->nranks;
}

/* Whoever decides for the one decides the same for the other. */
static bool alike(const struct gv_comm *a, const struct gv_comm *b)
{
    struct gv_registry_entry *x = atomic_load(&a->entry), *y = atomic_load(&b->entry);
    return x && y && a->nranks && a->nranks == b->nranks && a->nccl_version == b->nccl_version &&
           a->library == b->library && gv_registry_members(x).gpus == gv_registry_members(y).gpus;
}

#define CANDIDATES 16

/* Under the lock. Undecided communicators on `gpu`, at most CANDIDATES. */
static int find_candidates(int gpu, const void *asker, struct gv_comm *found[CANDIDATES])
{
    int n = 0;
    for (struct gv_comm *c = listed; c && n < CANDIDATES; c = c->next)
        if (c->gpu == gpu && !atomic_load(&c->decided) && may_ask(c, asker))
            found[n++] = c;
    return n;
}

static int keep_complete(struct gv_comm *found[], int n)
{
    int kept = 0;
    for (int i = 0; i < n; i++)
        if (is_complete(found[i]))
            found[kept++] = found[i];
    return kept;
}

/* Under the lock. The communicator on `gpu` that a thread of `asker` works for; NULL where there is
 * none, or where it could be one of several with different plans: none of these may have one then.
 * Among equals all threads take the smallest key first, so that the ranks of one meet. */
static struct gv_comm *choose(int gpu, const void *asker)
{
    struct gv_comm *found[CANDIDATES], *first = NULL;
    int n = find_candidates(gpu, asker, found);
    bool same = n < CANDIDATES;
    if (n > 1)
        n = keep_complete(found, n);
    for (int i = 0; i < n; i++) {
        same = same && alike(found[0], found[i]);
        if (!first || found[i]->key < first->key)
            first = found[i];
    }
    if (n <= 1 || same)
        return first;
    for (int i = 0; i < n; i++)
        gv_comm_confuse(found[i]);
    return NULL;
}

static struct gv_comm *bind(const void *asker)
{
    gv_lock(GV_LOCK_LISTED);
    bool any = listed != NULL;
    gv_unlock(GV_LOCK_LISTED);
    if (!any)
        return NULL;
    int gpu = gv_state_current_gpu();
    if (gpu < 0)
        return NULL;
    gv_lock(GV_LOCK_LISTED);
    struct gv_comm *comm = choose(gpu, asker);
    bool was_listed = comm && take_off(comm); /* no other thread may choose it */
    gv_unlock(GV_LOCK_LISTED);
    if (comm)
        gv_comm_arm(comm);
    if (was_listed)
        gv_comm_put(comm);
    return comm;
}

struct gv_comm *gv_comm_of_this_thread(const void *asker)
{
    struct gv_comm *own = mine();
    return own && armed() && may_ask(own, asker) ? own : bind(asker);
}

struct gv_comm *gv_comm_take(const void *asker)
{
    struct gv_comm *own = mine(), *comm = own && may_ask(own, asker) ? own : bind(asker);
    if (!comm)
        return NULL;
    gv_comm_hold(comm);
    gv_comm_drop();
    return comm;
}
