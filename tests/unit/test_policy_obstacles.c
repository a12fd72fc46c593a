/* What each edit needs: a machine and pairs in, expected obstacle out. */
#include "tests/policy_world.h"

/* The compute capability from both sides of what is known and of what is allowed. */
static void compute_capability(void **state)
{
    (void)state;
    static const struct {
        int sm;
        enum gv_obstacle obstacle;
    } rows[] = {
        {-1, GV_SM_UNKNOWN},  {0, GV_SM_UNKNOWN}, {1, GV_NO_OBSTACLE},
        {79, GV_NO_OBSTACLE}, {80, GV_SM_READS},  {81, GV_NO_OBSTACLE},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct world *w = world("11");
        w->build->profile.gpus[1].sm = rows[i].sm;
        ask(w, NULL);
        assert_int_equal(gv_lend_obstacle(&w->facts, 0, 1), rows[i].obstacle);
        assert_int_equal(gv_lend_obstacle(&w->facts, 1, 0), rows[i].obstacle);
        end(w);
    }
}

/* Which GPUs GPU 3 may be lent a link to. */
static void lendable(void **state)
{
    (void)state;
    static const struct {
        const char *sizes, *gpus, *nvlinks;
        gv_gpuset peers;
    } rows[] = {
        {"44", NULL, "", 0xf0},      {"44", "2-5", "", 0x30},  {"44", "0-3", "", 0},
        {"44", NULL, "3/5", 0xd0},   {"144", NULL, "", 0x1e1}, {"44", "0-2,4-7", "", 0},
        {"413", "0-4", CHAIN, 0x10}, {"94", NULL, "", 0},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct world *w = world(rows[i].sizes);
        gv_gpuset sets[GV_MAX_GPUS];
        memset(sets, 0xff, sizeof(sets));
        add_pairs(w, rows[i].nvlinks, GV_PATH_NVL, false);
        ask(w, rows[i].gpus);
        gv_lendable(&w->facts, w->in.gpus, sets);
        assert_true(sets[3] == rows[i].peers);
        for (int gpu = 0; gpu < GV_MAX_GPUS; gpu++)
            assert_int_equal(gv_gpuset_has(sets[gpu], 3), gv_gpuset_has(rows[i].peers, gpu));
        end(w);
    }
}

/* Two lent links at GPU 0, which has so many peers by itself. */
static void two_at_one_gpu(void **state)
{
    (void)state;
    static const struct {
        const char *sizes, *nvlinks;
        bool two;
    } rows[] = {
        {"1", "", true},  {"6", "", true},     {"7", "", true},          {"8", "", false},
        {"9", "", false}, {"13", "1/2", true}, {"13", "1/2 2/3", false}, {"83", "8/9 9/10", false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct world *w = world(rows[i].sizes);
        add_pairs(w, rows[i].nvlinks, GV_PATH_NVL, false);
        ask(w, NULL);
        assert_int_equal(gv_lend_two(&w->facts, 0), rows[i].two);
        end(w);
    }
}

static void assert_refusal(struct gv_refusal refusal, enum gv_obstacle obstacle, int a, int b)
{
    assert_int_equal(refusal.obstacle, obstacle);
    assert_int_equal(refusal.a, a);
    assert_int_equal(refusal.b, b);
}

static void lent_sets(void **state)
{
    (void)state;
    static const struct {
        const char *sizes, *gpus, *nvlinks;
        int pair[4][2], count;
        enum gv_obstacle obstacle;
        int a, b;
        bool nvb_disable;
    } rows[] = {
        {"44", NULL, "", {{0, 0}}, 0, GV_NOTHING_CROSSES, -1, -1, false},
        {"44", NULL, "", {{3, 4}, {7, 0}}, 2, GV_NO_OBSTACLE, -1, -1, false},
        {"41", NULL, "", {{3, 4}, {4, 0}}, 2, GV_NO_OBSTACLE, -1, -1, true},
        {"44", NULL, "2/3", {{3, 4}, {7, 0}}, 2, GV_NO_OBSTACLE, -1, -1, true},
        /* a ninth peer: of one link, and of two */
        {"91", NULL, "", {{8, 9}}, 1, GV_PEERS, 8, 9, false},
        {"811", NULL, "", {{7, 8}, {8, 0}}, 2, GV_NO_OBSTACLE, -1, -1, true},
        {"811", NULL, "", {{7, 8}, {9, 7}}, 2, GV_PEERS, 7, -1, false},
        /* two at one GPU beside chains */
        {"443", "0-7", "8/9 9/10", {{3, 4}, {7, 0}}, 2, GV_NO_OBSTACLE, -1, -1, false},
        {"443", "0-7", "8/9 9/10", {{3, 4}, {3, 5}}, 2, GV_NVB, 3, -1, false},
        /* a chain has two ends, a star or two pieces have more */
        {"11", NULL, "", {{0, 1}}, 1, GV_ALL_NVLINK, -1, -1, false},
        {"111", NULL, "", {{0, 1}, {1, 2}}, 2, GV_ALL_NVLINK, -1, -1, true},
        {"1111", NULL, "", {{0, 1}, {0, 2}, {3, 0}}, 3, GV_NO_OBSTACLE, -1, -1, true},
        {"1111", NULL, "", {{0, 1}, {2, 3}}, 2, GV_NO_OBSTACLE, -1, -1, false},
        {"1111", "0-2", "", {{0, 1}}, 1, GV_NO_OBSTACLE, -1, -1, false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct world *w = world(rows[i].sizes);
        struct gv_lent lent = {.count = rows[i].count};
        memcpy(lent.pair, rows[i].pair, sizeof(rows[i].pair));
        add_pairs(w, rows[i].nvlinks, GV_PATH_NVL, false);
        ask(w, rows[i].gpus);
        assert_refusal(
            gv_lent_check(&w->facts, w->in.gpus, &lent), rows[i].obstacle, rows[i].a, rows[i].b);
        assert_int_equal(lent.nvb_disable, rows[i].nvb_disable);
        end(w);
    }
}

static void bridged_sets(void **state)
{
    (void)state;
    static const struct {
        const char *sizes, *gpus, *refused;
        enum gv_obstacle obstacle;
        int a, b;
    } rows[] = {
        {"22", NULL, "", GV_NO_OBSTACLE, -1, -1},
        {"54", NULL, "", GV_NO_OBSTACLE, -1, -1},
        {"55", NULL, "", GV_BRIDGE_SIZE, -1, -1},
        {"4", NULL, "", GV_NOTHING_CROSSES, -1, -1},
        {"22", "2-3", "", GV_NOTHING_CROSSES, -1, -1},
        {"22", NULL, "1/2", GV_REFUSED, 1, 2},
        {"22", NULL, "0/2", GV_REFUSED, 0, 2},
        {"81", "0,8", "", GV_NO_OBSTACLE, -1, -1},
        {"91", "0,9", "", GV_PEERS, 0, -1},
        {"29", "0,2", "", GV_PEERS, 2, -1},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct world *w = world(rows[i].sizes);
        int first = w->build->profile.npaths;
        add_pairs(w, rows[i].refused, GV_PATH_PHB, false);
        for (int k = first; k < w->build->profile.npaths; k++)
            w->build->profile.paths[k].p2p = GV_P2P_REFUSED;
        ask(w, rows[i].gpus);
        assert_refusal(
            gv_bridge_check(&w->facts, w->in.gpus), rows[i].obstacle, rows[i].a, rows[i].b);
        end(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compute_capability), cmocka_unit_test(lendable),
        cmocka_unit_test(two_at_one_gpu),     cmocka_unit_test(lent_sets),
        cmocka_unit_test(bridged_sets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
