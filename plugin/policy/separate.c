#include "plugin/policy/separate.h"

#include <string.h>

/* The GPU with most pairs still to be taken apart (the last of them where several have as many):
 * moving it takes all of its pairs apart at once. -1 where nothing is left. */
static int most_pairs(const gv_gpuset left[GV_MAX_GPUS])
{
    int best = -1, most = 1;
    for (int gpu = 0; gpu < GV_MAX_GPUS; gpu++) {
        int n = gv_gpuset_count(left[gpu]);
        if (n >= most) {
            most = n;
            best = gpu;
        }
    }
    return best;
}

/* Names the pairs of one moved GPU. One pair moves it; every NVLink pair needs its own entry. */
static void name_pairs(
    const struct gv_facts *facts, struct gv_separation *out, int gpu, gv_gpuset pairs, bool needed)
{
    gv_gpuset linked = pairs & facts->nvlink[gpu];
    gv_gpuset must = linked ? linked : pairs & ~(pairs - 1);
    for (gv_gpuset rest = needed ? must : pairs & ~must; rest; rest &= rest - 1)
        if (out->count < GV_MAX_EDITS) {
            out->pair[out->count][0] = gpu;
            out->pair[out->count++][1] = gv_gpuset_first(rest);
        }
}

/* Drops pairs that only NCCL's level SYS joins: the level alone takes them apart. */
static void keep_near(const struct gv_facts *facts, gv_gpuset sets[GV_MAX_GPUS])
{
    for (int gpu = 0; gpu < GV_MAX_GPUS; gpu++)
        sets[gpu] &= facts->near[gpu] | facts->nvlink[gpu];
}

/* Moves GPUs until no pair is left; of_moved[x] are the pairs for which x was moved, and not set
 * where it was not. */
static void
move_gpus(struct gv_separation *out, gv_gpuset left[GV_MAX_GPUS], gv_gpuset of_moved[GV_MAX_GPUS])
{
    for (int gpu = most_pairs(left); gpu >= 0; gpu = most_pairs(left)) {
        of_moved[gpu] = left[gpu];
        out->moved |= GV_GPU_BIT(gpu);
        for (gv_gpuset rest = left[gpu]; rest; rest &= rest - 1)
            left[gv_gpuset_first(rest)] &= ~GV_GPU_BIT(gpu);
        left[gpu] = 0;
    }
}

/* Takes apart those of the pairs (symmetric) that NCCL joins. */
static bool separate(
    const struct gv_facts *facts, const gv_gpuset pairs[GV_MAX_GPUS], struct gv_separation *out)
{
    gv_gpuset left[GV_MAX_GPUS], of_moved[GV_MAX_GPUS];
    *out = (struct gv_separation){.count = 0};
    for (int gpu = 0; gpu < GV_MAX_GPUS; gpu++)
        out->apart[gpu] = pairs[gpu] & facts->joined[gpu];
    int first = most_pairs(out->apart);
    out->first[0] = first;
    out->first[1] = first < 0 ? -1 : gv_gpuset_first(out->apart[first]);
    if (first < 0)
        return false;
    out->level_pxb = facts->level_sys;
    memcpy(left, out->apart, sizeof(left));
    keep_near(facts, left);
    move_gpus(out, left, of_moved);
    for (int needed = 1; needed >= 0; needed--)
        for (gv_gpuset rest = out->moved; rest; rest &= rest - 1) {
            int gpu = gv_gpuset_first(rest);
            name_pairs(facts, out, gpu, of_moved[gpu], needed);
        }
    return true;
}

bool gv_separate_bad(const struct gv_facts *facts, struct gv_separation *out)
{
    return separate(facts, facts->bad, out);
}

bool gv_separate_listed(
    const struct gv_facts *facts, const int (*pairs)[2], int npairs, struct gv_separation *out)
{
    gv_gpuset listed[GV_MAX_GPUS];
    memset(listed, 0, sizeof(listed));
    for (int i = 0; i < npairs; i++) {
        listed[pairs[i][0]] |= GV_GPU_BIT(pairs[i][1]);
        listed[pairs[i][1]] |= GV_GPU_BIT(pairs[i][0]);
    }
    return separate(facts, npairs ? listed : facts->joined, out);
}

bool gv_separation_joins(
    const struct gv_facts *facts, const struct gv_separation *separation, int a, int b)
{
    if (!gv_facts_joined(facts, a, b) || gv_gpuset_has(separation->apart[a], b))
        return false;
    if (gv_gpuset_has(facts->nvlink[a], b))
        return true;
    gv_gpuset moved = separation->moved;
    bool near =
        gv_gpuset_has(facts->near[a], b) && !gv_gpuset_has(moved, a) && !gv_gpuset_has(moved, b);
    return near || (!gv_gpuset_has(facts->near[a], b) && !separation->level_pxb);
}
