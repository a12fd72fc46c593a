/* The verification stamp: written, read, believed or not, holding or not. */
#include "tests/gv_test.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "config/gv_stamp.h"
#include "tests/sysfs.h"

static char base[64];
static struct gv_machine machine;

static int set_up(void **state)
{
    (void)state;
    static const struct fake_machine reference = {
        fake_4028, FAKE_4028_N, "580.173.02", "boot-1", "h"};
    char root[64];
    struct gv_error err = {0};
    fake_sysfs(&reference, root);
    int rc = gv_machine_read(root, &machine, &err);
    fake_remove(root);
    strcpy(base, "/tmp/gv-stamp-XXXXXX");
    alarm(60);
    if (rc || !mkdtemp(base))
        return -1;
    setenv("XDG_STATE_HOME", base, 1);
    unsetenv("GV100_STAMP");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    fake_remove(base);
    return 0;
}

static const char *in_base(const char *name)
{
    static char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", base, name);
    return path;
}

/* Pairs 0-9 verified, but 3 to 7 corrupt and 7 to 3 one-way; 10 refused. */
static struct gv_stamp stamp_of(const struct gv_machine *m)
{
    struct gv_stamp s = {.ngpus = m->ngpus};
    strcpy(s.host, m->host);
    strcpy(s.boot_id, m->boot_id);
    strcpy(s.driver, m->driver);
    strcpy(s.date, "2026-08-23T18:33:00Z");
    strcpy(s.tool, "gv100 verify");
    for (int a = 0; a < m->ngpus; a++) {
        strcpy(s.bus_id[a], m->gpus[a].bus_id);
        for (int b = 0; b < m->ngpus; b++)
            if (a != b)
                s.pair[a][b] = a == 10 || b == 10 ? GV_P2P_REFUSED : GV_P2P_VERIFIED;
    }
    s.pair[3][7] = GV_P2P_CORRUPT;
    s.pair[7][3] = GV_P2P_ONE_WAY;
    s.pair[2][4] = GV_P2P_UNVERIFIED;
    return s;
}

static void test_round_trip(void **state)
{
    (void)state;
    struct gv_stamp s = stamp_of(&machine), r;
    struct gv_error err = {0};
    struct stat st;
    assert_int_equal(gv_stamp_write(&s, in_base("a/verified.yaml"), &err), 0);
    assert_int_equal(stat(in_base("a/verified.yaml"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0644);
    assert_int_equal(gv_stamp_read(in_base("a/verified.yaml"), &r, &err), 0);
    assert_memory_equal(&s.pair, &r.pair, sizeof(s.pair));
    assert_string_equal(s.host, r.host);
    assert_string_equal(s.boot_id, r.boot_id);
    assert_string_equal(s.driver, r.driver);
    assert_string_equal(s.date, r.date);
    assert_string_equal(s.tool, r.tool);
    assert_int_equal(r.ngpus, 11);
    for (int i = 0; i < 11; i++)
        assert_string_equal(s.bus_id[i], r.bus_id[i]);
    assert_int_equal(gv_stamp_holds(&r, &machine, &err), 0);
}

enum change {
    NOTHING,
    HOST,
    BOOT,
    NO_BOOT_THEN,
    NO_BOOT_NOW,
    NO_BOOT_REPLAYED,
    DRIVER,
    NO_DRIVER_NOW,
    NO_DRIVER_THEN,
    GPU_LESS,
    BUS_ID
};
/* One change each between the check and now. */
static const struct {
    enum change change;
    bool replayed;
    const char *error; /* NULL: it holds */
} changes[] = {
    {NOTHING, false, NULL},
    {NOTHING, true, NULL},
    {HOST, false, NULL},
    {BOOT, false, "the host has booted since it was checked, or it is another host (h)"},
    {BOOT, true, "the host has booted since it was checked, or it is another host (h)"},
    {NO_BOOT_THEN, false, "the stamp does not say with which boot it was checked"},
    {NO_BOOT_THEN, true, "the stamp does not say with which boot it was checked"},
    {NO_BOOT_NOW, false, "the boot of this host cannot be read"},
    {NO_BOOT_REPLAYED, false, "the stamp does not say with which boot it was checked"},
    {NO_BOOT_REPLAYED, true, NULL},
    {DRIVER, false, "driver was 580.173.02 when checked, 590.1 is loaded"},
    {NO_DRIVER_NOW, false, "the driver of this host cannot be read"},
    {NO_DRIVER_THEN, false, "the stamp does not say with which driver it was checked"},
    {GPU_LESS, false, "11 GPUs when checked, 10 are here"},
    {BUS_ID, false, "GPU 9 was 0000:41:00.0 when checked, it is 0000:42:00.0"},
};

static void apply(enum change change, struct gv_stamp *s, struct gv_machine *m)
{
    switch (change) {
    case NOTHING:
        break;
    case HOST:
        strcpy(m->host, "container");
        break;
    case BOOT:
        strcpy(m->boot_id, "boot-2");
        break;
    case NO_BOOT_THEN:
        s->boot_id[0] = '\0';
        break;
    case NO_BOOT_NOW:
        m->boot_id[0] = '\0';
        break;
    case NO_BOOT_REPLAYED:
        s->boot_id[0] = m->boot_id[0] = '\0';
        break;
    case DRIVER:
        strcpy(m->driver, "590.1");
        break;
    case NO_DRIVER_NOW:
        m->driver[0] = '\0';
        break;
    case NO_DRIVER_THEN:
        s->driver[0] = '\0';
        break;
    case GPU_LESS:
        m->ngpus--;
        break;
    case BUS_ID:
        strcpy(m->gpus[9].bus_id, "0000:42:00.0");
        break;
    }
}

static void test_holds(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        struct gv_machine m = machine;
        struct gv_stamp s = stamp_of(&machine);
        struct gv_error err = {0};
        m.replayed = changes[i].replayed;
        apply(changes[i].change, &s, &m);
        int rc = gv_stamp_holds(&s, &m, &err);
        assert_string_equal(rc ? err.text : "", changes[i].error ? changes[i].error : "");
    }
}

static void refused(const char *path, const char *part)
{
    struct gv_stamp s;
    struct gv_error err = {0};
    if (!gv_stamp_read(path, &s, &err) || !strstr(err.text, part) || strcmp(err.file, path))
        fail_msg("expected '%s', got %s: '%s'", part, err.file, err.text);
}

/* Only a regular file of root or this user that no one else can write to. */
static void test_believed(void **state)
{
    (void)state;
    static const struct {
        unsigned mode;
        const char *error;
    } modes[] = {
        {0644, NULL},
        {0600, NULL},
        {0664, "others may write to it (mode 0664)"},
        {0646, "others may write to it (mode 0646)"},
        {0666, "others may write to it (mode 0666)"},
    };
    struct gv_stamp s = stamp_of(&machine), r;
    struct gv_error err = {0};
    assert_int_equal(gv_stamp_write(&s, in_base("s.yaml"), &err), 0);
    for (unsigned i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        assert_int_equal(chmod(in_base("s.yaml"), modes[i].mode), 0);
        if (modes[i].error)
            refused(in_base("s.yaml"), modes[i].error);
        else
            assert_int_equal(gv_stamp_read(in_base("s.yaml"), &r, &err), 0);
    }
    assert_int_equal(chmod(in_base("s.yaml"), 0644), 0);
    assert_int_equal(symlink("s.yaml", in_base("link.yaml")), 0);
    refused(in_base("link.yaml"), "symbolic link");
    refused(base, "a folder");
    assert_int_equal(mkfifo(in_base("pipe"), 0644), 0);
    refused(in_base("pipe"), "a pipe");
    refused("/dev/zero", "a device");
    if (geteuid() == 0) {
        assert_int_equal(chown(in_base("s.yaml"), 12345, 0), 0);
        refused(in_base("s.yaml"), "it belongs to user 12345, neither to root nor to user 0");
    }
}

static void test_bad_text(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        unsigned line, column;
        const char *part;
    } rows[] = {
        {"", 1, 1, "the file is empty"},
        {"gv100_stamp: 2\n", 1, 14, "this file is gv100_stamp: 2, this build reads up to 1"},
        {"gv100_stamp: 1\n", 1, 1, "'gpus' is missing in this stamp"},
        {"gv100_stamp: 1\ngpus: [{index: 0, bus_id: \"0000:1a:00.0\"}]\n", 1, 1, "cut short"},
        {"gv100_stamp: 1\ndrivr: x\n", 2, 1, "did you mean 'driver'?"},
        {"gv100_stamp: 1\ngpus: [{index: 1, bus_id: \"0000:1a:00.0\"}]\n", 2, 8, "0 is expected"},
        {"gv100_stamp: 1\ngpus: [{index: 0, bus_id: x}]\n", 2, 27, "no PCI address"},
        {"gv100_stamp: 1\ngpus:\n  - {index: 0, bus_id: \"0000:1a:00.0\"}\n"
         "pairs:\n  - {from: 0, to: 1, p2p: verified}\n",
         5, 19, "there is no GPU 1"},
        {"gv100_stamp: 1\ngpus:\n  - {index: 0, bus_id: \"0000:1a:00.0\"}\n"
         "  - {index: 1, bus_id: \"0000:1b:00.0\"}\npairs:\n"
         "  - {from: 0, to: 1, p2p: verified}\n  - {from: 0-1, to: 1, p2p: corrupt}\n"
         "complete: true\n",
         1, 1, "0 to 1 stands twice"},
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct gv_stamp s;
        struct gv_error err = {0};
        fake_file(base, "bad.yaml", rows[i].text);
        assert_int_equal(chmod(in_base("bad.yaml"), 0644), 0);
        assert_int_equal(gv_stamp_read(in_base("bad.yaml"), &s, &err), -1);
        if (err.line != rows[i].line || err.column != rows[i].column ||
            !strstr(err.text, rows[i].part))
            fail_msg(
                "expected %u:%u '%s', got %u:%u '%s'", rows[i].line, rows[i].column, rows[i].part,
                err.line, err.column, err.text);
    }
}

static void finds(const char *error)
{
    struct gv_stamp s;
    struct gv_error err = {0};
    char line[1024] = "";
    if (gv_stamp_find(&machine, &s, &err))
        gv_error_format(&err, line, sizeof(line));
    if (error ? !strstr(line, error) : *line)
        fail_msg("expected '%s', got '%s'", error ? error : "", line);
    if (!error)
        assert_int_equal(s.pair[3][7], GV_P2P_CORRUPT);
}

static void write_stamp(const char *name, const char *boot)
{
    struct gv_stamp s = stamp_of(&machine);
    struct gv_error err = {0};
    strcpy(s.boot_id, boot);
    assert_int_equal(gv_stamp_write(&s, in_base(name), &err), 0);
}

/* The first that is there and holds; else the first reason, and what to run. */
static void test_find(void **state)
{
    (void)state;
    char path[PATH_MAX];
    struct gv_error err = {0};
    if (!access("/var/lib/gv100/verified.yaml", F_OK))
        skip(); /* this host has one of its own */
    finds("P2P was not verified on this host since it booted (no stamp in");
    finds("run `gv100 verify`");
    write_stamp("gv100/verified.yaml", "boot-0");
    finds("gv100/verified.yaml: the host has booted since it was checked");
    finds("; run `gv100 verify`");
    write_stamp("named.yaml", "boot-1");
    setenv("GV100_STAMP", in_base("named.yaml"), 1);
    finds(NULL);
    assert_int_equal(gv_stamp_path(path, &err), 0);
    assert_string_equal(path, in_base("named.yaml"));
    assert_int_equal(chmod(in_base("named.yaml"), 0666), 0);
    finds("named.yaml: not believed: others may write to it");
    write_stamp("gv100/verified.yaml", "boot-1");
    finds(NULL); /* the next place has one that holds */
    assert_int_equal(unlink(in_base("named.yaml")), 0);
    finds(NULL);
    unsetenv("GV100_STAMP");
    finds(NULL);
    assert_int_equal(gv_stamp_path(path, &err), 0);
    assert_string_equal(
        path, geteuid() ? in_base("gv100/verified.yaml") : "/var/lib/gv100/verified.yaml");
}

static void test_write_invalid(void **state)
{
    (void)state;
    struct gv_stamp s = stamp_of(&machine);
    struct gv_error err = {0};
    strcpy(s.bus_id[4], "nonsense");
    assert_int_equal(gv_stamp_write(&s, in_base("s.yaml"), &err), -1);
    assert_non_null(strstr(err.text, "not written: the stamp is not valid: bus_id: 'nonsense'"));
    assert_int_equal(access(in_base("s.yaml"), F_OK), -1);
}

int main(void)
{
#define IN_BASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        IN_BASE(test_round_trip), IN_BASE(test_holds), IN_BASE(test_believed),
        IN_BASE(test_bad_text),   IN_BASE(test_find),  IN_BASE(test_write_invalid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
