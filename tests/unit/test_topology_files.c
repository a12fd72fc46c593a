/* Topology files in: read whole, or refused with file and line. */
#include "tests/unit/topology_world.h"

#include <fcntl.h>

#include "plugin/topology/gv_topology.h"

#define HEAD "<system version=\"1\">\n"
#define CPU "<cpu numaid=\"0\">"
#define TAIL "</cpu></system>"

static char *format(const struct gv_tree *tree)
{
    struct gv_str out = {0};
    assert_int_equal(gv_tree_format(tree, &out), 0);
    return out.data;
}

static void fixtures(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        unsigned line;    /* of the error; 0: the file is good */
        const char *says; /* part of the error */
        int gpus;
        const char *holds; /* part of what is written again */
    } rows[] = {
        {"bus-ids-only.xml", 0, NULL, 0, "    <pci busid=\"0000:a0:1b.0\"/>\n  </cpu>"},
        {"own-nvlink.xml", 0, NULL, 2,
         "<net name=\"eth7\" dev=\"0\" speed=\"50000\" port=\"0\" latency=\"0.000000\" "
         "guid=\"0x0\" maxconn=\"65536\" gdr=\"0\"/>"},
        {"flat-virtual.xml", 0, NULL, 4, "link_speed=\"16 GT/s\" link_width=\"16\"/>"},
        {"switches-and-nics.xml", 0, NULL, 3, "<cpu numaid=\"6\""},
        {"dumped.xml", 0, NULL, 1,
         "      <futurelink target=\"0000:59:00.0\" shade=\"blue\">\n        <deeper/>\n"},
        {"version-2.xml", 4, "version is 2, NCCL reads version 1 only", 0, NULL},
        {"graph.xml", 1, "NCCL_GRAPH_FILE", 0, NULL},
        {"numa-minus-1-cut.xml", 6, "it is cut", 0, NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char path[1024], bus_ids[64][24];
        struct gv_error err = {0};
        snprintf(
            path, sizeof(path), "%s/tests/replay/data/topology/%s", gv_test_dir("GV_SOURCE_DIR"),
            rows[i].name);
        struct gv_tree *tree = gv_tree_from_file(path, &err);
        if (rows[i].line) {
            assert_null(tree);
            assert_int_equal(err.line, rows[i].line);
            if (!strstr(err.text, rows[i].says) || strncmp(err.file, path, sizeof(err.file) - 1))
                fail_msg("%s: %s", err.file, err.text);
            continue;
        }
        if (!tree)
            fail_msg("%s:%u: %s", err.file, err.line, err.text);
        assert_int_equal(gv_tree_gpus(tree, bus_ids, 64), rows[i].gpus);
        char *text = format(tree);
        if (!strstr(text, rows[i].holds))
            fail_msg("%s:\n%s", rows[i].name, text);
        struct gv_tree *again = gv_tree_parse(text, strlen(text), "again", &err);
        assert_non_null(again);
        char *second = format(again);
        assert_string_equal(text, second);
        free(text);
        free(second);
        gv_tree_free(tree);
        gv_tree_free(again);
    }
}

static void refused_texts(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        unsigned line, column; /* column 0: expat's own affair */
        const char *says;
    } rows[] = {
        {"", 1, 1, "it is cut"},
        {"   \n", 2, 1, "it is cut"},
        {"no xml", 1, 1, "syntax error"},
        {HEAD, 2, 1, "it is cut"},
        {HEAD CPU, 2, 17, "it is cut"},
        {HEAD CPU "<pci busid=\"0000:1a:00.0\" class=\"0x03", 2, 17, "it is cut"},
        {"<system>" CPU TAIL, 1, 1, "version is missing"},
        {"<system version=\"0\">" CPU TAIL, 1, 1, "version is 0"},
        {"<topology version=\"1\"/>", 1, 1, "starts with 'system'"},
        {"<system version=\"1\"/>", 1, 22, "no cpu element"},
        {HEAD "<pci busid=\"0000:1a:00.0\"/></system>", 2, 28, "no cpu element"},
        {HEAD "<cpu/></system>", 2, 1, "cpu without numaid"},
        {HEAD CPU "\n <pci/>" TAIL, 3, 2, "pci without busid"},
        {HEAD CPU "text" TAIL, 2, 17, "text between the elements"},
        {HEAD CPU "</pci></system>", 2, 0, "mismatched tag"},
        {HEAD CPU TAIL "<system version=\"1\"/>", 2, 0, "junk after document"},
        {"<!DOCTYPE system>" HEAD CPU TAIL, 1, 0, "DOCTYPE"},
        {"<!DOCTYPE s [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]>\n<s>&b;</s>", 1, 0, "DOCTYPE"},
        {"<!DOCTYPE s SYSTEM \"/etc/passwd\"><s/>", 1, 0, "DOCTYPE"},
        {HEAD CPU "<pci busid=\"&lol;\"/>" TAIL, 2, 0, "undefined entity"},
        {HEAD CPU "<pci busid=\"a&amp;b\"/>" TAIL, 2, 17, "letter that NCCL cannot read"},
        {HEAD CPU "<pci busid='say \"x\"'/>" TAIL, 2, 17, "letter that NCCL cannot read"},
        {HEAD CPU "<pci busid=\"a&#10;b\"/>" TAIL, 2, 17, "letter that NCCL cannot read"},
        {HEAD CPU "<pci busid=\"1\" busid=\"2\"/>" TAIL, 2, 0, "duplicate attribute"},
        {HEAD CPU
         "<pci busid=\"1\" b=\"\" c=\"\" d=\"\" e=\"\" f=\"\" g=\"\" h=\"\" i=\"\" j=\"\" k=\"\" "
         "l=\"\" m=\"\" n=\"\" o=\"\" p=\"\" q=\"\"/>" TAIL,
         2, 17, "more than the 16 attributes"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct gv_error err = {0};
        const char *text = rows[i].text;
        assert_null(gv_tree_parse(text, strlen(text), "topo.xml", &err));
        if (!strstr(err.text, rows[i].says) || err.line != rows[i].line ||
            (rows[i].column && err.column != rows[i].column) || strcmp(err.file, "topo.xml"))
            fail_msg("%s\n%s:%u:%u: %s", text, err.file, err.line, err.column, err.text);
        assert_null(gv_tree_parse(text, strlen(text), "topo.xml", NULL));
    }
}

/* What a careful XML reader accepts and NCCL's own does not is written in NCCL's way. */
static void written_as_nccl_reads(void **state)
{
    (void)state;
    static const char text[] =
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!-- two\nlines -->\n<system\n\tversion='1' "
        ">\n"
        "\t<cpu numaid = '0'\n  arch=\"x86_64\">\n<pci  busid=\"0000:1a:00.0\"></pci></cpu>\n"
        "</system>\n";
    struct gv_error err = {0};
    struct gv_tree *tree = gv_tree_parse(text, strlen(text), "t", &err);
    assert_non_null(tree);
    char *out = format(tree);
    assert_string_equal(
        out, "<system version=\"1\">\n  <cpu numaid=\"0\" arch=\"x86_64\">\n"
             "    <pci busid=\"0000:1a:00.0\"/>\n  </cpu>\n</system>\n");
    free(out);
    gv_tree_free(tree);
}

static char *repeat(const char *head, const char *part, int n, const char *tail)
{
    struct gv_str s = {0};
    gv_str_add(&s, head);
    for (int i = 0; i < n; i++)
        gv_str_add(&s, part);
    gv_str_add(&s, tail);
    assert_false(s.failed);
    return s.data;
}

static void hostile_texts_end_early(void **state)
{
    (void)state;
    const struct {
        char *text;
        const char *says; /* NULL: accepted */
    } rows[] = {
        {repeat(HEAD CPU, "<pci busid=\"0\">", 100000, ""), "levels"},
        {repeat(HEAD CPU, "<pci busid=\"0\"/>", 200000, TAIL), "elements"},
        {repeat(HEAD CPU, "<pci busid=\"0\">", 60, ""), "it is cut"},
        {repeat(HEAD "<cpu numaid=\"", "9", 253, "\"/></system>"), NULL},
        {repeat(HEAD "<cpu numaid=\"", "9", 254, "\"/></system>"), "longer than the 253"},
        {repeat(HEAD "<cpu numaid=\"", "9", 3000000, "\"/></system>"), "longer than the 253"},
        {repeat(HEAD "<cpu numaid=\"0\" ", "z", 1000, "=\"\"/></system>"), "longer than the 253"},
        {repeat(HEAD CPU TAIL, " ", 5 << 20, ""), "larger than 4 MiB"},
        {repeat(HEAD CPU TAIL, " ", 3 << 20, ""), NULL},
        {repeat(HEAD CPU, "<!---->", 100000, TAIL), NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct gv_error err = {0};
        struct gv_tree *tree = gv_tree_parse(rows[i].text, strlen(rows[i].text), "t", &err);
        if (!tree != !!rows[i].says || (rows[i].says && !strstr(err.text, rows[i].says)))
            fail_msg("row %zu: %s", i, err.text);
        gv_tree_free(tree);
        free(rows[i].text);
    }
}

/* Whatever a file is cut or damaged at, it is a good tree or an error, never a crash. */
static void every_cut_is_refused(void **state)
{
    (void)state;
    char path[1024];
    struct gv_error err = {0};
    snprintf(
        path, sizeof(path), "%s/tests/replay/data/topology/dumped.xml",
        gv_test_dir("GV_SOURCE_DIR"));
    struct gv_tree *tree = gv_tree_from_file(path, &err);
    char *text = format(tree);
    size_t len = strlen(text);
    for (size_t cut = 0; cut + 1 < len; cut++)
        assert_null(gv_tree_parse(text, cut, "cut", NULL));
    srand(1);
    for (int i = 0; i < 20000; i++) {
        size_t at = (size_t)rand() % len;
        char was = text[at];
        text[at] = (char)rand();
        struct gv_tree *damaged = gv_tree_parse(text, len, "damaged", NULL);
        if (damaged) {
            char *out = format(damaged);
            struct gv_tree *again = gv_tree_parse(out, strlen(out), "again", &err);
            if (!again)
                fail_msg("%s\n%s", err.text, out);
            gv_tree_free(again);
            free(out);
        }
        gv_tree_free(damaged);
        text[at] = was;
    }
    free(text);
    gv_tree_free(tree);
}

/* Random trees of known and unknown elements survive being written and read. */
static void add_random(struct gv_str *s, int depth, int *left)
{
    static const char *const names[] = {"pci", "gpu", "nic", "net", "nvlink", "other"};
    static const char letters[] = "abz09 .:;-_()'>=/\xc3\xa4";
    const char *name = names[rand() % 6];
    gv_str_addf(s, "<%s busid=\"%d\"", name, rand());
    for (int a = rand() % 6; a > 0; a--) {
        gv_str_addf(s, " k%d=\"", a);
        for (int c = rand() % 30; c > 0; c--) {
            int at = rand() % (int)(sizeof(letters) - 2);
            gv_str_add_n(s, letters + at, letters[at] == '\xc3' ? 2 : 1);
        }
        gv_str_add(s, "\"");
    }
    gv_str_add(s, ">");
    for (int i = rand() % 5; depth < 8 && i > 0 && --*left > 0; i--)
        add_random(s, depth + 1, left);
    gv_str_addf(s, "</%s>", name);
}

static void write_and_read_is_identity(void **state)
{
    (void)state;
    srand(7);
    for (int round = 0; round < 500; round++) {
        struct gv_str s = {0};
        struct gv_error err = {0};
        int left = 200;
        gv_str_add(&s, HEAD CPU);
        for (int i = rand() % 6; i > 0; i--)
            add_random(&s, 0, &left);
        gv_str_add(&s, TAIL);
        struct gv_tree *tree = gv_tree_parse(s.data, s.len, "random", &err);
        if (!tree)
            fail_msg("%u:%u %s\n%s", err.line, err.column, err.text, s.data);
        char *first = format(tree);
        struct gv_tree *again = gv_tree_parse(first, strlen(first), "again", &err);
        struct gv_tree *copy = gv_tree_copy(again);
        char *second = format(copy);
        assert_string_equal(first, second);
        gv_tree_free(tree);
        gv_tree_free(again);
        gv_tree_free(copy);
        free(first);
        free(second);
        gv_str_free(&s);
    }
}

static void not_a_file(void **state)
{
    (void)state;
    char sysfs[WORLD_SYSFS], path[256];
    world_make(sysfs);
    alarm(20);
    static const struct {
        const char *kind, *says;
    } rows[] = {
        {"missing", "No such file"}, {"folder", "this is a folder"}, {"fifo", "this is a pipe"},
        {"empty", "is empty"},       {"large", "more than the"},     {"device", "this is a device"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *kind = rows[i].kind;
        struct gv_error err = {0};
        snprintf(path, sizeof(path), "%s/%s", sysfs, kind);
        if (!strcmp(kind, "folder"))
            assert_int_equal(mkdir(path, 0700), 0);
        else if (!strcmp(kind, "fifo"))
            assert_int_equal(mkfifo(path, 0600), 0);
        else if (!strcmp(kind, "device"))
            assert_int_equal(symlink("/dev/zero", path), 0);
        else if (strcmp(kind, "missing")) {
            int fd = open(path, O_CREAT | O_WRONLY, 0600);
            assert_int_equal(ftruncate(fd, strcmp(kind, "large") ? 0 : 1 << 30), 0);
            close(fd);
        }
        assert_null(gv_tree_from_file(path, &err));
        assert_string_equal(err.file, path);
        if (!strstr(err.text, rows[i].says))
            fail_msg("%s: %s", kind, err.text);
    }
    alarm(0);
    world_remove(sysfs);
}

/* The user's file, NCCL's virtual one, sysfs: the first that is there. */
static void base_in_order(void **state)
{
    (void)state;
    char sysfs[WORLD_SYSFS], folder[128], user[256];
    struct gv_error err = {0};
    world_make(sysfs);
    world_cpu(sysfs, WORLD_INTEL);
    world_pci(sysfs, "pci0000:00/0000:00:05.0", "0x030200", "0x10de", "0");
    snprintf(folder, sizeof(folder), "%s/../var/run/nvidia-topologyd", sysfs);
    world_folder(folder);
    snprintf(user, sizeof(user), "%s/user.xml", sysfs);
    world_put(sysfs, "user.xml", HEAD "<cpu numaid=\"7\"/></system>");

    static const struct {
        bool user, virtual;
        const char *virtual_text, *holds; /* NULL: an error */
    } rows[] = {
        {false, false, NULL, "0000:00:05.0"},
        {false, true, HEAD "<cpu numaid=\"8\"/></system>", "numaid=\"8\""},
        {true, true, HEAD "<cpu numaid=\"8\"/></system>", "numaid=\"7\""},
        {true, true, "broken", "numaid=\"7\""},
        {false, true, "broken", NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].virtual)
            world_put(folder, "virtualTopology.xml", rows[i].virtual_text);
        struct gv_tree *tree = gv_tree_base(rows[i].user ? user : "", sysfs, &err);
        if (!rows[i].holds) {
            assert_null(tree);
            assert_non_null(strstr(err.file, "virtualTopology.xml"));
            continue;
        }
        assert_non_null(tree);
        char *text = format(tree);
        assert_non_null(strstr(text, rows[i].holds));
        free(text);
        gv_tree_free(tree);
    }
    world_put(sysfs, "user.xml", "<system version=\"1\"");
    assert_null(gv_tree_base(user, sysfs, &err));
    assert_string_equal(err.file, user);
    world_remove(sysfs);
}

static void memfd_is_sealed_and_equal(void **state)
{
    (void)state;
    static const char text[] = HEAD CPU "<pci busid=\"0000:1a:00.0\"/>" TAIL;
    struct gv_error err = {0};
    struct gv_tree *tree = gv_tree_parse(text, strlen(text), "t", &err);
    int fd = gv_tree_memfd(tree, &err);
    if (fd < 0)
        fail_msg("%s", err.text);
    assert_int_equal(write(fd, "x", 1), -1);
    assert_int_equal(ftruncate(fd, 0), -1);
    assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    for (int twice = 0; twice < 2; twice++) { /* NCCL may open it again */
        struct gv_tree *again = gv_tree_from_file(path, &err);
        assert_non_null(again);
        char *a = format(tree), *b = format(again);
        assert_string_equal(a, b);
        free(a);
        free(b);
        gv_tree_free(again);
    }
    close(fd);
    gv_tree_free(tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fixtures),
        cmocka_unit_test(refused_texts),
        cmocka_unit_test(written_as_nccl_reads),
        cmocka_unit_test(hostile_texts_end_early),
        cmocka_unit_test(every_cut_is_refused),
        cmocka_unit_test(write_and_read_is_identity),
        cmocka_unit_test(not_a_file),
        cmocka_unit_test(base_in_order),
        cmocka_unit_test(memfd_is_sealed_and_equal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
