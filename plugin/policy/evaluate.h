/* What the profile's groups say of a transport: rules 1 and 2 over all sizes and operations
 * measured for one set of GPUs. */
#ifndef GV_POLICY_EVALUATE_H
#define GV_POLICY_EVALUATE_H

#include "plugin/policy/samples.h"

/* A transport that could be used instead of the default: an edit, and the variants that speak for
 * it. Samples taken under NCCL_P2P_LEVEL speak for a bridge, and those of both, the all-to-all kind
 * of operations left out, for lent links: the ring and its transports are the same. */
struct gv_candidate {
    enum gv_edit_kind applied; /* LEND, BRIDGE, SEPARATE */
    struct gv_variant_key key;
};

struct gv_evaluation {
    enum gv_verdict verdict; /* rule 1, at the largest size where the two differ */
    struct gv_comparison deciding;
    bool refused; /* rule 2: `loss` loses more than max_loss, and no tuner row makes up for it */
    struct gv_comparison loss;
};

/* At most that many candidates of one set of GPUs are looked at. */
#define GV_MAX_CANDIDATES 64

/* The candidates measured for exactly these GPUs, in an order of their own (not the profile's).
 * Returns their number. */
int gv_candidates(
    const struct gv_facts *facts, gv_gpuset gpus, struct gv_candidate out[GV_MAX_CANDIDATES]);

struct gv_evaluation
gv_evaluate(const struct gv_facts *facts, gv_gpuset gpus, const struct gv_candidate *candidate);

/* The operation that decides: AllReduce, or the first declared one where AllReduce is excluded. */
enum gv_op gv_deciding_op(const struct gv_facts *facts);

/* True if the operation was measured for these GPUs under the candidate, at any size. */
bool gv_has_measured(
    const struct gv_facts *facts, gv_gpuset gpus, const struct gv_candidate *candidate,
    enum gv_op op);

/* NCCL's default at the largest size measured with the deciding operation; count 0 where none. */
struct gv_side gv_default_side(const struct gv_facts *facts, gv_gpuset gpus);

/* The sizes measured for these GPUs and this operation, ascending, each once. `*out` is the
 * caller's to free. Returns their number; 0 (and NULL) where there are none or memory ran out. */
int gv_sizes(const struct gv_facts *facts, gv_gpuset gpus, enum gv_op op, uint64_t **out);

/* NCCL's own choice of algorithm, protocol and channels under an edit. */
struct gv_variant_key gv_plain_key(enum gv_edit_kind edit);

/* True where the variant leaves algorithm, protocol and channels to NCCL. */
bool gv_variant_plain(const struct gv_profile_variant *variant);

#endif
