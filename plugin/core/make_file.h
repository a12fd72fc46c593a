/* From a plan to the topology file that carries it. */
#ifndef GV_MAKE_FILE_H
#define GV_MAKE_FILE_H

#include "plugin/core/gv_decision.h"

/* Applies the plan's edits to the base tree (or to the user's own file), checks the result for
 * every GPU of the communicator and this NCCL, and writes it into a memfd. Returns the descriptor,
 * -1 with `err`. */
int gv_make_file(
    const struct gv_state *state, const struct gv_decision *decision, const char *user_file,
    struct gv_error *err);

#endif
