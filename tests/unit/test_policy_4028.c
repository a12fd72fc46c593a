/* The reference machine: what each of its groups gets, and why. */
#include "tests/gv_test.h"

#include "plugin/policy/gv_policy.h"
#include "tests/profile_build.h"

static const char *edits_text(const struct gv_plan *plan, char *out, size_t size)
{
    size_t used = 0;
    out[0] = 0;
    for (int i = 0; i < plan->nedits; i++) {
        const struct gv_edit *edit = &plan->edits[i];
        char list[256];
        const char *before = i ? " " : "";
        if (edit->kind == GV_EDIT_BRIDGE)
            used += (size_t)snprintf(
                out + used, size - used, "%sbridge %s", before,
                gv_gpuset_format(edit->gpus, list, sizeof(list)));
        else
            used += (size_t)snprintf(
                out + used, size - used, "%s%s %d-%d", before, gv_edit_name(edit->kind), edit->from,
                edit->to);
    }
    return out;
}

struct row {
    const char *gpus;
    enum gv_transport transport;
    const char *edits;
    enum gv_evidence evidence;
    double gain; /* NAN: none */
    bool thin, nvb_disable;
    const char *reason; /* part of it */
};

static const struct row rows[] = {
    {"0,5", GV_TRANSPORT_P2P, "bridge 0,5", GV_EVIDENCE_MEASURED, 0.113, true, false,
     "measured: 7.78 against 6.99 GB/s busbw (+11.3 %"},
    {"0-5", GV_TRANSPORT_P2P, "lend 4-5 lend 5-0", GV_EVIDENCE_MEASURED, 0.152, true, true,
     "measured: 7.94 against 6.89 GB/s busbw (+15.2 %, AllReduce, 1G), edges 4-5 and 5-0 move "
     "from SHM to P2P; one tuned sample is thin evidence"},
    {"0-9", GV_TRANSPORT_P2P, "lend 4-5 lend 8-0", GV_EVIDENCE_MEASURED, 0.146, true, false,
     "edges 4-5 and 8-0 move from SHM to P2P"},
    {"0-10", GV_TRANSPORT_DEFAULT, "", GV_EVIDENCE_MEASURED, -0.009, true, false,
     "8-10 and 10-0 have no P2P (refused by the driver), so the ring stays bound by SHM; measured "
     "7.54 against 7.61 GB/s"},
    {"0,1", GV_TRANSPORT_DEFAULT, "", GV_EVIDENCE_NONE, NAN, false, false,
     "one island: NCCL joins all edges of the ring by P2P itself; measured 11.40 GB/s"},
    {"7,9", GV_TRANSPORT_DEFAULT, "", GV_EVIDENCE_NONE, NAN, false, false, "measured 73.31 GB/s"},
    {"0,10", GV_TRANSPORT_DEFAULT, "", GV_EVIDENCE_NONE, NAN, false, false,
     "0-10 has no P2P (refused by the driver), so the ring stays bound by SHM; measured 6.90"},
    {"0-4", GV_TRANSPORT_DEFAULT, "", GV_EVIDENCE_NONE, NAN, false, false, "measured 11.17 GB/s"},
    {"0-6", GV_TRANSPORT_P2P, "lend 4-5 lend 6-0", GV_EVIDENCE_INTERPOLATED, NAN, true, false,
     "gain with 0-5 (+15.2 %) and with 0-9 (+14.6 %); edges 4-5 and 6-0 move"},
    {"0-7", GV_TRANSPORT_P2P, "lend 4-5 lend 6-0", GV_EVIDENCE_INTERPOLATED, NAN, true, false,
     "interpolated"},
    {"0-8", GV_TRANSPORT_P2P, "lend 4-5 lend 8-0", GV_EVIDENCE_INTERPOLATED, NAN, true, false,
     "interpolated"},
    {"5-9", GV_TRANSPORT_DEFAULT, "", GV_EVIDENCE_NONE, NAN, false, false, "one island"},
    {"0-4,10", GV_TRANSPORT_DEFAULT, "", GV_EVIDENCE_NONE, NAN, false, false,
     "4-10 and 10-0 have no P2P"},
    {"1,5", GV_TRANSPORT_DEFAULT, "", GV_EVIDENCE_NONE, NAN, false, false,
     "no group of the same islands is measured with fewer GPUs (run gv100 calibrate --groups 1,5)"},
    {"0,1,5", GV_TRANSPORT_P2P, "bridge 0-1,5", GV_EVIDENCE_INTERPOLATED, NAN, true, false,
     "gain with 0,5 (+11.3 %) and with 0-5 (+15.2 %)"},
    {"0-4,7,9", GV_TRANSPORT_P2P, "lend 4-7 lend 9-0", GV_EVIDENCE_INTERPOLATED, NAN, true, true,
     "interpolated"},
};

static struct gv_plan decide(const struct gv_profile *profile, const char *gpus)
{
    struct gv_policy_in in = {.profile = profile, .gpus = gv_build_set(gpus), .one_node = true};
    struct gv_plan plan;
    gv_policy_decide(&in, &plan);
    return plan;
}

static void check(const struct row *row, const struct gv_plan *plan)
{
    char edits[2048];
    print_message("%-8s %s\n", row->gpus, plan->reason);
    assert_string_equal(gv_transport_name(plan->transport), gv_transport_name(row->transport));
    assert_string_equal(edits_text(plan, edits, sizeof(edits)), row->edits);
    assert_string_equal(gv_evidence_name(plan->evidence), gv_evidence_name(row->evidence));
    assert_int_equal(isnan(plan->gain), isnan(row->gain));
    if (!isnan(row->gain))
        assert_true(fabs(plan->gain - row->gain) < 0.0005);
    assert_int_equal(plan->thin, row->thin);
    assert_int_equal(plan->nvb_disable, row->nvb_disable);
    if (!strstr(plan->reason, row->reason))
        fail_msg("%s: \"%s\" is not in \"%s\"", row->gpus, row->reason, plan->reason);
}

static void groups(void **state)
{
    (void)state;
    struct gv_build *build = gv_build_4028();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct gv_plan plan = decide(&build->profile, rows[i].gpus);
        check(&rows[i], &plan);
        gv_plan_finish(&plan);
    }
    gv_build_free(build);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
