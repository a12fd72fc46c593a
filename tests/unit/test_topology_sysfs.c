/* Pretended machines in, NCCL's tree of them out. */
#include "tests/unit/topology_world.h"

#include "plugin/topology/gv_topology.h"

#define GPU "0x030200", "0x10de"
#define PORT "0x060400", "0x8086"
#define NIC "0x020000", "0x15b3"

/* The CPU of no device that takes NICs without a PCI device. */
#define NICS(id, kind) "  <cpu numaid=\"" id "\"" kind "/>\n"

#define MAX_DEVICES 32
#define MAX_NODES 4

struct machine {
    const char *name, *cpu;
    const char *mask[MAX_NODES]; /* of NUMA nodes 0, 1, ...; NULL: no such node */
    struct world_device device[MAX_DEVICES];
    const char *xml;
};

static const struct machine machines[] = {
    {.name = "virtual machine: a GPU on the host bridge itself",
     .cpu = WORLD_INTEL,
     .mask = {"ff"},
     .device = {{"pci0000:00/0000:00:05.0", GPU, "0", "8.0 GT/s PCIe", 16}},
     .xml = "<system version=\"1\">\n" NICS(
         "1", WORLD_INTEL_XML) "  <cpu numaid=\"0\" affinity=\"ff\"" WORLD_INTEL_XML ">\n"
                               "    <pci busid=\"0000:00:05.0\" class=\"0x030200\"/>\n"
                               "  </cpu>\n"
                               "</system>\n"},
    {.name = "root port: it is passed over, the CPU is the parent",
     .cpu = WORLD_AMD,
     .mask = {"0000ffff"},
     .device =
         {{"pci0000:00/0000:00:01.1", PORT, "0"},
          {"pci0000:00/0000:00:01.1/0000:01:00.0", "0x030000", "0x10de", "0"},
          {"pci0000:00/0000:00:01.1/0000:01:00.1", "0x040300", "0x10de", "0"}},
     .xml = "<system version=\"1\">\n" NICS(
         "1", WORLD_AMD_XML) "  <cpu numaid=\"0\" affinity=\"0000ffff\"" WORLD_AMD_XML ">\n"
                             "    <pci busid=\"0000:01:00.0\" class=\"0x030000\"/>\n"
                             "  </cpu>\n"
                             "</system>\n"},
    {.name = "two switches above each other: every second level stays",
     .cpu = WORLD_INTEL,
     .mask = {"f", "f0"},
     .device =
         {{"pci0000:10/0000:10:00.0", PORT, "1"},
          {"pci0000:10/0000:10:00.0/0000:11:00.0", PORT, "1"},
          {"pci0000:10/0000:10:00.0/0000:11:00.0/0000:12:00.0", PORT, "1"},
          {"pci0000:10/0000:10:00.0/0000:11:00.0/0000:12:00.0/0000:13:00.0", PORT, "1"},
          {"pci0000:10/0000:10:00.0/0000:11:00.0/0000:12:00.0/0000:13:00.0/0000:14:08.0", PORT,
           "1"},
          {"pci0000:10/0000:10:00.0/0000:11:00.0/0000:12:00.0/0000:13:00.0/0000:14:08.0/"
           "0000:15:00.0",
           GPU, "1"}},
     .xml = "<system version=\"1\">\n" NICS(
         "2", WORLD_INTEL_XML) "  <cpu numaid=\"1\" affinity=\"f0\"" WORLD_INTEL_XML ">\n"
                               "    <pci busid=\"0000:11:00.0\" class=\"0x060400\">\n"
                               "      <pci busid=\"0000:13:00.0\" class=\"0x060400\">\n"
                               "        <pci busid=\"0000:15:00.0\" class=\"0x030200\"/>\n"
                               "      </pci>\n"
                               "    </pci>\n"
                               "  </cpu>\n"
                               "  <cpu numaid=\"0\" affinity=\"f\"" WORLD_INTEL_XML "/>\n"
                               "</system>\n"},
    {.name = "numa_node -1: the CPU is called -1, the real nodes stay",
     .cpu = WORLD_AMD,
     .mask = {"ff"},
     .device = {{"pci0000:00/0000:00:05.0", GPU, "-1"}},
     .xml = "<system version=\"1\">\n" NICS(
         "1", WORLD_AMD_XML) "  <cpu numaid=\"-1\"" WORLD_AMD_XML ">\n"
                             "    <pci busid=\"0000:00:05.0\" class=\"0x030200\"/>\n"
                             "  </cpu>\n"
                             "  <cpu numaid=\"0\" affinity=\"ff\"" WORLD_AMD_XML "/>\n"
                             "</system>\n"},
    {.name = "a kernel without NUMA: the id is empty, as NCCL leaves it",
     .cpu = WORLD_INTEL,
     .device = {{"pci0000:00/0000:00:05.0", GPU, NULL}},
     .xml = "<system version=\"1\">\n" NICS(
         "1", WORLD_INTEL_XML) "  <cpu numaid=\"\"" WORLD_INTEL_XML ">\n"
                               "    <pci busid=\"0000:00:05.0\" class=\"0x030200\"/>\n"
                               "  </cpu>\n"
                               "</system>\n"},
    {.name = "64-bit Arm: no vendor; a node without processors is no CPU",
     .cpu = "cpu:type:aarch64:feature:,0000",
     .mask = {"ff", "00000000,00000000"},
     .device =
         {{"pci0009:00/0009:00:00.0", PORT, "0"},
          {"pci0009:00/0009:00:00.0/0009:01:00.0", GPU, "0"}},
     .xml = "<system version=\"1\">\n" NICS(
         "1", " affinity=\"00000000,00000000\" arch=\"arm64\"") "  <cpu numaid=\"0\" "
                                                                "affinity=\"ff\" arch=\"arm64\">\n"
                                                                "    <pci busid=\"0009:01:00.0\" "
                                                                "class=\"0x030200\"/>\n"
                                                                "  </cpu>\n"
                                                                "</system>\n"},
    {.name = "NICs: first functions only, no virtual ones; NUMA of the topmost device counts",
     .cpu = WORLD_INTEL,
     .mask = {"f", "f0"},
     .device =
         {{"pci0000:10/0000:10:00.0", PORT, "0"},
          {"pci0000:10/0000:10:00.0/0000:11:00.0", PORT, "0"},
          {"pci0000:10/0000:10:00.0/0000:11:00.0/0000:12:00.0", PORT, "1"},
          {"pci0000:10/0000:10:00.0/0000:11:00.0/0000:12:00.0/0000:14:00.0", GPU, "1"},
          {"pci0000:10/0000:10:00.0/0000:11:00.0/0000:12:04.0", PORT, "0"},
          {"pci0000:10/0000:10:00.0/0000:11:00.0/0000:12:04.0/0000:13:00.0", NIC, "0"},
          {"pci0000:10/0000:10:00.0/0000:11:00.0/0000:12:04.0/0000:13:00.1", NIC, "0"},
          {.path = "pci0000:10/0000:10:00.0/0000:11:00.0/0000:12:04.0/0000:13:01.0",
           .class = "0x020000",
           .numa = "0",
           .vf = true},
          {"pci0000:80/0000:80:00.0", PORT, "1"},
          {"pci0000:80/0000:80:00.0/0000:81:00.0", "0x020700", "0x15b3", "1"},
          {"pci0000:80/0000:80:01.0", PORT, "2"},
          {.path = "pci0000:80/0000:80:01.0/0000:82:00.2",
           .class = "0x020000",
           .numa = "2",
           .vf = true}},
     .xml = "<system version=\"1\">\n" NICS(
         "3", WORLD_INTEL_XML) "  <cpu numaid=\"0\" affinity=\"f\"" WORLD_INTEL_XML ">\n"
                               "    <pci busid=\"0000:11:00.0\" class=\"0x060400\">\n"
                               "      <pci busid=\"0000:13:00.0\" class=\"0x020000\"/>\n"
                               "      <pci busid=\"0000:14:00.0\" class=\"0x030200\"/>\n"
                               "    </pci>\n"
                               "  </cpu>\n"
                               "  <cpu numaid=\"1\" affinity=\"f0\"" WORLD_INTEL_XML ">\n"
                               "    <pci busid=\"0000:81:00.0\" class=\"0x020700\"/>\n"
                               "  </cpu>\n"
                               "  <cpu numaid=\"2\"" WORLD_INTEL_XML "/>\n"
                               "</system>\n"},
    {.name = "other vendors' displays, NVSwitches and five-digit domains are no GPUs",
     .cpu = WORLD_INTEL,
     .mask = {"f"},
     .device =
         {{"pci0000:00/0000:00:02.0", "0x030000", "0x1a03", "0"},
          {"pci0000:00/0000:00:03.0", "0x068000", "0x10de", "0"},
          {"pci0000:00/0000:00:04.0", GPU, "0"},
          {"pci10000:e0/10000:e0:06.0", GPU, "0"},
          {"pci0000:00/0000:00:06.0", "0x010802", "0x144d", "0"}},
     .xml = "<system version=\"1\">\n" NICS(
         "1", WORLD_INTEL_XML) "  <cpu numaid=\"0\" affinity=\"f\"" WORLD_INTEL_XML ">\n"
                               "    <pci busid=\"0000:00:04.0\" class=\"0x030200\"/>\n"
                               "  </cpu>\n"
                               "</system>\n"},
};

static char *tree_text(const char *sysfs)
{
    struct gv_error err = {0};
    struct gv_tree *tree = gv_tree_from_sysfs(sysfs, &err);
    struct gv_str out = {0};
    if (!tree)
        fail_msg("%s: %s", err.file, err.text);
    assert_int_equal(gv_tree_format(tree, &out), 0);
    gv_tree_free(tree);
    return out.data;
}

static void levels_and_cpus_are_nccls(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
        const struct machine *m = &machines[i];
        char sysfs[WORLD_SYSFS];
        world_make(sysfs);
        world_cpu(sysfs, m->cpu);
        for (int n = 0; n < MAX_NODES; n++) {
            if (m->mask[n])
                world_node(sysfs, n, m->mask[n]);
        }
        for (int d = 0; d < MAX_DEVICES && m->device[d].path; d++)
            world_add(sysfs, &m->device[d]);
        char *text = tree_text(sysfs);
        if (strcmp(text, m->xml))
            fail_msg("%s:\n%s\ninstead of\n%s", m->name, text, m->xml);
        free(text);
        world_remove(sysfs);
    }
}

/* The reference machine: PLX switches with a port for each GPU, eleven GPUs. */
static void add_island(const char *sysfs, int root, int up, const char *const *gpus)
{
    char top[64], path[256];
    snprintf(top, sizeof(top), "pci0000:%02x/0000:%02x:00.0", root, root);
    world_pci(sysfs, top, PORT, "0");
    snprintf(path, sizeof(path), "%s/0000:%02x:00.0", top, up);
    world_pci(sysfs, path, "0x060400", "0x10b5", "0");
    for (int i = 0; i < 5; i++) {
        snprintf(path, sizeof(path), "%s/0000:%02x:00.0/0000:%02x:%02x.0", top, up, up + 1, 4 * i);
        world_pci(sysfs, path, PORT, "0");
        snprintf(
            path, sizeof(path), "%s/0000:%02x:00.0/0000:%02x:%02x.0/0000:%s:00.0", top, up, up + 1,
            4 * i, gpus[i]);
        world_pci(sysfs, path, GPU, "0");
    }
}

static void reference_machine(void **state)
{
    (void)state;
    static const char *const first[] = {"1a", "1b", "1c", "1d", "1e"}, *const second[] = {
                                                                           "3d", "3e", "3f", "40",
                                                                           "41"};
    static const char wanted[] = "<system version=\"1\">\n" NICS(
        "2", WORLD_INTEL_XML) "  <cpu numaid=\"0\" affinity=\"00000000,ffffffff\"" WORLD_INTEL_XML
                              ">\n"
                              "    <pci busid=\"0000:17:00.0\" class=\"0x060400\">\n"
                              "      <pci busid=\"0000:1a:00.0\" class=\"0x030200\"/>\n"
                              "      <pci busid=\"0000:1b:00.0\" class=\"0x030200\"/>\n"
                              "      <pci busid=\"0000:1c:00.0\" class=\"0x030200\"/>\n"
                              "      <pci busid=\"0000:1d:00.0\" class=\"0x030200\"/>\n"
                              "      <pci busid=\"0000:1e:00.0\" class=\"0x030200\"/>\n"
                              "    </pci>\n"
                              "    <pci busid=\"0000:3a:00.0\" class=\"0x060400\">\n"
                              "      <pci busid=\"0000:3d:00.0\" class=\"0x030200\"/>\n"
                              "      <pci busid=\"0000:3e:00.0\" class=\"0x030200\"/>\n"
                              "      <pci busid=\"0000:3f:00.0\" class=\"0x030200\"/>\n"
                              "      <pci busid=\"0000:40:00.0\" class=\"0x030200\"/>\n"
                              "      <pci busid=\"0000:41:00.0\" class=\"0x030200\"/>\n"
                              "    </pci>\n"
                              "  </cpu>\n"
                              "  <cpu numaid=\"1\" affinity=\"ffffffff,00000000\"" WORLD_INTEL_XML
                              ">\n"
                              "    <pci busid=\"0000:b1:00.0\" class=\"0x030200\"/>\n"
                              "  </cpu>\n"
                              "</system>\n";
    char sysfs[WORLD_SYSFS];
    world_make(sysfs);
    world_cpu(sysfs, WORLD_INTEL);
    world_node(sysfs, 0, "00000000,ffffffff");
    world_node(sysfs, 1, "ffffffff,00000000");
    add_island(sysfs, 0x39, 0x3a, second);
    add_island(sysfs, 0x16, 0x17, first);
    world_pci(sysfs, "pci0000:b0/0000:b0:00.0", PORT, "1");
    world_pci(sysfs, "pci0000:b0/0000:b0:00.0/0000:b1:00.0", GPU, "1");
    char *text = tree_text(sysfs);
    assert_string_equal(text, wanted);
    free(text);
    world_remove(sysfs);
}

/* 4 GPUs among 400 functions: disks, ports, 60 NICs with virtual functions on one CPU. */
static void crowded_machine_fits_every_release(void **state)
{
    (void)state;
    static const char *const gpus[] = {
        "0000:00:04.0", "0000:00:05.0", "0000:00:06.0", "0000:00:07.0"};
    static const int releases[] = {21903, 22005, 22105, 22304, 22809, 22907, 23007};
    char sysfs[WORLD_SYSFS], path[128];
    struct gv_error err = {0};
    world_make(sysfs);
    world_cpu(sysfs, WORLD_AMD);
    world_node(sysfs, 0, "ff");
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof(path), "pci0000:00/%s", gpus[i]);
        world_pci(sysfs, path, GPU, "0");
    }
    for (int i = 0; i < 100; i++) {
        snprintf(path, sizeof(path), "pci0000:%02x/0000:%02x:00.0", i + 16, i + 16);
        world_pci(sysfs, path, "0x010802", "0x144d", "0");
        snprintf(path, sizeof(path), "pci0000:%02x/0000:%02x:01.0", i + 16, i + 16);
        world_pci(sysfs, path, i < 60 ? "0x020000" : "0x060400", "0x15b3", i == 7 ? "3" : "0");
        for (int f = 1; f < 3; f++) {
            snprintf(path, sizeof(path), "pci0000:%02x/0000:%02x:01.%d", i + 16, i + 16, f);
            world_add(
                sysfs,
                &(struct world_device){.path = path, .class = "0x020000", .vf = true, .numa = "0"});
        }
    }
    struct gv_tree *tree = gv_tree_from_sysfs(sysfs, &err);
    assert_non_null(tree);
    for (size_t i = 0; i < sizeof(releases) / sizeof(releases[0]); i++) {
        if (gv_tree_check(tree, gpus, 4, releases[i], &err))
            fail_msg("%d: %s", releases[i], err.text);
    }
    struct gv_str out = {0};
    gv_tree_format(tree, &out);
    assert_null(strstr(out.data, "0x020000"));         /* NCCL finds them itself */
    assert_non_null(strstr(out.data, "numaid=\"3\"")); /* with their CPU listed */
    gv_str_free(&out);
    gv_tree_free(tree);
    world_remove(sysfs);
}

static void no_tree_without_gpus(void **state)
{
    (void)state;
    char sysfs[WORLD_SYSFS], path[256];
    struct gv_error err = {0};
    assert_null(gv_tree_from_sysfs("/nonexistent/sys", &err));
    assert_string_equal(err.file, "/nonexistent/sys/bus/pci/devices");
    world_make(sysfs);
    assert_null(gv_tree_from_sysfs(sysfs, &err));
    assert_non_null(strstr(err.text, "no NVIDIA GPU"));

    /* A FIFO in the place of a file is not waited for. */
    world_pci(sysfs, "pci0000:00/0000:00:05.0", NULL, "0x10de", "0");
    snprintf(path, sizeof(path), "%s/devices/pci0000:00/0000:00:05.0/class", sysfs);
    assert_int_equal(mkfifo(path, 0600), 0);
    alarm(10);
    assert_null(gv_tree_from_sysfs(sysfs, &err));
    alarm(0);
    world_remove(sysfs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_and_cpus_are_nccls),
        cmocka_unit_test(reference_machine),
        cmocka_unit_test(crowded_machine_fits_every_release),
        cmocka_unit_test(no_tree_without_gpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
