/* What `gv100 fleet` prints. */
#ifndef GV_CLI_FLEET_H
#define GV_CLI_FLEET_H

#include "profiler/cli/cli.h"
#include "profiler/fleet/gv_fleet.h"

/* `written`: the merged profile's path of each kind, NULL where none was written. */
void gv_fleet_print(const struct gv_fleet *fleet, char *const *written);
/* New reference. */
json_t *gv_fleet_json(const struct gv_fleet *fleet, char *const *written);

#endif
