#include "plugin/policy/crossings.h"

#include <string.h>

/* Every GPU joins the first block in which it is near to all and refused by none. */
static bool fits(const struct gv_facts *facts, gv_gpuset block, int gpu)
{
    return !(block & ~(facts->near[gpu] & ~facts->refused[gpu]));
}

void gv_blocks_init(
    struct gv_blocks *blocks, const struct gv_facts *facts, gv_gpuset gpus, gv_gpuset moved)
{
    memset(blocks, 0, sizeof(*blocks));
    for (; gpus; gpus &= gpus - 1) {
        int gpu = gv_gpuset_first(gpus), i = 0;
        bool alone = gv_gpuset_has(moved, gpu);
        while (i < blocks->count &&
               (alone || (blocks->set[i] & moved) || !fits(facts, blocks->set[i], gpu)))
            i++;
        blocks->set[i] |= GV_GPU_BIT(gpu);
        blocks->count += i == blocks->count;
    }
}

/* The next GPU along a block: an NVLink peer of the last one, else the lowest that is not kept back
 * for the end. */
static int
next_in_block(const struct gv_facts *facts, gv_gpuset left, gv_gpuset kept_back, int last)
{
    gv_gpuset linked = left & facts->nvlink[last] & ~kept_back;
    if (linked)
        return gv_gpuset_first(linked);
    return gv_gpuset_first(left & ~kept_back ? left & ~kept_back : left);
}

int gv_block_path(const struct gv_facts *facts, gv_gpuset block, int entry, int leave, int *out)
{
    int n = 0;
    bool fixed_end = leave != entry;
    gv_gpuset left = block & ~GV_GPU_BIT(entry);
    gv_gpuset kept_back = 0;
    if (fixed_end) {
        left &= ~GV_GPU_BIT(leave);
        gv_gpuset partners = left & facts->nvlink[leave];
        kept_back = partners & ~(partners - 1);
    }
    out[n++] = entry;
    while (left) {
        int gpu = next_in_block(facts, left, kept_back, out[n - 1]);
        left &= ~GV_GPU_BIT(gpu);
        out[n++] = gpu;
    }
    if (fixed_end)
        out[n++] = leave;
    return n;
}

int gv_route_ring(const struct gv_facts *facts, const struct gv_route *route, int *ring)
{
    int n = 0;
    for (int i = 0; i < route->count; i++)
        n += gv_block_path(facts, route->block[i], route->entry[i], route->leave[i], ring + n);
    return n;
}
