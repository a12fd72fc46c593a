/* The plugin's topology files, judged by what NCCL makes of them: without edits exactly what it
 * makes of the machine itself, with edits the transports that were meant. Real runs with the same
 * answers: NCCL 2.23.4, 2.28.9 and 2.30.7 on eleven pretended GPUs. */
#include "tests/unit/topology_world.h"

#include "base/gv_gpuset.h"
#include "plugin/topology/gv_topology.h"
#include "testbench/machines/gv_bench_machine.h"
#include "testbench/nccl/gv_nccl_eval.h"

static const int releases[] = {21903, 22005, 22105, 22304, 22404, 22707, 22809, 23007};
enum { NRELEASES = sizeof(releases) / sizeof(releases[0]) };

static struct gv_bench_machine machine;
static struct gv_str detected; /* what NCCL finds on the machine */
static char sysfs[WORLD_SYSFS];
static struct gv_tree_gpu gpu[GV_MAX_GPUS];

static int setup(void **state)
{
    (void)state;
    char path[1024], folder[512];
    struct gv_error err = {0};
    snprintf(folder, sizeof(folder), "%s/testbench/machines", gv_test_dir("GV_SOURCE_DIR"));
    snprintf(path, sizeof(path), "%s/4028/machine.yaml", folder);
    world_make(sysfs);
    if (gv_bench_machine_read(path, &machine, &err) ||
        gv_bench_machine_sysfs(&machine, sysfs, &err) ||
        gv_bench_machine_topology(&machine, &detected))
        fail_msg("%s", err.text);
    for (int i = 0; i < machine.ngpus; i++) {
        gpu[i].bus_id = machine.gpus[i].pci.bus_id;
        gpu[i].sm = machine.gpus[i].sm;
    }
    for (int i = 0; i < machine.nnvlinks; i++) {
        for (int side = 0; side < 2; side++) {
            struct gv_tree_gpu *g = &gpu[machine.nvlinks[i].gpus[side]];
            g->nvlink[g->nvlinks].target = gpu[machine.nvlinks[i].gpus[!side]].bus_id;
            g->nvlink[g->nvlinks++].count = machine.nvlinks[i].count;
        }
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    gv_str_free(&detected);
    world_remove(sysfs);
    return 0;
}

/* One communicator; `tree` NULL: no file. */
static void evaluate(
    const struct gv_tree *tree, const char *gpus, int release, bool nvb_off,
    struct gv_nccl_eval_out *out)
{
    int list[GV_MAX_GPUS];
    struct gv_str xml = {0};
    struct gv_nccl_eval_in in = {
        .machine_xml = detected.data,
        .machine_xml_len = detected.len,
        .release = release,
        .gpus = list,
        .nop2p = gv_bench_machine_nop2p(&machine),
        .p2p_level = -1,
        .nvb_disable = nvb_off};
    in.ngpus = gv_gpulist_parse(gpus, list, NULL);
    if (tree) {
        gv_tree_format(tree, &xml);
        in.xml = xml.data;
        in.xml_len = xml.len;
    }
    if (gv_nccl_evaluate(&in, out))
        fail_msg("%s, release %d: %s", gpus, release, out->error);
    gv_str_free(&xml);
}

static struct gv_tree *base(void)
{
    struct gv_error err = {0};
    struct gv_tree *tree = gv_tree_base(NULL, sysfs, &err);
    if (!tree)
        fail_msg("%s", err.text);
    return tree;
}

/* Before 2.22 each rank takes the CPUs in the order of the file; NCCL's own order follows the
 * ranks, so lists that start on the second CPU are left out there. */
static void same_as_detected(void **state)
{
    (void)state;
    static const char *const groups[] = {
        "0",   "0,1",       "7,9", "0,5",  "0,10",      "0-4",     "5-9",       "0-5",
        "0-6", "0-7",       "0-8", "0-9",  "0-10",      "0-4,10",  "5-9,10",    "4,5",
        "3-6", "1,3,5,7,9", "9,3", "8-10", "9,8,7,6,5", "5-9,0-4", "9,7,5,3,1", "2,4,6,8,10"};
    static const char *const later[] = {"10,0", "10,9,8,7,6,5,4,3,2,1,0", "10,5-9"};
    static struct gv_nccl_eval_out with, without;
    struct gv_tree *tree = base();

    for (int r = 0; r < NRELEASES; r++) {
        int n = (int)(sizeof(groups) / sizeof(groups[0])), more = releases[r] >= 22200 ? 3 : 0;
        for (int i = 0; i < n + more; i++) {
            const char *gpus = i < n ? groups[i] : later[i - n];
            memset(&with, 0, sizeof(with));
            memset(&without, 0, sizeof(without));
            evaluate(tree, gpus, releases[r], false, &with);
            evaluate(NULL, gpus, releases[r], false, &without);
            if (memcmp(&with, &without, sizeof(with)))
                fail_msg(
                    "%s, release %d: %s instead of %s", gpus, releases[r], with.transport,
                    without.transport);
        }
    }
    gv_tree_free(tree);
}

static const struct {
    const char *what, *gpus;
    int lend[2][2]; /* 0,0: none */
    const char *bridge;
    int separate[2];
    bool nvb_off;
    const char *transport; /* sorted: the ring may turn */
    bool alltoall;
} plans[] = {
    {.what = "no edit", .gpus = "0-5", .transport = "PPPPSS", .alltoall = true},
    {.what = "bridge", .gpus = "0,5", .bridge = "0,5", .transport = "PP", .alltoall = true},
    {.what = "links close the ring",
     .gpus = "0-5",
     .lend = {{4, 5}, {5, 0}},
     .nvb_off = true,
     .transport = "PPPPPP",
     .alltoall = true},
    {.what = "links close the ring",
     .gpus = "0-6",
     .lend = {{4, 5}, {6, 0}},
     .transport = "PPPPPPP",
     .alltoall = true},
    {.what = "links close the ring",
     .gpus = "0-7",
     .lend = {{4, 5}, {6, 0}},
     .transport = "PPPPPPPP",
     .alltoall = true},
    {.what = "links close the ring",
     .gpus = "0-9",
     .lend = {{4, 5}, {8, 0}},
     .transport = "PPPPPPPPPP",
     .alltoall = true},
    {.what = "a pair that must not",
     .gpus = "7,9",
     .separate = {7, 9},
     .transport = "SS",
     .alltoall = true},
    {.what = "a pair that must not",
     .gpus = "5-9",
     .separate = {7, 9},
     .transport = "PPPSS",
     .alltoall = true},
    {.what = "a pair that must not",
     .gpus = "0-4",
     .separate = {1, 0},
     .transport = "PPPSS",
     .alltoall = true},
};

static void apply(struct gv_tree *tree, int plan, bool bridge)
{
    struct gv_error err = {0};
    const char *bus_ids[GV_MAX_GPUS];
    int list[GV_MAX_GPUS], rc = 0;
    for (int i = 0; i < 2; i++) {
        const int *pair = plans[plan].lend[i];
        if (pair[0] != pair[1])
            rc |= gv_tree_lend(tree, &gpu[pair[0]], &gpu[pair[1]], 0, sysfs, &err);
    }
    if (bridge) {
        int n = gv_gpulist_parse(plans[plan].bridge, list, &err);
        for (int i = 0; i < n; i++)
            bus_ids[i] = gpu[list[i]].bus_id;
        rc |= gv_tree_bridge(tree, bus_ids, n, sysfs, &err);
    }
    const int *pair = plans[plan].separate;
    if (pair[0] != pair[1])
        rc |= gv_tree_separate(tree, &gpu[pair[0]], &gpu[pair[1]], &err);
    if (rc)
        fail_msg("%s of %s: %s", plans[plan].what, plans[plan].gpus, err.text);
}

static int by_letter(const void *a, const void *b)
{
    return *(const char *)a - *(const char *)b;
}

static void edits_do_what_they_say(void **state)
{
    (void)state;
    static struct gv_nccl_eval_out out;
    char error[256];
    for (int p = 0; p < (int)(sizeof(plans) / sizeof(plans[0])); p++) {
        struct gv_tree *tree = base();
        apply(tree, p, plans[p].bridge);
        for (int r = 0; r < NRELEASES; r++) {
            evaluate(tree, plans[p].gpus, releases[r], plans[p].nvb_off, &out);
            qsort(out.transport, strlen(out.transport), 1, by_letter);
            if (strcmp(out.transport, plans[p].transport))
                fail_msg(
                    "%s of %s, release %d: %s instead of %s", plans[p].what, plans[p].gpus,
                    releases[r], out.transport, plans[p].transport);
            bool works = !gv_nccl_alltoall(&out, error, sizeof(error));
            if (works != plans[p].alltoall)
                fail_msg("%s, release %d: %s", plans[p].gpus, releases[r], error);
        }
        gv_tree_free(tree);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_as_detected),
        cmocka_unit_test(edits_do_what_they_say),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
