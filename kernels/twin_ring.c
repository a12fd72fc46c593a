/* The twin of ring.cu. Rounds of pieces (one for each block) are run until enough was moved; all
 * ranks of a ring stop at the same piece. */
#include <string.h>

#include "kernels/gv_twin.h"

void gv_twin_ring(struct gv_twin_env *env, const void *args);

#define STEP 1024 /* words handled at a time */

struct channel {
    gv_u32 sent, received;
    gv_u64 recv, send, arrived, next_arrived, drained, prev_drained;
};

enum { TAKE = 1, REDUCE = 2, KEEP = 4, GIVE = 8 };

static gv_u32 add(gv_u32 a, gv_u32 b, bool is_float)
{
    float x, y;
    if (!is_float)
        return a + b;
    memcpy(&x, &a, 4);
    memcpy(&y, &b, 4);
    x += y;
    memcpy(&a, &x, 4);
    return a;
}

static void move(
    struct gv_twin_env *env, const struct gv_ring_args *a, const struct channel *c, gv_u64 at,
    gv_u64 n16, int what)
{
    gv_u64 from = c->recv + (gv_u64)(c->received % GV_RING_SLOTS) * a->slot16 * 16;
    gv_u64 to = c->send + (gv_u64)(c->sent % GV_RING_SLOTS) * a->slot16 * 16;
    gv_u32 x[STEP], own[STEP];
    for (gv_u64 i = 0; i < n16 * 4; i += STEP) {
        gv_u64 n = n16 * 4 - i < STEP ? n16 * 4 - i : STEP;
        if (what & TAKE)
            env->load(env, from + i * 4, x, n * 4);
        if (!(what & TAKE) || what & REDUCE)
            env->load(env, a->in + at * 16 + i * 4, own, n * 4);
        for (gv_u64 k = 0; k < n; k++)
            x[k] = !(what & TAKE) ? own[k] : what & REDUCE ? add(x[k], own[k], a->is_float) : x[k];
        if (what & GIVE)
            env->store(env, to + i * 4, x, n * 4);
        if (what & KEEP)
            env->store(env, a->out + at * 16 + i * 4, x, n * 4);
    }
}

static bool step(
    struct gv_twin_env *env, const struct gv_ring_args *a, struct channel *c, gv_u64 piece,
    gv_u32 chunk, int what)
{
    gv_u64 at = piece * a->n * a->slot16 + (gv_u64)chunk * a->slot16;
    gv_u64 n16 = at >= a->n16 ? 0 : a->n16 - at < a->slot16 ? a->n16 - at : a->slot16;
    if (what & TAKE && !env->wait(env, c->arrived, c->received + 1, a->timeout_ns))
        return false;
    if (what & GIVE && c->sent >= GV_RING_SLOTS &&
        !env->wait(env, c->drained, c->sent - GV_RING_SLOTS + 1, a->timeout_ns))
        return false;
    move(env, a, c, at, n16, what);
    if (what & TAKE) {
        c->received++;
        env->store(env, c->prev_drained, &c->received, 4);
    }
    if (what & GIVE) {
        c->sent++;
        env->store(env, c->next_arrived, &c->sent, 4);
    }
    return true;
}

static bool
one_piece(struct gv_twin_env *env, const struct gv_ring_args *a, struct channel *c, gv_u64 piece)
{
    gv_u32 chunk = a->rank, steps = 2 * a->n - 1;
    for (gv_u32 k = 0; k < steps; k++) {
        int what = k == 0             ? GIVE
                   : k < a->n - 1     ? TAKE | REDUCE | GIVE
                   : k == a->n - 1    ? TAKE | REDUCE | KEEP | GIVE
                   : k < 2 * a->n - 2 ? TAKE | KEEP | GIVE
                                      : TAKE | KEEP;
        if (k)
            chunk = chunk ? chunk - 1 : a->n - 1;
        if (!step(env, a, c, piece, chunk, what))
            return false;
    }
    return true;
}

void gv_twin_ring(struct gv_twin_env *env, const void *args)
{
    const struct gv_ring_args *a = args;
    gv_u64 piece16 = (gv_u64)a->n * a->slot16, pieces = (a->n16 + piece16 - 1) / piece16;
    struct channel channels[64] = {0};
    for (gv_u64 b = 0; b < env->grid && b < 64; b++) {
        gv_u64 fifo = b * GV_RING_SLOTS * a->slot16 * 16, word = b * 128;
        channels[b] = (struct channel){
            0,
            0,
            a->recv + fifo,
            a->send + fifo,
            a->arrived + word,
            a->next_arrived + word,
            a->drained + word,
            a->prev_drained + word};
    }
    for (gv_u32 l = 0; l < a->loops; l++)
        for (gv_u64 p = 0; p < pieces && p * piece16 < env->cap16; p++)
            if (!one_piece(env, a, &channels[p % env->grid], p)) {
                gv_u64 failed;
                env->load(env, a->result, &failed, 8);
                failed++;
                env->store(env, a->result, &failed, 8);
                return;
            }
}
