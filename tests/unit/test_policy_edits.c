/* What each edit needs, and rule 4: machines as tables, edits out. */
#include "tests/policy_check.h"

#define P2P GV_TRANSPORT_P2P
#define SHM GV_TRANSPORT_SHM
#define MIXED GV_TRANSPORT_MIXED
#define DEFAULT GV_TRANSPORT_DEFAULT

/* Islands "A", "B", ... of so many GPUs, on the CPU nodes given by one digit each ('?' not known).
 * All pairs are verified. */
static struct gv_build *machine(const char *sizes, const char *nodes, int sm)
{
    struct gv_build *build = gv_build_new(GV_CUDA);
    build->profile.policy.operations = GV_OP_BIT(GV_OP_ALL_REDUCE);
    for (int i = 0; sizes[i]; i++) {
        char island[2] = {(char)('A' + i), 0};
        int n = sizes[i] >= 'a' ? sizes[i] - 'a' + 10 : sizes[i] - '0';
        gv_build_gpus(build, n, island, nodes[i] == '?' ? -1 : nodes[i] - '0', sm);
    }
    return build;
}

/* Verified paths for all pairs that have none yet. */
static void verify_rest(struct gv_build *build)
{
    struct gv_profile *p = &build->profile;
    for (int a = 0; a < p->ngpus; a++)
        for (int b = a + 1; b < p->ngpus; b++)
            if (!gv_profile_path_of(p, a, b) && !gv_profile_path_of(p, b, a)) {
                bool near = gv_check_same_island(p, a, b);
                gv_build_path_sets(
                    build, GV_GPU_BIT(a), GV_GPU_BIT(b), near ? GV_PATH_PIX : GV_PATH_PHB, 0,
                    GV_P2P_VERIFIED, near ? 12 : 10);
            }
}

/* Decides for the GPUs, measured to gain, and compares. */
static void expect(
    struct gv_build *build, const char *gpus, enum gv_transport transport, const char *edits,
    const char *reason)
{
    char text[2048];
    verify_rest(build);
    gv_build_measured(
        build, gpus, GV_OP_ALL_REDUCE, "1G", "10 10 10", GV_EDIT_P2P_LEVEL, "12 12 12");
    struct gv_policy_in in = {
        .profile = &build->profile, .gpus = gv_build_set(gpus), .one_node = true};
    struct gv_plan plan;
    gv_policy_decide(&in, &plan);
    print_message("%-7s %s\n", gv_transport_name(plan.transport), plan.reason);
    assert_string_equal(gv_check_edits(&plan, text, sizeof(text)), edits);
    assert_string_equal(gv_transport_name(plan.transport), gv_transport_name(transport));
    if (!strstr(plan.reason, reason))
        fail_msg("\"%s\" is not in \"%s\"", reason, plan.reason);
    gv_check_plan(&in, &plan);
    gv_plan_finish(&plan);
    gv_build_free(build);
}

/* Lent links: where they go, on machines of several shapes. */
static void crossings(void **state)
{
    (void)state;
    static const struct {
        const char *sizes, *gpus, *edits;
    } rows[] = {
        {"44", "0-7", "lend 3-4 lend 7-0"},
        {"44", "1-3,5-6", "lend 3-5 lend 6-1"},
        {"41", "0-4", "lend 3-4 lend 4-0"}, /* two on GPU 4 */
        {"444", "0-11", "lend 3-4 lend 7-8 lend 11-0"},
        {"414", "0-8", "lend 3-4 lend 4-5 lend 8-0"}, /* two on GPU 4, in the middle */
        {"2222", "0-7", "lend 1-2 lend 3-4 lend 5-6 lend 7-0"},
        {"8888", "0-31", "lend 7-8 lend 15-16 lend 23-24 lend 31-0"}, /* eight peers */
        {"9999", "0-35", ""},                                         /* a ninth */
        {"81", "0-8", "lend 7-8 lend 8-0"},
        {"7777", "0-27", "lend 6-7 lend 13-14 lend 20-21 lend 27-0"},
        {"71", "0-7", "lend 6-7 lend 7-0"},
        {"9", "0-8", ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        expect(
            machine(rows[i].sizes, "00000000", 70), rows[i].gpus, rows[i].edits[0] ? P2P : DEFAULT,
            rows[i].edits, "GB/s busbw");
    /* GPU 4 takes part alone, but its island mates are peers too */
    expect(machine("47", "01", 70), "0-4", P2P, "lend 3-4 lend 4-0", "edges 3-4 and 4-0");
    expect(machine("48", "01", 70), "0-4", DEFAULT, "", "more than CUDA's 8 peers");
    expect(machine("88", "01", 90), "0-15", P2P, "lend 7-8 lend 15-0", "edges 7-8 and 15-0");
    expect(machine("99", "01", 90), "0-17", DEFAULT, "", "more than CUDA's 8 peers a GPU");
}

/* The slowest lent pair decides among crossings; within 3 % PCI order does. */
static void faster_pairs(void **state)
{
    (void)state;
    struct gv_build *build = machine("44", "00", 70);
    gv_build_path(build, "3", "4", GV_PATH_PHB, 0, GV_P2P_VERIFIED, 7);
    expect(build, "0-7", P2P, "lend 2-4 lend 7-0", "edges 2-4 and 7-0");
    build = machine("44", "00", 70);
    gv_build_path(build, "3", "4", GV_PATH_PHB, 0, GV_P2P_VERIFIED, 9.8);
    expect(build, "0-7", P2P, "lend 3-4 lend 7-0", "edges 3-4 and 7-0");
    build = machine("44", "00", 70);
    gv_build_path(build, "0-3", "4-6", GV_PATH_PHB, 0, GV_P2P_VERIFIED, 7);
    gv_build_path(build, "1-3", "7", GV_PATH_PHB, 0, GV_P2P_VERIFIED, 7);
    expect(build, "0-7", P2P, "lend 3-4 lend 7-0", "edges 3-4 and 7-0");
}

/* Islands are taken in an order in which every crossing can be P2P, if there is one. */
static void order_of_islands(void **state)
{
    (void)state;
    struct gv_build *build = machine("2222", "0000", 70);
    gv_build_path(build, "0,1", "2,3", GV_PATH_PHB, 0, GV_P2P_REFUSED, NAN);
    expect(build, "0-7", P2P, "lend 1-4 lend 5-2 lend 3-6 lend 7-0", "edges 1-4, 5-2, 3-6 and 7-0");
    build = machine("2222", "0000", 70);
    gv_build_path(build, "0,1", "2-5", GV_PATH_PHB, 0, GV_P2P_REFUSED, NAN);
    expect(build, "0-7", MIXED, "lend 3-4 lend 5-6 lend 7-0", "edges 3-4, 5-6 and 7-0 move");
    build = machine("222", "000", 70);
    gv_build_path(build, "0,1", "2-5", GV_PATH_PHB, 0, GV_P2P_REFUSED, NAN);
    expect(build, "0-5", MIXED, "lend 3-4", "edge 3-4 moves");
}

/* Between groups that gain nothing is turned on where a ring edge would stay on SHM. */
static void interpolated_rings_are_whole(void **state)
{
    (void)state;
    for (int refused = 0; refused < 2; refused++) {
        struct gv_build *build = machine("333", "000", 70);
        if (refused)
            gv_build_path(build, "0", "3-8", GV_PATH_PHB, 0, GV_P2P_REFUSED, NAN);
        gv_build_measured(
            build, "1,3,6", GV_OP_ALL_REDUCE, "1G", "10 10 10", GV_EDIT_P2P_LEVEL, "12 12 12");
        gv_build_measured(
            build, "0-8", GV_OP_ALL_REDUCE, "1G", "10 10 10", GV_EDIT_P2P_LEVEL, "12 12 12");
        verify_rest(build);
        struct gv_policy_in in = {
            .profile = &build->profile, .gpus = gv_build_set("0,3-8"), .one_node = true};
        struct gv_plan plan;
        gv_policy_decide(&in, &plan);
        print_message("%s\n", plan.reason);
        assert_int_equal(plan.transport, refused ? DEFAULT : P2P);
        assert_int_equal(plan.evidence, refused ? GV_EVIDENCE_NONE : GV_EVIDENCE_INTERPOLATED);
        gv_plan_finish(&plan);
        gv_build_free(build);
    }
}

/* Real NVLinks: a crossing that is joined needs nothing, lent links avoid GPUs that have some. */
static void real_nvlinks(void **state)
{
    (void)state;
    struct gv_build *build = machine("44", "00", 70);
    gv_build_path(build, "3", "4", GV_PATH_NVL, 2, GV_P2P_VERIFIED, 48);
    expect(build, "0-7", P2P, "lend 7-0", "edge 7-0 moves");
    build = machine("44", "00", 70);
    gv_build_path(build, "3", "4", GV_PATH_NVL, 2, GV_P2P_VERIFIED, 48);
    gv_build_path(build, "0", "7", GV_PATH_NVL, 2, GV_P2P_VERIFIED, 48);
    expect(build, "0-7", P2P, "bridge 0-7", "measured"); /* nothing to lend, yet it gains */
    build = machine("44", "00", 70);
    gv_build_path(build, "2", "3", GV_PATH_NVL, 2, GV_P2P_VERIFIED, 48);
    expect(build, "0-7", P2P, "lend 1-4 lend 7-0", "edges 1-4 and 7-0");
    /* GPU 3 with a link to each side is a chain: NCCL_NVB_DISABLE is not ours to set then */
    build = machine("41", "00", 70);
    gv_build_path(build, "0", "1", GV_PATH_NVL, 2, GV_P2P_VERIFIED, 48);
    gv_build_path(build, "1", "2", GV_PATH_NVL, 2, GV_P2P_VERIFIED, 48);
    assert_true(gv_profile_nvlink_chains(&build->profile));
    build->profile.policy.operations = 0;
    expect(build, "0-4", DEFAULT, "", "GPU 4 would carry two NVLinks");
    build = machine("42", "00", 70);
    gv_build_path(build, "0", "1", GV_PATH_NVL, 2, GV_P2P_VERIFIED, 48);
    gv_build_path(build, "1", "2", GV_PATH_NVL, 2, GV_P2P_VERIFIED, 48);
    build->profile.policy.operations = 0;
    expect(build, "0-5", DEFAULT, "", "two NVLinks on a machine whose own NVLinks form chains");
}

/* A chain of NVLinks alone would allow LL128 on the tree: then only a bridge helps. */
static void chains_of_lent_links(void **state)
{
    (void)state;
    expect(machine("11", "00", 70), "0,1", P2P, "bridge 0-1", "a bridge");
    expect(machine("21", "00", 70), "0-2", P2P, "bridge 0-2", "a bridge");
    expect(machine("31", "00", 70), "0-3", P2P, "lend 2-3 lend 3-0", "edges 2-3 and 3-0");
    expect(machine("22", "00", 70), "0-3", P2P, "lend 1-2 lend 3-0", "edges 1-2 and 3-0");
    expect(machine("1111", "0000", 70), "0-3", P2P, "bridge 0-3", "a bridge");
    expect(machine("1111", "0011", 70), "0-3", DEFAULT, "", "0 and 2, which are on two CPU nodes");
    expect(machine("11", "0?", 70), "0,1", DEFAULT, "", "0 and 1, whose CPU nodes are not known");
    expect(machine("11", "??", 70), "0,1", DEFAULT, "", "0 and 1, whose CPU nodes are not known");
    expect(machine("111111111", "000000000", 70), "0-8", P2P, "bridge 0-8", "a bridge");
    expect(machine("1111111111", "0000000000", 70), "0-9", DEFAULT, "", "more than 9 GPUs");
    /* eight peers on the whole machine: island mates outside the communicator count */
    expect(machine("51", "00", 70), "0,5", P2P, "bridge 0,5", "a bridge");
    expect(machine("81", "00", 70), "0,8", P2P, "bridge 0,8", "a bridge");
    expect(
        machine("91", "00", 70), "0,9", DEFAULT, "", "no lent link 0-9: more than CUDA's 8 peers");
    expect(machine("55", "00", 70), "0-3,5-9", P2P, "lend 3-5 lend 9-0", "edges 3-5 and 9-0");
}

/* Compute capability 8.0 reads over NVLink; one that is not known could be 8.0. */
static void compute_capability(void **state)
{
    (void)state;
    struct gv_build *build = machine("44", "01", 80);
    expect(build, "0-7", DEFAULT, "", "3-4: on compute capability 8.0 NCCL would read");
    build = machine("44", "01", 80);
    build->profile.gpus[2].sm = build->profile.gpus[3].sm = 90;
    build->profile.gpus[4].sm = build->profile.gpus[7].sm = 90;
    expect(build, "0-7", P2P, "lend 3-4 lend 7-2", "edges 3-4 and 7-2");
    build = machine("44", "00", -1);
    build->profile.policy.operations = 0;
    expect(build, "0-7", DEFAULT, "", "3-4: compute capability (sm) not known");
}

/* ---- rule 4 ---- */

/* Bad pairs of the profile, each with its state. */
struct bad {
    int a, b;
    enum gv_p2p state;
};

/* `bad` ends with two equal GPUs. */
static struct gv_build *with_bad(struct gv_build *build, const struct bad *bad)
{
    for (; bad->a != bad->b; bad++) {
        struct gv_profile_path *path = gv_build_path_sets(
            build, GV_GPU_BIT(bad->a), GV_GPU_BIT(bad->b), GV_PATH_UNKNOWN, 0, bad->state, NAN);
        path->both_directions = false; /* one direction is enough */
    }
    return build;
}

static void separations(void **state)
{
    (void)state;
    static const struct {
        struct bad bad[6];
        const char *gpus;
        enum gv_transport transport;
        const char *edits, *transports, *reason;
    } rows[] = {
        {{{0, 1, GV_P2P_CORRUPT}}, "0,1", SHM, "separate 1-0", "SS", "P2P of 1-0 is corrupt"},
        {{{0, 1, GV_P2P_HUNG}}, "0,1", SHM, "separate 1-0", "SS", "P2P of 1-0 is hung"},
        {{{1, 0, GV_P2P_ONE_WAY}}, "0,1", SHM, "separate 1-0", "SS", "P2P of 1-0 is one-way"},
        {{{0, 1, GV_P2P_CORRUPT}}, "0-3", MIXED, "separate 1-0", "PPSS", "1-0 is corrupt"},
        {{{0, 1, GV_P2P_CORRUPT}}, "0,2-3", DEFAULT, "", "PPP", "NCCL joins all edges"},
        {{{0, 1, GV_P2P_CORRUPT}}, "0-7", MIXED, "separate 1-0", NULL, "1-0 is corrupt"},
        /* one moved GPU takes all of its pairs apart */
        {{{0, 1, GV_P2P_CORRUPT}, {1, 2, GV_P2P_HUNG}, {1, 3, GV_P2P_CORRUPT}},
         "0-3",
         MIXED,
         "separate 1-0 separate 1-2 separate 1-3",
         "PPSS",
         "1-0 is corrupt"},
        {{{0, 1, GV_P2P_CORRUPT}, {2, 3, GV_P2P_CORRUPT}},
         "0-3",
         MIXED,
         "separate 1-0 separate 3-2",
         NULL,
         "is corrupt"},
        /* refused pairs are NCCL's business already, and so are pairs that it does not join */
        {{{0, 1, GV_P2P_REFUSED}}, "0,1", DEFAULT, "", "SS", "refused by the driver"},
        {{{3, 4, GV_P2P_CORRUPT}}, "3,4", DEFAULT, "", "SS", "P2P of 3-4 is corrupt"},
        {{{3, 4, GV_P2P_CORRUPT}}, "0-7", P2P, "lend 2-4 lend 7-0", NULL, "measured"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct gv_build *build = with_bad(machine("44", "00", 70), rows[i].bad);
        if (rows[i].transports) {
            struct gv_policy_in in = {
                .profile = &build->profile, .gpus = gv_build_set(rows[i].gpus), .one_node = true};
            struct gv_plan plan;
            char transports[GV_MAX_GPUS + 1] = "";
            gv_policy_decide(&in, &plan);
            for (int e = 0; e < plan.nring; e++)
                transports[e] = plan.edges[e].transport == P2P ? 'P' : 'S';
            assert_string_equal(transports, rows[i].transports);
            gv_plan_finish(&plan);
        }
        expect(build, rows[i].gpus, rows[i].transport, rows[i].edits, rows[i].reason);
    }
}

/* NCCL's level is SYS on AMD with two GPUs, and was so on more before 2.23: there a moved GPU would
 * still be P2P. */
static void separations_where_all_is_joined(void **state)
{
    (void)state;
    static const struct {
        const char *vendor;
        int nccl_version;
        const char *gpus;
        struct bad bad[2];
        const char *edits;
        bool level, machine_level;
    } rows[] = {
        {"intel", 22809, "0,1", {{0, 1, GV_P2P_CORRUPT}}, "separate 1-0", false, false},
        {"intel", 22203, "0,1", {{0, 1, GV_P2P_CORRUPT}}, "separate 1-0", false, false},
        {"arm", 22203, "0,1", {{0, 1, GV_P2P_CORRUPT}}, "separate 1-0", false, false},
        {"amd", 22809, "0,1", {{0, 1, GV_P2P_CORRUPT}}, "separate 1-0", true, true},
        {"amd", 22809, "0-2", {{0, 1, GV_P2P_CORRUPT}}, "separate 1-0", false, true},
        {"amd", 22203, "0-2", {{0, 1, GV_P2P_CORRUPT}}, "separate 1-0", true, true},
        {"ppc64", 22203, "0-2", {{0, 1, GV_P2P_CORRUPT}}, "separate 1-0", true, true},
        {"ppc64", 22809, "0-2", {{0, 1, GV_P2P_CORRUPT}}, "separate 1-0", false, false},
        {"ppc64", 0, "0-2", {{0, 1, GV_P2P_CORRUPT}}, "separate 1-0", false, true},
        {"intel", 0, "0-2", {{0, 1, GV_P2P_CORRUPT}}, "separate 1-0", false, false},
        /* across islands the level alone does it */
        {"amd", 22809, "3,4", {{3, 4, GV_P2P_CORRUPT}}, "", true, true},
        {"intel", 22809, "3,4", {{3, 4, GV_P2P_CORRUPT}}, "", false, false},
        /* nothing bad, nothing to do: NCCL joins the pair itself */
        {"amd", 22809, "3,4", {{0, 0, 0}}, "", false, false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct gv_build *build = with_bad(machine("44", "00", 70), rows[i].bad);
        strcpy(build->profile.cpu_vendor, rows[i].vendor);
        verify_rest(build);
        struct gv_policy_in in = {
            .profile = &build->profile,
            .gpus = gv_build_set(rows[i].gpus),
            .one_node = true,
            .nccl_version = rows[i].nccl_version};
        struct gv_plan plan;
        char text[2048];
        gv_policy_decide(&in, &plan);
        print_message("%-5s %d %s\n", rows[i].vendor, rows[i].nccl_version, plan.reason);
        assert_string_equal(gv_check_edits(&plan, text, sizeof(text)), rows[i].edits);
        assert_int_equal(plan.level_pxb, rows[i].level);
        assert_int_equal(plan.transport == DEFAULT, !rows[i].level && !plan.nedits);
        assert_int_equal(
            gv_policy_level_pxb(&build->profile, rows[i].nccl_version, NULL),
            rows[i].machine_level);
        gv_plan_finish(&plan);
        gv_build_free(build);
    }
}

/* On AMD, NCCL joins two GPUs whatever lies between, but not in a process that keeps a bad pair
 * apart by NCCL_P2P_LEVEL=PXB: there a measured gain is worth a bridge. */
static void pair_in_a_process_with_a_bad_one(void **state)
{
    (void)state;
    static const struct {
        struct bad bad[2];
        const char *samples, *edits;
        enum gv_transport transport;
    } rows[] = {
        {{{0, 0, 0}}, "12 12 12", "", DEFAULT},
        {{{0, 1, GV_P2P_CORRUPT}}, "12 12 12", "bridge 3-4", GV_TRANSPORT_P2P},
        {{{0, 1, GV_P2P_CORRUPT}}, "10 10 10", "", DEFAULT},
        {{{0, 1, GV_P2P_REFUSED}}, "12 12 12", "", DEFAULT},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct gv_build *build = with_bad(machine("44", "00", 70), rows[i].bad);
        strcpy(build->profile.cpu_vendor, "amd");
        verify_rest(build);
        gv_build_measured(
            build, "3,4", GV_OP_ALL_REDUCE, "1G", "10 10 10", GV_EDIT_P2P_LEVEL, rows[i].samples);
        struct gv_policy_in in = {
            .profile = &build->profile,
            .gpus = gv_build_set("3,4"),
            .one_node = true,
            .nccl_version = 22809,
            .operations = GV_OP_BIT(GV_OP_ALL_REDUCE)};
        struct gv_plan plan;
        char text[2048];
        gv_policy_decide(&in, &plan);
        print_message("%s\n", plan.reason);
        assert_string_equal(gv_check_edits(&plan, text, sizeof(text)), rows[i].edits);
        assert_int_equal(plan.transport, rows[i].transport);
        gv_plan_finish(&plan);
        gv_build_free(build);
    }
}

/* SHM that was measured to be faster than P2P inside an island. */
static void measured_separation(void **state)
{
    (void)state;
    static const struct {
        const char *vendor;
        const char *gpus, *separated;
        int pairs[2][2], npairs;
        enum gv_transport transport;
        const char *edits;
    } rows[] = {
        {"intel", "0,1", "12 12 12", {{0, 1}}, 1, SHM, "separate 1-0"},
        {"intel", "0,1", "12 12 12", {{0, 0}}, 0, SHM, "separate 1-0"},
        {"intel", "0,1", "10 10 10", {{0, 1}}, 1, DEFAULT, ""},
        {"intel", "0-3", "12 12 12", {{2, 3}}, 1, MIXED, "separate 3-2"},
        /* two GPUs stay joined there, wherever one is moved; three do not */
        {"amd", "0,1", "12 12 12", {{0, 1}}, 1, DEFAULT, ""},
        {"amd", "0-2", "12 12 12", {{1, 2}}, 1, MIXED, "separate 2-1"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct gv_build *build = machine("44", "00", 70);
        strcpy(build->profile.cpu_vendor, rows[i].vendor);
        verify_rest(build);
        struct gv_profile_group *group = gv_build_measured(
            build, rows[i].gpus, GV_OP_ALL_REDUCE, "1G", "10 10 10", GV_EDIT_SEPARATE,
            rows[i].separated);
        struct gv_profile_variant *variant = &group->variants[1];
        variant->nlend = rows[i].npairs;
        memcpy(variant->lend, rows[i].pairs, sizeof(rows[i].pairs));
        struct gv_policy_in in = {
            .profile = &build->profile, .gpus = gv_build_set(rows[i].gpus), .one_node = true};
        struct gv_plan plan;
        char text[2048];
        gv_policy_decide(&in, &plan);
        print_message("%s\n", plan.reason);
        gv_check_plan(&in, &plan);
        assert_string_equal(gv_check_edits(&plan, text, sizeof(text)), rows[i].edits);
        assert_int_equal(plan.transport, rows[i].transport);
        gv_plan_finish(&plan);
        gv_build_free(build);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crossings),
        cmocka_unit_test(faster_pairs),
        cmocka_unit_test(order_of_islands),
        cmocka_unit_test(interpolated_rings_are_whole),
        cmocka_unit_test(real_nvlinks),
        cmocka_unit_test(chains_of_lent_links),
        cmocka_unit_test(compute_capability),
        cmocka_unit_test(separations),
        cmocka_unit_test(separations_where_all_is_joined),
        cmocka_unit_test(pair_in_a_process_with_a_bad_one),
        cmocka_unit_test(measured_separation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
