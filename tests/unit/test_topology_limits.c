/* Links and trees in; how many are lent, how wide a bridge is, what NCCL's releases read, out. */
#include "tests/unit/topology_edits.h"

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
        cmocka_unit_test(lent_counts),
        cmocka_unit_test(bridge_widths),
        cmocka_unit_test(checks),
        cmocka_unit_test(limits_by_release),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
