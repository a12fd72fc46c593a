/* How `gv100 handoff` shows and keeps its result. */
#ifndef GV_CLI_HANDOFF_H
#define GV_CLI_HANDOFF_H

#include <limits.h>

#include "profiler/cli/cli.h"
#include "profiler/handoff/gv_handoff_ab.h"

/* `path` is the profile that was written, "" none. */
void gv_handoff_print(const struct gv_ab *ab, const struct gv_gpus *gpus, const char *path);
/* New reference. */
json_t *gv_handoff_json(const struct gv_ab *ab, const struct gv_gpus *gpus, const char *path);

/* The profile that gets the result, and the pair's numbers in it. */
struct gv_handoff_target {
    struct gv_profile *profile;
    char path[PATH_MAX];
    int from, to;
};

/* Finds the profile (`name` NULL: the one for this machine), before anything is measured. A virtual
 * machine's figures go into a virtual profile alone, and the reverse. 0, or -1 with `err`. */
int gv_handoff_target_open(
    struct gv_handoff_target *target, const char *name, const struct gv_gpus *gpus,
    const struct gv_ab_options *options, bool virtual_machine, struct gv_error *err);
/* Adds the entry, in place of one for the same pair and size, and writes the file. */
int gv_handoff_target_save(
    struct gv_handoff_target *target, const struct gv_ab *ab, struct gv_error *err);
void gv_handoff_target_close(struct gv_handoff_target *target);

#endif
