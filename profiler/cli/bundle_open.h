/* A bundle of another host (gv100 bundle), as a machine to look at. */
#ifndef GV_CLI_BUNDLE_OPEN_H
#define GV_CLI_BUNDLE_OPEN_H

#include <limits.h>
#include <stdbool.h>

#include "base/gv_error.h"

/* Unpacks the archive `path` for this process's life: `sysfs` receives the machine's root,
 * `profile` the profile's path or "" where it has none. 0, or -1 with `err`. */
int gv_bundle_open(
    const char *path, char sysfs[PATH_MAX], char profile[PATH_MAX], struct gv_error *err);

/* Whether a --machine names an archive and no folder. */
bool gv_is_bundle(const char *path);

#endif
