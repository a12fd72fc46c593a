/* Between GPUs, and between a GPU and mapped host memory: gate, pattern, the two halves of the pair
 * check, ping-pong. Plain copies over a link are memory.cu's kernels on a peer's address. */
#include "kernels/gv_device.h"

GV_GLOBAL void gv_gate(gv_gate_args a)
{
    if (GV_TID == 0)
        gv_wait(a.flag, a.value, a.timeout_ns);
}

GV_GLOBAL void gv_fill(gv_pattern_args a)
{
    gv_u64 step = (gv_u64)GV_GRID * GV_BLOCK;
    for (gv_u64 i = (gv_u64)GV_BID * GV_BLOCK + GV_TID; i < a.n16; i += step)
        gv_store(a.buffer + i * 16, gv_pattern(i, a.seed));
}

GV_DEV void compare(gv_u64 buffer, gv_u64 i, gv_u32 seed, gv_u32 ranks, gv_u64 result)
{
    gv_vec right = gv_pattern(i, seed);
    for (gv_u32 r = 1; r < ranks; r++) {
        gv_vec more = gv_pattern(i, seed + r);
        right.x += more.x, right.y += more.y, right.z += more.z, right.w += more.w;
    }
    if (gv_same(gv_load_volatile(buffer + i * 16), right))
        return;
    gv_atomic_add(result, 1);
    gv_atomic_min(result + 8, i);
}

GV_GLOBAL void gv_check(gv_pattern_args a)
{
    gv_u64 step = (gv_u64)GV_GRID * GV_BLOCK;
    for (gv_u64 i = (gv_u64)GV_BID * GV_BLOCK + GV_TID; i < a.n16; i += step)
        compare(a.buffer, i, a.seed, a.ranks, a.result);
}

/* Thread 0 waits for all; every thread learns whether it was in vain. */
GV_DEV bool block_wait(gv_u64 at, gv_u32 value, gv_u64 timeout_ns, int *shared_ok)
{
    gv_barrier();
    if (GV_TID == 0)
        *shared_ok = gv_wait(at, value, timeout_ns);
    gv_barrier();
    return *shared_ok;
}

#if defined(__clang__) && !defined(__CUDACC_VER_MAJOR__)
#define GV_SHARED static __attribute__((shared))
#else
#define GV_SHARED __shared__
#endif

GV_GLOBAL void gv_push(gv_pair_args a)
{
    GV_SHARED int ok;
    gv_u64 part = (a.n16 + GV_GRID - 1) / GV_GRID, from = GV_BID * part;
    gv_u64 to = from + part < a.n16 ? from + part : a.n16;
    for (gv_u32 r = 0; r < a.rounds; r++) {
        if (!block_wait(a.ack + GV_BID * 128, r, a.timeout_ns, &ok)) {
            if (GV_TID == 0)
                gv_atomic_add(a.result + 16, 1);
            return;
        }
        for (gv_u64 i = from + GV_TID; i < to; i += GV_BLOCK)
            gv_store(a.buffer + i * 16, gv_pattern(i, a.seed + r));
        gv_barrier();
        if (GV_TID == 0)
            gv_store_release(a.flags + GV_BID * 128, r + 1);
    }
}

GV_GLOBAL void gv_owner(gv_pair_args a)
{
    GV_SHARED int ok;
    gv_u64 part = (a.n16 + GV_GRID - 1) / GV_GRID, from = GV_BID * part;
    gv_u64 to = from + part < a.n16 ? from + part : a.n16;
    for (gv_u32 r = 0; r < a.rounds; r++) {
        if (!block_wait(a.flags + GV_BID * 128, r + 1, a.timeout_ns, &ok)) {
            if (GV_TID == 0)
                gv_atomic_add(a.result + 16, 1);
            return;
        }
        for (gv_u64 i = from + GV_TID; i < to; i += GV_BLOCK)
            compare(a.buffer, i, a.seed + r, 1, a.result);
        gv_barrier();
        if (GV_TID == 0)
            gv_store_release(a.ack + GV_BID * 128, r + 1);
    }
}

GV_GLOBAL void gv_pingpong(gv_pingpong_args a)
{
    if (GV_TID)
        return;
    for (gv_u32 r = 1; r <= a.rounds; r++) {
        if (a.start)
            asm volatile("st.volatile.global.u32 [%0], %1;" ::"l"(a.theirs), "r"(r) : "memory");
        if (!gv_wait(a.mine, r, a.timeout_ns)) {
            gv_atomic_add(a.result, 1);
            return;
        }
        if (!a.start)
            asm volatile("st.volatile.global.u32 [%0], %1;" ::"l"(a.theirs), "r"(r) : "memory");
    }
}
