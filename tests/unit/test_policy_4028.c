/* The reference machine: what each of its groups gets, and why. The facts once as a table in C and
 * once as the profile that ships. */
#include "tests/policy_check.h"
#include "tests/profile_4028.h"

struct row {
    const char *gpus;
    enum gv_transport transport;
    const char *edits;
    enum gv_evidence evidence;
    double gain; /* NAN: none */
    bool thin, nvb_disable;
    const char *reason; /* part of it */
};

#define P2P GV_TRANSPORT_P2P
#define DEFAULT GV_TRANSPORT_DEFAULT
#define MEASURED GV_EVIDENCE_MEASURED
#define INTERPOLATED GV_EVIDENCE_INTERPOLATED
#define NONE GV_EVIDENCE_NONE

/* clang-format off */
static const struct row rows[] = {
    {"0,5", P2P, "bridge 0,5", MEASURED, 0.113, true, false,
     "measured: 7.78 against 6.99 GB/s busbw (+11.3 %"},
    {"0-5", P2P, "lend 4-5 lend 5-0", MEASURED, 0.152, true, true,
     "measured: 7.94 against 6.89 GB/s busbw (+15.2 %, AllReduce, 1G), edges 4-5 and 5-0 move "
     "from SHM to P2P; one tuned sample is thin evidence"},
    {"0-9", P2P, "lend 4-5 lend 8-0", MEASURED, 0.146, true, false,
     "edges 4-5 and 8-0 move from SHM to P2P"},
    {"0-10", DEFAULT, "", MEASURED, -0.009, true, false,
     "8-10 and 10-0 have no P2P (refused by the driver), so the ring stays bound by SHM; measured "
     "7.54 against 7.61 GB/s"},
    {"0,1", DEFAULT, "", NONE, NAN, false, false,
     "one island: NCCL joins all edges of the ring by P2P itself; measured 11.40 GB/s"},
    {"7,9", DEFAULT, "", NONE, NAN, false, false, "measured 73.31 GB/s"},
    {"0,10", DEFAULT, "", NONE, NAN, false, false,
     "0-10 has no P2P (refused by the driver), so the ring stays bound by SHM; measured 6.90"},
    {"0-4", DEFAULT, "", NONE, NAN, false, false, "measured 11.17 GB/s"},
    {"0-6", P2P, "lend 4-5 lend 6-0", INTERPOLATED, NAN, true, false,
     "gain with 0-5 (+15.2 %) and with 0-9 (+14.6 %); edges 4-5 and 6-0 move"},
    {"0-7", P2P, "lend 4-5 lend 6-0", INTERPOLATED, NAN, true, false, "interpolated"},
    {"0-8", P2P, "lend 4-5 lend 8-0", INTERPOLATED, NAN, true, false, "interpolated"},
    {"5-9", DEFAULT, "", NONE, NAN, false, false, "one island"},
    {"0-4,10", DEFAULT, "", NONE, NAN, false, false, "4-10 and 10-0 have no P2P"},
    /* beyond the published groups */
    {"1,5", DEFAULT, "", NONE, NAN, false, false,
     "no group of the same islands is measured with fewer GPUs (run gv100 calibrate --groups 1,5)"},
    {"0,1,5", P2P, "bridge 0-1,5", INTERPOLATED, NAN, true, false,
     "gain with 0,5 (+11.3 %) and with 0-5 (+15.2 %)"},
    {"0-4,6", P2P, "lend 4-6 lend 6-0", INTERPOLATED, NAN, true, true, "with 0,5 (+11.3 %)"},
    {"0,5-9", P2P, "lend 0-5 lend 8-0", INTERPOLATED, NAN, true, true, "interpolated"},
    {"0-4,7,9", P2P, "lend 4-7 lend 9-0", INTERPOLATED, NAN, true, true, "interpolated"},
    {"1-9", P2P, "lend 4-5 lend 8-1", INTERPOLATED, NAN, true, false, "interpolated"},
    {"5,10", DEFAULT, "", NONE, NAN, false, false, "5-10 has no P2P (refused by the driver)"},
    {"1-10", DEFAULT, "", NONE, NAN, false, false, "no P2P (refused by the driver)"},
};
/* clang-format on */

static struct gv_plan decide(const struct gv_profile *profile, gv_gpuset gpus)
{
    struct gv_policy_in in = {.profile = profile, .gpus = gpus, .one_node = true};
    struct gv_plan plan;
    gv_policy_decide(&in, &plan);
    gv_check_plan(&in, &plan);
    return plan;
}

static void check(const struct row *row, const struct gv_plan *plan)
{
    char edits[2048];
    print_message("%-8s %s\n", row->gpus, plan->reason);
    assert_string_equal(gv_transport_name(plan->transport), gv_transport_name(row->transport));
    assert_string_equal(gv_check_edits(plan, edits, sizeof(edits)), row->edits);
    assert_string_equal(gv_evidence_name(plan->evidence), gv_evidence_name(row->evidence));
    assert_int_equal(isnan(plan->gain), isnan(row->gain));
    if (!isnan(row->gain))
        assert_true(fabs(plan->gain - row->gain) < 0.0005);
    assert_int_equal(plan->thin, row->thin);
    assert_int_equal(plan->nvb_disable, row->nvb_disable);
    if (!strstr(plan->reason, row->reason))
        fail_msg("%s: \"%s\" is not in \"%s\"", row->gpus, row->reason, plan->reason);
}

static void check_all(const struct gv_profile *profile)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct gv_plan plan = decide(profile, gv_build_set(rows[i].gpus));
        check(&rows[i], &plan);
        gv_plan_finish(&plan);
    }
}

static void from_table(void **state)
{
    (void)state;
    struct gv_build *build = gv_build_4028();
    check_all(&build->profile);
    gv_build_free(build);
}

static void from_shipped_profile(void **state)
{
    (void)state;
    struct gv_profile *profile = read_4028();
    check_all(profile);
    gv_profile_free(profile);
}

/* Rings that are shown: the measured one, its edges as the profile has them. */
static void rings(void **state)
{
    (void)state;
    static const struct {
        const char *gpus;
        const char *ring;
        const char *transports;
        bool measured;
        int slowest_from; /* -1: not known */
    } shown[] = {
        {"0-10", "0 1 2 3 4 5 6 7 9 8 10", "PPPPSPPPPSS", true, 4},
        {"0-9", "0 1 2 3 4 5 6 7 9 8", "PPPPPPPPPP", true, 4},
        {"0-5", "0 1 2 3 4 5", "PPPPPP", true, 4},
        {"0-8", "0 1 2 3 4 5 6 7 8", "PPPPPPPPP", false, 4},
        {"5-9", "5 6 7 9 8", "PPPPP", false, 5},
        {"7,9", "7 9", "PP", false, 7},
        {"0-4,10", "0 1 2 3 4 10", "PPPPSS", false, 4},
    };
    struct gv_profile *profile = read_4028();
    for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
        struct gv_plan plan = decide(profile, gv_build_set(shown[i].gpus));
        char ring[256] = "", transports[65] = "";
        for (int e = 0; e < plan.nring; e++) {
            snprintf(
                ring + strlen(ring), sizeof(ring) - strlen(ring), e ? " %d" : "%d", plan.ring[e]);
            transports[e] = plan.edges[e].transport == GV_TRANSPORT_P2P ? 'P' : 'S';
        }
        assert_string_equal(ring, shown[i].ring);
        assert_string_equal(transports, shown[i].transports);
        assert_int_equal(plan.ring_measured, shown[i].measured);
        assert_int_equal(plan.edges[plan.slowest].from, shown[i].slowest_from);
        gv_plan_finish(&plan);
    }
    gv_profile_free(profile);
}

/* All 2,047 groups: decided, and sound. No plan where GPU 10 takes part or one island is all. */
static void every_group(void **state)
{
    (void)state;
    struct gv_profile *profile = read_4028();
    int p2p = 0, groups = 0;
    for (gv_gpuset gpus = 1; gpus < GV_GPU_BIT(11); gpus++) {
        struct gv_policy_in in = {.profile = profile, .gpus = gpus, .one_node = true};
        struct gv_plan plan;
        gv_policy_decide(&in, &plan);
        if (gv_gpuset_count(gpus) > 1)
            gv_check_plan(&in, &plan);
        bool both_islands = (gpus & 0x1f) && (gpus & 0x3e0);
        if (gv_gpuset_has(gpus, 10) || !both_islands)
            assert_int_equal(plan.transport, GV_TRANSPORT_DEFAULT);
        groups++;
        p2p += plan.transport == GV_TRANSPORT_P2P;
        assert_true(plan.transport == GV_TRANSPORT_P2P || plan.nedits == 0);
        gv_plan_finish(&plan);
    }
    gv_profile_free(profile);
    print_message("%d of %d groups get P2P\n", p2p, groups);
    assert_int_equal(groups, 2047);
    /* 961 groups have GPUs in both islands; of the 25 pairs among them only {0,5} was measured */
    assert_int_equal(p2p, 961 - 24);
}

/* Rules 4 and 6: what the host and the job say besides. */
static void circumstances(void **state)
{
    (void)state;
    gv_gpuset all[GV_MAX_GPUS], without_45[GV_MAX_GPUS], bad_12[GV_MAX_GPUS] = {0};
    gv_gpuset bad_45[GV_MAX_GPUS] = {0}, nothing[GV_MAX_GPUS] = {0};
    for (int i = 0; i < GV_MAX_GPUS; i++)
        all[i] = without_45[i] = ~0ull;
    without_45[5] &= ~GV_GPU_BIT(4); /* one direction is enough */
    bad_12[1] = GV_GPU_BIT(2);
    bad_45[5] = GV_GPU_BIT(4);
    struct gv_profile *profile = read_4028();
    /* clang-format off */
    const struct {
        const char *gpus;
        int nranks, nnodes;
        bool one_node;
        unsigned operations;
        const gv_gpuset *verified, *bad;
        const char *edits, *reason;
    } cases[] = {
        {"0-9", 10, 1, true, 0, NULL, NULL, "lend 4-5 lend 8-0", "measured"},
        {"0-9", 0, 0, true, 0, all, NULL, "lend 4-5 lend 8-0", "measured"},
        {"0-9", 20, 1, true, 0, NULL, NULL, "", "exactly one rank on each"},
        {"0-9", 9, 1, true, 0, NULL, NULL, "", "exactly one rank on each"},
        {"0-9", 10, 2, true, 0, NULL, NULL, "", "several nodes"},
        {"0-9", 10, 1, false, 0, NULL, NULL, "", "GV100_SINGLE_NODE=1"},
        {"3", 1, 1, true, 0, NULL, NULL, "", "one GPU"},
        {"0-11", 12, 1, true, 0, NULL, NULL, "", "does not know"},
        /* not verified on this host: another crossing, or none */
        {"0-9", 10, 1, true, 0, nothing, NULL, "", "not verified (run gv100 verify)"},
        {"0-9", 10, 1, true, 0, without_45, NULL, "lend 3-5 lend 8-0", "measured"},
        {"0,5", 2, 1, true, 0, nothing, NULL, "", "0-5 is not verified"},
        {"0,1", 2, 1, true, 0, nothing, NULL, "", "one island"},
        /* found bad on this host: across islands it is avoided, inside one it is separated */
        {"0-9", 10, 1, true, 0, all, bad_45, "lend 3-5 lend 8-0", "measured"},
        {"4,5", 2, 1, true, 0, all, bad_45, "", "P2P of 4-5 is found bad on this host"},
        {"0-9", 10, 1, true, 0, all, bad_12, "separate 2-1", "P2P of 2-1 is found bad"},
        {"1,2", 2, 1, true, 0, all, bad_12, "separate 2-1", "P2P of 2-1 is found bad"},
        {"0,1", 2, 1, true, 0, all, bad_12, "", "one island"},
        /* a job that does all-to-all gets no bridge */
        {"0,5", 2, 1, true, GV_OP_BIT(GV_OP_ALL_REDUCE) | GV_OP_BIT(GV_OP_ALL_TO_ALL), NULL, NULL,
         "", "all-to-all under a bridge is neither measured nor excluded"},
        {"0-9", 10, 1, true, GV_OP_BIT(GV_OP_ALL_REDUCE) | GV_OP_BIT(GV_OP_ALL_TO_ALL), NULL, NULL,
         "lend 4-5 lend 8-0", "measured"},
        /* only AllReduce was measured */
        {"0-9", 10, 1, true, GV_OP_BIT(GV_OP_BROADCAST), NULL, NULL, "", "not measured"},
    };
    /* clang-format on */
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct gv_policy_in in = {
            .profile = profile,
            .gpus = gv_build_set(cases[i].gpus),
            .nranks = cases[i].nranks,
            .nnodes = cases[i].nnodes,
            .one_node = cases[i].one_node,
            .operations = cases[i].operations,
            .verified = cases[i].verified,
            .bad = cases[i].bad};
        struct gv_plan plan;
        char edits[2048];
        gv_policy_decide(&in, &plan);
        print_message("%-5s %s\n", cases[i].gpus, plan.reason);
        assert_string_equal(gv_check_edits(&plan, edits, sizeof(edits)), cases[i].edits);
        if (!strstr(plan.reason, cases[i].reason))
            fail_msg("\"%s\" is not in \"%s\"", cases[i].reason, plan.reason);
        gv_plan_finish(&plan);
    }
    gv_profile_free(profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(from_table),    cmocka_unit_test(from_shipped_profile),
        cmocka_unit_test(rings),         cmocka_unit_test(every_group),
        cmocka_unit_test(circumstances),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
