/* What is said of a decision: a profile or an obstacle in, expected words out. */
#include "tests/policy_expect.h"

#include "plugin/policy/reason.h"

#define MIXED GV_TRANSPORT_MIXED
#define DEFAULT GV_TRANSPORT_DEFAULT
#define AR GV_OP_ALL_REDUCE

static void not_for_us(void **state)
{
    (void)state;
    static const struct {
        int ngpus; /* -1: no profile */
        struct gv_policy_in in;
        const char *reason;
    } rows[] = {
        {-1, {.gpus = 3, .one_node = true}, "no profile"},
        {0, {.gpus = 3, .one_node = true}, "no profile"},
        {65, {.gpus = 3, .one_node = true}, "no profile"},
        {1, {.gpus = 1, .one_node = true}, "one GPU: there is no ring"},
        {1, {.gpus = 3, .one_node = true}, "GPUs that the profile does not know"},
        {64, {.gpus = GV_GPU_BIT(63), .one_node = true}, "one GPU: there is no ring"},
        {2, {.gpus = 0, .one_node = true}, "no GPU is known to be in this communicator"},
        {2, {.gpus = 3, .nnodes = 2, .one_node = true}, "spans several nodes"},
        {2, {.gpus = 3, .nranks = 4, .one_node = true}, "not exactly one rank on each"},
        {2, {.gpus = 3, .nranks = 2, .nnodes = 1}, "not proven that all ranks are on this node"},
        {2, {.gpus = 3, .nranks = 2, .nnodes = 1, .one_node = true}, "one island"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct gv_build *build = gv_build_new(GV_CUDA);
        struct gv_policy_in in = rows[i].in;
        struct gv_plan plan;
        gv_build_gpus(build, rows[i].ngpus, "A", 0, 70);
        in.profile = rows[i].ngpus < 0 ? NULL : &build->profile;
        gv_policy_decide(&in, &plan);
        if (!strstr(plan.reason, rows[i].reason))
            fail_msg("\"%s\" is not in \"%s\"", rows[i].reason, plan.reason);
        assert_int_equal(plan.transport, DEFAULT);
        assert_int_equal(plan.nedits, 0);
        gv_plan_finish(&plan);
        gv_build_free(build);
    }
}

static void names(void **state)
{
    (void)state;
    static const char *const evidence[] = {"none", "measured", "interpolated", "none", "none"};
    static const char *const transport[] = {"default", "p2p", "shm", "mixed", "default", "default"};
    for (size_t i = 0; i < COUNT(evidence); i++)
        assert_string_equal(gv_evidence_name((enum gv_evidence)i), evidence[i]);
    for (size_t i = 0; i < COUNT(transport); i++)
        assert_string_equal(gv_transport_name((enum gv_transport)i), transport[i]);
}

/* As many islands as there can be, each of one GPU: every array is full. The driver refuses all
 * pairs of GPU 0. */
static void islands_of_one_gpu(void **state)
{
    (void)state;
    for (int measured = 0; measured < 2; measured++) {
        struct gv_build *build = gv_build_new(GV_CUDA);
        for (int i = 0; i < GV_MAX_GPUS; i++) {
            char island[16];
            snprintf(island, sizeof(island), "I%d", i);
            gv_build_gpus(build, 1, island, 0, 70);
        }
        gv_build_path(build, "0-63", "0-63", GV_PATH_PHB, 0, GV_P2P_VERIFIED, 10);
        gv_build_path(build, "0", "1-63", GV_PATH_PHB, 0, GV_P2P_REFUSED, NAN);
        if (measured)
            gv_build_measured(build, "0-63", AR, "1G", "10 10 10", GV_EDIT_LEND, "12 12 12");
        struct gv_plan plan = decide(build, "0-63");
        assert_int_equal(plan.transport, measured ? MIXED : DEFAULT);
        assert_int_equal(plan.nedits, measured ? 62 : 0);
        assert_int_equal(plan.nvb_disable, measured);
        for (int i = 0; i < plan.nedits; i++)
            assert_true(plan.edits[i].from > 0 && plan.edits[i].to > 0);
        if (!measured)
            assert_string_equal(
                plan.reason, "0-1 and 63-0 have no P2P (refused by the driver), so the ring stays "
                             "bound by SHM");
        gv_plan_finish(&plan);
        gv_build_free(build);
    }
}

/* A refused pair of the measured ring explains nothing where another ring could do without it: what
 * keeps that one from P2P is not the driver's refusal. */
static void refused_elsewhere(void **state)
{
    (void)state;
    struct gv_build *build = islands("22");
    gv_build_path(build, "0,1", "2,3", GV_PATH_PHB, 0, GV_P2P_UNVERIFIED, NAN);
    gv_build_path(build, "0", "2", GV_PATH_PHB, 0, GV_P2P_REFUSED, NAN);
    struct gv_profile_group *group =
        gv_build_measured(build, "0-3", AR, "1G", "10 10 10", GV_EDIT_NONE, NULL);
    gv_build_ring(group, "1,0,2,3", (const int[]){0, 2, 3, 1, -1});
    expect_once(build, "0-3", DEFAULT, "", "not measured, and no group of the same islands");
}

static void obstacles(void **state)
{
    (void)state;
    static const struct {
        struct gv_refusal refusal;
        const char *text;
    } rows[] = {
        {{GV_NO_OBSTACLE, -1, -1}, NULL},
        {{GV_REFUSED, 3, 4}, "3-4 has no P2P (refused by the driver)"},
        {{GV_BAD, 3, 4}, "P2P of 3-4 is found bad on this host"},
        {{GV_NOT_VERIFIED, 3, 4}, "P2P of 3-4 is not verified (run gv100 verify)"},
        {{GV_SM_UNKNOWN, 4, 0}, "no lent link 4-0: compute capability (sm) not known"},
        {{GV_PEERS, 4, 0}, "no lent link 4-0: more than CUDA's 8 peers a GPU"},
        {{GV_PEERS, 0, 1}, "no lent link 0-1: more than CUDA's 8 peers a GPU"},
        {{GV_PEERS, 4, -1}, "GPU 4 would have more than CUDA's 8 peers"},
        {{GV_CPU_NODES, 0, 4}, "no bridge joins 0 and 4, which are on two CPU nodes"},
        {{GV_BRIDGE_SIZE, -1, -1}, "no bridge over more than 9 GPUs (CUDA allows 8 peers a GPU)"},
        {{GV_NOTHING_CROSSES, -1, -1}, "NCCL joins all edges by P2P itself"},
    };
    struct gv_build *build = islands("44");
    struct gv_policy_in in = asked(build, "0-7");
    static struct gv_facts facts;
    gv_facts_init(&facts, &in);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct gv_str text = {0};
        gv_reason_obstacle(&text, &facts, &rows[i].refusal);
        assert_int_equal(text.data != NULL, rows[i].text != NULL);
        if (rows[i].text)
            assert_string_equal(text.data, rows[i].text);
        gv_str_free(&text);
    }
    gv_facts_finish(&facts);
    gv_build_free(build);
}

/* What is known bad of either direction is named, of the first one first. Pair 1-0 is taken apart;
 * the host's own finding has no word of the profile's. */
static void bad_states(void **state)
{
    (void)state;
    static const struct {
        enum gv_p2p there, back; /* 1 to 0, 0 to 1 */
        const char *reason;
    } rows[] = {
        {GV_P2P_CORRUPT, GV_P2P_CORRUPT, "P2P of 1-0 is corrupt,"},
        {GV_P2P_CORRUPT, GV_P2P_VERIFIED, "P2P of 1-0 is corrupt,"},
        {GV_P2P_VERIFIED, GV_P2P_CORRUPT, "P2P of 1-0 is corrupt,"},
        {GV_P2P_UNVERIFIED, GV_P2P_ONE_WAY, "P2P of 1-0 is one-way,"},
        {GV_P2P_ONE_WAY, GV_P2P_VERIFIED, "P2P of 1-0 is one-way,"},
        {GV_P2P_HUNG, GV_P2P_CORRUPT, "P2P of 1-0 is hung,"},
        {GV_P2P_CORRUPT, GV_P2P_HUNG, "P2P of 1-0 is corrupt,"},
        {GV_P2P_VERIFIED, GV_P2P_VERIFIED, "P2P of 1-0 is found bad on this host,"},
    };
    static const gv_gpuset bad[GV_MAX_GPUS] = {2, 1};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct gv_build *build = islands("44");
        gv_build_path(build, "1", "0", GV_PATH_PIX, 0, rows[i].there, NAN)->both_directions = false;
        gv_build_path(build, "0", "1", GV_PATH_PIX, 0, rows[i].back, NAN)->both_directions = false;
        struct gv_policy_in in = asked(build, "0-3");
        struct gv_plan plan;
        in.bad = bad;
        gv_policy_decide(&in, &plan);
        if (!strstr(plan.reason, rows[i].reason))
            fail_msg("\"%s\" is not in \"%s\"", rows[i].reason, plan.reason);
        assert_int_equal(plan.nedits, 1);
        gv_plan_finish(&plan);
        gv_build_free(build);
    }
}

/* Medians that are far enough apart for a gain do not fall short of it, whatever binary makes of
 * the figures: it is the samples that overlap. */
static void no_gain(void **state)
{
    (void)state;
    static const struct {
        double min_gain;
        const char *base, *tuned, *reason;
    } rows[] = {
        {0.25, "10 10 13", "12.5 12.5 12.5", "(+25.0 %, AllReduce, 1G), but the samples overlap"},
        {0.25, "10 10 13", "12.4 12.4 12.4", ": under the 25 % that count as a gain"},
        {0.25, "10 10 10", "12.4 12.4 12.4", ": under the 25 % that count as a gain"},
        {0.03, "2.1 2.1 2.17", "2.163 2.163 2.163", "(+3.0 %, AllReduce, 1G), but the samples"},
        {0.03, "2.1 2.1 2.17", "2.162 2.162 2.162", ": under the 3 % that count as a gain"},
        {0.03, "0.1 0.1 0.2", "0.15 0.15 0.16", "(+50.0 %, AllReduce, 1G), but the samples"},
        {0, "10 10 10", "10 10 10", "(+0.0 %, AllReduce, 1G), but the samples overlap"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct gv_build *build = islands("44");
        build->profile.policy.min_gain = rows[i].min_gain;
        gv_build_measured(build, "0-7", AR, "1G", rows[i].base, GV_EDIT_LEND, rows[i].tuned);
        expect_once(build, "0-7", DEFAULT, "", rows[i].reason);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(not_for_us),
        cmocka_unit_test(names),
        cmocka_unit_test(islands_of_one_gpu),
        cmocka_unit_test(refused_elsewhere),
        cmocka_unit_test(obstacles),
        cmocka_unit_test(bad_states),
        cmocka_unit_test(no_gain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
