#include "testbench/nccl/channel.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum order { ANY_ORDER, FILE_ORDER, LAST_CHANNEL };

static int gpu_of_rank(const struct gv_nt_walk *s, int rank)
{
    for (int g = 0; g < s->n; g++)
        if (gv_nt_gpu(s, g)->rank == rank)
            return g;
    return -1;
}

/* ---- bandwidth along a path ---- */

static float round3(float x)
{
    return roundf(x * 1000) / 1000;
}

/* Through an Intel root port P2P takes a fifth more of the PCIe links. */
static float pcie_demand(const struct gv_nt_path *path, float gbs)
{
    if (path->type == GV_NCCL_PHB)
        for (int i = 0; i < path->hops; i++) {
            const struct gv_nt_node *to = path->hop[i]->to;
            if (to->kind == GV_NT_CPU && to->arch == GV_NT_X86 && to->vendor == GV_NT_INTEL)
                return gbs * 6 / 5;
        }
    return gbs;
}

static struct gv_nt_link *opposite(const struct gv_nt_node *from, const struct gv_nt_link *link)
{
    for (int i = 0; i < link->to->nlinks; i++)
        if (link->to->link[i].to == from && link->to->link[i].wire == link->wire)
            return link->to->link + i;
    return NULL;
}

/* NVLink into a POWER CPU loads the way back as well. */
static struct gv_nt_link *shared_link(const struct gv_nt_node *from, const struct gv_nt_link *link)
{
    bool power = link->to->kind == GV_NT_CPU && link->to->arch == GV_NT_POWER;
    return power && link->wire == GV_NT_NVLINK ? opposite(from, link) : NULL;
}

/* Takes `gbs` (negative: gives back) from the first `hops` links; returns how many it could. */
static int take(const struct gv_nt_path *path, const struct gv_nt_node *from, int hops, float gbs)
{
    float pcie = pcie_demand(path, gbs);
    for (int i = 0; i < hops; i++) {
        struct gv_nt_link *link = path->hop[i], *back = shared_link(from, link);
        float need = link->wire == GV_NT_PCIE ? pcie : gbs;
        if (link->gbs < need || (back && back->gbs < need))
            return i;
        link->gbs = round3(link->gbs - need);
        if (back)
            back->gbs = round3(back->gbs - need);
        from = link->to;
    }
    return hops;
}

/* GPUs and their paths gained two hops in 2.30, when a device node came between. */
static int counted_hops(const struct gv_nt_walk *s, const struct gv_nt_path *path)
{
    return path->hops + (s->sys->release >= 23000 ? 2 : 0);
}

/* Reserves the way from a to b for the trial's bandwidth. */
static bool reserve(struct gv_nt_walk *s, int a, int b)
{
    struct gv_nt_node *from = gv_nt_gpu(s, a), *to = gv_nt_gpu(s, b);
    struct gv_nt_path *path = gv_nt_path_between(s->sys, from, to);
    const struct gv_nt_plan *t = s->trial;
    if (path->type >= GV_NCCL_DIS || path->type > t->type)
        return false;
    if (t->shape != GV_NT_RING && gv_nt_path_between(s->sys, to, from)->type > t->type)
        return false;
    int hops = take(path, from, path->hops, t->gbs_intra);
    if (hops < path->hops) {
        take(path, from, hops, -t->gbs_intra);
        return false;
    }
    s->trial->hops += counted_hops(s, path);
    return true;
}

static void release(struct gv_nt_walk *s, int a, int b)
{
    struct gv_nt_path *path = gv_nt_path_between(s->sys, gv_nt_gpu(s, a), gv_nt_gpu(s, b));
    take(path, gv_nt_gpu(s, a), path->hops, -s->trial->gbs_intra);
    s->trial->hops -= counted_hops(s, path);
}

/* ---- one channel after the other ---- */

struct score {
    int gpu, start, hops, gbs;
};

/* Fastest first, then fewest hops, then next in file order. */
static int compare_scores(const void *a, const void *b)
{
    const struct score *x = a, *y = b;
    if (x->gbs != y->gbs)
        return y->gbs - x->gbs;
    return x->hops != y->hops ? x->hops - y->hops : x->start - y->start;
}

static int move_to_front(int *next, int count, int gpu)
{
    int at = 0;
    while (at < count && next[at] != gpu)
        at++;
    if (at == count)
        return 0;
    for (; at > 0; at--)
        next[at] = next[at - 1];
    next[0] = gpu;
    return 1;
}

/* With an NVSwitch only the neighbours are tried (up to 2.19: tried first). */
static int prefer_neighbours(const struct gv_nt_walk *s, int gpu, int *next, int count)
{
    int after = (gpu + 1) % s->n, before = (gpu + s->n - 1) % s->n;
    int front[2] = {after, before}, n = s->trial->shape == GV_NT_TREE_CHAIN ? 1 : 2, found = 0;
    if (s->trial->shape == GV_NT_TREE_BALANCED) {
        front[0] = before;
        front[1] = after;
    }
    if (n == 2 && after == before && s->sys->release >= 22000)
        n = 1;
    for (int i = 0; i < n; i++)
        found += move_to_front(next, count, front[i]);
    return s->sys->release >= 22000 ? found : count;
}

static void rank_from(struct gv_nt_walk *s, int gpu)
{
    struct score score[GV_NCCL_MAX_GPUS];
    int count = 0;
    for (int i = 1; i < s->n; i++) {
        int g = (gpu + i) % s->n;
        struct gv_nt_path *path = gv_nt_path_between(s->sys, gv_nt_gpu(s, gpu), gv_nt_gpu(s, g));
        if (path->hops)
            score[count++] = (struct score){g, i, path->hops, (int)path->gbs};
    }
    qsort(score, (size_t)count, sizeof(score[0]), compare_scores);
    for (int i = 0; i < count; i++)
        s->ranked[gpu][i] = (unsigned char)score[i].gpu;
    s->nranked[gpu] = (unsigned char)count;
}

void gv_nt_walk_rank(struct gv_nt_walk *w)
{
    for (int g = 0; g < w->n; g++)
        rank_from(w, g);
}

static int next_gpus(const struct gv_nt_walk *s, int gpu, int *next)
{
    int count = 0;
    for (int i = 0; i < s->nranked[gpu]; i++) {
        int g = s->ranked[gpu][i];
        if (!(gv_nt_gpu(s, g)->used >> s->trial->channels & 1))
            next[count++] = g;
    }
    return s->sys->count[GV_NT_NVS] ? prefer_neighbours(s, gpu, next, count) : count;
}

static bool improves(const struct gv_nt_plan *trial, const struct gv_nt_plan *best)
{
    if (trial->channels < trial->min_channels)
        return false;
    float now = (float)trial->channels * trial->gbs_intra;
    float old = (float)best->channels * best->gbs_intra;
    if (now != old)
        return now > old;
    return trial->shape == best->shape && trial->cross_nic == best->cross_nic &&
           trial->hops < best->hops;
}

static void channel_done(struct gv_nt_walk *s)
{
    s->trial->channels++;
    if (improves(s->trial, s->best)) {
        *s->best = *s->trial;
        if (s->trial->channels == s->trial->max_channels)
            s->steps = GV_NT_PERFECT;
    }
    if (s->trial->channels < s->trial->max_channels)
        gv_nt_walk_channels(s);
    s->trial->channels--;
}

static bool count_step(struct gv_nt_walk *s)
{
    if (s->steps <= 0)
        return false;
    s->steps--;
    return true;
}

static void visit(struct gv_nt_walk *s, int gpu, int place, enum order order);

/* Marks the GPU as taken while the rest of the channel is searched. */
static void enter(struct gv_nt_walk *s, int gpu, int place, enum order order)
{
    uint64_t bit = (uint64_t)1 << s->trial->channels;
    gv_nt_gpu(s, gpu)->used ^= bit;
    visit(s, gpu, place, order);
    gv_nt_gpu(s, gpu)->used ^= bit;
}

/* What a GPU of the last channel was followed by; `place` -1 asks for its first. */
static int last_channel_gpu(const struct gv_nt_walk *s, int place)
{
    return gpu_of_rank(s, s->trial->order[(s->trial->channels - 1) * s->n + place + 1]);
}

static void go_on(struct gv_nt_walk *s, int gpu, int place, enum order order)
{
    int next[GV_NCCL_MAX_GPUS], count = 1;
    if (order == FILE_ORDER)
        next[0] = place + 1;
    else if (order == LAST_CHANNEL)
        next[0] = last_channel_gpu(s, place);
    else
        count = next_gpus(s, gpu, next);
    for (int i = 0; i < count; i++)
        if (reserve(s, gpu, next[i])) {
            enter(s, next[i], place + 1, order);
            release(s, gpu, next[i]);
        }
}

static void close_ring(struct gv_nt_walk *s, int gpu)
{
    int first = gpu_of_rank(s, s->trial->order[s->trial->channels * s->n]);
    if (!reserve(s, gpu, first))
        return;
    if (count_step(s))
        channel_done(s);
    release(s, gpu, first);
}

static void visit(struct gv_nt_walk *s, int gpu, int place, enum order order)
{
    if (!count_step(s))
        return;
    s->trial->order[s->trial->channels * s->n + place] = gv_nt_gpu(s, gpu)->rank;
    if (place < s->n - 1)
        go_on(s, gpu, place, order);
    else if (s->trial->shape == GV_NT_RING)
        close_ring(s, gpu);
    else if (count_step(s))
        channel_done(s);
}

void gv_nt_walk_channels(struct gv_nt_walk *s)
{
    bool first = s->trial->channels == 0;
    if (first)
        enter(s, 0, 0, FILE_ORDER);
    else
        enter(s, last_channel_gpu(s, -1), 0, LAST_CHANNEL);
    if (first || !s->trial->same_channels)
        for (int g = 0; g < s->n; g++)
            enter(s, g, 0, ANY_ORDER);
}
