/* How the commands measure NCCL: which library, under which plugin. */
#ifndef GV_CLI_COLLECTIVE_H
#define GV_CLI_COLLECTIVE_H

#include <limits.h>

#include "profiler/cli/measure.h"
#include "profiler/collective/gv_collective.h"

struct gv_collective_setup {
    char nccl[PATH_MAX], plugin[PATH_MAX];
    struct gv_collective_options options; /* points into this struct and into `m` */
};

/* `machine`: the virtual one's name, NULL for the real. `nccl` (may be NULL) names the library;
 * else the virtual one, python3's, the loader's. Fills what does not depend on what is measured. 0,
 * or -1 with `err`: no NCCL, or no plugin. */
int gv_collective_prepare(
    struct gv_collective_setup *s, const struct gv_measuring *m, const char *machine,
    const char *nccl, struct gv_error *err);

#endif
