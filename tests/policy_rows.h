/* What the tests of the tuner's table share: measured and written choices in, rows as text out. */
#ifndef GV_POLICY_ROWS_CHECK_H
#define GV_POLICY_ROWS_CHECK_H

#include "tests/policy_expect.h"

/* One measured choice at one size. The default has 10 at every size. */
struct gv_choice {
    const char *size;
    enum gv_edit_kind edit;
    enum gv_algo algorithm;
    enum gv_proto protocol;
    int channels;
    const char *samples;
};

static inline void gv_build_choice(
    struct gv_build *build, const char *gpus, enum gv_op op, const struct gv_choice *choice)
{
    uint64_t bytes = 0;
    gv_size_parse(choice->size, &bytes, NULL);
    struct gv_profile_group *group =
        gv_build_group_set(build, gv_build_set(gpus), op, bytes, false);
    if (!group->nvariants)
        gv_build_run(gv_build_variant(group, GV_EDIT_NONE), "10 10 10");
    if (!choice->samples)
        return;
    struct gv_profile_variant *variant = gv_build_variant(group, choice->edit);
    variant->algorithm = choice->algorithm;
    variant->protocol = choice->protocol;
    variant->channels = choice->channels;
    gv_build_run(variant, choice->samples);
}

/* "AllReduce 1K-65535 RING/LL 2ch +20%"; sizes in bytes where they are no round number. */
static inline const char *gv_check_rows(const struct gv_plan *plan, char *out, size_t size)
{
    size_t used = 0;
    out[0] = 0;
    for (int i = 0; i < plan->nrows && used + 128 < size; i++) {
        const struct gv_tuner_row *row = &plan->rows[i];
        char from[32], to[32], channels[16] = "";
        if (row->channels)
            snprintf(channels, sizeof(channels), " %dch", row->channels);
        used += (size_t)snprintf(
            out + used, size - used, "%s%s %s-%s %s/%s%s %+.0f%%", i ? "; " : "",
            gv_op_name(row->op), gv_size_format(row->min_bytes, from, sizeof(from)),
            row->max_bytes == UINT64_MAX ? "end" : gv_size_format(row->max_bytes, to, sizeof(to)),
            row->algorithm < 0 ? "any" : gv_algo_name(row->algorithm),
            row->protocol < 0 ? "any" : gv_proto_name(row->protocol), channels, row->gain * 100);
    }
    return out;
}

static inline void
gv_expect_rows(const struct gv_build *build, const char *gpus, int nccl_version, const char *rows)
{
    struct gv_policy_in in = {
        .profile = &build->profile,
        .gpus = gv_build_set(gpus),
        .one_node = true,
        .nccl_version = nccl_version};
    struct gv_plan plan;
    char text[4096];
    gv_policy_decide(&in, &plan);
    assert_string_equal(gv_check_rows(&plan, text, sizeof(text)), rows);
    assert_int_equal(plan.rows != NULL, plan.nrows > 0);
    gv_plan_finish(&plan);
    assert_null(plan.rows);
}

/* Choices that somebody wrote down: 1 and any are told apart by -1. */
struct gv_written {
    enum gv_op op;
    uint64_t min_bytes, max_bytes;
    enum gv_algo algorithm;
    enum gv_proto protocol;
    int channels, nodes, ranks, pipe_ops, registered;
};

static inline void gv_build_written(struct gv_build *build, const struct gv_written *w)
{
    struct gv_profile *p = &build->profile;
    p->tuner = gv_build_grow(p->tuner, p->ntuner, sizeof(*p->tuner));
    p->tuner[p->ntuner++] = (struct gv_profile_tuner){
        .op = w->op,
        .min_bytes = w->min_bytes,
        .max_bytes = w->max_bytes,
        .algorithm = w->algorithm,
        .protocol = w->protocol,
        .channels = w->channels,
        .nodes = w->nodes,
        .ranks = w->ranks,
        .pipe_ops = w->pipe_ops,
        .registered = w->registered};
}

#endif
