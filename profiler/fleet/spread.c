/* One line for all items of a figure within a kind. */
#include <math.h>
#include <stdlib.h>

#include "profiler/fleet/fleet.h"

static void take(const struct gv_fleet *fleet, int i, struct gv_fleet_spread *out, double *spreads)
{
    const struct gv_fleet_item *item = &fleet->items[i];
    bool counted = gv_fleet_figures[item->key.figure].counted;
    double spread = counted || !(item->median > 0) ? NAN : (item->max - item->min) / item->median;
    out->off += item->off;
    out->differ += item->max > item->min;
    if (isfinite(item->median)) {
        out->low = fmin(out->low, item->median);
        out->high = fmax(out->high, item->median);
    }
    if (isfinite(spread)) {
        spreads[out->items] = spread;
        if (!(spread <= out->widest)) {
            out->widest = spread;
            out->widest_item = i;
        }
    } else {
        spreads[out->items] = 0;
    }
    out->items++;
}

int gv_fleet_spread_of(
    const struct gv_fleet *fleet, const struct gv_fleet_kind *kind, int figure,
    struct gv_fleet_spread *out)
{
    *out = (struct gv_fleet_spread){
        .low = NAN, .high = NAN, .typical = NAN, .widest = NAN, .widest_item = -1};
    double *spreads = malloc(sizeof(double) * (size_t)(kind->nitems + 1));
    if (!spreads)
        return 0;
    for (int i = kind->first_item; i < kind->first_item + kind->nitems; i++)
        if (fleet->items[i].key.figure == figure)
            take(fleet, i, out, spreads);
    gv_fleet_sort(spreads, out->items);
    if (!gv_fleet_figures[figure].counted)
        out->typical = gv_fleet_middle(spreads, out->items);
    free(spreads);
    return out->items;
}
