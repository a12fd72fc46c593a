/* Ring AllReduce: reduce-scatter and all-gather over the same FIFO, one slot a step, flags in place
 * of launches between the steps. All ranks' kernels must be resident together. */
#include "kernels/gv_device.h"

GV_DEV gv_u32 add_word(gv_u32 a, gv_u32 b, gv_u32 is_float)
{
    union {
        gv_u32 u;
        float f;
    } x, y;
    x.u = a;
    y.u = b;
    if (!is_float)
        return a + b;
    x.f += y.f;
    return x.u;
}

GV_DEV gv_vec add(gv_vec a, gv_vec b, gv_u32 is_float)
{
    gv_vec v = {add_word(a.x, b.x, is_float), add_word(a.y, b.y, is_float),
                add_word(a.z, b.z, is_float), add_word(a.w, b.w, is_float)};
    return v;
}

struct ring_state {
    gv_u32 sent, received;
    gv_u64 recv, send, arrived, next_arrived, drained, prev_drained;
};

/* One step: takes a slot from the previous rank (if `take`), adds this rank's input (if `reduce`),
 * keeps the sum in `out` (if `keep`), and passes it on (if `give`). `at` and `n` are units of the
 * buffer. */
template <bool TAKE, bool REDUCE, bool KEEP, bool GIVE>
GV_DEV bool step(const gv_ring_args &a, ring_state &s, gv_u64 at, gv_u64 n, int *ok)
{
    if (GV_TID == 0) {
        bool good = true;
        if (TAKE)
            good = gv_wait(s.arrived, s.received + 1, a.timeout_ns);
        if (GIVE && good && s.sent >= GV_RING_SLOTS)
            good = gv_wait(s.drained, s.sent - GV_RING_SLOTS + 1, a.timeout_ns);
        *ok = good;
    }
    gv_barrier();
    if (!*ok)
        return false;
    gv_u64 from = s.recv + (gv_u64)(s.received % GV_RING_SLOTS) * a.slot16 * 16;
    gv_u64 to = s.send + (gv_u64)(s.sent % GV_RING_SLOTS) * a.slot16 * 16;
    gv_u64 block = GV_BLOCK;
    for (gv_u64 i = GV_TID; i < n; i += 4 * block) {
        gv_vec v[4], w[4];
#pragma unroll
        for (int u = 0; u < 4; u++) {
            if (i + u * block >= n)
                break;
            if (TAKE)
                v[u] = gv_load_volatile(from + (i + u * block) * 16);
            if (!TAKE || REDUCE)
                w[u] = gv_load(a.in + (at + i + u * block) * 16);
        }
#pragma unroll
        for (int u = 0; u < 4; u++) {
            if (i + u * block >= n)
                break;
            gv_vec x = !TAKE ? w[u] : REDUCE ? add(v[u], w[u], a.is_float) : v[u];
            if (GIVE)
                gv_store(to + (i + u * block) * 16, x);
            if (KEEP)
                gv_store(a.out + (at + i + u * block) * 16, x);
        }
    }
    gv_barrier();
    if (GV_TID == 0) {
        if (TAKE)
            gv_store_release(s.prev_drained, s.received + 1);
        if (GIVE)
            gv_store_release(s.next_arrived, s.sent + 1);
    }
    s.received += TAKE;
    s.sent += GIVE;
    return true;
}

/* Chunk c of the piece that begins at `at`. */
GV_DEV void chunk(const gv_ring_args &a, gv_u64 piece, gv_u32 c, gv_u64 &at, gv_u64 &n)
{
    at = piece * a.n * a.slot16 + (gv_u64)c * a.slot16;
    n = at >= a.n16 ? 0 : a.n16 - at < a.slot16 ? a.n16 - at : a.slot16;
}

GV_DEV bool one_piece(const gv_ring_args &a, ring_state &s, gv_u64 piece, int *ok)
{
    gv_u64 at, n;
    gv_u32 c = a.rank;
    chunk(a, piece, c, at, n);
    if (!step<false, false, false, true>(a, s, at, n, ok))
        return false;
    for (gv_u32 k = 1; k < a.n - 1; k++) {
        c = c ? c - 1 : a.n - 1;
        chunk(a, piece, c, at, n);
        if (!step<true, true, false, true>(a, s, at, n, ok))
            return false;
    }
    c = c ? c - 1 : a.n - 1;
    chunk(a, piece, c, at, n);
    if (!step<true, true, true, true>(a, s, at, n, ok))
        return false;
    for (gv_u32 k = 1; k < a.n - 1; k++) {
        c = c ? c - 1 : a.n - 1;
        chunk(a, piece, c, at, n);
        if (!step<true, false, true, true>(a, s, at, n, ok))
            return false;
    }
    c = c ? c - 1 : a.n - 1;
    chunk(a, piece, c, at, n);
    return step<true, false, true, false>(a, s, at, n, ok);
}

GV_GLOBAL void gv_ring(gv_ring_args a)
{
    GV_SHARED int ok;
    gv_u64 fifo = (gv_u64)GV_BID * GV_RING_SLOTS * a.slot16 * 16, word = GV_BID * 128;
    ring_state s = {0, 0, a.recv + fifo, a.send + fifo, a.arrived + word, a.next_arrived + word,
                    a.drained + word, a.prev_drained + word};
    gv_u64 pieces = (a.n16 + (gv_u64)a.n * a.slot16 - 1) / ((gv_u64)a.n * a.slot16);
    for (gv_u32 l = 0; l < a.loops; l++)
        for (gv_u64 p = GV_BID; p < pieces; p += GV_GRID)
            if (!one_piece(a, s, p, &ok)) {
                if (GV_TID == 0)
                    gv_atomic_add(a.result, 1);
                return;
            }
}
