/* A plan that the measuring tool asks for instead of the policy's, so that what is measured is what
 * would be applied. Never for a job: it counts only in a process whose parent named itself. */
#ifndef GV_FORCE_H
#define GV_FORCE_H

#include <stdint.h>

#include "plugin/core/gv_state.h"
#include "plugin/policy/gv_policy.h"

/* GV100_FORCE holds one plan for every communicator that is made while it is set:
 *
 *   default                                  NCCL's own, nothing handed over
 *   lend 4-5 8-0 [count=2]                   an NVLink entry for each pair
 *   bridge                                   one bridge above the communicator's GPUs
 *   separate 7-9                             the pairs moved apart
 *   algorithm=RING protocol=LL channels=4    the tuner's choice for every operation and size
 *
 * An edit and the tuner's choice may stand together. GPUs are the machine's numbers (PCI order).
 * It is honoured only where GV100_FORCE_BY is the process id of this process's parent, so that a
 * variable that was left behind steers nothing. Read anew at each communicator. */
#define GV_FORCE_VARIABLE "GV100_FORCE"
#define GV_FORCE_BY_VARIABLE "GV100_FORCE_BY"

/* The text that is in force, or NULL. Belongs to the environment. */
const char *gv_force_text(void);
/* A number for it, 0 where nothing is forced: decisions under another text are other decisions. */
uint64_t gv_force_key(void);

/* Fills `plan` (all zero before) by `text` for the GPUs of a communicator (profile indexes). 0, or
 * -1 with `err`: the text is no plan, or names GPUs that are not in the communicator. Rows are
 * malloc'ed, as the policy's. */
int gv_force_plan(
    const struct gv_state *state, const char *text, gv_gpuset gpus, struct gv_plan *plan,
    struct gv_error *err);

#endif
