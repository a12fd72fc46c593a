/* Sysfs in, the machine out; a machine and a profile in, whether the one is for the other out. */
#include "tests/machine_4028.h"

#include <string.h>
#include <unistd.h>

static void test_reference(void **state)
{
    (void)state;
    struct gv_machine m;
    read_machine(&reference, &m);
    assert_int_equal(m.ngpus, 11);
    for (int i = 0; i < 11; i++) {
        const char *root = i < 5 ? "0000:16:00.0" : i < 10 ? "0000:39:00.0" : "0000:b0:00.0";
        assert_string_equal(m.gpus[i].bus_id, fake_4028[i].bus_id);
        assert_string_equal(m.gpus[i].root_port, root);
        assert_int_equal(m.gpus[i].pci_device, fake_4028[i].device);
        assert_int_equal(m.gpus[i].numa_node, fake_4028[i].numa);
        assert_string_equal(m.gpus[i].uuid, fake_4028[i].uuid);
        assert_int_equal(m.gpus[i].link_width, -1);
        assert_int_equal(m.gpus[i].link_width_max, 16);
    }
    assert_string_equal(m.driver, "580.173.02");
    assert_string_equal(m.boot_id, "boot-1");
    assert_string_equal(m.host, "h");
    assert_true(m.replayed);
}

/* What counts as a GPU, in which order, and where it hangs. */
static void test_odd_trees(void **state)
{
    (void)state;
    static const struct fake_gpu gpus[] = {
        {"0000:81:00.0", "", 0x2330, -1, NULL, 0, 0},                   /* at the root complex */
        {"0000:09:00.0", "0000:00:01.0", 0x2330, 0, NULL, 0, 0x030000}, /* VGA class */
        {"0000:0a:00.0", "0000:00:02.0", 0x22a3, 0, NULL, 0, 0x068000}, /* NVSwitch */
        {"0000:0b:00.0", "0000:00:03.0", 0x10fa, 0, NULL, 0, 0x040300}, /* audio function */
        {"0000:0c:00.0", "0000:00:04.0", 0x73bf, 0, NULL, 0x1002, 0},   /* another vendor */
        {"10000:01:00.0", "10000:00:01.0", 0x2330, 1, NULL, 0, 0},      /* a wide domain */
        {"0000:09:00.1", "0000:00:01.0", 0x2331, 0, NULL, 0, 0},        /* a second function */
    };
    static const char *const order[][2] = {
        {"0000:09:00.0", "0000:00:01.0"},
        {"0000:09:00.1", "0000:00:01.0"},
        {"0000:81:00.0", ""},
        {"10000:01:00.0", "10000:00:01.0"},
    };
    struct gv_machine m;
    read_machine(&(struct fake_machine){gpus, 7, NULL, NULL, NULL}, &m);
    assert_int_equal(m.ngpus, 4);
    for (int i = 0; i < 4; i++) {
        assert_string_equal(m.gpus[i].bus_id, order[i][0]);
        assert_string_equal(m.gpus[i].root_port, order[i][1]);
        assert_string_equal(m.gpus[i].uuid, "");
    }
    assert_string_equal(m.driver, "");
    assert_string_equal(m.boot_id, "");
}

/* A root complex inside a path (VMD) begins anew. */
static void test_nested_root(void **state)
{
    (void)state;
    static const struct fake_gpu gpu = {
        "10000:02:00.0", "0000:00:0e.0/pci10000:00/10000:00:02.0", 0x2330, 0, NULL, 0, 0};
    struct gv_machine m;
    read_machine(&(struct fake_machine){&gpu, 1, NULL, NULL, NULL}, &m);
    assert_string_equal(m.gpus[0].root_port, "10000:00:02.0");
}

static void many_gpus(int n, int rc)
{
    struct fake_gpu gpus[70];
    char ids[70][20], root[64];
    struct gv_machine m;
    struct gv_error err = {0};
    for (int i = 0; i < n; i++) {
        snprintf(ids[i], sizeof(ids[i]), "0000:%02x:00.0", i + 1);
        gpus[i] = (struct fake_gpu){ids[i], "", 0x2330, 0, NULL, 0, 0};
    }
    fake_sysfs(&(struct fake_machine){gpus, n, NULL, NULL, NULL}, root);
    assert_int_equal(gv_machine_read(root, &m, &err), rc);
    assert_true(rc == 0 ? m.ngpus == n : strstr(err.text, "over 64 GPUs") != NULL);
    fake_remove(root);
}

static void test_limits(void **state)
{
    (void)state;
    struct gv_machine m;
    struct gv_error err = {0};
    many_gpus(0, 0);
    many_gpus(64, 0);
    many_gpus(65, -1);
    assert_int_equal(gv_machine_read("/nowhere", &m, &err), -1);
    assert_string_equal(err.file, "/nowhere/bus/pci/devices");
    assert_non_null(strstr(err.text, "No such file"));
}

/* Attributes that are pipes or garbage are not known, and nothing blocks. */
static void test_bad_attributes(void **state)
{
    (void)state;
    static const struct fake_gpu gpu = {"0000:81:00.0", "", 0x2330, 0, NULL, 0, 0};
    char root[64], path[PATH_MAX];
    struct gv_machine m;
    struct gv_error err = {0};
    fake_sysfs(&(struct fake_machine){&gpu, 1, NULL, NULL, NULL}, root);
    snprintf(path, sizeof(path), "%s/bus/pci/devices/%s/numa_node", root, gpu.bus_id);
    assert_int_equal(unlink(path) || mkfifo(path, 0644), 0);
    fake_file(root, "bus/pci/devices/0000:81:00.0/current_link_width", "Unknown\n");
    alarm(20);
    assert_int_equal(gv_machine_read(root, &m, &err), 0);
    alarm(0);
    assert_int_equal(m.gpus[0].numa_node, -1);
    assert_int_equal(m.gpus[0].link_width, -1);
    fake_remove(root);
}

/* The machine and the profile of 4028 after one change each; NULL: it matches. */
enum change {
    NOTHING,
    GPU_LESS,
    DEVICE,
    VENDOR,
    NUMA,
    MOVED,
    SPLIT,
    JOINED,
    SWAPPED,
    BUS_IDS,
    ISLAND_NAMES,
    NUMA_UNKNOWN,
    VENDOR_UNKNOWN,
    DEVICE_UNKNOWN,
    ISLAND_UNKNOWN
};
static const struct {
    enum change change;
    const char *error;
} shapes[] = {
    {NOTHING, NULL},
    {GPU_LESS, "10 GPUs here, 11 in the profile"},
    {DEVICE, "GPU 6: PCI device 1db6 here, 1df6 in the profile"},
    {VENDOR, "GPU 3: PCI vendor 1002 here, 10de in the profile"},
    {NUMA, "GPU 10: NUMA node 0 here, 1 in the profile"},
    {MOVED, "GPU 0 and 4: two PCIe islands here, one PCIe island in the profile"},
    {SPLIT, "GPU 0 and 1: two PCIe islands here, one PCIe island in the profile"},
    {JOINED, "GPU 0 and 5: one PCIe island here, two PCIe islands in the profile"},
    {SWAPPED, "GPU 7: PCI device 1df0 here, 1dba in the profile"},
    {BUS_IDS, NULL},
    {ISLAND_NAMES, NULL},
    {NUMA_UNKNOWN, NULL},
    {VENDOR_UNKNOWN, NULL},
    {DEVICE_UNKNOWN, "GPU 2: the profile has no pci_device, which match: shape needs"},
    {ISLAND_UNKNOWN, "GPU 2: the profile has no island, which match: shape needs"},
};

static void apply(enum change change, struct gv_machine *m, struct gv_profile *p)
{
    struct gv_machine_gpu seven = m->gpus[7];
    switch (change) {
    case GPU_LESS:
        m->ngpus--;
        break;
    case DEVICE:
        m->gpus[6].pci_device = 0x1db6;
        break;
    case VENDOR:
        m->gpus[3].pci_vendor = 0x1002;
        break;
    case NUMA:
        m->gpus[10].numa_node = 0;
        break;
    case MOVED:
        strcpy(m->gpus[4].root_port, m->gpus[5].root_port);
        break;
    case SPLIT:
        m->gpus[1].root_port[0] = '\0';
        break;
    case JOINED:
        for (int i = 5; i < 10; i++)
            strcpy(m->gpus[i].root_port, m->gpus[0].root_port);
        break;
    case SWAPPED:
        m->gpus[7] = m->gpus[8];
        m->gpus[8] = seven;
        break;
    case BUS_IDS:
        for (int i = 0; i < 11; i++)
            m->gpus[i].bus_id[3] = '7';
        break;
    case ISLAND_NAMES:
        for (int i = 0; i < 11; i++)
            p->gpus[i].island[0] ^= 0x20;
        break;
    case NUMA_UNKNOWN:
        m->gpus[4].numa_node = 5;
        p->gpus[4].numa_node = -1;
        break;
    case VENDOR_UNKNOWN:
        p->gpus[4].pci_vendor = 0;
        break;
    case DEVICE_UNKNOWN:
        p->gpus[2].pci_device = 0;
        break;
    case ISLAND_UNKNOWN:
        p->gpus[2].island[0] = '\0';
        break;
    case NOTHING:
        break;
    }
}

static void test_shape(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        struct gv_machine m = machine_4028;
        struct gv_error err = {0};
        int map[GV_MAX_GPUS];
        struct gv_profile *p = read_4028();
        apply(shapes[i].change, &m, p);
        int rc = gv_profile_matches(p, &m, map, &err);
        assert_string_equal(rc ? err.text : "", shapes[i].error ? shapes[i].error : "");
        for (int gpu = 0; !rc && gpu < GV_MAX_GPUS; gpu++)
            assert_int_equal(map[gpu], gpu < 11 ? gpu : -1);
        gv_profile_free(p);
    }
}

/* A profile of three GPUs of the reference machine, by bus id or UUID, and what this machine has.
 */
static const struct {
    enum gv_match match;
    int gpus[3];        /* of the reference machine, as the profile numbers them */
    const char *hidden; /* machine indexes whose UUID cannot be read */
    const char *gone;   /* machine indexes that are not there */
    int map[4];         /* expected for machine index 0, 1, 5, 10 */
    const char *error;
} ids[] = {
    {GV_MATCH_BUS_ID, {0, 1, 5}, "", "", {0, 1, 2, -1}, NULL},
    {GV_MATCH_BUS_ID, {5, 0, 10}, "", "", {1, -1, 0, 2}, NULL},
    {GV_MATCH_BUS_ID, {0, 1, 5}, "0-10", "", {0, 1, 2, -1}, NULL},
    {GV_MATCH_BUS_ID,
     {0, 1, 10},
     "",
     "10",
     {0},
     "GPU 2 of the profile (bus id 0000:b1:00.0) is not in this machine"},
    {GV_MATCH_UUID, {0, 1, 5}, "", "", {0, 1, 2, -1}, NULL},
    {GV_MATCH_UUID, {10, 5, 0}, "", "", {2, -1, 1, 0}, NULL},
    {GV_MATCH_UUID, {10, 5, 0}, "5,10", "", {2, -1, 1, 0}, NULL}, /* a container hides two */
    {GV_MATCH_UUID,
     {0, 1, 5},
     "0-10",
     "",
     {0},
     "the profile matches by UUID, and no GPU's UUID can be read here (is /proc/driver/nvidia "
     "there?)"},
    {GV_MATCH_UUID,
     {0, 1, 10},
     "",
     "10",
     {0},
     "GPU 2 of the profile (UUID GPU-10) is not in this machine"},
};

static struct gv_profile *profile_of(const int gpus[3], enum gv_match match)
{
    struct gv_profile *p = gv_profile_new();
    p->match = match;
    p->gpus = calloc(3, sizeof(*p->gpus));
    p->ngpus = 3;
    for (int i = 0; i < 3; i++) {
        const struct fake_gpu *f = &fake_4028[gpus[i]];
        struct gv_profile_gpu *g = &p->gpus[i];
        *g = (struct gv_profile_gpu){
            .index = i, .pci_device = (uint16_t)f->device, .numa_node = f->numa};
        strcpy(g->bus_id, f->bus_id);
        strcpy(g->uuid, f->uuid);
        snprintf(g->island, sizeof(g->island), "%.12s", f->bridges);
    }
    return p;
}

static void test_ids(void **state)
{
    (void)state;
    static const int at[4] = {0, 1, 5, 10};
    for (unsigned row = 0; row < sizeof(ids) / sizeof(ids[0]); row++) {
        struct gv_machine m = machine_4028;
        struct gv_error err = {0};
        gv_gpuset hidden = 0, gone = 0;
        int map[GV_MAX_GPUS];
        struct gv_profile *p = profile_of(ids[row].gpus, ids[row].match);
        gv_gpuset_parse(ids[row].hidden, &hidden, NULL);
        gv_gpuset_parse(ids[row].gone, &gone, NULL);
        for (int i = 0; i < m.ngpus; i++)
            if (gv_gpuset_has(hidden, i))
                m.gpus[i].uuid[0] = '\0';
        if (gone)
            m.ngpus--;
        int rc = gv_profile_matches(p, &m, map, &err);
        assert_string_equal(rc ? err.text : "", ids[row].error ? ids[row].error : "");
        for (int i = 0; !rc && i < 4; i++)
            assert_int_equal(map[at[i]], ids[row].map[i]);
        gv_profile_free(p);
    }
}

/* A board that was moved to another switch has other paths: its UUID alone is not enough. */
static void test_moved_board(void **state)
{
    (void)state;
    static const int gpus[3] = {0, 1, 5};
    struct gv_machine m = machine_4028;
    struct gv_error err = {0};
    int map[GV_MAX_GPUS];
    struct gv_profile *p = profile_of(gpus, GV_MATCH_UUID);
    strcpy(m.gpus[1].root_port, m.gpus[5].root_port);
    assert_int_equal(gv_profile_matches(p, &m, map, &err), -1);
    assert_string_equal(
        err.text, "GPU 0 and 1: two PCIe islands here, one PCIe island in the profile");
    gv_profile_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference),
        cmocka_unit_test(test_odd_trees),
        cmocka_unit_test(test_nested_root),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_bad_attributes),
        cmocka_unit_test(test_shape),
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_moved_board),
    };
    return cmocka_run_group_tests(tests, read_reference, NULL);
}
