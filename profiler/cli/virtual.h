/* `--virtual MACHINE`: the command against the virtual driver in place of the real one. */
#ifndef GV_CLI_VIRTUAL_H
#define GV_CLI_VIRTUAL_H

#include <limits.h>

#include "base/gv_error.h"

struct gv_virtual {
    char cuda[PATH_MAX], nvml[PATH_MAX], nccl[PATH_MAX]; /* the stand-ins */
    char sysfs[64];                                      /* the machine's tree; "" none was made */
};

/* Finds the stand-ins beside this program (lib/virtual), resolves `machine` (a file, or a name
 * below lib/virtual/machines or $GV_MACHINES_DIR), and points this process at them by its
 * environment (GV_VIRTUAL_MACHINE; GV100_SYSFS if `with_sysfs`, a temporary folder). 0, or -1 with
 * `err`. */
int gv_virtual_use(
    const char *machine, bool with_sysfs, struct gv_virtual *out, struct gv_error *err);
/* Removes the temporary folder. */
void gv_virtual_finish(struct gv_virtual *v);

#endif
