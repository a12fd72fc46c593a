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

/* What the search knows: for every pair whether it may be lent a link, and how fast it is. */
struct search {
    const struct gv_facts *facts;
    gv_gpuset lendable[GV_MAX_GPUS];
    double gbs[GV_MAX_GPUS][GV_MAX_GPUS]; /* the slower direction; 0 where not measured */
    double floor;                         /* slower pairs are not lent links */
    gv_gpuset block[GV_MAX_GPUS];
    int count;
};

/* How the entry (`at`, `lent`) of a block was reached: from `leave` of the block before, which was
 * itself entered at (`entry`, `entry_lent`). */
struct step {
    uint64_t cost;
    int8_t leave, entry;
    bool entry_lent;
    enum gv_crossing_kind kind;
};

struct walk {
    struct step at[GV_MAX_GPUS][2]; /* [entry GPU][came over a lent link] */
    struct step close;              /* back to the start */
};

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

static bool may_cross(const struct search *search, int a, int b, enum gv_crossing_kind kind)
{
    if (kind == GV_CROSSING_LENT)
        return gv_gpuset_has(search->lendable[a], b) && search->gbs[a][b] >= search->floor;
    return gv_facts_joined(search->facts, a, b) == (kind == GV_CROSSING_JOINED);
}

static void keep_cheaper(struct step *best, struct step step)
{
    if (step.cost < best->cost)
        *best = step;
}

/* The cheapest way to stand at `leave`, ready to cross. A block of one is entered and left at the
 * same GPU, so it matters there how it was entered. */
static struct step
best_at_exit(const struct walk *walk, gv_gpuset block, int leave, bool next_lent, bool two)
{
    struct step best = {.cost = COST_NONE};
    bool alone = !(block & (block - 1));
    for (gv_gpuset rest = block; rest; rest &= rest - 1) {
        int entry = gv_gpuset_first(rest);
        if (entry == leave && !alone)
            continue;
        for (int lent = 0; lent < 2; lent++)
            if (walk->at[entry][lent].cost != COST_NONE && !(alone && lent && next_lent && !two))
                keep_cheaper(
                    &best, (struct step){
                               .cost = walk->at[entry][lent].cost,
                               .leave = (int8_t)leave,
                               .entry = (int8_t)entry,
                               .entry_lent = lent});
    }
    return best;
}

/* From one exit over every crossing into the next block; `out` receives the step per entry. */
static void cross_from(
    const struct search *search, struct walk *walk, int i, int leave, gv_gpuset entries,
    bool closing)
{
    gv_gpuset from = search->block[i], to = search->block[(i + 1) % search->count];
    bool two = gv_lend_two(search->facts, leave);
    for (int kind = GV_CROSSING_JOINED; kind <= GV_CROSSING_SHM; kind++) {
        bool lent = kind == GV_CROSSING_LENT;
        struct step step = best_at_exit(walk, from, leave, lent, two);
        if (step.cost == COST_NONE)
            continue;
        uint64_t cost = step.cost;
        step.kind = (enum gv_crossing_kind)kind;
        for (gv_gpuset rest = entries; rest; rest &= rest - 1) {
            int entry = gv_gpuset_first(rest);
            if (!may_cross(search, leave, entry, step.kind))
                continue;
            step.cost = cost + crossing_cost(search, leave, entry, step.kind) +
                        detour(from, leave, to, entry);
            keep_cheaper(closing ? &walk->close : &walk->at[entry][lent], step);
        }
    }
}

/* One ring that starts at (`start`, `start_lent`). The way back must come over a lent link exactly
 * if the start said so. */
static void walk_ring(const struct search *search, int start, bool start_lent, struct walk *walk)
{
    for (int gpu = 0; gpu < GV_MAX_GPUS; gpu++)
        walk->at[gpu][0].cost = walk->at[gpu][1].cost = COST_NONE;
    walk->close.cost = COST_NONE;
    walk->at[start][start_lent].cost = 0;
    for (int i = 0; i < search->count; i++) {
        bool closing = i == search->count - 1;
        gv_gpuset entries = closing ? GV_GPU_BIT(start) : search->block[i + 1];
        for (gv_gpuset rest = search->block[i]; rest; rest &= rest - 1)
            cross_from(search, walk, i, gv_gpuset_first(rest), entries, closing);
    }
    if (walk->close.cost != COST_NONE && (walk->close.kind == GV_CROSSING_LENT) != start_lent)
        walk->close.cost = COST_NONE;
}

/* Writes the ring of a finished walk, from its last block back to the first. */
static void
trace(const struct search *search, const struct walk *walk, int start, struct gv_route *route)
{
    struct step step = walk->close;
    int to = start;
    memset(route, 0, sizeof(*route));
    route->count = search->count;
    for (int i = search->count - 1; i >= 0; i--) {
        route->block[i] = search->block[i];
        route->entry[i] = step.entry;
        route->leave[i] = step.leave;
        route->crossing[i] = (struct gv_crossing){step.leave, to, step.kind};
        route->lent += step.kind == GV_CROSSING_LENT;
        route->missing += step.kind == GV_CROSSING_SHM;
        to = step.entry;
        step = walk->at[step.entry][step.entry_lent];
    }
}

/* The cheapest ring for the order in which search->block stands. `route` may be NULL. */
static uint64_t best_ring(const struct search *search, struct gv_route *route)
{
    uint64_t best = COST_NONE;
    struct walk walk;
    for (gv_gpuset rest = search->block[0]; rest; rest &= rest - 1)
        for (int lent = 0; lent < 2; lent++) {
            int start = gv_gpuset_first(rest);
            walk_ring(search, start, lent, &walk);
            if (walk.close.cost >= best)
                continue;
            best = walk.close.cost;
            if (route)
                trace(search, &walk, start, route);
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
    memcpy(search->block, blocks->set, (size_t)blocks->count * sizeof(blocks->set[0]));
    for (int a = 0; lendable && a < GV_MAX_GPUS; a++)
        for (gv_gpuset rest = lendable[a]; rest; rest &= rest - 1) {
            int b = gv_gpuset_first(rest);
            double gbs = fmin(gv_facts_p2p_gbs(facts, a, b), gv_facts_p2p_gbs(facts, b, a));
            search->lendable[a] |= GV_GPU_BIT(b);
            search->gbs[a][b] = gbs > 0 ? gbs : 0;
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

/* PCI order is kept unless another order leaves fewer crossings on SHM or needs fewer lent links.
 * Turning one stretch at a time reaches every order of up to four blocks, and good ones of more. */
static void choose_order(struct search *search)
{
    uint64_t best = best_ring(search, NULL) & COST_CHOICE;
    bool better = true;
    for (int round = 0; better && best && round < GV_MAX_GPUS; round++) {
        better = false;
        for (int i = 1; i < search->count - 1; i++)
            for (int j = i + 1; j < search->count; j++) {
                turn(search, i, j);
                uint64_t cost = best_ring(search, NULL) & COST_CHOICE;
                better |= cost < best;
                if (cost < best)
                    best = cost;
                else
                    turn(search, i, j);
            }
    }
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int lendable_speeds(const struct search *search, double *out)
{
    int n = 0;
    for (int a = 0; a < GV_MAX_GPUS; a++)
        for (gv_gpuset rest = search->lendable[a]; rest; rest &= rest - 1)
            if (gv_gpuset_first(rest) > a)
                out[n++] = search->gbs[a][gv_gpuset_first(rest)];
    qsort(out, (size_t)n, sizeof(*out), ascending);
    return n;
}

/* Raises the floor to the speed of the slowest pair in the best ring, less what is no difference
 * by rule 1. */
static void choose_floor(struct search *search)
{
    double speeds[GV_MAX_GPUS * (GV_MAX_GPUS - 1) / 2];
    uint64_t choice = best_ring(search, NULL) & COST_CHOICE;
    int low = 0, high = lendable_speeds(search, speeds) - 1;
    while (low < high) {
        int middle = (low + high + 1) / 2;
        search->floor = speeds[middle];
        if ((best_ring(search, NULL) & COST_CHOICE) == choice)
            low = middle;
        else
            high = middle - 1;
    }
    search->floor = high < 0 ? 0 : speeds[low] / (1 + search->facts->min_gain);
}

void gv_route_find(
    const struct gv_facts *facts, const struct gv_blocks *blocks, const gv_gpuset *lendable,
    struct gv_route *route)
{
    struct search search;
    fill_search(&search, facts, blocks, lendable);
    if (blocks->count > 1) {
        choose_order(&search);
        choose_floor(&search);
        best_ring(&search, route);
        return;
    }
    memset(route, 0, sizeof(*route));
    route->count = blocks->count;
    route->block[0] = blocks->set[0];
    route->entry[0] = gv_gpuset_first(blocks->set[0]);
    route->leave[0] = -1;
}
