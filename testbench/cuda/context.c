/* Contexts, peer access, memory. */
#include "testbench/cuda/entry.h"

__thread struct gv_vgpu *gv_virtual_current;

gv_cu_result gv_v_ctx_retain(gv_cu_ctx *ctx, gv_cu_device device)
{
    ENTER(w)
    *ctx = (gv_cu_ctx)&w->gpu[device];
    return leave(w->gpu[device].sticky);
}

gv_cu_result gv_v_ctx_release(gv_cu_device device)
{
    (void)device;
    return 0;
}

gv_cu_result gv_v_ctx_set(gv_cu_ctx ctx)
{
    current = (struct gv_vgpu *)ctx;
    return 0;
}

gv_cu_result gv_v_ctx_sync(void)
{
    ENTER_CONTEXT(w)
    return leave(gv_virtual_advance(w, NULL));
}

gv_cu_result gv_v_peer_enable(gv_cu_ctx ctx, unsigned flags)
{
    int peer = ((struct gv_vgpu *)ctx)->index;
    (void)flags;
    ENTER_CONTEXT(w)
    if (!gv_fabric_p2p(&w->fabric, current->index, peer) ||
        gv_fault_on(w, GV_FAULT_ONE_WAY, peer, current->index) ||
        gv_fault_on(w, GV_FAULT_NO_ENABLE, current->index, peer))
        return leave(GV_CU_PEER_ACCESS_UNSUPPORTED);
    if (current->peer[peer])
        return leave(GV_CU_PEER_ACCESS_ALREADY_ENABLED);
    if (current->npeers == w->fabric.max_peers)
        return leave(GV_CU_TOO_MANY_PEERS);
    current->peer[peer] = true;
    current->npeers++;
    return leave(0);
}

gv_cu_result gv_v_peer_disable(gv_cu_ctx ctx)
{
    int peer = ((struct gv_vgpu *)ctx)->index;
    ENTER_CONTEXT(w)
    if (!current->peer[peer])
        return leave(GV_CU_PEER_ACCESS_NOT_ENABLED);
    current->peer[peer] = false;
    current->npeers--;
    return leave(0);
}

gv_cu_result gv_v_mem_info(size_t *free_bytes, size_t *total)
{
    ENTER_CONTEXT(w)
    int mib = w->faults.gpu[current->index].free_mib;
    *total = (size_t)w->fabric.machine.gpus[current->index].memory_mib << 20;
    *free_bytes = (mib ? (size_t)mib << 20 : *total) - current->used;
    return leave(0);
}

gv_cu_result gv_v_mem_alloc(gv_cu_ptr *at, size_t bytes)
{
    ENTER_CONTEXT(w)
    return leave(bytes ? gv_virtual_alloc(w, current->index, bytes, at) : INVALID);
}

gv_cu_result gv_v_mem_free(gv_cu_ptr at)
{
    ENTER_CONTEXT(w)
    return leave(gv_virtual_free(w, at));
}

gv_cu_result gv_v_host_alloc(void **out, size_t bytes, unsigned flags)
{
    (void)flags;
    ENTER_CONTEXT(w)
    uint64_t at = 0;
    gv_cu_result rc = gv_virtual_alloc(w, -1, bytes, &at);
    *out = (void *)(uintptr_t)at;
    return leave(rc);
}

gv_cu_result gv_v_host_free(void *at)
{
    ENTER(w)
    return leave(gv_virtual_free(w, (uint64_t)(uintptr_t)at));
}

gv_cu_result gv_v_host_pointer(gv_cu_ptr *out, void *at, unsigned flags)
{
    (void)flags;
    *out = (uint64_t)(uintptr_t)at;
    return 0;
}

/* Not asked by gv100, but by NCCL and by plugins. */
EXPORT gv_cu_result cuCtxGetDevice(gv_cu_device *device);

gv_cu_result cuCtxGetDevice(gv_cu_device *device)
{
    if (!current)
        return INVALID_CONTEXT;
    *device = current->index;
    return 0;
}
