/* A machine and edits in, the tree for NCCL out: as tables. */
#include "tests/unit/topology_edits.h"

#define WITH(id, inside)                                                                           \
    "<pci busid=\"0000:" id ":00.0\" class=\"0x030200\"><gpu>" inside "</gpu></pci>"
#define NVL(id, count)                                                                             \
    "<nvlink target=\"0000:" id ":00.0\" count=\"" count "\" tclass=\"0x030200\"/>"
#define NOWHERE "<nvlink target=\"fffe:ff:1f.7\" count=\"1\" tclass=\"0x030200\"/>"
#define BRIDGE(bus, speed, width, inside)                                                          \
    "<pci busid=\"fffe:" bus ":00.0\" class=\"0x060400\" link_speed=\"" speed                      \
    "\" link_width=\"" width "\">" inside "</pci>"

struct action {
    enum { NONE, LEND, SPLIT, OVER } kind;
    const char *a, *b; /* two GPUs; OVER: a is a list "1a 3d" */
    int count;
};

static const struct {
    const char *what;
    int sm;
    const char *speed; /* link_speed of every GPU and switch, x16; NULL: gen3 */
    struct action action[4];
    const char *out; /* NULL: the last action is refused */
    const char *says;
} rows[] = {
    {"a link across the switches",
     70,
     NULL,
     {{LEND, "1e", "3d", 0}},
     "<system version=\"1\">" C0 SW("17", GPU("1a") GPU("1b") WITH("1e", NVL("3d", "1")))
         SW("3a", WITH("3d", NVL("1e", "1")) GPU("3f") GPU("41")) GPU("60") REST,
     NULL},
    {"a GPU with real NVLinks lists them first",
     70,
     NULL,
     {{LEND, "1a", "3f", 0}},
     "<system version=\"1\">" C0 SW("17", WITH("1a", NVL("3f", "1")) GPU("1b") GPU("1e"))
         SW("3a", GPU("3d") WITH("3f", NVL("41", "4") NVL("1a", "1")) GPU("41")) GPU("60") REST,
     NULL},
    {"two links on one GPU",
     70,
     NULL,
     {{LEND, "1e", "3d", 0}, {LEND, "3d", "1a", 2}},
     "<system version=\"1\">" C0 SW(
         "17", WITH("1a", NVL("3d", "2")) GPU("1b") WITH("1e", NVL("3d", "1")))
         SW("3a", WITH("3d", NVL("1e", "1") NVL("1a", "2")) GPU("3f") GPU("41")) GPU("60") REST,
     NULL},
    {"across CPU nodes",
     70,
     NULL,
     {{LEND, "60", "b1", 3}},
     "<system version=\"1\">" C0 S17 S3A WITH("60", NVL("b1", "3")) "</cpu><cpu numaid=\"1\">" WITH(
         "b1", NVL("60", "3")) "</cpu></system>",
     NULL},
    {"sm 80 would read", 80, NULL, {{LEND, "1e", "3d", 0}}, NULL, "read over a lent link"},
    {"sm not known", -1, NULL, {{LEND, "1e", "3d", 0}}, NULL, "not known"},
    {"real NVLink there", 70, NULL, {{LEND, "3f", "41", 0}}, NULL, "joined by NVLink already"},
    {"lent before",
     70,
     NULL,
     {{LEND, "1e", "3d", 0}, {LEND, "3d", "1e", 0}},
     NULL,
     "joined by NVLink already"},
    {"not in the tree",
     70,
     NULL,
     {{LEND, "1e", "99", 0}},
     NULL,
     "GPU 0000:99:00.0 is not in the topology"},
    {"itself", 70, NULL, {{LEND, "1e", "1e", 0}}, NULL, "with itself"},
    {"negative", 70, NULL, {{LEND, "1e", "3d", -1}}, NULL, "makes no sense"},

    {"bridge over two switches",
     70,
     NULL,
     {{OVER, "1a 3d", NULL, 0}},
     "<system version=\"1\">" C0 BRIDGE("00", "8.0 GT/s PCIe", "32", S17 S3A) GPU("60") REST,
     NULL},
    {"bridge over a switch and a GPU that is its own branch",
     70,
     NULL,
     {{OVER, "60 1a 1b 1e", NULL, 0}},
     "<system version=\"1\">" C0 BRIDGE("00", "8.0 GT/s PCIe", "32", S17 GPU("60")) S3A REST,
     NULL},
    {"lend and bridge",
     70,
     NULL,
     {{LEND, "1e", "3d", 1}, {OVER, "1a 3d 60", NULL, 0}},
     "<system version=\"1\">" C0 BRIDGE(
         "00", "8.0 GT/s PCIe", "48",
         SW("17", GPU("1a") GPU("1b") WITH("1e", NVL("3d", "1")))
             SW("3a", WITH("3d", NVL("1e", "1")) GPU("3f") GPU("41")) GPU("60")) REST,
     NULL},
    {"bridge over two CPUs", 70, NULL, {{OVER, "1a b1", NULL, 0}}, NULL, "two CPU nodes (0 and 1)"},
    {"bridge inside one switch", 70, NULL, {{OVER, "1a 1b", NULL, 0}}, NULL, "in one branch"},
    {"bridge twice",
     70,
     NULL,
     {{OVER, "1a 3d", NULL, 0}, {OVER, "1a 3d", NULL, 0}},
     NULL,
     "in one branch"},
    {"bridge over ten",
     70,
     NULL,
     {{OVER, "1a 1b 1e 3d 3f 41 60 1a 1b 1e", NULL, 0}},
     NULL,
     "10 GPUs under one bridge"},
    {"bridge over a stranger", 70, NULL, {{OVER, "1a 99", NULL, 0}}, NULL, "not in the topology"},
    {"bridge over nothing", 70, NULL, {{OVER, "", NULL, 0}}, NULL, "in one branch"},

    {"separate under one switch",
     70,
     NULL,
     {{SPLIT, "1b", "1a", 0}},
     "<system version=\"1\">" C0 SW("17", GPU("1a") GPU("1e")) GPU("1b") S3A GPU("60") REST,
     NULL},
    {"separate an NVLink pair: nothing real is left, so NCCL must not ask NVML",
     70,
     NULL,
     {{SPLIT, "3f", "41", 0}},
     "<system version=\"1\">" C0 S17 SW("3a", GPU("3d") WITH("41", NOWHERE)) WITH("3f", NOWHERE)
         GPU("60") REST,
     NULL},
    {"separate, a lent link stays",
     70,
     NULL,
     {{LEND, "3f", "1a", 1}, {SPLIT, "41", "3f", 0}},
     "<system version=\"1\">" C0 SW("17", WITH("1a", NVL("3f", "1")) GPU("1b") GPU("1e"))
         SW("3a", GPU("3d") WITH("3f", NVL("1a", "1"))) WITH("41", NOWHERE) GPU("60") REST,
     NULL},
    {"separate what is on its CPU already", 70, NULL, {{SPLIT, "60", "1a", 0}}, MACHINE, NULL},
    {"separate from itself", 70, NULL, {{SPLIT, "1a", "1a", 0}}, NULL, "from itself"},
    {"separate a stranger", 70, NULL, {{SPLIT, "1a", "98", 0}}, NULL, "not in the topology"},
};

static char *same_layout(const char *text)
{
    struct gv_tree *tree = parse(text);
    char *out = format(tree);
    gv_tree_free(tree);
    return out;
}

static int
act(struct gv_tree *tree, const struct action *act, int sm, const char *sysfs, struct gv_error *err)
{
    if (act->kind == OVER) {
        char ids[16][24], list[128];
        const char *bus_ids[16];
        int n = 0;
        snprintf(list, sizeof(list), "%s", act->a);
        for (char *save, *w = strtok_r(list, " ", &save); w; w = strtok_r(NULL, " ", &save), n++) {
            snprintf(ids[n], sizeof(ids[n]), "0000:%s:00.0", w);
            bus_ids[n] = ids[n];
        }
        return gv_tree_bridge(tree, bus_ids, n, sysfs, err);
    }
    struct gpu a, b;
    gpu_of(act->a, sm, &a);
    gpu_of(act->b, sm, &b);
    return act->kind == LEND ? gv_tree_lend(tree, &a.g, &b.g, act->count, sysfs, err)
                             : gv_tree_separate(tree, &a.g, &b.g, err);
}

static void edits(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char sysfs[WORLD_SYSFS];
        struct gv_error err = {0};
        struct gv_tree *tree = parse(MACHINE);
        char *before = NULL;
        int rc = 0;
        world_make(sysfs);
        add_links(sysfs, rows[i].speed);
        for (int k = 0; k < 4 && !rc && rows[i].action[k].kind; k++) {
            free(before);
            before = format(tree);
            rc = act(tree, &rows[i].action[k], rows[i].sm, sysfs, &err);
        }
        char *got = format(tree);
        char *wanted = rows[i].out ? same_layout(rows[i].out) : strdup(before);
        if (rc != (rows[i].out ? 0 : -1) || (rc && !strstr(err.text, rows[i].says)))
            fail_msg("%s: %d %s", rows[i].what, rc, err.text);
        if (strcmp(got, wanted))
            fail_msg("%s:\n%s\ninstead of\n%s", rows[i].what, got, wanted);
        free(got);
        free(wanted);
        free(before);
        gv_tree_free(tree);
        world_remove(sysfs);
    }
}

static void bridge_avoids_real_devices(void **state)
{
    (void)state;
    char sysfs[WORLD_SYSFS];
    const char *bus_ids[] = {"0000:1a:00.0", "0000:60:00.0"};
    struct gv_error err = {0};
    struct gv_tree *tree = parse(MACHINE);
    world_make(sysfs);
    world_pci(sysfs, "pcifffe:00/fffe:00:00.0", "0x020000", NULL, "0");
    assert_int_equal(gv_tree_bridge(tree, bus_ids, 2, sysfs, &err), 0);
    char *got = format(tree);
    assert_non_null(strstr(got, "\"fffe:01:00.0\""));
    free(got);
    gv_tree_free(tree);
    world_remove(sysfs);
}

/* GPUs on an NVSwitch are joined with one another. */
static void nvswitch(void **state)
{
    (void)state;
    struct gv_error err = {0};
    struct gpu a, b;
    gpu_of("1a", 90, &a);
    gpu_of("3d", 90, &b);
    for (int i = 0; i < 4; i++) {
        static const char *const to[] = {
            "0000:c4:00.0", "0000:c5:00.0", "0000:c6:00.0", "fffffff:ffff:ff"};
        a.g.nvlink[i].target = b.g.nvlink[i].target = to[i];
        a.g.nvlink[i].count = b.g.nvlink[i].count = 4;
    }
    a.g.nvlinks = b.g.nvlinks = 4;
    struct gv_tree *tree = parse(MACHINE);
    assert_int_equal(gv_tree_lend(tree, &a.g, &b.g, 0, "/nonexistent", &err), -1);
    assert_non_null(strstr(err.text, "NVSwitch"));
    assert_int_equal(gv_tree_separate(tree, &a.g, &b.g, &err), -1);
    assert_non_null(strstr(err.text, "NVSwitch"));

    b.g.nvlinks = 0; /* one of them only: a link can be lent, and the switch stays listed */
    assert_int_equal(gv_tree_lend(tree, &a.g, &b.g, 2, "/nonexistent", &err), 0);
    char *got = format(tree);
    assert_non_null(strstr(got, "<nvlink target=\"0000:c6:00.0\" count=\"4\"/>"));
    assert_non_null(strstr(got, "<nvlink target=\"fffffff:ffff:ff\" count=\"4\"/>"));
    free(got);
    gv_tree_free(tree);
}

/* In a file of bus ids alone two GPUs with links to a third are not on an NVSwitch; NCCL looks up
 * the classes itself. */
static void file_without_classes(void **state)
{
    (void)state;
    static const char text[] =
        "<system version=\"1\">" C0 "<pci busid=\"0000:1a:00.0\"/><pci busid=\"0000:3d:00.0\"/>"
        "<pci busid=\"0000:41:00.0\"/></cpu></system>";
    struct gv_error err = {0};
    struct gpu a, b;
    gpu_of("1a", 70, &a);
    gpu_of("3d", 70, &b);
    a.g.nvlink[0].target = b.g.nvlink[0].target = "00000000:41:00.0";
    a.g.nvlink[0].count = b.g.nvlink[0].count = 2;
    a.g.nvlinks = b.g.nvlinks = 1;
    struct gv_tree *tree = parse(text);
    if (gv_tree_lend(tree, &a.g, &b.g, 1, "/nonexistent", &err))
        fail_msg("%s", err.text);
    char *got = format(tree);
    assert_non_null(strstr(
        got, "<gpu>\n        <nvlink target=\"0000:41:00.0\" count=\"2\"/>\n"
             "        <nvlink target=\"0000:3d:00.0\" count=\"1\"/>\n"));
    free(got);
    gv_tree_free(tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edits),
        cmocka_unit_test(bridge_avoids_real_devices),
        cmocka_unit_test(nvswitch),
        cmocka_unit_test(file_without_classes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
