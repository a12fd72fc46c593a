/* The ring's way through the islands, and its edges: pairs of a machine in, expected ring out. */
#include "tests/policy_world.h"

/* ---- the ring through the islands ---- */

/* Blocks in ring order: "0..3~4 4..7!0" is entered at 0, left at 3 over a lent link to 4, entered
 * there, left at 7 over SHM to 0. '=' is joined by NCCL itself. */
static void route_text(const struct gv_route *route, char *out, size_t size)
{
    size_t used = 0;
    out[0] = 0;
    for (int i = 0; i < route->count && used < size; i++)
        used += (size_t)snprintf(
            out + used, size - used, "%s%d..%d%c%d", i ? " " : "", route->entry[i], route->leave[i],
            "=~!"[route->crossing[i].kind], route -> crossing[i].to);
}

static struct gv_route route_of(const struct world *w)
{
    struct gv_blocks blocks;
    struct gv_route route;
    int missing = 0;
    gv_blocks_init(&blocks, &w->facts, w->in.gpus, 0);
    gv_route_find(&w->facts, &blocks, w->lendable, &route);
    for (int i = 0; i < route.count; i++) {
        assert_int_equal(route.crossing[i].from, route.count > 1 ? route.leave[i] : 0);
        missing += route.crossing[i].kind == GV_CROSSING_SHM;
    }
    assert_int_equal(route.missing, missing);
    return route;
}

static void routes(void **state)
{
    (void)state;
    static const struct {
        const char *sizes, *gpus, *nvlinks, *lendable, *route;
    } rows[] = {
        /* PCI order; of two ways that are as long, the one that leaves first */
        {"44", NULL, "", "0-3/4-7", "0..3~4 4..7~0"},
        {"44", NULL, "", "2/4 3/5 7/0", "0..2~4 4..7~0"},
        /* pairs without a figure are lent where there is no other, and are slower than any */
        {"22", NULL, "", "1/2 3/0", "0..1~2 2..3~0"},
        {"22", NULL, "", "1/2 3/0/10", "0..1~2 2..3~0"},
        {"22", NULL, "", "1/2/0.5 0/2/0.9 3/0-1/5", "0..1~3 3..2~0"},
        {"22", NULL, "", "1/2 0/2/0.5 3/0-1/5", "0..1~3 3..2~0"},
        /* the slowest pair is as fast as can be, whichever of many speeds that is */
        {"33", NULL, "", "2/3/5 5/0/5 1/3/6 5/1/6", "0..2~3 3..5~0"},
        {"33", NULL, "", "2/3/5 1/3/6 1/4/7 5/0/7", "0..1~4 4..5~0"},
        {"33", NULL, "", "2/3/5 1/4/6 1/3/7 5/0/8 2/4/8", "0..2~4 4..5~0"},
        {"33", NULL, "", "2/3/5 1/4/6 1/3/7 5/0/8 2/4/7.5", "0..2~4 4..5~0"},
        {"33", NULL, "", "2/3/5 1/4/6 1/3/7 5/0/8", "0..1~3 3..5~0"},
        {"33", NULL, "", "2/3/5 1/4/6 5/0/8", "0..1~4 4..5~0"},
        /* fewer on SHM, then fewer lent, then fewer at GPUs with NVLinks */
        {"222", NULL, "", "", "0..1!2 2..3!4 4..5!0"},
        {"22", NULL, "1/2", "0/2 1/3", "0..1~3 3..2~0"},
        {"33331", "0-11", "2/3 8/12 11/12", "1/6 7/4 5/9 10/0 8/11",
         "0..2=3 3..4~7 7..8~11 11..10~0"},
        {"44", NULL, "2/3 4/5", "0-3/4-7", "0..1~6 6..7~0"},
        /* the islands' order, by the same */
        {"2222", NULL, "", "1/2 3/4 5/6", "0..1~2 2..3~4 4..5~6 6..7!0"},
        {"2222", NULL, "", "0-1/4-7 2-3/4-7", "0..1~4 4..5~2 2..3~6 6..7~0"},
        {"222", NULL, "0/3", "0-1/2-5 2-3/4-5", "1..0=3 3..2~4 4..5~1"},
        {"22222", NULL, "1/8 3/9", "0-1/2-7 2-3/4-7 4-5/6-7", "1..0~6 6..7~4 4..5~2 2..3=9 9..8=1"},
        {"23221", "0-8", "4/9", "1/2 4/5 6/7 8/0 3/7 8/5 6/0", "0..1~2 2..3~7 7..8~5 5..6~0"},
        /* a GPU alone carries two, but not where its peers or chains forbid it */
        {"41", NULL, "", "0-3/4", "0..3~4 4..4~0"},
        {"47", "0-4", "", "0-3/4", "0..3~4 4..4~0"},
        {"48", "0-4", "", "0-3/4", "0..3!4 4..4~0"},
        {"413", "0-4", CHAIN, "0-3/4", "0..3!4 4..4~0"},
        {"113", "0-1", "2/3 3/4", "0/1", "0..0~1 1..1!0"},
        /* the first one too, whatever else would be cheaper to close the ring with */
        {"1313", "0-4", CHAIN, "0/1-4 4/1-3", "0..0~1 1..3~4 4..4!0"},
        {"1223", "0-4", CHAIN, "0/1-4 1-2/3-4", "0..0~1 1..2~3 3..4!0"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct world *w = world(rows[i].sizes);
        char text[1024];
        add_pairs(w, rows[i].lendable, GV_PATH_PHB, true);
        add_pairs(w, rows[i].nvlinks, GV_PATH_NVL, false);
        ask(w, rows[i].gpus);
        struct gv_route route = route_of(w);
        route_text(&route, text, sizeof(text));
        assert_string_equal(text, rows[i].route);
        end(w);
    }
}

static void add_pair(struct world *w, int a, int b)
{
    char text[32];
    snprintf(text, sizeof(text), "%d/%d", a, b);
    add_pairs(w, text, GV_PATH_PHB, true);
}

/* 35 islands of one GPU, each lent a link to the next but GPU i-1 to GPU i. Turning i..j around
 * would close the gap, and nothing else would: i = 23, j = 28 is the 500th order. */
static void orders(void **state)
{
    (void)state;
    static const struct {
        int i, j, missing;
    } rows[] = {{23, 28, 0}, {23, 29, 1}};
    for (size_t r = 0; r < COUNT(rows); r++) {
        struct world *w = world("11111111111111111111111111111111111");
        for (int gpu = 0; gpu < 35; gpu++)
            if (gpu + 1 != rows[r].i)
                add_pair(w, gpu, (gpu + 1) % 35);
        add_pair(w, rows[r].i - 1, rows[r].j);
        add_pair(w, rows[r].i, rows[r].j + 1);
        ask(w, NULL);
        struct gv_route route = route_of(w);
        assert_int_equal(route.missing, rows[r].missing);
        end(w);
    }
}

/* ---- rings ---- */

static void int_list(const int *list, int n, char *out, size_t size)
{
    size_t used = 0;
    out[0] = 0;
    for (int i = 0; i < n && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%d", i ? " " : "", list[i]);
}

static void rings(void **state)
{
    (void)state;
    static const struct {
        const char *sizes, *gpus, *nvlinks, *lendable, *ring;
    } rows[] = {
        {"4", "1-3", "", "", "1 2 3"},
        {"4", NULL, "0/3", "", "0 3 1 2"},
        {"44", NULL, "", "3/4 7/0", "0 1 2 3 4 5 6 7"},
        {"44", NULL, "", "2/6 5/1", "1 0 3 2 6 4 7 5"},
        {"44", NULL, "0/2 1/3", "3/4 7/0", "0 2 1 3 4 5 6 7"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct world *w = world(rows[i].sizes);
        char text[1024];
        int ring[GV_MAX_GPUS];
        add_pairs(w, rows[i].lendable, GV_PATH_PHB, true);
        add_pairs(w, rows[i].nvlinks, GV_PATH_NVL, false);
        ask(w, rows[i].gpus);
        struct gv_route route = route_of(w);
        int_list(ring, gv_route_ring(&w->facts, &route, ring), text, sizeof(text));
        assert_string_equal(text, rows[i].ring);
        end(w);
    }
}

static void block_paths(void **state)
{
    (void)state;
    static const struct {
        const char *nvlinks, *block;
        int entry, leave;
        const char *path;
    } rows[] = {
        {"", "0-3", 2, 2, "2 0 1 3"}, /* left anywhere */
        {"", "0-3", 2, 0, "2 1 3 0"},    {"0/3", "0-3", 2, 0, "2 1 3 0"},
        {"0/1", "0-3", 2, 0, "2 3 1 0"}, /* its partner next to the last */
        {"2/3", "0-3", 2, 2, "2 3 0 1"}, {"", "2", 2, 2, "2"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct world *w = world("4");
        char text[64];
        int path[GV_MAX_GPUS];
        add_pairs(w, rows[i].nvlinks, GV_PATH_NVL, false);
        ask(w, NULL);
        int n = gv_block_path(
            &w->facts, gv_build_set(rows[i].block), rows[i].entry, rows[i].leave, path);
        int_list(path, n, text, sizeof(text));
        assert_string_equal(text, rows[i].path);
        end(w);
    }
}

/* As many islands as there is room for. */
static void most_islands(void **state)
{
    (void)state;
    char sizes[GV_MAX_GPUS + 1];
    memset(sizes, '1', GV_MAX_GPUS);
    sizes[GV_MAX_GPUS] = 0;
    struct world *w = world(sizes);
    add_pairs(w, "0-63/0-63", GV_PATH_PHB, true);
    for (int gpu = 0; gpu < GV_MAX_GPUS; gpu++)
        w->lendable[gpu] &= ~GV_GPU_BIT(gpu);
    ask(w, NULL);
    struct gv_route route = route_of(w);
    struct gv_ring_view view = {.route = &route};
    struct gv_plan *plan = calloc(1, sizeof(*plan));
    assert_non_null(plan);
    gv_ring_fill(&w->facts, &view, plan);
    assert_int_equal(route.count, 64);
    assert_int_equal(plan->nring, 64);
    for (int i = 0; i < 64; i++) {
        assert_int_equal(plan->ring[i], i);
        assert_int_equal(route.crossing[i].kind, GV_CROSSING_LENT);
        assert_int_equal(
            plan->edges[i].transport, GV_TRANSPORT_SHM); /* as the view lends nothing */
    }
    assert_int_equal(gv_ring_transport(plan), GV_TRANSPORT_SHM);
    free(plan);
    end(w);
}

/* What is known of the edges: "0-1 P 12" is P2P of 12 GB/s, S is SHM. */
static void edges_text(const struct gv_plan *plan, char *out, size_t size)
{
    size_t used = 0;
    out[0] = 0;
    for (int i = 0; i < plan->nring && used < size; i++)
        used += (size_t)snprintf(
            out + used, size - used, "%s%d-%d %c %g", i ? ", " : "", plan->edges[i].from,
            plan->edges[i].to, plan->edges[i].transport == GV_TRANSPORT_P2P ? 'P' : 'S',
            plan->edges[i].gbs);
}

static void edges(void **state)
{
    (void)state;
    static const struct {
        const char *sizes;
        int lent[3][2], nlent; /* pairs behind nlent were lent once */
        const char *p2p, *shm; /* pairs that have a figure: "0/1/12" */
        const char *edges;
        int slowest;
        enum gv_transport transport;
    } rows[] = {
        {"3", {{0, 0}}, 0, "", "", "0-1 P nan, 1-2 P nan, 2-0 P nan", -1, GV_TRANSPORT_P2P},
        {"3", {{0, 0}}, 0, "0/1/12 1/2/9", "", "0-1 P 12, 1-2 P 9, 2-0 P nan", 1, GV_TRANSPORT_P2P},
        {"21",
         {{0, 0}},
         0,
         "0/1/12",
         "1/2/6",
         "0-1 P 12, 1-2 S 6, 2-0 S nan",
         2,
         GV_TRANSPORT_MIXED},
        {"21", {{0, 0}}, 0, "0/1/5", "0-1/2/6", "0-1 P 5, 1-2 S 6, 2-0 S 6", 0, GV_TRANSPORT_MIXED},
        {"111",
         {{0, 0}},
         0,
         "0/1/5",
         "1/2/6",
         "0-1 S nan, 1-2 S 6, 2-0 S nan",
         0,
         GV_TRANSPORT_SHM},
        /* a lent pair, both ways round, and no other pair of its GPUs */
        {"111", {{0, 1}}, 1, "", "", "0-1 P nan, 1-2 S nan, 2-0 S nan", 1, GV_TRANSPORT_MIXED},
        {"111", {{1, 0}}, 1, "", "", "0-1 P nan, 1-2 S nan, 2-0 S nan", 1, GV_TRANSPORT_MIXED},
        {"111",
         {{0, 1}, {2, 1}},
         1,
         "",
         "",
         "0-1 P nan, 1-2 S nan, 2-0 S nan",
         1,
         GV_TRANSPORT_MIXED},
        {"111",
         {{0, 1}, {2, 1}},
         2,
         "",
         "",
         "0-1 P nan, 1-2 P nan, 2-0 S nan",
         2,
         GV_TRANSPORT_MIXED},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct world *w = world(rows[i].sizes);
        struct gv_lent *lent = calloc(1, sizeof(*lent));
        struct gv_plan *plan = calloc(1, sizeof(*plan));
        char text[256];
        assert_true(lent && plan);
        memcpy(lent->pair, rows[i].lent, sizeof(rows[i].lent));
        lent->count = rows[i].nlent;
        add_pairs(w, rows[i].p2p, GV_PATH_UNKNOWN, false);
        int p2p = w->build->profile.npaths;
        add_pairs(w, rows[i].shm, GV_PATH_UNKNOWN, false);
        for (int k = p2p; k < w->build->profile.npaths; k++)
            w->build->profile.paths[k].host_path_gbs = w->build->profile.paths[k].write_gbs;
        ask(w, NULL);
        struct gv_route route = route_of(w);
        struct gv_ring_view view = {.route = &route, .lent = lent};
        gv_ring_fill(&w->facts, &view, plan);
        edges_text(plan, text, sizeof(text));
        assert_string_equal(text, rows[i].edges);
        assert_int_equal(plan->slowest, rows[i].slowest);
        assert_int_equal(gv_ring_transport(plan), rows[i].transport);
        free(plan);
        free(lent);
        end(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(routes),      cmocka_unit_test(orders),       cmocka_unit_test(rings),
        cmocka_unit_test(block_paths), cmocka_unit_test(most_islands), cmocka_unit_test(edges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
