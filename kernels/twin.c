#include "kernels/gv_twin.h"

#include <stdio.h>
#include <string.h>

#define STEP 256 /* units handled at a time */

struct unit {
    gv_u32 w[4];
};
_Static_assert(sizeof(struct unit) == 16, "a unit is 16 bytes");

gv_u32 gv_twin_pattern_word(gv_u64 i, gv_u32 w, gv_u32 seed)
{
    gv_u32 h = (gv_u32)i * 0x9e3779b1u + (gv_u32)(i >> 32) * 0x85ebca77u + w * 0xc2b2ae3du + seed;
    h ^= h >> 15;
    h *= 0x2c1b3c6du;
    return h ^ h >> 12;
}

static gv_u64 least(gv_u64 a, gv_u64 b)
{
    return a < b ? a : b;
}

static void pattern(struct unit *to, gv_u64 from, gv_u64 n, gv_u32 seed)
{
    for (gv_u64 i = 0; i < n; i++)
        for (gv_u32 w = 0; w < 4; w++)
            to[i].w[w] = gv_twin_pattern_word(from + i, w, seed);
}

static void write_pattern(struct gv_twin_env *env, gv_u64 at, gv_u64 from, gv_u64 to, gv_u32 seed)
{
    struct unit units[STEP];
    for (gv_u64 i = from; i < to; i += STEP) {
        gv_u64 n = least(STEP, to - i);
        pattern(units, i, n, seed);
        env->store(env, at + i * 16, units, n * 16);
    }
}

static void add_to_result(struct gv_twin_env *env, gv_u64 at, gv_u64 wrong, gv_u64 lowest)
{
    gv_u64 result[2];
    env->load(env, at, result, sizeof(result));
    result[0] += wrong;
    result[1] = least(result[1], lowest);
    env->store(env, at, result, sizeof(result));
}

static void add_pattern(struct unit *to, gv_u64 from, gv_u64 n, gv_u32 seed)
{
    for (gv_u64 i = 0; i < n; i++)
        for (gv_u32 w = 0; w < 4; w++)
            to[i].w[w] += gv_twin_pattern_word(from + i, w, seed);
}

static void check_pattern(
    struct gv_twin_env *env, gv_u64 at, gv_u64 from, gv_u64 to, gv_u32 seed, gv_u32 ranks,
    gv_u64 out)
{
    struct unit found[STEP], right[STEP];
    for (gv_u64 i = from; i < to; i += STEP) {
        gv_u64 n = least(STEP, to - i), wrong = 0, lowest = ~0ull;
        pattern(right, i, n, seed);
        for (gv_u32 r = 1; r < ranks; r++)
            add_pattern(right, i, n, seed + r);
        env->load(env, at + i * 16, found, n * 16);
        for (gv_u64 k = n; k-- > 0;)
            if (memcmp(&found[k], &right[k], 16)) {
                wrong++;
                lowest = i + k;
            }
        if (wrong)
            add_to_result(env, out, wrong, lowest);
    }
}

static void run_fill(struct gv_twin_env *env, const void *args)
{
    const struct gv_pattern_args *a = args;
    write_pattern(env, a->buffer, 0, least(a->n16, env->cap16), a->seed);
}

static void run_check(struct gv_twin_env *env, const void *args)
{
    const struct gv_pattern_args *a = args;
    check_pattern(env, a->buffer, 0, least(a->n16, env->cap16), a->seed, a->ranks, a->result);
}

static void run_copy(struct gv_twin_env *env, const void *args)
{
    const struct gv_memory_args *a = args;
    struct unit units[STEP];
    gv_u64 n16 = least(a->n16, env->cap16);
    for (gv_u64 i = 0; i < n16; i += STEP) {
        gv_u64 n = least(STEP, n16 - i);
        env->load(env, a->src + i * 16, units, n * 16);
        env->store(env, a->dst + i * 16, units, n * 16);
    }
}

static void run_read(struct gv_twin_env *env, const void *args)
{
    const struct gv_memory_args *a = args;
    struct unit units[STEP];
    gv_u64 n16 = least(a->n16, least(env->cap16, STEP));
    env->load(env, a->src, units, n16 * 16);
}

static void run_write(struct gv_twin_env *env, const void *args)
{
    const struct gv_memory_args *a = args;
    gv_u64 n16 = least(a->n16, env->cap16);
    for (gv_u64 i = 0; i < n16; i++) {
        gv_u32 x = (gv_u32)i;
        struct unit u = {{x, ~x, x * 3, x ^ 0x5a5a5a5au}};
        env->store(env, a->dst + i * 16, &u, 16);
    }
}

static void run_triad(struct gv_twin_env *env, const void *args)
{
    const struct gv_memory_args *a = args;
    float b[4 * STEP], c[4 * STEP];
    gv_u64 n16 = least(a->n16, env->cap16);
    for (gv_u64 i = 0; i < n16; i += STEP) {
        gv_u64 n = least(STEP, n16 - i);
        env->load(env, a->src + i * 16, b, n * 16);
        env->load(env, a->src2 + i * 16, c, n * 16);
        for (gv_u64 k = 0; k < 4 * n; k++)
            b[k] += 3.0f * c[k];
        env->store(env, a->dst + i * 16, b, n * 16);
    }
}

static void run_gate(struct gv_twin_env *env, const void *args)
{
    const struct gv_gate_args *a = args;
    env->wait(env, a->flag, a->value, a->timeout_ns);
}

static void put_word(struct gv_twin_env *env, gv_u64 at, gv_u32 value)
{
    env->store(env, at, &value, sizeof(value));
}

static void add_word(struct gv_twin_env *env, gv_u64 at)
{
    gv_u64 word;
    env->load(env, at, &word, sizeof(word));
    word++;
    env->store(env, at, &word, sizeof(word));
}

/* Block b's part of a pair check's buffer, cut to what is really moved. */
static void part_of(
    const struct gv_twin_env *env, const struct gv_pair_args *a, gv_u64 b, gv_u64 *from, gv_u64 *to)
{
    gv_u64 part = (a->n16 + env->grid - 1) / env->grid, cap = env->cap16 / env->grid + 16;
    *from = least(b * part, a->n16);
    *to = least(*from + least(part, cap), a->n16);
}

static void run_push(struct gv_twin_env *env, const void *args)
{
    const struct gv_pair_args *a = args;
    for (gv_u64 b = 0; b < env->grid; b++) {
        gv_u64 from, to;
        part_of(env, a, b, &from, &to);
        for (gv_u32 r = 0; r < a->rounds; r++) {
            if (!env->wait(env, a->ack + b * 128, r, a->timeout_ns)) {
                add_word(env, a->result + 16);
                return;
            }
            write_pattern(env, a->buffer, from, to, a->seed + r);
            put_word(env, a->flags + b * 128, r + 1);
        }
    }
}

static void run_owner(struct gv_twin_env *env, const void *args)
{
    const struct gv_pair_args *a = args;
    for (gv_u64 b = 0; b < env->grid; b++) {
        gv_u64 from, to;
        part_of(env, a, b, &from, &to);
        for (gv_u32 r = 0; r < a->rounds; r++) {
            if (!env->wait(env, a->flags + b * 128, r + 1, a->timeout_ns)) {
                add_word(env, a->result + 16);
                return;
            }
            check_pattern(env, a->buffer, from, to, a->seed + r, 1, a->result);
            put_word(env, a->ack + b * 128, r + 1);
        }
    }
}

/* A few rounds show that both sides hear each other; the clock counts all. */
static void run_pingpong(struct gv_twin_env *env, const void *args)
{
    const struct gv_pingpong_args *a = args;
    gv_u32 rounds = (gv_u32)least(a->rounds, 8);
    for (gv_u32 r = 1; r <= rounds; r++) {
        if (a->start)
            put_word(env, a->theirs, r);
        if (!env->wait(env, a->mine, r, a->timeout_ns)) {
            add_word(env, a->result);
            return;
        }
        if (!a->start)
            put_word(env, a->theirs, r);
    }
}

static void
over_memory(const void *args, struct gv_twin_traffic *out, bool src, bool src2, bool dst)
{
    const struct gv_memory_args *a = args;
    double bytes = 16.0 * (double)a->n16;
    if (src)
        out->part[out->nparts++] = (struct gv_twin_part){a->src, bytes, false};
    if (src2)
        out->part[out->nparts++] = (struct gv_twin_part){a->src2, bytes, false};
    if (dst)
        out->part[out->nparts++] = (struct gv_twin_part){a->dst, bytes, true};
}

static void traffic_copy(const void *args, struct gv_twin_traffic *out)
{
    over_memory(args, out, true, false, true);
}

static void traffic_read(const void *args, struct gv_twin_traffic *out)
{
    over_memory(args, out, true, false, false);
}

static void traffic_write(const void *args, struct gv_twin_traffic *out)
{
    over_memory(args, out, false, false, true);
}

static void traffic_triad(const void *args, struct gv_twin_traffic *out)
{
    over_memory(args, out, true, true, true);
}

static void traffic_none(const void *args, struct gv_twin_traffic *out)
{
    (void)args, (void)out;
}

static void traffic_pattern(const void *args, struct gv_twin_traffic *out)
{
    const struct gv_pattern_args *a = args;
    out->part[out->nparts++] = (struct gv_twin_part){a->buffer, 16.0 * (double)a->n16, true};
}

static void traffic_push(const void *args, struct gv_twin_traffic *out)
{
    const struct gv_pair_args *a = args;
    double bytes = 16.0 * (double)a->n16 * a->rounds;
    out->part[out->nparts++] = (struct gv_twin_part){a->buffer, bytes, true};
    out->couple = a->flags;
    out->couple_count = 2;
}

static void traffic_owner(const void *args, struct gv_twin_traffic *out)
{
    const struct gv_pair_args *a = args;
    out->couple = a->flags;
    out->couple_count = 2;
}

static void traffic_pingpong(const void *args, struct gv_twin_traffic *out)
{
    const struct gv_pingpong_args *a = args;
    out->part[out->nparts++] = (struct gv_twin_part){a->theirs, 0, true};
    out->hops = a->rounds;
    out->couple = least(a->mine, a->theirs);
    out->couple_count = 2;
}

static void traffic_ring(const void *args, struct gv_twin_traffic *out)
{
    const struct gv_ring_args *a = args;
    double bytes = 2.0 * (a->n - 1) / a->n * 16.0 * (double)a->n16 * a->loops;
    out->part[out->nparts++] = (struct gv_twin_part){a->send, bytes, true};
    out->couple = a->ring_id;
    out->couple_count = (int)a->n;
    out->ring = true;
}

void gv_twin_ring(struct gv_twin_env *env, const void *args); /* twin_ring.c */

static const struct gv_twin twins[] = {
    {"gv_copy", sizeof(struct gv_memory_args), false, run_copy, traffic_copy},
    {"gv_read", sizeof(struct gv_memory_args), false, run_read, traffic_read},
    {"gv_write", sizeof(struct gv_memory_args), false, run_write, traffic_write},
    {"gv_triad", sizeof(struct gv_memory_args), false, run_triad, traffic_triad},
    {"gv_gate", sizeof(struct gv_gate_args), true, run_gate, traffic_none},
    {"gv_fill", sizeof(struct gv_pattern_args), false, run_fill, traffic_pattern},
    {"gv_check", sizeof(struct gv_pattern_args), false, run_check, traffic_pattern},
    {"gv_push", sizeof(struct gv_pair_args), true, run_push, traffic_push},
    {"gv_owner", sizeof(struct gv_pair_args), true, run_owner, traffic_owner},
    {"gv_pingpong", sizeof(struct gv_pingpong_args), true, run_pingpong, traffic_pingpong},
    {"gv_ring", sizeof(struct gv_ring_args), true, gv_twin_ring, traffic_ring},
};

const struct gv_twin *gv_twin_find(const char *kernel)
{
    char name[32];
    snprintf(name, sizeof(name), "%s", kernel);
    char *variant = strstr(name, "_u");
    if (variant && variant[2] >= '0' && variant[2] <= '9')
        *variant = 0;
    for (size_t i = 0; i < sizeof(twins) / sizeof(twins[0]); i++)
        if (!strcmp(twins[i].name, name))
            return &twins[i];
    return NULL;
}
