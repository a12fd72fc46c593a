/* The one variable that brings the plugin into a job, by NCCL release. */
#ifndef GV_CLI_SETTING_H
#define GV_CLI_SETTING_H

#include <limits.h>

#include "base/gv_error.h"
#include "profiler/cli/nccl.h"

/* A way in. The two can be set together: NCCL before 2.28.7 does not know NCCL_ENV_PLUGIN, and
 * later releases find the preloaded copy again when they open the plugin, since it is the same
 * file. */
struct gv_setting {
    const char *variable; /* "LD_PRELOAD", "NCCL_ENV_PLUGIN" */
    int from, to;         /* NCCL releases, both included; to 0: no end */
    const char *effect;
};

#define GV_SETTINGS 2
extern const struct gv_setting gv_settings[GV_SETTINGS];

/* Bits of gv_settings for one release: exactly one; none before 2.19; both where the release is not
 * known (0). */
unsigned gv_settings_for(int nccl_version);

/* The plugin: $GV100_PLUGIN, else ../lib beside this command, else the installed folder. 0, or -1
 * with `err`. */
int gv_plugin_path(char out[PATH_MAX], struct gv_error *err);

/* LD_PRELOAD cannot hold a path with a blank or a colon in it. 0, or -1 with `err`. */
int gv_plugin_path_fits(const char *path, unsigned settings, struct gv_error *err);

/* Sets the variables in this process's environment, for a job that it starts: LD_PRELOAD is
 * extended, an NCCL_ENV_PLUGIN of the user's is kept. */
void gv_settings_apply(unsigned settings, const char *path);

#endif
