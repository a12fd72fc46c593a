/* A machine and edits in, the tree for NCCL out: as tables. The machine is
 *   CPU 0: switch 17 (GPUs 1a, 1b, 1e), switch 3a (3d, 3f, 41; NVLink 3f-41), GPU 60 on the CPU
 *   CPU 1: GPU b1
 * with links that differ from row to row. */
#include "tests/unit/topology_world.h"

#include "plugin/topology/gv_topology.h"

#define C0 "<cpu numaid=\"0\">"
#define GPU(id) "<pci busid=\"0000:" id ":00.0\" class=\"0x030200\"/>"
#define WITH(id, inside)                                                                           \
    "<pci busid=\"0000:" id ":00.0\" class=\"0x030200\"><gpu>" inside "</gpu></pci>"
#define NVL(id, count)                                                                             \
    "<nvlink target=\"0000:" id ":00.0\" count=\"" count "\" tclass=\"0x030200\"/>"
#define SW(id, inside) "<pci busid=\"0000:" id ":00.0\" class=\"0x060400\">" inside "</pci>"
#define NOWHERE "<nvlink target=\"fffe:ff:1f.7\" count=\"1\" tclass=\"0x030200\"/>"
#define BRIDGE(bus, speed, width, inside)                                                          \
    "<pci busid=\"fffe:" bus ":00.0\" class=\"0x060400\" link_speed=\"" speed                      \
    "\" link_width=\"" width "\">" inside "</pci>"
#define REST "</cpu><cpu numaid=\"1\">" GPU("b1") "</cpu></system>"
#define S17 SW("17", GPU("1a") GPU("1b") GPU("1e"))
#define S3A SW("3a", GPU("3d") GPU("3f") GPU("41"))
#define MACHINE "<system version=\"1\">" C0 S17 S3A GPU("60") REST

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

static struct gv_tree *parse(const char *text)
{
    struct gv_error err = {0};
    struct gv_tree *tree = gv_tree_parse(text, strlen(text), "table", &err);
    if (!tree)
        fail_msg("%u:%u: %s\n%s", err.line, err.column, err.text, text);
    return tree;
}

static char *format(const struct gv_tree *tree)
{
    struct gv_str out = {0};
    assert_int_equal(gv_tree_format(tree, &out), 0);
    return out.data;
}

static char *same_layout(const char *text)
{
    struct gv_tree *tree = parse(text);
    char *out = format(tree);
    gv_tree_free(tree);
    return out;
}

/* A GPU of the machine; 3f and 41 have their NVLinks, as NVML names them. */
struct gpu {
    char bus_id[24];
    struct gv_tree_gpu g;
};

static void gpu_of(const char *id, int sm, struct gpu *out)
{
    memset(out, 0, sizeof(*out));
    snprintf(out->bus_id, sizeof(out->bus_id), "0000:%s:00.0", id);
    out->g.bus_id = out->bus_id;
    out->g.sm = sm;
    bool left = !strcmp(id, "3f"), right = !strcmp(id, "41");
    if (left || right) {
        out->g.nvlinks = 1;
        out->g.nvlink[0].target = left ? "00000000:41:00.0" : "00000000:3F:00.0";
        out->g.nvlink[0].count = 4;
    }
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

/* Where the machine's links stand: sysfs, as the tree itself has none. */
static void add_links(const char *sysfs, const char *speed)
{
    static const char *const ids[] = {"17", "1a", "1b", "1e", "3a", "3d", "3f", "41", "60", "b1"};
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        char path[64];
        snprintf(path, sizeof(path), "pci0000:%s/0000:%s:00.0", ids[i], ids[i]);
        world_add(
            sysfs, &(struct world_device){
                       .path = path,
                       .class = "0x030200",
                       .numa = "0",
                       .speed = speed ? speed : "8.0 GT/s PCIe",
                       .width = 16});
        /* The port above: as wide. */
        snprintf(path, sizeof(path), "%s/devices/pci0000:%s", sysfs, ids[i]);
        world_put(path, "max_link_width", "16");
    }
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

/* How many lent links are worth the PCIe link, in the model of the releases named in link.c. */
static void lent_counts(void **state)
{
    (void)state;
    static const struct {
        int sm_a, sm_b;
        const char *tree_speed, *tree_width; /* of GPU a in the tree; NULL: sysfs says */
        const char *speed;                   /* in sysfs */
        const char *count;
    } counts[] = {
        {70, 70, NULL, NULL, "8.0 GT/s PCIe", "1"},              /* 12 over 20 */
        {60, 60, NULL, NULL, "8.0 GT/s PCIe", "1"},              /* 12 over 18 */
        {86, 86, NULL, NULL, "8.0 GT/s PCIe", "1"},              /* 12 over 12 */
        {86, 86, NULL, NULL, "16.0 GT/s PCIe", "2"},             /* 24 over 12 */
        {89, 89, NULL, NULL, "16.0 GT/s PCIe", "2"},             /* 24 over 20 */
        {70, 86, NULL, NULL, "16.0 GT/s PCIe", "2"},             /* 24 over the weaker 12 */
        {90, 90, NULL, NULL, "32.0 GT/s PCIe", "3"},             /* 48 over 20.6 */
        {100, 100, NULL, NULL, "32.0 GT/s PCIe", "2"},           /* 48 over 40.1 */
        {100, 100, NULL, NULL, "64.0 GT/s PCIe", "3"},           /* 96 over 40.1 */
        {90, 90, "16.0 GT/s PCIe", "16", "32.0 GT/s PCIe", "2"}, /* the slower side: 24 */
        {90, 90, "16.0 GT/s", "16", "32.0 GT/s PCIe", "1"},      /* not in NCCL's list: 60 a lane */
        {90, 90, "32.0 GT/s PCIe", "8", "32.0 GT/s PCIe", "2"},
        {90, 90, "", "0", "32.0 GT/s PCIe", "1"}, /* as virtual machines have it: gen3 x16 */
        {86, 86, NULL, NULL, "", "1"},
    };
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        char sysfs[WORLD_SYSFS], text[1024], attrs[128] = "";
        struct gv_error err = {0};
        struct gpu a, b;
        world_make(sysfs);
        add_links(sysfs, counts[i].speed);
        if (counts[i].tree_speed)
            snprintf(
                attrs, sizeof(attrs), "link_speed=\"%s\" link_width=\"%s\"", counts[i].tree_speed,
                counts[i].tree_width);
        snprintf(
            text, sizeof(text),
            "<system version=\"1\">" C0 "<pci busid=\"0000:1a:00.0\" %s/>" GPU("60") "</cpu>"
                                                                                     "</system>",
            attrs);
        struct gv_tree *tree = parse(text);
        gpu_of("1a", counts[i].sm_a, &a);
        gpu_of("60", counts[i].sm_b, &b);
        if (gv_tree_lend(tree, &a.g, &b.g, 0, sysfs, &err))
            fail_msg("row %zu: %s", i, err.text);
        char *got = format(tree), wanted[64];
        snprintf(wanted, sizeof(wanted), "00.0\" count=\"%s\"", counts[i].count);
        char *first = strstr(got, wanted);
        if (!first || !strstr(first + 1, wanted))
            fail_msg("row %zu: no %s in\n%s", i, wanted, got);
        free(got);
        gv_tree_free(tree);
        world_remove(sysfs);
    }
}

/* The bridge is worth its uplinks together, whatever they are. */
static void bridge_widths(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b; /* attributes of two branches */
        const char *speed, *width;
    } widths[] = {
        {"link_speed=\"8.0 GT/s PCIe\" link_width=\"16\"",
         "link_speed=\"8.0 GT/s PCIe\" link_width=\"16\"", "8.0 GT/s PCIe", "32"},
        {"link_speed=\"16.0 GT/s PCIe\" link_width=\"16\"",
         "link_speed=\"8.0 GT/s PCIe\" link_width=\"16\"", "16.0 GT/s PCIe", "24"},
        {"link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"",
         "link_speed=\"8.0 GT/s PCIe\" link_width=\"1\"", "8.0 GT/s PCIe", "65"},
        {"link_speed=\"64.0 GT/s PCIe\" link_width=\"16\"",
         "link_speed=\"2.5 GT/s PCIe\" link_width=\"1\"", "2.5 GT/s", "513"},
        {"link_speed=\"\" link_width=\"0\"", "link_speed=\"5 GT/s\" link_width=\"8\"",
         "8.0 GT/s PCIe", "20"},
    };
    const char *bus_ids[] = {"0000:1a:00.0", "0000:60:00.0"};
    for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
        char text[1024], wanted[128];
        struct gv_error err = {0};
        snprintf(
            text, sizeof(text),
            "<system version=\"1\">" C0 "<pci busid=\"0000:1a:00.0\" %s/>"
            "<pci busid=\"0000:60:00.0\" %s/></cpu></system>",
            widths[i].a, widths[i].b);
        struct gv_tree *tree = parse(text);
        if (gv_tree_bridge(tree, bus_ids, 2, "/nonexistent", &err))
            fail_msg("%s", err.text);
        char *got = format(tree);
        snprintf(
            wanted, sizeof(wanted), "link_speed=\"%s\" link_width=\"%s\">\n      <pci",
            widths[i].speed, widths[i].width);
        if (!strstr(got, wanted))
            fail_msg("row %zu: no %s in\n%s", i, wanted, got);
        free(got);
        gv_tree_free(tree);
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

static void checks(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int release;
        const char *says; /* NULL: good */
    } table[] = {
        {MACHINE, 22809, NULL},
        {MACHINE, 21903, NULL},
        {"<system version=\"1\">" C0 "</cpu></system>", 22809, "0000:1a:00.0 is not"},
        {"<system version=\"1\">" C0 GPU("1a") GPU("1a") "</cpu></system>", 22809, "twice"},
        {"<system version=\"1\">" C0 GPU("1a") "</cpu><cpu numaid=\"0\"/></system>", 22809,
         "two CPUs have numaid 0"},
        /* NCCL compares letter by letter. */
        {"<system version=\"1\">" C0 GPU("1A") "</cpu></system>", 22809, "0000:1a:00.0 is not"},
        {"<system version=\"1\">" C0 "<nic>" GPU("1a") "</nic></cpu></system>", 22809,
         "0000:1a:00.0 is not"},
    };
    const char *bus_ids[] = {"00000000:1A:00.0"};
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct gv_error err = {0};
        struct gv_tree *tree = parse(table[i].text);
        int rc = gv_tree_check(tree, bus_ids, 1, table[i].release, &err);
        if (rc != (table[i].says ? -1 : 0) || (rc && !strstr(err.text, table[i].says)))
            fail_msg("row %zu: %d %s", i, rc, err.text);
        gv_tree_free(tree);
    }
}

/* A CPU with `n` children, read by releases with different limits. */
static void limits_by_release(void **state)
{
    (void)state;
    static const struct {
        int children, release;
        bool good;
    } table[] = {
        {32, 22005, true},   {33, 22005, false},  {33, 22105, true},  {128, 22809, true},
        {129, 22809, false}, {129, 22906, false}, {129, 22907, true}, {210, 22907, true},
        {220, 23007, false}, {220, 22005, false},
    };
    const char *bus_ids[] = {"0000:1a:00.0"};
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct gv_str s = {0};
        struct gv_error err = {0};
        gv_str_add(&s, "<system version=\"1\">" C0 GPU("1a"));
        for (int k = 1; k < table[i].children; k++)
            gv_str_addf(&s, "<pci busid=\"0001:%02x:00.0\"/>", k);
        gv_str_add(&s, "</cpu></system>");
        struct gv_tree *tree = parse(s.data);
        if (!gv_tree_check(tree, bus_ids, 1, table[i].release, &err) != table[i].good)
            fail_msg("%d in %d: %s", table[i].children, table[i].release, err.text);
        gv_str_free(&s);
        gv_tree_free(tree);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edits),         cmocka_unit_test(lent_counts),
        cmocka_unit_test(bridge_widths), cmocka_unit_test(bridge_avoids_real_devices),
        cmocka_unit_test(nvswitch),      cmocka_unit_test(file_without_classes),
        cmocka_unit_test(checks),        cmocka_unit_test(limits_by_release),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
