#pragma once
/* What the entry points of libcuda.so.1 have in common. */
#include "testbench/cuda/gv_virtual.h"

#define EXPORT __attribute__((visibility("default")))
#define INVALID 1
#define NOT_INITIALIZED 3
#define INVALID_CONTEXT 201
#define INVALID_HANDLE 400
#define current gv_virtual_current

/* Every entry point has its prototype here, from the one table that gv100 loads by. */
#define CU_X(field, symbol, args) gv_cu_result gv_v_##field args __asm__(symbol) EXPORT;
GV_CUDA_FUNCTIONS(CU_X)
#undef CU_X

/* The context of this thread, as cuCtxSetCurrent sets it. */
extern __thread struct gv_vgpu *gv_virtual_current;

/* Takes the lock; on failure it is not held. */
static inline struct gv_world *enter(void)
{
    gv_world_lock();
    struct gv_world *w = gv_world();
    if (!w)
        gv_world_unlock();
    return w;
}

static inline gv_cu_result leave(gv_cu_result rc)
{
    gv_world_unlock();
    return rc;
}

/* Enters with a context; what went wrong on its GPU before is answered again. */
#define ENTER(w)                                                                                   \
    struct gv_world *w = enter();                                                                  \
    if (!w)                                                                                        \
        return NOT_INITIALIZED;
#define ENTER_CONTEXT(w)                                                                           \
    ENTER(w)                                                                                       \
    if (!current)                                                                                  \
        return leave(INVALID_CONTEXT);                                                             \
    if (current->sticky)                                                                           \
        return leave(current->sticky);
