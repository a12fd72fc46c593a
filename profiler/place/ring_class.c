/* Which kind of edge bounds a ring. */
#include <string.h>

#include "profiler/place/gv_place.h"

/* A ring of NVLinks alone is searched for up to this many GPUs; every ring of more that is known
 * (switched machines) has all pairs. */
#define RING_SEARCH 16

/* Whether a path from `at` through `rest` ends at a GPU joined to `first`. */
static bool closes(const struct gv_place *place, int first, int at, gv_gpuset rest, int *budget)
{
    if (!rest)
        return gv_gpuset_has(place->nvlink[at], first);
    if (--*budget < 0)
        return false;
    for (gv_gpuset next = place->nvlink[at] & rest; next; next &= next - 1) {
        int to = gv_gpuset_first(next);
        if (closes(place, first, to, rest & ~GV_GPU_BIT(to), budget))
            return true;
    }
    return false;
}

static bool ring_of_nvlinks(const struct gv_place *place, gv_gpuset gpus)
{
    bool all = true;
    for (gv_gpuset rest = gpus; rest; rest &= rest - 1) {
        int a = gv_gpuset_first(rest), n = gv_gpuset_count(place->nvlink[a] & gpus);
        if (n < 2)
            return false;
        all &= n == gv_gpuset_count(gpus) - 1;
    }
    if (all || gv_gpuset_count(gpus) > RING_SEARCH)
        return all;
    int first = gv_gpuset_first(gpus), budget = 100000;
    return closes(place, first, first, gpus & ~GV_GPU_BIT(first), &budget);
}

/* PIX, PXB, PHB and SYS are a tree's: pairs within a class form complete sets, so the worst pair
 * that is no NVLink bounds every ring of three and more. */
enum gv_path_class gv_place_ring_class(const struct gv_place *place, gv_gpuset gpus)
{
    enum gv_path_class worst = GV_PATH_UNKNOWN;
    if (gv_gpuset_count(gpus) == 2) {
        int a = gv_gpuset_first(gpus), b = gv_gpuset_first(gpus & (gpus - 1));
        return place->path[a][b];
    }
    if (gv_gpuset_count(gpus) > 2 && ring_of_nvlinks(place, gpus))
        return GV_PATH_NVL;
    for (gv_gpuset x = gpus; x; x &= x - 1)
        for (gv_gpuset y = x & (x - 1); y; y &= y - 1) {
            enum gv_path_class c = place->path[gv_gpuset_first(x)][gv_gpuset_first(y)];
            worst = c > worst ? c : worst;
        }
    return worst;
}
