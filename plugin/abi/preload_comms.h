/* Private to the preload: what is known of NCCL's communicators, by their handles. */
#ifndef GV_PRELOAD_COMMS_H
#define GV_PRELOAD_COMMS_H

#include <stdbool.h>
#include <stdint.h>

#include "plugin/core/gv_comm.h"

/* Remembers a communicator by its ncclComm_t. A handle that is known already (NCCL reuses
 * addresses) is replaced. Holds `comm`. */
void gv_handle_add(void *handle, struct gv_comm *comm);

/* Forgets it, and takes it off the list of those that wait for their init thread. */
void gv_handle_remove(void *handle);

/* What a child inherits. */
struct gv_parent {
    uint64_t key;
    int gpu, nranks, nccl_version;
    bool proven;    /* all of its ranks are on this node */
    unsigned child; /* how many splits (or shrinks) came before: equal on all ranks that call */
};

/* Facts of `handle`, counting one more split or shrink. False: it was made where we did not see it.
 */
bool gv_handle_child(void *handle, bool shrink, struct gv_parent *out);

#endif
