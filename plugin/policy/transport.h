/* Which transport a communicator gets: the candidates of its own measurement, or interpolation
 * between its neighbours (rules 1 to 4). */
#ifndef GV_POLICY_TRANSPORT_H
#define GV_POLICY_TRANSPORT_H

#include "plugin/policy/evaluate.h"
#include "plugin/policy/lend.h"
#include "plugin/policy/separate.h"

/* One candidate, judged and made concrete for this communicator. */
struct gv_attempt {
    struct gv_candidate candidate;
    struct gv_evaluation evaluation;
    struct gv_refusal refusal; /* of the edit itself; GV_NO_OBSTACLE: it can be applied */
    struct gv_lent lent;
    bool on_measured_ring; /* lent pairs are edges of the measured default ring */
    struct gv_separation separation;
    bool accepted;
};

/* The best accepted candidate measured for exactly these GPUs; where none is accepted, the one
 * that came closest (to be named in the reason), with candidate.applied = GV_EDIT_NONE where
 * nothing was measured at all. */
struct gv_attempt gv_transport_measured(const struct gv_facts *facts, const struct gv_route *route);

/* Makes the attempt's candidate concrete and sets its refusal. `measured_here`: it was measured for
 * exactly these GPUs, so its measured ring and edges count, and what the driver refuses was on SHM
 * then too. Else every crossing must become P2P. */
void gv_attempt_build(
    const struct gv_facts *facts, const struct gv_route *route, bool measured_here,
    struct gv_attempt *attempt);

/* Rule 3. `lower` and `upper`: the neighbours that decided. */
struct gv_interpolation {
    struct gv_attempt attempt; /* .accepted, or why not */
    gv_gpuset lower, upper;    /* 0: no measured group on that side */
    struct gv_evaluation at_lower, at_upper;
};
struct gv_interpolation
gv_transport_interpolated(const struct gv_facts *facts, const struct gv_route *route);

/* The measured default ring of these GPUs: a group that has one, or NULL. */
const struct gv_profile_group *gv_measured_ring(const struct gv_facts *facts, gv_gpuset gpus);

#endif
