/* The policy's plans carried out: the edits go into a machine's topology, and the evaluator says
 * what NCCL makes of them. First every group of the reference machine with its published
 * measurement, then every group of other machines, measured (in this test) to gain. */
#include "tests/gv_test.h"

#include <stdio.h>
#include <string.h>

#include "plugin/policy/gv_policy.h"
#include "plugin/topology/gv_topology.h"
#include "testbench/nccl/gv_nccl_eval.h"
#include "tests/profile_build.h"

/* A machine as its topology file has it. */
struct machine {
    char path[1024];
    int ngpus, numa[GV_MAX_GPUS], sm[GV_MAX_GPUS];
    char bus_id[GV_MAX_GPUS][20];
    char amd;
    int links[GV_MAX_GPUS][GV_MAX_GPUS];
    char target[GV_MAX_GPUS][GV_MAX_GPUS][20];
    int nlinks[GV_MAX_GPUS];
    gv_gpuset nop2p;
};

static const int releases[] = {22304, 22707, 22809, 23007};
static struct gv_nccl_eval_out out; /* too large for the stack */

static const char *attribute(const char *line, const char *name)
{
    const char *at = strstr(line, name);
    return at ? at + strlen(name) : NULL;
}

static void read_line(struct machine *m, const char *line, int *numa, char bus_id[20])
{
    const char *value;
    if ((value = attribute(line, "<cpu numaid=\""))) {
        *numa = atoi(value);
        m->amd |= strstr(line, "AuthenticAMD") != NULL;
    }
    if ((value = attribute(line, "<pci busid=\"")))
        snprintf(bus_id, 20, "%.12s", value);
    if ((value = attribute(line, "<gpu dev=\""))) {
        m->numa[m->ngpus] = *numa;
        m->sm[m->ngpus] = atoi(attribute(line, " sm=\""));
        memcpy(m->bus_id[m->ngpus++], bus_id, 20);
    }
    if ((value = attribute(line, "<nvlink target=\""))) {
        int gpu = m->ngpus - 1, i = m->nlinks[gpu]++;
        snprintf(m->target[gpu][i], 20, "%.12s", value);
        m->links[gpu][i] = atoi(attribute(line, " count=\""));
    }
}

static struct machine read_machine(const char *name)
{
    struct machine m = {.ngpus = 0};
    char line[1024], bus_id[20] = "";
    int numa = -1;
    const char *source = gv_test_dir("GV_SOURCE_DIR");
    snprintf(m.path, sizeof(m.path), "%s/tests/replay/data/nccl-rings/%s.xml", source, name);
    FILE *file = fopen(m.path, "r");
    if (!file)
        fail_msg("cannot open %s", m.path);
    while (fgets(line, sizeof(line), file))
        read_line(&m, line, &numa, bus_id);
    fclose(file);
    return m;
}

static int number_of(const struct machine *m, const char *bus_id)
{
    int gpu = 0;
    while (gpu < m->ngpus && strcmp(m->bus_id[gpu], bus_id))
        gpu++;
    return gpu < m->ngpus ? gpu : -1;
}

/* ---- a plan into NCCL ---- */

static struct gv_tree_gpu describe(const struct machine *m, int gpu)
{
    struct gv_tree_gpu facts = {.bus_id = m->bus_id[gpu], .sm = m->sm[gpu]};
    for (int i = 0; i < m->nlinks[gpu]; i++) {
        facts.nvlink[facts.nvlinks].target = m->target[gpu][i];
        facts.nvlink[facts.nvlinks++].count = m->links[gpu][i];
    }
    return facts;
}

static int apply(
    const struct machine *m, struct gv_tree *tree, const struct gv_edit *edit, struct gv_error *err)
{
    if (edit->kind == GV_EDIT_BRIDGE) {
        const char *ids[GV_MAX_GPUS];
        int n = 0;
        for (gv_gpuset rest = edit->gpus; rest; rest &= rest - 1)
            ids[n++] = m->bus_id[gv_gpuset_first(rest)];
        return gv_tree_bridge(tree, ids, n, "/nowhere", err);
    }
    struct gv_tree_gpu from = describe(m, edit->from), to = describe(m, edit->to);
    if (edit->kind == GV_EDIT_LEND)
        return gv_tree_lend(tree, &from, &to, edit->count, "/nowhere", err);
    return gv_tree_separate(tree, &from, &to, err);
}

static void edited(const struct machine *m, const struct gv_plan *plan, struct gv_str *xml)
{
    struct gv_error err = {0};
    struct gv_tree *tree = gv_tree_from_file(m->path, &err);
    for (int i = 0; tree && i < plan->nedits; i++)
        if (apply(m, tree, &plan->edits[i], &err))
            fail_msg("%s: %s: %s", m->path, plan->reason, err.text);
    if (!tree || gv_tree_format(tree, xml))
        fail_msg("%s: %s", m->path, err.text);
    gv_tree_free(tree);
}

/* Fills `out` with what the release makes of the plan. */
static void
carry_out(const struct machine *m, gv_gpuset gpus, const struct gv_plan *plan, int release)
{
    struct gv_str xml = {0};
    int list[GV_MAX_GPUS], n = 0;
    edited(m, plan, &xml);
    for (gv_gpuset rest = gpus; rest; rest &= rest - 1)
        list[n++] = gv_gpuset_first(rest);
    struct gv_nccl_eval_in in = {
        .xml = xml.data,
        .xml_len = xml.len,
        .release = release,
        .gpus = list,
        .ngpus = n,
        .nop2p = m->nop2p,
        .sm = m->sm[0],
        .p2p_level = plan->level_pxb ? GV_NCCL_PXB : -1,
        .nvb_disable = plan->nvb_disable};
    if (gv_nccl_evaluate(&in, &out))
        fail_msg("%s, release %d: %s", m->path, release, out.error);
    gv_str_free(&xml);
}

static bool any_indirect(void)
{
    bool indirect = false;
    for (int a = 0; a < out.n; a++)
        for (int b = 0; b < out.n; b++)
            indirect |= out.pair[a][b].via >= 0;
    return indirect;
}

/* What a plan must not bring with it, whatever the release makes of it. */
static void check_harmless(const char *what, const struct gv_plan *plan, bool was_indirect)
{
    char error[256];
    if (out.ll128_allowed || out.ll128_tree)
        fail_msg("%s: LL128 is allowed over PCIe: %s", what, plan->reason);
    if (gv_nccl_alltoall(&out, error, sizeof(error)))
        fail_msg("%s: all-to-all: %s: %s", what, error, plan->reason);
    if (any_indirect() && !was_indirect)
        fail_msg("%s: P2P through a third GPU: %s", what, plan->reason);
}

/* All plans are carried out with GV_TEST_ALL set, else small groups, runs of GPUs that start at 0
 * and one plan in four: a full turn takes half a minute. */
static bool carried_out(gv_gpuset gpus, int plan)
{
    bool run = !(gpus & (gpus + 1));
    return getenv("GV_TEST_ALL") || gv_gpuset_count(gpus) <= 3 || run || plan % 4 == 0;
}

static void every_group_of_4028(void **state)
{
    (void)state;
    struct machine m = read_machine("4028-none");
    struct gv_build *build = gv_build_4028();
    int plans = 0, done = 0;
    m.nop2p = GV_GPU_BIT(10);
    for (gv_gpuset gpus = 3; gpus < GV_GPU_BIT(11); gpus++) {
        struct gv_policy_in in = {.profile = &build->profile, .gpus = gpus, .one_node = true};
        struct gv_plan plan;
        gv_policy_decide(&in, &plan);
        plans += plan.nedits > 0;
        if (plan.nedits && carried_out(gpus, plans)) {
            char list[256];
            carry_out(&m, gpus, &plan, releases[done++ % 4]);
            gv_gpuset_format(gpus, list, sizeof(list));
            check_harmless(list, &plan, false);
            if (strchr(out.transport, 'S'))
                fail_msg("%s: %s: %s", list, out.transport, plan.reason);
        }
        gv_plan_finish(&plan);
    }
    gv_build_free(build);
    print_message("%d of %d plans carried out\n", done, plans);
    assert_true(plans > 900);
}

/* ---- other machines ---- */

/* What the evaluator says of a pair without any edit becomes the profile's path. */
static enum gv_path_class class_of(enum gv_nccl_path path)
{
    switch (path) {
    case GV_NCCL_NVL:
        return GV_PATH_NVL;
    case GV_NCCL_PIX:
        return GV_PATH_PIX;
    case GV_NCCL_PXB:
        return GV_PATH_PXB;
    case GV_NCCL_SYS:
        return GV_PATH_SYS;
    default:
        return GV_PATH_PHB;
    }
}

/* All pairs verified, islands as NCCL's paths have them. NVLinks and islands are taken from the
 * file and from a run without NVLinks. */
static struct gv_build *profile_of(struct machine *m)
{
    static const struct gv_plan none;
    struct gv_build *build = gv_build_new(GV_CUDA);
    if (m->amd)
        strcpy(build->profile.cpu_vendor, "amd");
    build->profile.policy.operations = GV_OP_BIT(GV_OP_ALL_REDUCE);
    carry_out(m, m->ngpus == 64 ? ~0ull : GV_GPU_BIT(m->ngpus) - 1, &none, 22809);
    for (int gpu = 0; gpu < m->ngpus; gpu++) {
        int first = 0;
        while (first < gpu && out.pair[first][gpu].path != GV_NCCL_PIX &&
               out.pair[first][gpu].path != GV_NCCL_PXB)
            first++;
        char island[16];
        snprintf(island, sizeof(island), "I%d", first);
        gv_build_gpus(build, 1, island, m->numa[gpu], m->sm[gpu]);
    }
    for (int a = 0; a < m->ngpus; a++)
        for (int b = a + 1; b < m->ngpus; b++) {
            int links = 0;
            for (int i = 0; i < m->nlinks[a]; i++)
                if (number_of(m, m->target[a][i]) == b)
                    links = m->links[a][i];
            gv_build_path_sets(
                build, GV_GPU_BIT(a), GV_GPU_BIT(b),
                links ? GV_PATH_NVL : class_of(out.pair[a][b].path), links, GV_P2P_VERIFIED, 10);
        }
    return build;
}

/* The profile's one group: these GPUs, measured to gain. */
static void measure_gain(struct gv_build *build, gv_gpuset gpus)
{
    struct gv_profile_group *group =
        build->profile.ngroups ? &build->profile.groups[0]
                               : gv_build_group_set(build, gpus, GV_OP_ALL_REDUCE, 1 << 30, false);
    if (!group->nvariants) {
        gv_build_run(gv_build_variant(group, GV_EDIT_NONE), "10 10 10");
        gv_build_run(gv_build_variant(group, GV_EDIT_P2P_LEVEL), "12 12 12");
    }
    group->gpus = gpus;
}

struct tally {
    int groups, lent, bridged, joined, left;
};

/* Decides one group and carries the plan out. */
static void one_group(
    const struct machine *m, const struct gv_build *build, gv_gpuset gpus, int release,
    struct tally *tally)
{
    static const struct gv_plan none;
    struct gv_plan plan;
    char list[256], what[2048];
    struct gv_policy_in in = {
        .profile = &build->profile, .gpus = gpus, .one_node = true, .nccl_version = release};
    snprintf(
        what, sizeof(what), "%s %s in %d", m->path, gv_gpuset_format(gpus, list, sizeof(list)),
        release);
    gv_policy_decide(&in, &plan);
    carry_out(m, gpus, &none, release);
    bool had_shm = strchr(out.transport, 'S'), indirect = any_indirect();
    tally->groups++;
    tally->joined += !plan.nedits && !had_shm;
    tally->left += !plan.nedits && had_shm;
    if (plan.nedits) {
        carry_out(m, gpus, &plan, release);
        check_harmless(what, &plan, indirect);
        tally->bridged += plan.edits[0].kind == GV_EDIT_BRIDGE;
        tally->lent += plan.edits[0].kind == GV_EDIT_LEND;
        if (strchr(out.transport, 'S'))
            fail_msg("%s: %s: %s", what, out.transport, plan.reason);
    }
    gv_plan_finish(&plan);
}

/* Machines, and whether every group of theirs can be all P2P: across CPU nodes a group needs an
 * island of several GPUs, and NVLink chains take lent links away. */
static const struct {
    const char *name;
    bool all;
} machines[] = {
    {"arm", false},
    {"direct-two-sockets-amd", false},
    {"four-numa-amd", false},
    {"four-numa-intel-bdw", false},
    {"four-on-root-amd-none", true},
    {"mixed-widths", false},
    {"nested-amd-gen4", false},
    {"nested-intel", false},
    {"nvlink-pairs-none", true},
    {"nvlink-square", false},
    {"pairs-across-skl", false},
    {"three-switches", false},
    {"two-switches-amd-gen4-none", true},
    {"two-switches-intel-none", true},
};

static void one_machine(const char *name, bool all)
{
    struct machine m = read_machine(name);
    struct tally tally = {0};
    for (int gpu = 0; gpu < m.ngpus; gpu++)
        m.sm[gpu] = 70;
    struct gv_build *build = profile_of(&m);
    gv_gpuset step = m.ngpus > 8 ? 101 : m.ngpus > 6 ? 11 : 1;
    for (gv_gpuset gpus = 3; gpus < GV_GPU_BIT(m.ngpus); gpus += step)
        if (gv_gpuset_count(gpus) > 1) {
            measure_gain(build, gpus);
            one_group(&m, build, gpus, releases[gpus % 4], &tally);
        }
    print_message(
        "%-28s %3d groups: %3d lent, %3d bridged, %3d P2P already, %3d default\n", name,
        tally.groups, tally.lent, tally.bridged, tally.joined, tally.left);
    if (all)
        assert_int_equal(tally.left, 0);
    assert_true(tally.lent + tally.bridged + tally.joined > 0);
    gv_build_free(build);
}

static void groups_of_other_machines(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++)
        one_machine(machines[i].name, machines[i].all);
}

/* ---- rule 4 ---- */

static int rank_of(int gpu)
{
    for (int rank = 0; rank < out.n; rank++)
        if (out.devices[rank] == gpu)
            return rank;
    return -1;
}

/* Decides for these GPUs with the pair known to be bad, and carries the plan out. */
static int one_bad_pair(
    const struct machine *m, const struct gv_build *build, gv_gpuset gpus, int a, int b,
    int release)
{
    static const struct gv_plan none;
    gv_gpuset bad[GV_MAX_GPUS] = {0};
    struct gv_plan plan;
    bad[a] = GV_GPU_BIT(b);
    struct gv_policy_in in = {
        .profile = &build->profile,
        .gpus = gpus,
        .one_node = true,
        .nccl_version = release,
        .bad = bad};
    carry_out(m, gpus, &none, release);
    bool joined = out.pair[rank_of(a)][rank_of(b)].p2p;
    gv_policy_decide(&in, &plan);
    bool acts = plan.nedits || plan.level_pxb;
    if (acts != joined)
        fail_msg("%s %d-%d in %d: joined %d: %s", m->path, a, b, release, joined, plan.reason);
    carry_out(m, gpus, &plan, release);
    const struct gv_nccl_pair *pair = &out.pair[rank_of(a)][rank_of(b)];
    if (pair->p2p)
        fail_msg("%s %d-%d in %d: still P2P: %s", m->path, a, b, release, plan.reason);
    gv_plan_finish(&plan);
    return acts;
}

/* Every pair of the machine, alone and beside its first GPUs. */
static void bad_pairs(void **state)
{
    (void)state;
    static const char *const names[] = {
        "4028-none", "nvlink-pairs-none", "two-switches-amd-gen4-none", "four-on-root-amd-none",
        "mixed-widths"};
    static const int old_and_new[] = {22203, 22809};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct machine m = read_machine(names[i]);
        int acts = 0, n = 0;
        for (int gpu = 0; gpu < m.ngpus; gpu++)
            m.sm[gpu] = 70;
        struct gv_build *build = profile_of(&m);
        for (int a = 0; a < m.ngpus; a++)
            for (int b = a + 1; b < m.ngpus; b++)
                for (int r = 0; r < 2; r++, n++) {
                    gv_gpuset pair = GV_GPU_BIT(a) | GV_GPU_BIT(b);
                    acts += one_bad_pair(&m, build, pair, a, b, old_and_new[r]);
                    acts += one_bad_pair(&m, build, pair | 0xf, a, b, old_and_new[r]);
                }
        print_message("%-28s %3d bad pairs, %3d had to be separated\n", names[i], 2 * n, acts);
        assert_true(acts > 0);
        gv_build_free(build);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_group_of_4028),
        cmocka_unit_test(groups_of_other_machines),
        cmocka_unit_test(bad_pairs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
