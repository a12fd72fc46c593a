/* What the device code needs of CUDA, without CUDA's headers, so that clang builds it alone and
 * nvcc as well. */
#ifndef GV_DEVICE_H
#define GV_DEVICE_H

#include "kernels/gv_kernel_args.h"

#if defined(__clang__) && !defined(__CUDACC_VER_MAJOR__)
#define GV_GLOBAL extern "C" __attribute__((global))
#define GV_DEV static inline __attribute__((device, always_inline))
#define GV_TID __nvvm_read_ptx_sreg_tid_x()
#define GV_BID __nvvm_read_ptx_sreg_ctaid_x()
#define GV_BLOCK __nvvm_read_ptx_sreg_ntid_x()
#define GV_GRID __nvvm_read_ptx_sreg_nctaid_x()
#else
#define GV_GLOBAL extern "C" __global__
#define GV_DEV static __device__ __forceinline__
#define GV_TID threadIdx.x
#define GV_BID blockIdx.x
#define GV_BLOCK blockDim.x
#define GV_GRID gridDim.x
#endif

struct gv_vec {
    gv_u32 x, y, z, w;
};

/* Plain, streaming (.cs: read or written once, first to leave the cache) and volatile accesses of
 * 16 bytes. */
GV_DEV gv_vec gv_load(gv_u64 at)
{
    gv_vec v;
    asm volatile("ld.global.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(at)
                 : "memory");
    return v;
}

GV_DEV gv_vec gv_load_cs(gv_u64 at)
{
    gv_vec v;
    asm volatile("ld.global.cs.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(at)
                 : "memory");
    return v;
}

GV_DEV gv_vec gv_load_volatile(gv_u64 at)
{
    gv_vec v;
    asm volatile("ld.volatile.global.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(at)
                 : "memory");
    return v;
}

GV_DEV void gv_store(gv_u64 at, gv_vec v)
{
    asm volatile("st.global.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(at), "r"(v.x), "r"(v.y), "r"(v.z),
                 "r"(v.w)
                 : "memory");
}

GV_DEV void gv_store_cs(gv_u64 at, gv_vec v)
{
    asm volatile("st.global.cs.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(at), "r"(v.x), "r"(v.y), "r"(v.z),
                 "r"(v.w)
                 : "memory");
}

#ifdef GV_HINTS
GV_DEV gv_vec gv_load_hinted(gv_u64 at)
{
    gv_vec v;
    asm volatile("ld.global.L1::no_allocate.L2::256B.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(at)
                 : "memory");
    return v;
}

GV_DEV void gv_store_hinted(gv_u64 at, gv_vec v)
{
    asm volatile("st.global.L1::no_allocate.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(at), "r"(v.x),
                 "r"(v.y), "r"(v.z), "r"(v.w)
                 : "memory");
}
#endif

/* Words that other GPUs and the host read and write. */
GV_DEV gv_u32 gv_load_acquire(gv_u64 at)
{
    gv_u32 v;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(at) : "memory");
    return v;
}

GV_DEV void gv_store_release(gv_u64 at, gv_u32 v)
{
    asm volatile("fence.acq_rel.sys; st.release.sys.global.u32 [%0], %1;" ::"l"(at), "r"(v)
                 : "memory");
}

GV_DEV void gv_barrier()
{
    asm volatile("bar.sync 0;" ::: "memory");
}

GV_DEV gv_u64 gv_nanoseconds()
{
    gv_u64 t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)::"memory");
    return t;
}

GV_DEV void gv_atomic_add(gv_u64 at, gv_u64 v)
{
    asm volatile("red.global.add.u64 [%0], %1;" ::"l"(at), "l"(v) : "memory");
}

GV_DEV void gv_atomic_min(gv_u64 at, gv_u64 v)
{
    asm volatile("red.global.min.u64 [%0], %1;" ::"l"(at), "l"(v) : "memory");
}

/* Waits until the word is at least `value` (counters only grow). False: gave up at the timeout. */
GV_DEV bool gv_wait(gv_u64 at, gv_u32 value, gv_u64 timeout_ns)
{
    if (gv_load_acquire(at) >= value)
        return true;
    gv_u64 begin = gv_nanoseconds();
    for (;;) {
        for (int i = 0; i < 64; i++)
            if (gv_load_acquire(at) >= value)
                return true;
        if (gv_nanoseconds() - begin > timeout_ns)
            return false;
    }
}

/* Word w of unit i of the pattern. The same arithmetic stands in twin.c. */
GV_DEV gv_u32 gv_pattern_word(gv_u64 i, gv_u32 w, gv_u32 seed)
{
    gv_u32 h = (gv_u32)i * 0x9e3779b1u + (gv_u32)(i >> 32) * 0x85ebca77u + w * 0xc2b2ae3du + seed;
    h ^= h >> 15;
    h *= 0x2c1b3c6du;
    return h ^ h >> 12;
}

GV_DEV gv_vec gv_pattern(gv_u64 i, gv_u32 seed)
{
    gv_vec v = {
        gv_pattern_word(i, 0, seed), gv_pattern_word(i, 1, seed), gv_pattern_word(i, 2, seed),
        gv_pattern_word(i, 3, seed)};
    return v;
}

GV_DEV bool gv_same(gv_vec a, gv_vec b)
{
    return ((a.x ^ b.x) | (a.y ^ b.y) | (a.z ^ b.z) | (a.w ^ b.w)) == 0;
}

#endif
