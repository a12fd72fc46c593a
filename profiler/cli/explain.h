/* One decision with all that a person or a script wants to know about it. */
#ifndef GV_CLI_EXPLAIN_H
#define GV_CLI_EXPLAIN_H

#include <jansson.h>

#include "plugin/policy/facts.h"
#include "plugin/policy/gv_policy.h"
#include "profiler/cli/source.h"

/* Whether this host proved the P2P that the plan turns on. `explain` decides without it, a job does
 * not. */
enum gv_proof {
    GV_PROOF_NOT_NEEDED, /* the plan turns nothing on */
    GV_PROOF_NO_MACHINE, /* only a profile was looked at */
    GV_PROOF_MISSING,
    GV_PROOF_HELD
};

struct gv_explained {
    const struct gv_source *source;
    gv_gpuset gpus; /* profile indexes, as everything below */
    struct gv_policy_in in;
    gv_gpuset bad[GV_MAX_GPUS];
    struct gv_facts facts;
    struct gv_plan plan;
    const struct gv_profile_group
        *group; /* what was measured of exactly these GPUs; NULL: nothing */
    enum gv_proof proof;
    char proof_text[600];
};

/* Decides for `gpus` (profile indexes). `operations` 0: the profile's; `nccl_version` 0: not known.
 * To be released with gv_explained_finish; `source` must outlive it. */
void gv_explain(
    const struct gv_source *source, gv_gpuset gpus, unsigned operations, int nccl_version,
    struct gv_explained *out);
void gv_explained_finish(struct gv_explained *x);

/* Transport of a ring edge when NCCL is left alone: measured where the profile says so, else by
 * NCCL's own rule (P2P up to PXB). */
enum gv_transport gv_default_transport(const struct gv_explained *x, int from, int to);

/* "default", "P2P across PHB" (NCCL_P2P_LEVEL), "lent links", "bridge", "separated". */
const char *gv_edit_words(enum gv_edit_kind kind);

/* The side of the group that belongs to the plan: the default's (`tuned` false), or the variant's
 * with the most weight for the plan's edit. Its median is NAN where it was not measured. */
double gv_explained_busbw(const struct gv_explained *x, bool tuned);

void gv_explain_header(const struct gv_source *source);
/* `detail`: the edges as a table too. */
void gv_explain_text(const struct gv_explained *x, bool detail);
/* What the marks mean, once below all groups. */
void gv_explain_legend(const struct gv_source *source);
json_t *gv_explain_json(const struct gv_explained *x);

#endif
