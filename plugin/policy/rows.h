/* The tuner's table: algorithm, protocol and channels by operation and size. */
#ifndef GV_POLICY_ROWS_H
#define GV_POLICY_ROWS_H

#include "plugin/policy/evaluate.h"

/* Rows for the communicator under the transport that was chosen: `edit` GV_EDIT_NONE for NCCL's
 * default, else the candidate's (its key says which variants were measured under it). A row holds
 * from a size at which it was measured to gain up to the byte before the next measured size, and at
 * that size alone where the same choice was measured there to lose more than max_loss, or where
 * there is no larger measured size: nothing is said of sizes beyond the measurement. Ties keep
 * NCCL's choice. An algorithm or a protocol alone is no choice. `no_ll128`: no row may choose
 * LL128. Sets plan->rows and plan->nrows. */
void gv_rows_fill(
    const struct gv_facts *facts, const struct gv_candidate *transport, bool no_ll128,
    struct gv_plan *plan);

/* Adds the rows that the profile's `tuner` has for this communicator, for operations that have no
 * row yet and of which no choice was measured for these GPUs. Of rows that overlap the first
 * counts.
 */
void gv_rows_advise(const struct gv_facts *facts, bool no_ll128, struct gv_plan *plan);

/* Adds a row behind the plan's, unless there is no room or no memory: then NCCL's own choice stays
 * for these sizes. */
void gv_rows_append(struct gv_plan *plan, const struct gv_tuner_row *row);

/* True where `nccl` ("2.23.4") has the same major.minor as the version number (22304). */
bool gv_same_nccl(const char *nccl, int nccl_version);

#endif
