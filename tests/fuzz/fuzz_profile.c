/* A profile's text: what is accepted is written, read and written again without a change, and the
 * policy can be asked about it. What is refused names its place. */
#include "base/gv_str.h"
#include "config/gv_profile.h"
#include "plugin/policy/gv_policy.h"
#include "tests/fuzz/fuzz.h"

static void round_trip(const struct gv_profile *profile)
{
    struct gv_str first = {0}, second = {0};
    struct gv_error err = {0};
    GV_MUST(!gv_profile_format(profile, &first));
    struct gv_profile *again = gv_profile_parse(first.data, first.len, "again", &err);
    if (!again)
        fprintf(stderr, "%u:%u: %s\n%s", err.line, err.column, err.text, first.data);
    GV_MUST(again);
    GV_MUST(gv_profile_equal(profile, again));
    GV_MUST(!gv_profile_format(again, &second));
    GV_MUST(first.len == second.len && !memcmp(first.data, second.data, first.len));
    gv_profile_free(again);
    gv_str_free(&first);
    gv_str_free(&second);
}

static void ask(const struct gv_profile *profile, gv_gpuset gpus)
{
    struct gv_plan plan;
    struct gv_policy_in in = {
        .profile = profile,
        .gpus = gpus,
        .nranks = gv_gpuset_count(gpus),
        .one_node = true,
        .nccl_version = 22809};
    gv_policy_decide(&in, &plan);
    GV_MUST(plan.nedits >= 0 && plan.nedits <= GV_MAX_EDITS);
    GV_MUST(plan.nrows >= 0 && plan.nrows <= GV_MAX_ROWS);
    GV_MUST(plan.nring >= 0 && plan.nring <= GV_MAX_GPUS);
    GV_MUST(memchr(plan.reason, 0, sizeof(plan.reason)) && plan.reason[0]);
    for (int i = 0; i < plan.nedits; i++) {
        const struct gv_edit *edit = &plan.edits[i];
        if (edit->kind == GV_EDIT_LEND)
            GV_MUST(gv_gpuset_has(gpus, edit->from) && gv_gpuset_has(gpus, edit->to));
    }
    gv_plan_finish(&plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gv_error err = {0};
    char *text = gv_fuzz_text(data, size);
    struct gv_profile *profile = gv_profile_parse(text, size, "input", &err);
    GV_MUST(profile || err.text[0]);
    if (profile) {
        gv_gpuset all = profile->ngpus == 64 ? ~0ull : GV_GPU_BIT(profile->ngpus) - 1;
        round_trip(profile);
        ask(profile, all);
        ask(profile, all & 0x3f);
        for (int i = 0; i < profile->ngroups && i < 4; i++)
            ask(profile, profile->groups[i].gpus);
    }
    gv_profile_free(profile);
    free(text);
    return 0;
}
