/* Samples of a variant, and rule 1: when two variants differ. */
#ifndef GV_POLICY_SAMPLES_H
#define GV_POLICY_SAMPLES_H

#include "plugin/policy/facts.h"

/* The samples of one side as the rules see them, busbw in GB/s. */
struct gv_side {
    int count; /* 0: not measured, the rest is NAN */
    double median;
    double low, high; /* the inner range: second to last but one; under four samples all */
};

/* Which variants of a group are meant. `lend`/`nlend` matter for GV_EDIT_LEND and
 * GV_EDIT_SEPARATE. */
struct gv_variant_key {
    enum gv_edit_kind edit;
    enum gv_algo algorithm;
    enum gv_proto protocol;
    int channels;
    int lend_count;
    const int (*lend)[2];
    int nlend;
};

enum gv_verdict {
    GV_NOT_MEASURED, /* one side has no samples, or too few to decide on */
    GV_SAME,
    GV_GAIN,
    GV_LOSS
};

struct gv_comparison {
    enum gv_verdict verdict;
    enum gv_op op;
    uint64_t bytes;
    bool loaded;
    struct gv_side base, other;
    double gain; /* other over base, minus 1; NAN where a side has no samples */
    bool thin;   /* fewer than three samples on a side */
};

/* Collects the samples of every variant of `group` that the key names, throttled ones left out. */
struct gv_side gv_side_of(const struct gv_profile_group *group, const struct gv_variant_key *key);

bool gv_variant_is(const struct gv_profile_variant *variant, const struct gv_variant_key *key);

/* Rule 1: medians at least min_gain apart and inner ranges that do not touch. Profiles measured by
 * this project's own tool (provenance `cuda`) need three samples a side. */
struct gv_comparison
gv_compare(const struct gv_facts *facts, struct gv_side base, struct gv_side other);

/* Rule 2: true if the other side's median is more than max_loss below the base's, however few the
 * samples. */
bool gv_loses(const struct gv_facts *facts, const struct gv_comparison *comparison);

/* NCCL's default against the variants named by `key`, as measured for exactly these GPUs, this
 * operation and size. A group measured beside others counts before one measured alone, wherever it
 * has both sides. */
struct gv_comparison gv_measured(
    const struct gv_facts *facts, gv_gpuset gpus, enum gv_op op, uint64_t bytes,
    const struct gv_variant_key *base, const struct gv_variant_key *other);

#endif
