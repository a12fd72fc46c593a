/* The order of the steps. */
#include <stdlib.h>

#include "profiler/fleet/fleet.h"

static int compare(struct gv_fleet *fleet, struct gv_error *err)
{
    for (int k = 0; k < fleet->nkinds; k++) {
        int first = fleet->nvalues;
        if (gv_fleet_collect(fleet, &fleet->kinds[k]) ||
            gv_fleet_items(fleet, &fleet->kinds[k], first))
            return gv_fleet_no_memory(err);
    }
    gv_fleet_missing(fleet);
    return gv_fleet_name_outliers(fleet) ? gv_fleet_no_memory(err) : 0;
}

int gv_fleet_settle(struct gv_fleet *fleet, struct gv_error *err)
{
    if (gv_fleet_hosts(fleet, err))
        return -1;
    if (!fleet->nhosts) {
        if (fleet->nunread)
            *err = fleet->unread[0];
        return fleet->nunread ? -1
                              : gv_error_set(err, "there is no host's profile in what was given");
    }
    if (gv_fleet_group(fleet, err) || compare(fleet, err))
        return -1;
    for (int k = 0; k < fleet->nkinds; k++)
        if (gv_fleet_merge(fleet, &fleet->kinds[k], err))
            return -1;
    return 0;
}

void gv_fleet_free(struct gv_fleet *fleet)
{
    for (int i = 0; i < fleet->nhosts; i++) {
        free(fleet->hosts[i].file);
        gv_profile_free(fleet->hosts[i].profile);
    }
    for (int i = 0; i < fleet->nkinds; i++) {
        free(fleet->kinds[i].hosts);
        gv_profile_free(fleet->kinds[i].merged);
        gv_str_free(&fleet->kinds[i].left_out);
    }
    free(fleet->hosts);
    free(fleet->kinds);
    free(fleet->unread);
    free(fleet->values);
    free(fleet->items);
    free(fleet->variants);
    free(fleet->outliers);
    gv_str_free(&fleet->passed);
}
