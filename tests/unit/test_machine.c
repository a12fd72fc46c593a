/* The machine from sysfs, whether a profile is for it, and where a profile is looked for. */
#include "tests/gv_test.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/gv_str.h"
#include "config/gv_machine.h"
#include "tests/sysfs.h"

static const struct fake_machine reference = {fake_4028, FAKE_4028_N, "580.173.02", "boot-1", "h"};

static void read_machine(const struct fake_machine *m, struct gv_machine *out)
{
    char root[64];
    struct gv_error err = {0};
    fake_sysfs(m, root);
    if (gv_machine_read(root, out, &err))
        fail_msg("%s: %s", err.file, err.text);
    fake_remove(root);
}

/* The reference machine, read once: most tests change a copy. */
static struct gv_machine machine_4028;

static int read_reference(void **state)
{
    (void)state;
    read_machine(&reference, &machine_4028);
    return 0;
}

static struct gv_profile *read_4028(void)
{
    char path[PATH_MAX];
    struct gv_error err = {0};
    snprintf(path, sizeof(path), "%s/config/profiles/4028.yaml", gv_test_dir("GV_SOURCE_DIR"));
    struct gv_profile *p = gv_profile_read(path, &err);
    if (!p)
        fail_msg("%s", err.text);
    return p;
}

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

/* --- search --- */

static char base[64];

static int set_up(void **state)
{
    (void)state;
    char shipped[PATH_MAX];
    strcpy(base, "/tmp/gv-find-XXXXXX");
    if (!mkdtemp(base))
        return -1;
    snprintf(shipped, sizeof(shipped), "%s/shipped", base);
    fake_file(base, "shipped/readme.txt", "no profile");
    setenv("GV100_PROFILE_DIR", shipped, 1);
    setenv("XDG_CONFIG_HOME", base, 1);
    unsetenv("GV100_PROFILE");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    fake_remove(base);
    return 0;
}

/* Puts a profile with this name; `ngpus` GPUs of 4028 (11 matches). */
static void put(const char *where, const char *name, int ngpus)
{
    char path[PATH_MAX];
    struct gv_error err = {0};
    struct gv_profile *p = read_4028();
    snprintf(path, sizeof(path), "%s/%s", base, where);
    snprintf(p->name, sizeof(p->name), "%s", name);
    struct gv_profile part = *p; /* shares what it points to, owns nothing */
    if (ngpus < 11) {
        part.ngpus = ngpus;
        part.npaths = part.ngroups = part.nmemory = 0;
    }
    if (gv_profile_write(&part, path, &err))
        fail_msg("%s", err.text);
    gv_profile_free(p);
}

/* Finds for the reference machine; the name found or the error's text must have `part`. */
static void finds(const char *part, bool found)
{
    struct gv_machine m = machine_4028;
    struct gv_error err = {0};
    int map[GV_MAX_GPUS];
    char path[PATH_MAX], line[1024];
    struct gv_profile *p = gv_profile_find(&m, map, path, &err);
    const char *said = p ? p->name : gv_error_format(&err, line, sizeof(line));
    if (!p == found || !strstr(said, part))
        fail_msg("expected '%s', got '%s'", part, said);
    if (p) {
        assert_int_equal(access(path, R_OK), 0);
        assert_int_equal(map[10], 10);
    }
    gv_profile_free(p);
}

static void test_search_order(void **state)
{
    (void)state;
    finds("no profile for this machine with 11 GPUs: 0 looked at in", false);
    put("shipped/small.yaml", "small", 3);
    finds("1 looked at (small.yaml: 11 GPUs here, 3 in the profile)", false);
    put("shipped/b.yaml", "shipped-b", 11);
    finds("shipped-b", true);
    put("shipped/a.yaml", "shipped-a", 11);
    finds("shipped-a", true); /* by name within a folder */
    put("gv100/z.yaml", "mine", 11);
    finds("mine", true); /* the user's folder first */
    put("gv100/.hidden.yaml", "hidden", 11);
    put("gv100/a.yaml.tmp", "temporary", 11);
    put("gv100/a.yaml", "other machine", 3);
    finds("mine", true);
    setenv("GV100_PROFILE", "b", 1);
    finds("shipped-b", true);
}

static void test_search_errors(void **state)
{
    (void)state;
    char path[PATH_MAX];
    fake_file(base, "gv100/broken.yaml", "gv100_profile: 1\nnaem: x\n");
    finds(
        "broken.yaml:2:1: unknown key 'naem' in this profile; did you mean 'name'?; and no other "
        "profile is for this machine",
        false);
    put("shipped/right.yaml", "right", 11);
    finds("right", true); /* what is broken is not in the way */
    setenv("GV100_PROFILE", "rigth", 1);
    finds("GV100_PROFILE: there is no shipped profile 'rigth'; did you mean 'right'?", false);
    setenv("GV100_PROFILE", "zzzzzzzzzzzz", 1);
    finds("there is no shipped profile 'zzzzzzzzzzzz' in", false);
    snprintf(path, sizeof(path), "%s/gv100/broken.yaml", base);
    setenv("GV100_PROFILE", path, 1);
    finds("broken.yaml:2:1: unknown key 'naem'", false);
    snprintf(path, sizeof(path), "%s/none.yaml", base);
    setenv("GV100_PROFILE", path, 1);
    finds("none.yaml: cannot be opened: No such file", false);
    put("three.yaml", "three", 3);
    snprintf(path, sizeof(path), "%s/three.yaml", base);
    setenv("GV100_PROFILE", path, 1);
    finds("names a profile of another machine: 11 GPUs here, 3 in the profile", false);
    setenv("GV100_PROFILE", "", 1);
    finds("right", true); /* empty is not set */
}

static void test_without_machine(void **state)
{
    (void)state;
    struct gv_error err = {0};
    put("shipped/right.yaml", "right", 3);
    assert_null(gv_profile_find(NULL, NULL, NULL, &err));
    assert_non_null(strstr(err.text, "GV100_PROFILE"));
    setenv("GV100_PROFILE", "right", 1);
    struct gv_profile *p = gv_profile_find(NULL, NULL, NULL, &err);
    assert_non_null(p);
    assert_int_equal(p->ngpus, 3);
    gv_profile_free(p);
}

static void test_resolve(void **state)
{
    (void)state;
    char path[PATH_MAX], want[PATH_MAX];
    struct gv_error err = {0};
    put("shipped/right.yaml", "right", 3);
    snprintf(want, sizeof(want), "%s/shipped/right.yaml", base);
    assert_int_equal(gv_profile_resolve("right", path, &err), 0);
    assert_string_equal(path, want);
    assert_int_equal(gv_profile_resolve("./right", path, &err), 0);
    assert_string_equal(path, "./right");
    assert_int_equal(gv_profile_resolve("x.yaml", path, &err), 0);
    assert_string_equal(path, "x.yaml");
    assert_int_equal(gv_profile_resolve("", path, &err), -1);
    assert_string_equal(path, "x.yaml"); /* outputs are set on success alone */
    setenv("GV100_PROFILE_DIR", "/nowhere", 1);
    assert_int_equal(gv_profile_resolve("right", path, &err), -1);
    assert_string_equal(err.text, "GV100_PROFILE_DIR is no folder: /nowhere");
    /* Without it: beside this program, as build and installation lay it out. */
    unsetenv("GV100_PROFILE_DIR");
    assert_int_equal(gv_profile_resolve("4028", path, &err), 0);
    assert_int_equal(access(path, R_OK), 0);
}

int main(void)
{
#define SEARCH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference),
        cmocka_unit_test(test_odd_trees),
        cmocka_unit_test(test_nested_root),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_bad_attributes),
        cmocka_unit_test(test_shape),
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_moved_board),
        SEARCH(test_search_order),
        SEARCH(test_search_errors),
        SEARCH(test_without_machine),
        SEARCH(test_resolve),
    };
    return cmocka_run_group_tests(tests, read_reference, NULL);
}
