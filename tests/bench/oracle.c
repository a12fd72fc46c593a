#include "tests/bench/oracle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Nearer than that two rates are the same. */
#define SAME 1e-4

struct asking {
    const struct gv_model *model;
    gv_gpuset gpus;
    bool any_operation;
    double max_loss, base_us_per_gb; /* NAN until it is needed */
    int most;
    struct gv_wired *base, *now;
    struct gv_oracle out;
};

static bool reached(const struct asking *q)
{
    return q->out.best_gbs >= q->out.bound_gbs * (1 - SAME);
}

static bool full(const struct asking *q)
{
    return q->out.plans >= q->most;
}

/* ---- what a plan must not do ---- */

static bool indirect(const struct gv_nccl_eval_out *e)
{
    bool any = false;
    for (int a = 0; a < e->n; a++)
        for (int b = 0; b < e->n; b++)
            any |= e->pair[a][b].via >= 0;
    return any;
}

/* Peers that other communicators of the process may bring: what NCCL joins on the whole machine. */
static gv_gpuset own_peers(const struct gv_model *m, int gpu)
{
    gv_gpuset peers = gv_model_island(m, gpu) & ~GV_GPU_BIT(gpu);
    for (int b = 0; b < gv_model_ngpus(m); b++) {
        if (m->fabric.nvlinks[gpu][b])
            peers |= GV_GPU_BIT(b);
        if (b != gpu && !gv_fabric_p2p(&m->fabric, gpu, b))
            peers &= ~GV_GPU_BIT(b);
    }
    return peers;
}

static bool within_peers(const struct asking *q)
{
    const struct gv_nccl_eval_out *e = &q->now->eval;
    for (int a = 0; a < e->n; a++) {
        gv_gpuset own = own_peers(q->model, e->devices[a]), all = own;
        for (int b = 0; b < e->n; b++)
            if (a != b && e->pair[a][b].p2p)
                all |= GV_GPU_BIT(e->devices[b]);
        if (all != own && gv_gpuset_count(all) > GV_NCCL_MAX_PEERS)
            return false;
    }
    return true;
}

static bool loses(const struct asking *q, double base_us, double us)
{
    return base_us / us - 1 < -q->max_loss;
}

/* The best of what the tuner could ask for. */
static double tuned_us(const struct gv_wired *w, uint64_t bytes, bool lent)
{
    double best = INFINITY;
    for (int a = GV_NCCL_TREE; a <= GV_NCCL_RING; a++)
        for (int p = GV_NCCL_LL; p <= GV_NCCL_SIMPLE; p++)
            best = fmin(best, gv_wired_forced_us(w, bytes, lent, a, p));
    return best;
}

/* At the sizes that calibrate measures. */
static const uint64_t sizes[] = {8 << 10, 128 << 10, 1 << 20, 16 << 20, 128 << 20, 1 << 30};
#define SIZES (int)(sizeof(sizes) / sizeof(sizes[0]))

/* A loss that the tuner can make up for is none. */
static bool all_reduce_loses(const struct asking *q, bool lent)
{
    for (int i = 0; i < SIZES; i++)
        if (loses(
                q, gv_wired_all_reduce_us(q->base, sizes[i], false),
                tuned_us(q->now, sizes[i], lent)))
            return true;
    return false;
}

static bool all_to_all_loses(struct asking *q)
{
    double us_per_gb = gv_wired_us_per_gb(q->now);
    if (isnan(q->base_us_per_gb))
        q->base_us_per_gb = gv_wired_us_per_gb(q->base);
    for (int i = 0; i < SIZES; i++)
        if (loses(
                q, gv_wired_all_to_all_us(q->base, q->base_us_per_gb, sizes[i]),
                gv_wired_all_to_all_us(q->now, us_per_gb, sizes[i])))
            return true;
    return false;
}

/* What the default cannot do soundly has no figure to lose against. */
static bool loses_somewhere(struct asking *q, bool lent)
{
    if (!q->any_operation)
        return false;
    if (q->base->ring_sound && all_reduce_loses(q, lent))
        return true;
    return q->base->all_sound && q->base->peers && all_to_all_loses(q);
}

static bool sound(const struct asking *q, bool lent)
{
    const struct gv_nccl_eval_out *base = &q->base->eval, *now = &q->now->eval;
    bool ll128 =
        (now->ll128_allowed && !base->ll128_allowed) || (now->ll128_tree && !base->ll128_tree);
    return q->now->all_sound && !(lent && ll128) && (!indirect(now) || indirect(base)) &&
           within_peers(q);
}

static void try_plan(struct asking *q, const struct gv_edit *edits, int n, bool nvb, bool level)
{
    bool lent = n && edits[0].kind == GV_EDIT_LEND;
    if (full(q) || reached(q))
        return;
    q->out.plans++;
    if (gv_model_wire(q->model, q->gpus, edits, n, nvb, level, q->now))
        return;
    if (q->now->ring.ring_gbs <= q->out.best_gbs * (1 + SAME) || !sound(q, lent))
        return;
    q->out.free_gbs = fmax(q->out.free_gbs, q->now->ring.ring_gbs);
    if (!loses_somewhere(q, lent))
        q->out.best_gbs = q->now->ring.ring_gbs;
}

/* ---- links lent ---- */

struct pairs {
    int at[GV_MAX_GPUS * GV_MAX_GPUS / 2][2], n;
};

static bool may_be_lent(const struct gv_model *m, int a, int b)
{
    const struct gv_bench_gpu *gpu = m->fabric.machine.gpus;
    return m->state[a][b] == GV_P2P_VERIFIED && m->state[b][a] == GV_P2P_VERIFIED &&
           gpu[a].sm != 80 && gpu[b].sm != 80 && !m->fabric.nvlinks[a][b] &&
           m->fabric.port[a] != m->fabric.port[b];
}

static int nvlinks_of(const struct gv_model *m, int gpu)
{
    int n = 0;
    for (int b = 0; b < gv_model_ngpus(m); b++)
        n += m->fabric.nvlinks[gpu][b] > 0;
    return n;
}

/* Two NVLinks at a GPU need NCCL_NVB_DISABLE, which is ours to set only where the machine's own
 * form no chain. */
static void try_lend(struct asking *q, const struct pairs *lent)
{
    struct gv_edit edits[GV_MAX_EDITS];
    int links[GV_MAX_GPUS] = {0};
    bool two = false, chains = false;
    for (int i = 0; i < lent->n; i++) {
        edits[i] =
            (struct gv_edit){.kind = GV_EDIT_LEND, .from = lent->at[i][0], .to = lent->at[i][1]};
        links[lent->at[i][0]]++;
        links[lent->at[i][1]]++;
    }
    for (int a = 0; a < gv_model_ngpus(q->model); a++) {
        int own = nvlinks_of(q->model, a);
        two |= links[a] && links[a] + own > 1;
        chains |= own > 1;
    }
    if (lent->n && !(two && chains))
        try_plan(q, edits, lent->n, two, false);
}

static void find_pairs(const struct asking *q, struct pairs *out)
{
    out->n = 0;
    for (gv_gpuset x = q->gpus; x; x &= x - 1)
        for (gv_gpuset y = x & (x - 1); y; y &= y - 1) {
            int a = gv_gpuset_first(x), b = gv_gpuset_first(y);
            if (!may_be_lent(q->model, a, b))
                continue;
            out->at[out->n][0] = a;
            out->at[out->n++][1] = b;
        }
}

static void put(struct pairs *to, const struct pairs *from, int i)
{
    memcpy(to->at[to->n++], from->at[i], sizeof(to->at[0]));
}

/* Every two pairs, then every single one. */
static void try_one_or_two(struct asking *q, const struct pairs *all, struct pairs *some)
{
    for (int i = 0; i < all->n; i++)
        for (int k = i + 1; k < all->n && !full(q) && !reached(q); k++) {
            some->n = 0;
            put(some, all, i);
            put(some, all, k);
            try_lend(q, some);
        }
    for (int i = 0; i < all->n; i++) {
        some->n = 0;
        put(some, all, i);
        try_lend(q, some);
    }
}

static int pick(gv_gpuset set, uint64_t *seed)
{
    for (unsigned skip = gv_chance(seed, (unsigned)gv_gpuset_count(set)); skip; skip--)
        set &= set - 1;
    return gv_gpuset_first(set);
}

static int blocks_of(const struct asking *q, gv_gpuset block[GV_MAX_GPUS])
{
    int n = 0;
    for (gv_gpuset rest = q->gpus; rest; rest &= ~block[n++])
        block[n] = gv_model_island(q->model, gv_gpuset_first(rest)) & rest;
    return n;
}

static void shuffle(gv_gpuset *block, int n, uint64_t *seed)
{
    for (int i = n - 1; i > 0; i--) {
        int k = (int)gv_chance(seed, (unsigned)i + 1);
        gv_gpuset swap = block[i];
        block[i] = block[k];
        block[k] = swap;
    }
}

/* A ring through all blocks in any order, each left at another GPU than entered where it has two;
 * crossings that may be lent a link get one. */
static void try_ring(struct asking *q, gv_gpuset *block, int n, uint64_t *seed, struct pairs *some)
{
    int entry[GV_MAX_GPUS], leave[GV_MAX_GPUS];
    for (int i = 0; i < n; i++) {
        entry[i] = pick(block[i], seed);
        gv_gpuset others = block[i] & ~GV_GPU_BIT(entry[i]);
        leave[i] = others ? pick(others, seed) : entry[i];
    }
    some->n = 0;
    for (int i = 0; i < n; i++) {
        int a = leave[i], b = entry[(i + 1) % n];
        if (!may_be_lent(q->model, a, b) || some->n == GV_MAX_EDITS)
            continue;
        some->at[some->n][0] = a;
        some->at[some->n++][1] = b;
    }
    try_lend(q, some);
}

static void try_lends(struct asking *q)
{
    static struct pairs all, some;
    gv_gpuset block[GV_MAX_GPUS];
    uint64_t seed = q->gpus;
    int n = blocks_of(q, block), half = q->out.plans + (q->most - q->out.plans) / 2;
    find_pairs(q, &all);
    /* not all of these rings can be carried out: of some GPUs' own NVLinks none can */
    bool some_ring = n > 2 && all.n;
    for (int i = 0; some_ring && i < 8 * q->most && q->out.plans < half && !reached(q); i++) {
        if (i)
            shuffle(block, n, &seed);
        try_ring(q, block, n, &seed, &some);
    }
    try_one_or_two(q, &all, &some);
    /* of three and more blocks only some rings were tried */
    q->out.exhausted &= n <= 2 || !all.n;
}

/* ---- other edits ---- */

static void try_separations(struct asking *q)
{
    for (gv_gpuset x = q->gpus; x; x &= x - 1)
        for (gv_gpuset y = q->gpus & ~(x & -x); y; y &= y - 1) {
            int a = gv_gpuset_first(x), b = gv_gpuset_first(y);
            bool linked = q->model->fabric.nvlinks[a][b];
            bool near = q->model->fabric.port[a] == q->model->fabric.port[b];
            struct gv_edit edit = {.kind = GV_EDIT_SEPARATE, .from = a, .to = b};
            if (linked || near)
                try_plan(q, &edit, 1, false, false);
            if (near && !linked) /* one pair moves the GPU away from all of them */
                break;
        }
    try_plan(q, NULL, 0, false, true);
}

static void try_bridge(struct asking *q)
{
    struct gv_edit edit = {.kind = GV_EDIT_BRIDGE, .from = -1, .to = -1, .gpus = q->gpus};
    if (gv_gpuset_count(q->gpus) <= GV_NCCL_MAX_PEERS + 1)
        try_plan(q, &edit, 1, false, false);
}

struct gv_oracle gv_oracle_ask(
    const struct gv_model *model, gv_gpuset gpus, bool any_operation, double max_loss, int most)
{
    struct asking q = {
        .model = model,
        .gpus = gpus,
        .any_operation = any_operation,
        .max_loss = max_loss,
        .base_us_per_gb = NAN,
        .most = most,
        .base = calloc(1, sizeof(*q.base)),
        .now = calloc(1, sizeof(*q.now)),
        .out = {.default_gbs = NAN, .exhausted = true}};
    if (!q.base || !q.now)
        abort();
    q.out.bound_gbs = gv_model_bound_gbs(model, gpus);
    if (!gv_model_wire(model, gpus, NULL, 0, false, false, q.base) && q.base->all_sound)
        q.out.default_gbs = q.out.best_gbs = q.out.free_gbs = q.base->ring.ring_gbs;
    try_bridge(&q);
    try_lends(&q);
    try_separations(&q);
    q.out.exhausted = reached(&q) || (q.out.exhausted && !full(&q));
    free(q.base);
    free(q.now);
    return q.out;
}
