/* Rule 3: what was measured with fewer and with more GPUs in, decision for a group between out. */
#include "tests/policy_expect.h"

#include "plugin/policy/rows.h"

#define P2P GV_TRANSPORT_P2P
#define DEFAULT GV_TRANSPORT_DEFAULT
#define AR GV_OP_ALL_REDUCE

/* Rule 3: between two measured groups of the same islands, never beyond. */
static void interpolation(void **state)
{
    (void)state;
    static const struct {
        const char *gpus;
        struct {
            const char *gpus, *tuned; /* the default has 10 */
        } measured[4];
        enum gv_transport transport;
        const char *reason;
    } rows[] = {
        {"0-5", {{"0-4", "12 12 12"}, {"0-7", "12 12 12"}}, P2P, "with 0-4 (+20.0 %) and with 0-7"},
        {"0-5", {{"0-4", "12 12 12"}}, DEFAULT, "measured with more GPUs"},
        {"0-5", {{"0-7", "12 12 12"}}, DEFAULT, "measured with fewer GPUs"},
        {"0-5",
         {{NULL, NULL}},
         DEFAULT,
         "fewer or with more GPUs (run gv100 calibrate --groups 0-5)"},
        {"0-5", {{"0-4", "12 12 12"}, {"0-7", "10 10 10"}}, DEFAULT, "0-7 (+0.0 %) does not gain"},
        {"0-5", {{"0-4", "10 10 10"}, {"0-7", "12 12 12"}}, DEFAULT, "0-4 (+0.0 %) does not gain"},
        /* the nearest on each side speak */
        {"0-5", {{"2-4", "10 10 10"}, {"0-4", "12 12 12"}, {"0-7", "12 12 12"}}, P2P, "with 0-4"},
        {"0-5", {{"2-4", "12 12 12"}, {"0-4", "10 10 10"}, {"0-7", "12 12 12"}}, DEFAULT, "0-4"},
        {"0-5", {{"0-4", "12 12 12"}, {"0-6", "10 10 10"}, {"0-7", "12 12 12"}}, DEFAULT, "0-6"},
        /* of several nearest all must gain */
        {"0-5", {{"0-4", "12 12 12"}, {"1-5", "10 10 10"}, {"0-7", "12 12 12"}}, DEFAULT, "1-5"},
        {"0-5", {{"0-4", "12 12 12"}, {"1-5", "11 11 11"}, {"0-7", "12 12 12"}}, P2P, "1-5 (+10.0"},
        /* as many GPUs of the same islands that do not gain block it */
        {"0-5", {{"0-4", "12 12 12"}, {"2-7", "10 10 10"}, {"0-7", "12 12 12"}}, DEFAULT, "2-7"},
        {"0-5", {{"0-4", "12 12 12"}, {"2-7", "12 12 12"}, {"0-7", "12 12 12"}}, P2P, "0-4"},
        /* two samples are none */
        {"0-5", {{"0-4", "12 12"}, {"0-7", "12 12 12"}}, DEFAULT, "measured with fewer GPUs"},
        /* its own measurement counts before any neighbour's */
        {"0-5", {{"0-4", "12 12 12"}, {"0-5", "10 10 10"}, {"0-7", "12 12 12"}}, DEFAULT, "under"},
        /* other islands are no neighbours */
        {"0-3", {{"0-2", "12 12 12"}, {"0-7", "12 12 12"}}, DEFAULT, "one island"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct gv_build *build = gv_build_two_switches();
        for (int m = 0; m < 4 && rows[i].measured[m].gpus; m++)
            gv_build_measured(
                build, rows[i].measured[m].gpus, AR, "1G", "10 10 10", GV_EDIT_P2P_LEVEL,
                rows[i].measured[m].tuned);
        expect(build, rows[i].gpus, rows[i].transport, NULL, rows[i].reason);
        gv_build_free(build);
    }
}

/* Two GPUs cannot be lent a link (LL128), so only a bridge is measured there: what it gains speaks
 * for lent links in larger groups, but nothing that it does to all-to-all does. */
static void interpolation_from_a_bridge(void **state)
{
    (void)state;
    static const struct {
        const char *bridged, *alltoall;
        enum gv_transport transport;
        const char *reason;
    } rows[] = {
        {"12 12 12", NULL, P2P, "with 3-4 (+20.0 %) and with 0-7"},
        {"12 12 12", "2 2 2", P2P, "with 3-4 (+20.0 %) and with 0-7"},
        {"10 10 10", NULL, DEFAULT, "3-4 (+0.0 %) does not gain"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct gv_build *build = gv_build_two_switches();
        gv_build_measured(build, "3,4", AR, "1G", "10 10 10", GV_EDIT_BRIDGE, rows[i].bridged);
        if (rows[i].alltoall)
            gv_build_measured(
                build, "3,4", GV_OP_ALL_TO_ALL, "1G", "18 18 18", GV_EDIT_BRIDGE, rows[i].alltoall);
        gv_build_measured(build, "0-7", AR, "1G", "10 10 10", GV_EDIT_LEND, "12 12 12");
        expect(
            build, "0-5", rows[i].transport, rows[i].transport == P2P ? "lend 3-4 lend 5-0" : "",
            rows[i].reason);
        gv_build_free(build);
    }
}

/* A neighbour under rule 2 does not gain either. */
static void interpolation_and_losses(void **state)
{
    (void)state;
    struct gv_build *build = gv_build_two_switches();
    gv_build_measured(build, "0-4", AR, "1G", "10 10 10", GV_EDIT_P2P_LEVEL, "12 12 12");
    gv_build_measured(build, "0-7", AR, "1G", "10 10 10", GV_EDIT_P2P_LEVEL, "12 12 12");
    expect(build, "0-5", P2P, "lend 3-4 lend 5-0", "interpolated");
    gv_build_measured(build, "0-7", AR, "8M", "10 10 10", GV_EDIT_P2P_LEVEL, "9 9 9");
    expect(build, "0-5", DEFAULT, "", "0-7 loses 10.0 % (AllReduce, 8M)");
    gv_build_free(build);
}

/* Of equal neighbours the one with the lower GPUs is named, in whatever order they were measured.
 */
static void equal_neighbours(void **state)
{
    (void)state;
    static const char *const gpus[][3] = {
        {"0-4", "1-5", "0-7"}, {"1-5", "0-4", "0-7"}, {"0-7", "1-5", "0-4"}};
    for (size_t i = 0; i < COUNT(gpus); i++) {
        struct gv_build *build = gv_build_two_switches();
        for (int k = 0; k < 3; k++)
            gv_build_measured(build, gpus[i][k], AR, "1G", "10 10 10", LEVEL, "12 12 12");
        expect(build, "0-5", GV_TRANSPORT_P2P, NULL, "with 0-4 (+20.0 %) and with 0-7");
        gv_build_free(build);
    }
}

/* Neighbours speak for an edit with as many links; no GPU has more than 18. */
static void lent_counts(void **state)
{
    (void)state;
    static const struct {
        int fewer, more;
        const char *edits;
    } rows[] = {
        {0, 0, "lend 3-4 lend 5-0"},
        {1, 1, "lend 3-4 x1 lend 5-0 x1"},
        {2, 2, "lend 3-4 x2 lend 5-0 x2"},
        {18, 18, "lend 3-4 x18 lend 5-0 x18"},
        {19, 19, ""},
        {1, 2, ""},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct gv_build *build = gv_build_two_switches();
        for (int k = 0; k < 2; k++) {
            struct gv_profile_group *group =
                gv_build_measured(build, k ? "0-7" : "0-4", AR, "1G", "10 10 10", LEND, "12 12 12");
            group->variants[1].lend_count = k ? rows[i].more : rows[i].fewer;
        }
        expect(
            build, "0-5", rows[i].edits[0] ? GV_TRANSPORT_P2P : GV_TRANSPORT_DEFAULT, rows[i].edits,
            "");
        gv_build_free(build);
    }
}

/* A neighbour with as many candidates as there can be. */
static void neighbour_of_many(void **state)
{
    (void)state;
    struct gv_build *build = gv_build_two_switches();
    gv_build_measured(build, "3-4", AR, "1G", "10 10 10", LEND, "12 12 12");
    add_lists(build, "0-7", GV_MAX_CANDIDATES, "11 11 11");
    expect(build, "0-5", GV_TRANSPORT_P2P, NULL, "0-7 (+10.0 %)");
    gv_build_free(build);
}

/* A neighbour that does not gain is said not to, also where it loses elsewhere. */
static void idle_neighbours(void **state)
{
    (void)state;
    static const struct {
        const char *reduced, *broadcast, *reason;
    } rows[] = {
        {"10 10 10", "10 10 10", "of the same islands 0-7 (+0.0 %) does not gain"},
        {"10 10 10", "9 9 9", "of the same islands 0-7 (+0.0 %) does not gain"},
        {"12 12 12", "9 9 9", "of the same islands 0-7 loses 10.0 % (Broadcast, 8M)"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct gv_build *build = islands("44");
        gv_build_measured(build, "0-4", AR, "1G", "10 10 10", GV_EDIT_LEND, "12 12 12");
        gv_build_measured(build, "0-7", AR, "1G", "10 10 10", GV_EDIT_LEND, rows[i].reduced);
        gv_build_measured(
            build, "0-7", GV_OP_BROADCAST, "8M", "10 10 10", GV_EDIT_LEND, rows[i].broadcast);
        expect_once(build, "0-5", DEFAULT, "", rows[i].reason);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(interpolation),
        cmocka_unit_test(interpolation_from_a_bridge),
        cmocka_unit_test(interpolation_and_losses),
        cmocka_unit_test(equal_neighbours),
        cmocka_unit_test(lent_counts),
        cmocka_unit_test(neighbour_of_many),
        cmocka_unit_test(idle_neighbours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
