/* Every group that fits, best first. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/place/gv_place.h"

/* What a GPU is worth to others, 0 to 1: half for the peers that it can reach, a quarter for an
 * NVLink, a quarter for its memory's speed. An order, not a measurement: it only says which GPUs to
 * give away first. */
static double worth(const struct gv_place *place, int gpu)
{
    int most = 1;
    double fastest = 0;
    for (int i = 0; i < place->profile->ngpus; i++) {
        int n = gv_gpuset_count(place->p2p[i]);
        most = n > most ? n : most;
        fastest = fmax(fastest, place->copy_gbs[i]);
    }
    double memory =
        fastest > 0 && !isnan(place->copy_gbs[gpu]) ? place->copy_gbs[gpu] / fastest : 1;
    return 0.5 * gv_gpuset_count(place->p2p[gpu]) / most + 0.25 * (place->nvlink[gpu] != 0) +
           0.25 * memory;
}

static bool same_board(const struct gv_profile_gpu *a, const struct gv_profile_gpu *b)
{
    return !strcmp(a->model, b->model) && a->pci_device == b->pci_device;
}

static void describe(const struct gv_place *place, gv_gpuset gpus, struct gv_group_place *out)
{
    const struct gv_profile_gpu *boards = place->profile->gpus;
    memset(out, 0, sizeof(*out));
    out->gpus = gpus;
    out->like = -1;
    out->busbw_gbs = NAN;
    out->copy_gbs = NAN;
    out->memory_mib = -1;
    for (gv_gpuset rest = gpus; rest; rest &= rest - 1) {
        int g = gv_gpuset_first(rest), earlier = 0;
        int mib = boards[g].memory_mib;
        if (out->memory_mib < 0 || mib < out->memory_mib)
            out->memory_mib = mib;
        out->copy_gbs = fmin(out->copy_gbs, place->copy_gbs[g]);
        out->worth += worth(place, g);
        out->split += gv_gpuset_count(place->nvlink[g] & ~gpus);
        out->nvlinks += gv_gpuset_count(place->nvlink[g] & gpus);
        for (gv_gpuset r = gpus & (GV_GPU_BIT(g) - 1); r; r &= r - 1)
            earlier += same_board(&boards[g], &boards[gv_gpuset_first(r)]);
        out->models += !earlier;
    }
}

static int total_mib(const struct gv_place *place, gv_gpuset gpus)
{
    int sum = 0;
    for (gv_gpuset rest = gpus; rest; rest &= rest - 1) {
        int mib = place->profile->gpus[gv_gpuset_first(rest)].memory_mib;
        sum += mib > 0 ? mib : 0;
    }
    return sum;
}

static bool in_ring(const struct gv_request *r)
{
    return r->gpus > 1 && (r->work == GV_WORK_SYNC || r->work == GV_WORK_PAIR);
}

/* A GPU that can reach no other one makes every ring go through the host, so where others can it is
 * left to work that needs no ring. */
static gv_gpuset
fit_for(const struct gv_place *place, const struct gv_request *r, gv_gpuset free_gpus)
{
    gv_gpuset able = 0, fit = 0;
    for (gv_gpuset rest = free_gpus; rest; rest &= rest - 1)
        if (place->p2p[gv_gpuset_first(rest)])
            able |= GV_GPU_BIT(gv_gpuset_first(rest));
    gv_gpuset from = in_ring(r) && able ? able : free_gpus;
    for (gv_gpuset rest = from; rest; rest &= rest - 1) {
        int g = gv_gpuset_first(rest);
        if (r->work == GV_WORK_PAIR || !r->memory_mib || /* else one not known is too little */
            place->profile->gpus[g].memory_mib >= r->memory_mib)
            fit |= GV_GPU_BIT(g);
    }
    return fit;
}

/* Higher before lower; -1, 0, 1 as qsort has it. NAN comes last. */
static int higher(double a, double b)
{
    if (isnan(a) || isnan(b))
        return isnan(a) - isnan(b);
    return (a < b) - (a > b);
}

static int lower(double a, double b)
{
    return (a > b) - (a < b);
}

static int by_order(const struct gv_group_place *a, const struct gv_group_place *b)
{
    return (a->gpus > b->gpus) - (a->gpus < b->gpus);
}

#define STEP(comparison)                                                                           \
    do {                                                                                           \
        int step_ = (comparison);                                                                  \
        if (step_)                                                                                 \
            return step_;                                                                          \
    } while (0)

/* Without a figure the class of the slowest edge is what is known; UNKNOWN comes last, and all are
 * it where there is a figure. */
static int nearer(const struct gv_group_place *a, const struct gv_group_place *b)
{
    STEP((a->path == GV_PATH_UNKNOWN) - (b->path == GV_PATH_UNKNOWN));
    return (a->path > b->path) - (a->path < b->path);
}

/* In step: the figure; what was measured; boards alike; NVLink pairs left whole for those who need
 * them; the GPUs that others miss least. */
static int by_ring(const struct gv_group_place *a, const struct gv_group_place *b)
{
    STEP(higher(a->busbw_gbs, b->busbw_gbs));
    STEP(nearer(a, b));
    STEP(lower(b->known, a->known));
    STEP(lower(a->models, b->models));
    STEP(lower(a->split + a->nvlinks, b->split + b->nvlinks));
    return lower(a->worth, b->worth);
}

static int by_memory(const struct gv_group_place *a, const struct gv_group_place *b)
{
    STEP(higher(a->copy_gbs, b->copy_gbs));
    STEP(higher(a->busbw_gbs, b->busbw_gbs));
    STEP(nearer(a, b));
    return lower(a->split, b->split);
}

static int by_worth(const struct gv_group_place *a, const struct gv_group_place *b)
{
    STEP(lower(a->worth, b->worth));
    STEP(lower(a->split, b->split));
    return lower(a->memory_mib, b->memory_mib);
}

static int ring_order(const void *a, const void *b)
{
    STEP(by_ring(a, b));
    return by_order(a, b);
}

static int memory_order(const void *a, const void *b)
{
    STEP(by_memory(a, b));
    return by_order(a, b);
}

static int worth_order(const void *a, const void *b)
{
    STEP(by_worth(a, b));
    return -by_order(a, b);
}

struct order {
    int (*keys)(const struct gv_group_place *, const struct gv_group_place *);
    int (*whole)(const void *, const void *); /* the same, then by the GPUs' numbers */
};

static void sort(const struct order *order, struct gv_group_place *list, int n)
{
    qsort(list, (size_t)n, sizeof(*list), order->whole);
    for (int i = 0; i < n; i++)
        list[i].rank = i && !order->keys(&list[i - 1], &list[i]) ? list[i - 1].rank : i;
}

static double choose(int n, int k)
{
    double c = 1;
    for (int i = 0; i < k; i++)
        c = c * (n - i) / (i + 1);
    return c;
}

static bool all_known(const struct gv_place *place, gv_gpuset gpus)
{
    for (; gpus; gpus &= gpus - 1)
        if (place->profile->gpus[gv_gpuset_first(gpus)].memory_mib <= 0)
            return false;
    return true;
}

static int refuse(
    const struct gv_place *place, const struct gv_request *r, gv_gpuset free_gpus, gv_gpuset fit,
    struct gv_error *err)
{
    char a[256], b[256];
    if (!free_gpus)
        return gv_error_set(err, "%d GPUs are asked for and none is free", r->gpus);
    if (gv_gpuset_count(free_gpus) < r->gpus)
        return gv_error_set(
            err, "%d GPUs are asked for and %d are free (%.200s)", r->gpus,
            gv_gpuset_count(free_gpus), gv_gpuset_format(free_gpus, a, sizeof(a)));
    if (r->work == GV_WORK_PAIR && gv_gpuset_count(fit) >= r->gpus)
        return gv_error_set(err, "no %d GPUs have %d MiB together", r->gpus, r->memory_mib);
    if (!fit)
        return gv_error_set(
            err,
            "%d GPUs are asked for and none of the free ones (%.200s) fits: they lack the memory%s",
            r->gpus, gv_gpuset_format(free_gpus, a, sizeof(a)),
            all_known(place, free_gpus) ? "" : ", or it is not known");
    return gv_error_set(
        err, "%d GPUs are asked for and %d of the free ones (%.150s) fit: %.150s lack the memory%s",
        r->gpus, gv_gpuset_count(fit), gv_gpuset_format(fit, a, sizeof(a)),
        gv_gpuset_format(free_gpus & ~fit, b, sizeof(b)),
        in_ring(r) ? ", or have P2P with no other GPU and belong in no ring" : "");
}

/* The next set of `k` among n bits with the same number of bits (Gosper). */
static uint64_t next_set(uint64_t set)
{
    uint64_t low = set & -set, up = set + low;
    return up ? (((up ^ set) >> 2) / low) | up : 0;
}

/* Bit i of `packed` is the i-th GPU of `fit`. */
static gv_gpuset unpack(uint64_t packed, gv_gpuset fit)
{
    gv_gpuset out = 0;
    for (; packed; packed >>= 1, fit &= fit - 1)
        if (packed & 1)
            out |= fit & -fit;
    return out;
}

static int collect(
    const struct gv_place *place, const struct gv_request *r, gv_gpuset fit,
    struct gv_group_place *list)
{
    int n = gv_gpuset_count(fit), count = 0;
    uint64_t end = n < 64 ? (uint64_t)1 << n : 0;
    for (uint64_t s = r->gpus < 64 ? ((uint64_t)1 << r->gpus) - 1 : ~(uint64_t)0;
         s && (!end || s < end); s = next_set(s)) {
        gv_gpuset gpus = unpack(s, fit);
        if (r->work == GV_WORK_PAIR && total_mib(place, gpus) < r->memory_mib)
            continue;
        describe(place, gpus, &list[count]);
        gv_place_busbw(place, &list[count++]);
    }
    return count;
}

int gv_place_rank(
    const struct gv_place *place, const struct gv_request *r, gv_gpuset free_gpus,
    struct gv_group_place **out, struct gv_error *err)
{
    static const struct order ring = {by_ring, ring_order}, memory = {by_memory, memory_order},
                              least = {by_worth, worth_order};
    static const struct order *const orders[GV_WORKS] = {&ring, &ring, &memory, &least};
    gv_gpuset fit = fit_for(place, r, free_gpus);
    int n = gv_gpuset_count(fit);
    if (n < r->gpus)
        return refuse(place, r, free_gpus, fit, err);
    double groups = choose(n, r->gpus);
    if (groups > GV_PLACE_MOST)
        return gv_error_set(
            err,
            "%.0f groups of %d out of %d GPUs are too many to look at; narrow it with --within",
            groups, r->gpus, n);
    struct gv_group_place *list = malloc((size_t)groups * sizeof(*list));
    if (!list)
        return gv_error_set(err, "out of memory");
    int count = collect(place, r, fit, list);
    if (!count) {
        free(list);
        return refuse(place, r, free_gpus, fit, err);
    }
    sort(orders[r->work == GV_WORK_SYNC && r->gpus == 1 ? GV_WORK_MEMORY : r->work], list, count);
    *out = list;
    return count;
}
