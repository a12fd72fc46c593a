/* Private to the tuner slots: the canonical init that every version is converted to. */
#ifndef GV_TUNER_CORE_H
#define GV_TUNER_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plugin/core/gv_comm.h"
#include "plugin/core/gv_log.h"

struct gv_init {
    bool has_id; /* v5 and later */
    uint64_t comm_id;
    size_t nranks, nnodes;
    int nccl_version; /* 0: asked of the library that holds the logger */
};

/* The communicator that this tuner init belongs to, held for the caller (gv_comm_put at finalize);
 * NULL: nothing to advise. Says what was decided. */
struct gv_comm *gv_tuner_init(struct gv_init *init, gv_logger logger);

#endif
