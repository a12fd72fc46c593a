/* The one sentence that goes with a plan. */
#ifndef GV_POLICY_REASON_H
#define GV_POLICY_REASON_H

#include "base/gv_str.h"
#include "plugin/policy/transport.h"

/* "4-5, 6-7 and 8-0"; more than four pairs end in "and N more". */
void gv_reason_pairs(struct gv_str *out, const int (*pairs)[2], int n);

/* "measured 7.94 against 6.89 GB/s busbw (+15.2 %)", the operation and size named unless it is
 * AllReduce at the one size there is. */
void gv_reason_comparison(struct gv_str *out, const struct gv_comparison *comparison);

/* "; one tuned sample is thin evidence", nothing where it is not thin. */
void gv_reason_thin(struct gv_str *out, const struct gv_comparison *comparison);

/* What keeps the edit from being applied, as a clause: "4-5 is not verified for P2P on this host
 * (run gv100 verify)". */
void gv_reason_obstacle(
    struct gv_str *out, const struct gv_facts *facts, const struct gv_refusal *refusal);

/* An accepted plan. */
void gv_reason_measured(struct gv_str *out, const struct gv_attempt *attempt);
void gv_reason_interpolated(struct gv_str *out, const struct gv_interpolation *between);

/* Default plans. */
void gv_reason_not_accepted(
    struct gv_str *out, const struct gv_facts *facts, const struct gv_attempt *attempt);
void gv_reason_not_measured(
    struct gv_str *out, const struct gv_facts *facts, const struct gv_interpolation *between);

#endif
