/* Device memory: copy, read, write, triad. Each block takes tiles of blockDim * U units, in turn with
 * the others or one run of them; each thread has U independent accesses of 16 bytes in flight. Which
 * U, block size, grid, order and cache operator is fastest differs by device: the tuner in
 * profiler/probe tries them. The variants are named gv_<what>_u<U><c>, c = p (plain), s (streaming)
 * or h (with hints of compute_80: memory80.cu). */
#include "kernels/gv_device.h"

enum { PLAIN, STREAMING, HINTED };

template <int CACHE> GV_DEV gv_vec load(gv_u64 at)
{
#ifdef GV_HINTS
    if (CACHE == HINTED)
        return gv_load_hinted(at);
#endif
    return CACHE == STREAMING ? gv_load_cs(at) : gv_load(at);
}

template <int CACHE> GV_DEV void store(gv_u64 at, gv_vec v)
{
#ifdef GV_HINTS
    if (CACHE == HINTED) {
        gv_store_hinted(at, v);
        return;
    }
#endif
    if (CACHE == STREAMING)
        gv_store_cs(at, v);
    else
        gv_store(at, v);
}

struct copy_op {
    template <int U, int CACHE>
    GV_DEV void full(const gv_memory_args &a, gv_u64 i, gv_u64 step)
    {
        gv_vec v[U];
#pragma unroll
        for (int u = 0; u < U; u++)
            v[u] = load<CACHE>(a.src + (i + u * step) * 16);
#pragma unroll
        for (int u = 0; u < U; u++)
            store<CACHE>(a.dst + (i + u * step) * 16, v[u]);
    }
};

struct read_op {
    template <int U, int CACHE>
    GV_DEV void full(const gv_memory_args &a, gv_u64 i, gv_u64 step)
    {
        gv_vec v[U];
        gv_u32 x = 0;
#pragma unroll
        for (int u = 0; u < U; u++)
            v[u] = load<CACHE>(a.src + (i + u * step) * 16);
#pragma unroll
        for (int u = 0; u < U; u++)
            x |= v[u].x & v[u].y & v[u].z & v[u].w;
        /* Keeps the loads alive: true only for a word that the pattern does not hold. */
        if (x == 0xffffffffu && a.src2)
            store<CACHE>(a.dst, v[0]);
    }
};

struct write_op {
    template <int U, int CACHE>
    GV_DEV void full(const gv_memory_args &a, gv_u64 i, gv_u64 step)
    {
        gv_u32 x = (gv_u32)i;
        gv_vec v = {x, ~x, x * 3, x ^ 0x5a5a5a5au};
#pragma unroll
        for (int u = 0; u < U; u++)
            store<CACHE>(a.dst + (i + u * step) * 16, v);
    }
};

GV_DEV gv_u32 fma_word(gv_u32 b, gv_u32 c)
{
    union {
        gv_u32 u;
        float f;
    } x, y;
    x.u = b;
    y.u = c;
    x.f = x.f + 3.0f * y.f;
    return x.u;
}

struct triad_op {
    template <int U, int CACHE>
    GV_DEV void full(const gv_memory_args &a, gv_u64 i, gv_u64 step)
    {
        gv_vec b[U], c[U];
#pragma unroll
        for (int u = 0; u < U; u++) {
            b[u] = load<CACHE>(a.src + (i + u * step) * 16);
            c[u] = load<CACHE>(a.src2 + (i + u * step) * 16);
        }
#pragma unroll
        for (int u = 0; u < U; u++) {
            gv_vec v = {fma_word(b[u].x, c[u].x), fma_word(b[u].y, c[u].y),
                        fma_word(b[u].z, c[u].z), fma_word(b[u].w, c[u].w)};
            store<CACHE>(a.dst + (i + u * step) * 16, v);
        }
    }
};

template <typename OP, int U, int CACHE> GV_DEV void over(const gv_memory_args &a)
{
    gv_u64 block = GV_BLOCK, tile = block * U;
    gv_u64 at = GV_BID * tile, step = GV_GRID * tile, end = a.n16;
    if (a.chunked) {
        gv_u64 tiles = (a.n16 + tile - 1) / tile, run = (tiles + GV_GRID - 1) / GV_GRID * tile;
        at = GV_BID * run;
        step = tile;
        end = at + run < a.n16 ? at + run : a.n16;
    }
    for (; at < end; at += step) {
        if (at + tile <= end) {
            OP::template full<U, CACHE>(a, at + GV_TID, block);
            continue;
        }
        for (gv_u64 i = at + GV_TID; i < end; i += block)
            OP::template full<1, CACHE>(a, i, 0);
    }
}

#ifdef GV_HINTS
#define GV_VARIANT(WHAT, U)                                                                        \
    GV_GLOBAL void gv_##WHAT##_u##U##h(gv_memory_args a) { over<WHAT##_op, U, HINTED>(a); }
#else
#define GV_VARIANT(WHAT, U)                                                                        \
    GV_GLOBAL void gv_##WHAT##_u##U##p(gv_memory_args a) { over<WHAT##_op, U, PLAIN>(a); }         \
    GV_GLOBAL void gv_##WHAT##_u##U##s(gv_memory_args a) { over<WHAT##_op, U, STREAMING>(a); }
#endif
#define GV_VARIANTS(WHAT)                                                                          \
    GV_VARIANT(WHAT, 1)                                                                            \
    GV_VARIANT(WHAT, 2)                                                                            \
    GV_VARIANT(WHAT, 4)                                                                            \
    GV_VARIANT(WHAT, 8)                                                                            \
    GV_VARIANT(WHAT, 16)

GV_VARIANTS(copy)
GV_VARIANTS(read)
GV_VARIANTS(write)
GV_VARIANTS(triad)
