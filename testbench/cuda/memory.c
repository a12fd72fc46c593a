/* Device memory: this process's own, reserved and not touched until a twin writes to it. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "testbench/cuda/gv_virtual.h"

static size_t limit(const struct gv_world *w, int gpu)
{
    int mib = w->faults.gpu[gpu].free_mib;
    return (size_t)(mib ? mib : w->fabric.machine.gpus[gpu].memory_mib) << 20;
}

gv_cu_result gv_virtual_alloc(struct gv_world *w, int gpu, size_t bytes, uint64_t *out)
{
    size_t rounded = (bytes + 4095) & ~(size_t)4095;
    if (gpu >= 0 && w->gpu[gpu].used + rounded > limit(w, gpu))
        return GV_CU_OUT_OF_MEMORY;
    if (gpu < 0 && w->faults.pinned_mib &&
        w->pinned + rounded >
            (w->faults.pinned_mib < 0 ? 1 << 16 : (size_t)w->faults.pinned_mib << 20))
        return GV_CU_OUT_OF_MEMORY;
    if (w->nallocs == w->alloc_capacity) {
        int capacity = w->alloc_capacity ? 2 * w->alloc_capacity : 64;
        void *grown = realloc(w->allocs, sizeof(*w->allocs) * (size_t)capacity);
        if (!grown)
            return GV_CU_OUT_OF_MEMORY;
        w->allocs = grown;
        w->alloc_capacity = capacity;
    }
    void *at = mmap(
        NULL, rounded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return GV_CU_OUT_OF_MEMORY;
    w->allocs[w->nallocs++] = (struct gv_alloc){(uint64_t)(uintptr_t)at, rounded, gpu};
    *(gpu < 0 ? &w->pinned : &w->gpu[gpu].used) += rounded;
    *out = (uint64_t)(uintptr_t)at;
    return 0;
}

gv_cu_result gv_virtual_free(struct gv_world *w, uint64_t at)
{
    for (int i = 0; i < w->nallocs; i++) {
        struct gv_alloc *a = &w->allocs[i];
        if (a->at != at)
            continue;
        munmap((void *)(uintptr_t)at, a->bytes);
        *(a->gpu < 0 ? &w->pinned : &w->gpu[a->gpu].used) -= a->bytes;
        *a = w->allocs[--w->nallocs];
        return 0;
    }
    return 1; /* invalid value */
}

const struct gv_alloc *gv_virtual_find(const struct gv_world *w, uint64_t at)
{
    for (int i = 0; i < w->nallocs; i++)
        if (at >= w->allocs[i].at && at - w->allocs[i].at < w->allocs[i].bytes)
            return &w->allocs[i];
    return NULL;
}

/* The allocation, if a kernel on `gpu` may touch all of these bytes. */
static const struct gv_alloc *reach(struct gv_world *w, int gpu, uint64_t at, size_t bytes)
{
    const struct gv_alloc *a = gv_virtual_find(w, at);
    if (a && at - a->at + bytes <= a->bytes &&
        (a->gpu < 0 || a->gpu == gpu || w->gpu[gpu].peer[a->gpu]))
        return a;
    w->gpu[gpu].sticky = GV_CU_ILLEGAL_ADDRESS;
    return NULL;
}

void gv_virtual_store(struct gv_world *w, int gpu, uint64_t at, const void *from, size_t bytes)
{
    const struct gv_alloc *a = reach(w, gpu, at, bytes);
    unsigned char *to = (unsigned char *)(uintptr_t)at;
    if (!a)
        return;
    bool peer = a->gpu >= 0 && a->gpu != gpu;
    if (peer && gv_fault_on(w, GV_FAULT_HUNG, gpu, a->gpu))
        return;
    memcpy(to, from, bytes);
    /* Flags and counters are words; a corrupt path spoils the data between them. */
    if (bytes >= 16 &&
        (peer ? gv_fault_on(w, GV_FAULT_CORRUPT, gpu, a->gpu) : a->gpu < 0 && w->faults.control))
        to[bytes / 2] ^= 0x40;
}

void gv_virtual_load(struct gv_world *w, int gpu, uint64_t at, void *to, size_t bytes)
{
    if (reach(w, gpu, at, bytes))
        memcpy(to, (const void *)(uintptr_t)at, bytes);
    else
        memset(to, 0, bytes);
}
