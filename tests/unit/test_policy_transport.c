/* Candidates made concrete and held against each other: measurements in, decision out. */
#include "tests/policy_expect.h"

#include "plugin/policy/reason.h"

#define P2P GV_TRANSPORT_P2P
#define MIXED GV_TRANSPORT_MIXED
#define AR GV_OP_ALL_REDUCE
#define BC GV_OP_BROADCAST
#define RD GV_OP_REDUCE
#define A2A GV_OP_ALL_TO_ALL
#define M (1u << 20)
#define G (1u << 30)

/* ---- the measured ring ---- */

/* A digit for each GPU: '/' is -1, 'p' is 64. */
struct ring {
    enum gv_op op;
    uint64_t bytes;
    bool loaded;
    const char *ring, *shm; /* shm: "12", the edge on SHM; "" none; NULL: not known */
};

static void add_ring(struct gv_build *build, gv_gpuset gpus, const struct ring *ring)
{
    struct gv_profile *p = &build->profile;
    p->groups = gv_build_grow(p->groups, p->ngroups, sizeof(*p->groups));
    struct gv_profile_group *group = &p->groups[p->ngroups++];
    group->gpus = gpus;
    group->op = ring->op;
    group->bytes = ring->bytes;
    group->loaded = ring->loaded;
    for (const char *gpu = ring->ring; *gpu; gpu++)
        group->ring[group->nring++] = *gpu - '0';
    group->shm_edges_known = ring->shm;
    group->nshm_edges = ring->shm && ring->shm[0];
    for (int end = 0; end < 2 * group->nshm_edges; end++)
        group->shm_edges[0][end] = ring->shm[end] - '0';
}

/* "120:SPP", the ring and its edges; "" where no measured ring is shown. */
static const char *ring_text(const struct gv_plan *plan, char out[2 * GV_MAX_GPUS])
{
    int n = plan->ring_measured ? plan->nring : 0;
    for (int i = 0; i < n; i++) {
        out[i] = (char)('0' + plan->ring[i]);
        out[n + 1 + i] = plan->edges[i].transport == P2P ? 'P' : 'S';
    }
    out[n] = n ? ':' : 0;
    out[2 * n + 1] = 0;
    return out;
}

/* Which ring is shown of two: the order in the file does not decide. */
static void rings(void **state)
{
    (void)state;
    static const struct {
        const char *gpus;
        unsigned operations;
        struct ring rings[2];
        const char *shown;
    } rows[] = {
        {"0-2", 0, {{AR, M, 0, "120", NULL}}, "120:PPP"},
        {"0-2", 0, {{BC, 0, 0, "120", NULL}}, "120:PPP"},
        {"0-2", 0, {{AR, M, 0, "120", NULL}, {AR, G, 0, "201", NULL}}, "201:PPP"},
        /* AllReduce, or what is declared instead, before the larger size */
        {"0-2", 0, {{BC, G, 0, "120", NULL}, {AR, M, 0, "201", NULL}}, "201:PPP"},
        {"0-2", 0, {{A2A, G, 0, "120", NULL}, {AR, M, 0, "201", NULL}}, "201:PPP"},
        {"0-2", GV_OP_BIT(RD), {{RD, M, 0, "120", NULL}, {AR, G, 0, "201", NULL}}, "120:PPP"},
        /* of two others the larger size, then the operation */
        {"0-2", 0, {{BC, M, 0, "120", NULL}, {BC, G, 0, "201", NULL}}, "201:PPP"},
        {"0-2", 0, {{BC, G, 0, "120", NULL}, {RD, M, 0, "201", NULL}}, "120:PPP"},
        {"0-2", 0, {{BC, G, 1, "120", NULL}, {RD, G, 0, "201", NULL}}, "201:PPP"},
        /* the loaded one, then the ring and its edges */
        {"0-2", 0, {{AR, G, 1, "120", NULL}, {AR, G, 0, "012", NULL}}, "120:PPP"},
        {"0-2", 0, {{AR, G, 1, "021", NULL}, {AR, G, 1, "012", NULL}}, "012:PPP"},
        {"0-2", 0, {{AR, G, 0, "021", NULL}, {AR, G, 0, "012", NULL}}, "012:PPP"},
        {"0-2", 0, {{AR, G, 1, "012", "01"}, {AR, G, 1, "012", "12"}}, "012:SPP"},
        {"0-2", 0, {{AR, G, 1, "012", NULL}, {AR, G, 1, "012", "12"}}, "012:PSP"},
        {"2,3", 0, {{AR, G, 1, "23", NULL}, {AR, G, 1, "23", ""}}, "23:PP"},
        {"2,3", 0, {{AR, G, 1, "23", NULL}}, "23:SS"},
        /* no ring of these GPUs */
        {"0-2", 0, {{AR, G, 0, "", NULL}}, ""},
        {"0-2", 0, {{AR, G, 0, "122", NULL}}, ""},
        {"0-2", 0, {{AR, G, 0, "01/", NULL}}, ""},
        {"0-2", 0, {{AR, G, 0, "12p", NULL}}, ""},
        {"0-2", 0, {{AR, G, 0, "0122", NULL}}, ""},
        {"0-2", 0, {{AR, G, 0, "01", NULL}}, ""},
    };
    for (size_t i = 0; i < 2 * COUNT(rows); i++) {
        struct gv_build *build = islands("33");
        char text[2 * GV_MAX_GPUS];
        build->profile.policy.operations = rows[i / 2].operations;
        for (size_t k = 0; k < 2; k++)
            if (rows[i / 2].rings[(i + k) % 2].ring)
                add_ring(build, gv_build_set(rows[i / 2].gpus), &rows[i / 2].rings[(i + k) % 2]);
        struct gv_plan plan = decide(build, rows[i / 2].gpus);
        assert_string_equal(ring_text(&plan, text), rows[i / 2].shown);
        gv_plan_finish(&plan);
        gv_build_free(build);
    }
}

/* Links are lent to the measured ring's crossings, wherever in it they stand; the last edge closes
 * it. Pairs that the driver refuses stay as they were. */
static void lent_on_the_measured_ring(void **state)
{
    (void)state;
    static const struct {
        const char *ring;
        int shm[5];
        const char *refused; /* GPUs of which no P2P across is to be had */
        enum gv_transport transport;
        const char *edits;
    } rows[] = {
        {"3-7,0-2", {3, 4, 7, 0, -1}, NULL, P2P, "lend 3-4 lend 7-0"},
        {"0-7", {3, 4, 7, 0, -1}, NULL, P2P, "lend 3-4 lend 7-0"},
        {"0,2,1,3,5,4,6,7", {3, 5, 7, 0, -1}, NULL, P2P, "lend 3-5 lend 7-0"},
        {"0,2,1,3,5,4,6,7", {3, 5, 7, 0, -1}, "3", MIXED, "lend 7-0"},
        /* nothing that could be lent there: the best ring's crossings */
        {"0,2,1,3,5,4,6,7", {3, 5, 7, 0, -1}, "0,3", P2P, "lend 2-4 lend 7-1"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct gv_build *build = islands("44");
        struct gv_profile_group *group =
            gv_build_measured(build, "0-7", AR, "1G", "10 10 10", GV_EDIT_P2P_LEVEL, "12 12 12");
        gv_build_ring(group, rows[i].ring, rows[i].shm);
        if (rows[i].refused)
            gv_build_path(build, rows[i].refused, "4-7", GV_PATH_PHB, 0, GV_P2P_REFUSED, NAN);
        expect_once(build, "0-7", rows[i].transport, rows[i].edits, "12.00 against 10.00");
    }
}

/* Pairs that a variant lists come out in one order, however they are written. */
static void listed_pairs(void **state)
{
    (void)state;
    static const int pairs[3][2] = {{0, 7}, {3, 4}, {3, 5}};
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                     {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (int i = 0; i < 6 * 8; i++) {
        struct gv_build *build = islands("44");
        struct gv_profile_group *group =
            gv_build_measured(build, "0-7", AR, "1G", "10 10 10", GV_EDIT_LEND, "12 12 12");
        struct gv_profile_variant *variant = &group->variants[1];
        variant->nlend = 3;
        for (int k = 0; k < 3; k++) {
            int turned = i / 6 >> k & 1;
            variant->lend[k][turned] = pairs[orders[i % 6][k]][0];
            variant->lend[k][!turned] = pairs[orders[i % 6][k]][1];
        }
        expect_once(build, "0-7", P2P, "lend 0-7 lend 3-4 lend 3-5", "edges 0-7, 3-4 and 3-5");
    }
}

/* ---- what keeps a candidate from being used ---- */

static struct gv_attempt attempt_of(const struct gv_policy_in *in)
{
    static struct gv_facts facts;
    struct gv_blocks blocks;
    struct gv_route route;
    gv_gpuset lendable[GV_MAX_GPUS];
    gv_facts_init(&facts, in);
    gv_blocks_init(&blocks, &facts, in->gpus, 0);
    gv_lendable(&facts, in->gpus, lendable);
    gv_route_find(&facts, &blocks, lendable, &route);
    struct gv_attempt attempt = gv_transport_measured(&facts, &route);
    gv_facts_finish(&facts);
    return attempt;
}

/* The obstacle of the candidate that came closest; -1, -1 where it is no pair's. */
static void refusals(void **state)
{
    (void)state;
    static const struct {
        const char *sizes, *vendor, *gpus;
        enum gv_edit_kind edit;
        unsigned operations;
        enum gv_obstacle obstacle;
        int a, b;
    } rows[] = {
        {"44", "intel", "0-7", GV_EDIT_LEND, 0, GV_NO_OBSTACLE, -1, -1},
        {"44", "intel", "0-3", GV_EDIT_LEND, 0, GV_NOTHING_CROSSES, -1, -1},
        {"44", "intel", "3,4", GV_EDIT_LEND, 0, GV_ALL_NVLINK, -1, -1},
        {"44", "intel", "3,4", GV_EDIT_BRIDGE, GV_OP_BIT(AR), GV_NO_OBSTACLE, -1, -1},
        {"44", "intel", "3,4", GV_EDIT_BRIDGE, 0, GV_OPERATIONS, -1, -1},
        {"44", "intel", "0-1", GV_EDIT_SEPARATE, 0, GV_NO_OBSTACLE, -1, -1},
        {"44", "intel", "3,4", GV_EDIT_SEPARATE, 0, GV_NOTHING_CROSSES, -1, -1},
        {"44", "amd", "0-1", GV_EDIT_SEPARATE, 0, GV_LEVEL, -1, -1},
        {"91", "intel", "0,9", GV_EDIT_LEND, 0, GV_PEERS, 0, 9},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct gv_build *build = islands(rows[i].sizes);
        build->profile.policy.operations = rows[i].operations;
        strcpy(build->profile.cpu_vendor, rows[i].vendor);
        gv_build_measured(build, rows[i].gpus, AR, "1G", "10 10 10", rows[i].edit, "12 12 12");
        struct gv_policy_in in = asked(build, rows[i].gpus);
        struct gv_attempt attempt = attempt_of(&in);
        assert_int_equal(attempt.candidate.applied, rows[i].edit);
        assert_int_equal(attempt.refusal.obstacle, rows[i].obstacle);
        assert_int_equal(attempt.refusal.a, rows[i].a);
        assert_int_equal(attempt.refusal.b, rows[i].b);
        assert_int_equal(attempt.accepted, rows[i].obstacle == GV_NO_OBSTACLE);
        gv_build_free(build);
    }
}

/* A bridge has no pair. */
static void bridge_of_no_pair(void **state)
{
    (void)state;
    struct gv_build *build = islands("44");
    build->profile.policy.operations = GV_OP_BIT(AR);
    gv_build_measured(build, "3,4", AR, "1G", "10 10 10", GV_EDIT_BRIDGE, "12 12 12");
    struct gv_plan plan = decide(build, "3,4");
    assert_int_equal(plan.nedits, 1);
    assert_int_equal(plan.edits[0].kind, GV_EDIT_BRIDGE);
    assert_int_equal(plan.edits[0].from, -1);
    assert_int_equal(plan.edits[0].to, -1);
    gv_plan_finish(&plan);
    gv_build_free(build);
}

/* Two candidates that were not decided by the same group: their gains are compared, since their
 * samples cannot be. Lent links have 12 against 10 at 1G. */
static void decided_by_different_groups(void **state)
{
    (void)state;
    static const struct {
        double min_gain;
        uint64_t bytes;
        bool loaded;
        const char *lent, *base, *bridged, *edits;
    } rows[] = {
        {0.03, M, false, "12 12 12", "5 5 5", "6.5 6.5 6.5", "bridge 0-7"},
        {0.03, M, false, "12 12 12", "5 5 5", "6.1 6.1 6.1", "lend 3-4 lend 7-0"},
        {0.03, M, false, "12 12 12", "20 20 20", "22 22 22", "lend 3-4 lend 7-0"},
        {0.03, G, true, "12 12 12", "5 5 5", "6.5 6.5 6.5", "bridge 0-7"},
        {0.03, G, true, "12 12 12", "20 20 20", "22 22 22", "lend 3-4 lend 7-0"},
        /* as much more as counts as a gain is not enough to touch more */
        {0.25, M, false, "12.5 12.5 12.5", "5 5 5", "7.5 7.5 7.5", "lend 3-4 lend 7-0"},
        {0.25, M, false, "12.5 12.5 12.5", "5 5 5", "7.6 7.6 7.6", "bridge 0-7"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct gv_build *build = islands("44");
        build->profile.policy.operations = GV_OP_BIT(AR);
        build->profile.policy.min_gain = rows[i].min_gain;
        gv_build_measured(build, "0-7", AR, "1G", "10 10 10", GV_EDIT_LEND, rows[i].lent);
        struct gv_profile_group *group =
            gv_build_group_set(build, gv_build_set("0-7"), AR, rows[i].bytes, rows[i].loaded);
        gv_build_run(gv_build_variant(group, GV_EDIT_NONE), rows[i].base);
        gv_build_run(gv_build_variant(group, GV_EDIT_BRIDGE), rows[i].bridged);
        expect_once(build, "0-7", P2P, rows[i].edits, "measured");
    }
}

/* Rows of a plan are gone with it. */
static void finished(void **state)
{
    (void)state;
    struct gv_build *build = islands("4");
    struct gv_profile_group *group =
        gv_build_measured(build, "0-3", AR, "1M", "10 10 10", GV_EDIT_NONE, "12 12 12");
    group->variants[1].algorithm = GV_ALGO_RING;
    group->variants[1].protocol = GV_PROTO_SIMPLE;
    struct gv_plan plan = decide(build, "0-3");
    assert_int_equal(plan.nrows, 1);
    gv_plan_finish(&plan);
    assert_null(plan.rows);
    assert_int_equal(plan.nrows, 0);
    gv_build_free(build);
}

/* ---- taken apart ---- */

/* Two islands of four; 0 and 4 have an NVLink. The pair that is named first, and what each GPU is
 * taken apart from. */
static void apart(void **state)
{
    (void)state;
    static const struct {
        const char *gpus;
        int pairs[4][2], npairs; /* what stands behind the list does not count */
        int first[2];
        gv_gpuset apart[8];
    } rows[] = {
        {"0-7", {{0, 1}, {2, 3}}, 1, {1, 0}, {2, 1}},
        {"0-7", {{0, 1}, {2, 3}}, 2, {3, 2}, {2, 1, 8, 4}},
        {"0-7", {{1, 0}, {2, 0}}, 2, {0, 1}, {6, 1, 1}},
        {"0-7", {{0, 4}, {4, 0}}, 2, {4, 0}, {[0] = 16, [4] = 1}},
        /* not joined, or not in the communicator */
        {"0-7", {{1, 5}, {2, 3}}, 1, {-1, -1}, {0}},
        {"1-7", {{0, 1}, {2, 3}}, 1, {-1, -1}, {0}},
        {"1-7", {{1, 0}, {2, 3}}, 2, {3, 2}, {[2] = 8, [3] = 4}},
        /* no list: all that is joined */
        {"0-2", {{0, 1}}, 0, {2, 0}, {6, 5, 3}},
        {"0,4", {{0, 1}}, 0, {4, 0}, {[0] = 16, [4] = 1}},
        {"1,5", {{0, 1}}, 0, {-1, -1}, {0}},
    };
    static struct gv_facts facts;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct gv_build *build = islands("44");
        gv_build_path(build, "0", "4", GV_PATH_NVL, 2, GV_P2P_VERIFIED, 48);
        struct gv_policy_in in = asked(build, rows[i].gpus);
        struct gv_separation out;
        memset(&out, 0xff, sizeof(out));
        gv_facts_init(&facts, &in);
        bool any = gv_separate_listed(&facts, rows[i].pairs, rows[i].npairs, &out);
        assert_int_equal(any, rows[i].first[0] >= 0);
        assert_int_equal(out.first[0], rows[i].first[0]);
        assert_int_equal(out.first[1], rows[i].first[1]);
        assert_int_equal(out.count > 0, any);
        for (int gpu = 0; gpu < GV_MAX_GPUS; gpu++)
            assert_int_equal(out.apart[gpu], gpu < 8 ? rows[i].apart[gpu] : 0);
        gv_facts_finish(&facts);
        gv_build_free(build);
    }
}

/* A bad NVLink pair of GPU 0 is on SHM in the ring, in both directions. */
static void bad_nvlink(void **state)
{
    (void)state;
    struct gv_build *build = islands("44");
    gv_build_path(build, "0", "7", GV_PATH_NVL, 2, GV_P2P_CORRUPT, NAN);
    struct gv_policy_in in = asked(build, "0,7");
    struct gv_plan plan;
    char text[128];
    gv_policy_decide(&in, &plan);
    assert_string_equal(gv_check_edits(&plan, text, sizeof(text)), "separate 7-0");
    assert_int_equal(plan.transport, GV_TRANSPORT_SHM);
    gv_plan_finish(&plan);
    gv_build_free(build);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rings),
        cmocka_unit_test(lent_on_the_measured_ring),
        cmocka_unit_test(listed_pairs),
        cmocka_unit_test(refusals),
        cmocka_unit_test(bridge_of_no_pair),
        cmocka_unit_test(decided_by_different_groups),
        cmocka_unit_test(finished),
        cmocka_unit_test(apart),
        cmocka_unit_test(bad_nvlink),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
