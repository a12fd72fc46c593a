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

void gv_comm_unlist(struct gv_comm *comm)
{
    bool found = false;
    gv_lock(GV_LOCK_LISTED);
    for (struct gv_comm **p = &listed; *p; p = &(*p)->next) {
        if (*p != comm)
            continue;
        *p = comm->next;
        found = true;
        break;
    }
    gv_unlock(GV_LOCK_LISTED);
    if (found)
        gv_comm_put(comm);
}

/* Under the lock. The one undecided communicator on `gpu`; NULL where there is none, or where there
 * are several: then none of them may have a plan, since it could be another's. */
static struct gv_comm *only_candidate(int gpu)
{
    struct gv_comm *found = NULL;
    int n = 0;
    for (struct gv_comm *c = listed; c; c = c->next) {
        if (c->gpu != gpu || atomic_load(&c->decided))
            continue;
        found = c;
        n++;
    }
    if (n < 2)
        return found;
    for (struct gv_comm *c = listed; c; c = c->next)
        if (c->gpu == gpu && !atomic_load(&c->decided))
            gv_comm_confuse(c);
    return NULL;
}

static struct gv_comm *bind(void)
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
    struct gv_comm *comm = only_candidate(gpu);
    if (comm)
        gv_comm_arm(comm);
    gv_unlock(GV_LOCK_LISTED);
    if (comm)
        gv_comm_unlist(comm);
    return comm;
}

struct gv_comm *gv_comm_of_this_thread(void)
{
    struct gv_comm *own = mine();
    return own && armed() ? own : bind();
}

struct gv_comm *gv_comm_take(void)
{
    struct gv_comm *own = mine(), *comm = own ? own : bind();
    if (!comm)
        return NULL;
    gv_comm_hold(comm);
    gv_comm_drop();
    return comm;
}
