/* The ring that is expected under a plan, with what is known of its edges. */
#ifndef GV_POLICY_RING_H
#define GV_POLICY_RING_H

#include "plugin/policy/transport.h"

/* What stands behind the edges' transports. */
struct gv_ring_view {
    const struct gv_profile_group *measured; /* its ring is shown; NULL: `route` is */
    const struct gv_route *route;
    const struct gv_lent *lent;             /* NULL: nothing is lent */
    const struct gv_separation *separation; /* NULL: nothing is taken apart */
    bool bridge;
};

/* Fills ring, edges and slowest of the plan. */
void gv_ring_fill(
    const struct gv_facts *facts, const struct gv_ring_view *view, struct gv_plan *plan);

/* P2P where all ring edges are P2P, SHM where none is, MIXED between. */
enum gv_transport gv_ring_transport(const struct gv_plan *plan);

#endif
