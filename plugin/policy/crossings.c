#include "plugin/policy/lend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A cost is one number, its parts in the order of gv_route_find's list from the top bits down. */
#define COST_MISSING ((uint64_t)1 << 48)
#define COST_LENT ((uint64_t)1 << 40)
#define COST_NVLINK ((uint64_t)1 << 32)
#define COST_CHOICE (~(COST_NVLINK - 1)) /* all parts but PCI order */
#define COST_NONE UINT64_MAX

/* Orders of islands that are tried at most: it bounds the time of a decision. */
#define MAX_ORDERS 500

/* What the search knows: which pairs may be lent a link, and how fast they are. */
struct search {
    const struct gv_facts *facts;
    gv_gpuset lendable[GV_MAX_GPUS];
    double gbs[GV_MAX_GPUS][GV_MAX_GPUS]; /* the slower direction; 0 where not measured */
    gv_gpuset fast[GV_MAX_GPUS];          /* lendable, and not slower than the floor */
    bool shm;                             /* crossings may be left on SHM */
    gv_gpuset block[GV_MAX_GPUS];
    int count;
};

/* How a block was entered: from `leave` of the block before, which was itself entered at `entry`.
 * A block of one is entered and left at the same GPU, which may not always carry two lent links:
 * there, and only there, it matters whether the way in was lent, and `slot` says so. */
struct step {
    uint64_t cost;
    int8_t leave, entry, slot;
    enum gv_crossing_kind kind;
};

struct walk {
    struct step at[GV_MAX_GPUS][2]; /* [entry GPU][slot] */
    struct step close[2];           /* back to the start: [slot] */
};

static bool alone(gv_gpuset block)
{
    return !(block & (block - 1));
}

/* PCI order: GPUs of the block behind `leave`, and before `entry`. */
static uint64_t detour(gv_gpuset from, int leave, gv_gpuset to, int entry)
{
    gv_gpuset behind = from & ~(GV_GPU_BIT(leave) | (GV_GPU_BIT(leave) - 1));
    return (uint64_t)(gv_gpuset_count(behind) + gv_gpuset_count(to & (GV_GPU_BIT(entry) - 1)));
}

static uint64_t crossing_cost(const struct search *search, int a, int b, enum gv_crossing_kind kind)
{
    const gv_gpuset *nvlink = search->facts->nvlink;
    if (kind == GV_CROSSING_JOINED)
        return 0;
    if (kind == GV_CROSSING_SHM)
        return COST_MISSING;
    return COST_LENT + COST_NVLINK * (uint64_t)((nvlink[a] != 0) + (nvlink[b] != 0));
}

static void keep_cheaper(struct step *best, struct step step)
{
    if (step.cost < best->cost)
        *best = step;
}

/* From one exit to all entries that this kind of crossing reaches. `step` is how the exit's block
 * was entered. */
static void
cross(const struct search *search, struct walk *walk, int i, struct step step, gv_gpuset entries)
{
    gv_gpuset from = search->block[i], to = search->block[(i + 1) % search->count];
    bool closing = i == search->count - 1;
    int slot = step.kind == GV_CROSSING_LENT && alone(to);
    uint64_t cost = step.cost;
    for (; entries; entries &= entries - 1) {
        int entry = gv_gpuset_first(entries);
        step.cost = cost + crossing_cost(search, step.leave, entry, step.kind) +
                    detour(from, step.leave, to, entry);
        keep_cheaper(closing ? &walk->close[slot] : &walk->at[entry][slot], step);
    }
}

/* All crossings from one exit. `entries`: where the next block may be entered. */
static void cross_from(
    const struct search *search, struct walk *walk, int i, struct step step, gv_gpuset entries,
    bool may_lend)
{
    gv_gpuset joined = search->facts->joined[step.leave];
    step.kind = GV_CROSSING_JOINED;
    cross(search, walk, i, step, entries & joined);
    step.kind = GV_CROSSING_LENT;
    if (may_lend)
        cross(search, walk, i, step, entries & search->fast[step.leave]);
    step.kind = GV_CROSSING_SHM;
    if (search->shm)
        cross(search, walk, i, step, entries & ~joined);
}

static void
leave_block_of_one(const struct search *search, struct walk *walk, int i, gv_gpuset entries)
{
    int gpu = gv_gpuset_first(search->block[i]);
    bool two = gv_lend_two(search->facts, gpu);
    for (int slot = 0; slot < 2; slot++) {
        struct step step = {
            .cost = walk->at[gpu][slot].cost,
            .leave = (int8_t)gpu,
            .entry = (int8_t)gpu,
            .slot = (int8_t)slot};
        if (step.cost != COST_NONE)
            cross_from(search, walk, i, step, entries, !slot || two);
    }
}

/* The block is left anywhere but where it was entered, so the two cheapest entries are all that
 * matters. */
static void leave_block(const struct search *search, struct walk *walk, int i, gv_gpuset entries)
{
    struct step best = {.cost = COST_NONE}, second = {.cost = COST_NONE};
    for (gv_gpuset rest = search->block[i]; rest; rest &= rest - 1) {
        int entry = gv_gpuset_first(rest);
        struct step now = {.cost = walk->at[entry][0].cost, .entry = (int8_t)entry};
        if (now.cost < best.cost) {
            second = best;
            best = now;
        } else {
            keep_cheaper(&second, now);
        }
    }
    for (gv_gpuset rest = search->block[i]; rest; rest &= rest - 1) {
        int leave = gv_gpuset_first(rest);
        struct step step = best.entry == leave ? second : best;
        step.leave = (int8_t)leave;
        if (step.cost != COST_NONE)
            cross_from(search, walk, i, step, entries, true);
    }
}

/* The rings that start at (`start`, `slot`). */
static void walk_rings(const struct search *search, int start, int slot, struct walk *walk)
{
    for (int i = 0; i < search->count; i++)
        for (gv_gpuset rest = search->block[i]; rest; rest &= rest - 1) {
            int gpu = gv_gpuset_first(rest);
            walk->at[gpu][0].cost = walk->at[gpu][1].cost = COST_NONE;
        }
    walk->close[0].cost = walk->close[1].cost = COST_NONE;
    walk->at[start][slot].cost = 0;
    for (int i = 0; i < search->count; i++) {
        bool closing = i == search->count - 1;
        gv_gpuset entries = closing ? GV_GPU_BIT(start) : search->block[i + 1];
        if (alone(search->block[i]))
            leave_block_of_one(search, walk, i, entries);
        else
            leave_block(search, walk, i, entries);
    }
}

/* Writes the ring of a finished walk, from its last block back to the first. */
static void trace(
    const struct search *search, const struct walk *walk, int slot, int start,
    struct gv_route *route)
{
    struct step step = walk->close[slot];
    int to = start;
    memset(route, 0, sizeof(*route));
    route->count = search->count;
    for (int i = search->count - 1; i >= 0; i--) {
        route->block[i] = search->block[i];
        route->entry[i] = step.entry;
        route->leave[i] = step.leave;
        route->crossing[i] = (struct gv_crossing){step.leave, to, step.kind};
        route->missing += step.kind == GV_CROSSING_SHM;
        to = step.entry;
        step = walk->at[step.entry][step.slot];
    }
}

/* The cheapest ring for the order in which search->block stands. `route` may be NULL. A start that
 * was entered over a lent link must be reached over one, and the other way round. */
static uint64_t best_ring(const struct search *search, struct gv_route *route)
{
    uint64_t best = COST_NONE;
    struct walk walk;
    for (gv_gpuset rest = search->block[0]; rest; rest &= rest - 1)
        for (int slot = 0; slot <= alone(search->block[0]); slot++) {
            int start = gv_gpuset_first(rest);
            walk_rings(search, start, slot, &walk);
            if (walk.close[slot].cost >= best)
                continue;
            best = walk.close[slot].cost;
            if (route)
                trace(search, &walk, slot, start, route);
        }
    return best;
}

static void fill_search(
    struct search *search, const struct gv_facts *facts, const struct gv_blocks *blocks,
    const gv_gpuset *lendable)
{
    memset(search, 0, sizeof(*search));
    search->facts = facts;
    search->count = blocks->count;
    memcpy(search->block, blocks->set, (size_t)blocks->count * sizeof(*blocks->set));
    for (int a = 0; lendable && a < GV_MAX_GPUS; a++)
        for (gv_gpuset rest = lendable[a]; rest; rest &= rest - 1) {
            int b = gv_gpuset_first(rest);
            double gbs = fmin(gv_facts_p2p_gbs(facts, a, b), gv_facts_p2p_gbs(facts, b, a));
            search->lendable[a] |= GV_GPU_BIT(b);
            search->gbs[a][b] = fmax(gbs, 0);
        }
}

/* Turns the order of blocks i..j around: the ring then joins other pairs of blocks. */
static void turn(struct search *search, int i, int j)
{
    for (; i < j; i++, j--) {
        gv_gpuset block = search->block[i];
        search->block[i] = search->block[j];
        search->block[j] = block;
    }
}

/* What no order can undercut: where no pair of two blocks is joined, each crossing is lent a link,
 * or, where none can be had, on SHM. */
static uint64_t least_cost(const struct search *search)
{
    gv_gpuset joined = 0, fast = 0;
    for (int i = 0; i < search->count; i++)
        for (gv_gpuset rest = search->block[i]; rest; rest &= rest - 1) {
            joined |= search->facts->joined[gv_gpuset_first(rest)] & ~search->block[i];
            fast |= search->fast[gv_gpuset_first(rest)];
        }
    uint64_t each = joined ? 0 : fast ? COST_LENT : COST_MISSING;
    return (uint64_t)search->count * each;
}

/* PCI order is kept unless another order leaves fewer crossings on SHM, needs fewer lent links or
 * fewer of them at GPUs with real NVLinks. Turning one stretch at a time reaches every order of
 * four blocks, and good ones of more. */
static void choose_order(struct search *search)
{
    uint64_t best = best_ring(search, NULL) & COST_CHOICE;
    bool better = best > least_cost(search);
    int left = MAX_ORDERS;
    while (better) {
        better = false;
        for (int i = 1; i < search->count; i++)
            for (int j = i + 1; j < search->count && left-- > 0; j++) {
                turn(search, i, j);
                uint64_t cost = best_ring(search, NULL) & COST_CHOICE;
                if (cost < best) {
                    best = cost;
                    better = true;
                } else {
                    turn(search, i, j);
                }
            }
    }
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Each pair's, ascending. */
static int lendable_speeds(const struct search *search, double *out)
{
    double *end = out;
    for (int a = 0; a < GV_MAX_GPUS; a++)
        for (gv_gpuset above = search->lendable[a] >> a; above; above &= above - 1)
            *end++ = search->gbs[a][a + gv_gpuset_first(above)];
    qsort(out, (size_t)(end - out), sizeof(*out), ascending);
    return (int)(end - out);
}

static void set_floor(struct search *search, double floor)
{
    for (int a = 0; a < GV_MAX_GPUS; a++) {
        search->fast[a] = 0;
        for (gv_gpuset rest = search->lendable[a]; rest; rest &= rest - 1)
            if (search->gbs[a][gv_gpuset_first(rest)] >= floor)
                search->fast[a] |= rest & ~(rest - 1);
    }
}

/* Raises the floor to the speed of the slowest pair in the best ring, less what is no difference
 * by rule 1. */
static void choose_floor(struct search *search)
{
    double speeds[GV_MAX_GPUS * GV_MAX_GPUS];
    uint64_t choice = best_ring(search, NULL) & COST_CHOICE;
    int low = 0, high = lendable_speeds(search, speeds);
    if (!high)
        return;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        set_floor(search, speeds[middle]);
        if ((best_ring(search, NULL) & COST_CHOICE) == choice)
            low = middle;
        else
            high = middle;
    }
    set_floor(search, speeds[low] / (1 + search->facts->min_gain));
}

/* SHM crossings are looked at only where the ring cannot be closed without. */
static void choose(struct search *search)
{
    memcpy(search->fast, search->lendable, sizeof(search->fast));
    search->shm = best_ring(search, NULL) == COST_NONE;
    choose_order(search);
    choose_floor(search);
}

void gv_route_find(
    const struct gv_facts *facts, const struct gv_blocks *blocks, const gv_gpuset *lendable,
    struct gv_route *route)
{
    struct search search;
    fill_search(&search, facts, blocks, lendable);
    if (blocks->count > 1) {
        choose(&search);
        best_ring(&search, route);
        return;
    }
    memset(route, 0, sizeof(*route));
    route->count = blocks->count;
    route->block[0] = blocks->set[0];
    route->entry[0] = route->leave[0] = gv_gpuset_first(blocks->set[0]);
}
