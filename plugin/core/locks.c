#include "plugin/core/gv_locks.h"

#include <stdatomic.h>

static pthread_mutex_t locks[GV_LOCKS] = {
    PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
    PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};

void gv_lock(enum gv_lock which)
{
    pthread_mutex_lock(&locks[which]);
}

void gv_unlock(enum gv_lock which)
{
    pthread_mutex_unlock(&locks[which]);
}

static void lock_all(void)
{
    for (int i = 0; i < GV_LOCKS; i++)
        gv_lock((enum gv_lock)i);
}

static void unlock_all(void)
{
    for (int i = GV_LOCKS - 1; i >= 0; i--)
        gv_unlock((enum gv_lock)i);
}

void gv_locks_survive_fork(void)
{
    static atomic_flag done = ATOMIC_FLAG_INIT;
    if (!atomic_flag_test_and_set(&done))
        pthread_atfork(lock_all, unlock_all, unlock_all);
}
