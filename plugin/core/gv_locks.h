/* The locks of this library, all in one place since they have an order: who holds one may take
 * those that stand behind it. A host process may fork at any moment, so all are taken around a
 * fork: a child never finds one held by a thread that it does not have. None is held while waiting
 * for other ranks. */
#ifndef GV_LOCKS_H
#define GV_LOCKS_H

#include <pthread.h>

enum gv_lock {
    GV_LOCK_TUNER_V1,  /* abi/tuner_v1.c: the table that all communicators share */
    GV_LOCK_HANDLES,   /* abi/preload_comms.c: communicators by NCCL's handle */
    GV_LOCK_LISTED,    /* thread.c: communicators whose thread is not known yet */
    GV_LOCK_DECISIONS, /* decision.c: the decisions that are kept */
    GV_LOCK_LOG,       /* log.c: lines that wait, and what was said */
    GV_LOCKS
};

void gv_lock(enum gv_lock which);
void gv_unlock(enum gv_lock which);

/* From now on the locks are taken around a fork. Later calls change nothing. */
void gv_locks_survive_fork(void);

#endif
