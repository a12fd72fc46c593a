/* Profiles that are wrong: each is refused whole, with line, column and a text that helps. */
#include "tests/gv_test.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "config/gv_profile.h"

/* Line numbers in the table below count these lines. */
static const char good[] =
    /*  1 */ "gv100_profile: 1\n"
             /*  2 */ "name: small\n"
             /*  3 */ "machine:\n"
             /*  4 */ "  match: shape\n"
             /*  5 */ "  gpus:\n"
             /*  6 */ "    - index: 0\n"
             /*  7 */ "      model: X\n"
             /*  8 */ "      pci_device: 0x1db6\n"
             /*  9 */ "      numa_node: 0\n"
             /* 10 */ "      bus_id: \"0000:1a:00.0\"\n"
             /* 11 */ "    - index: 1\n"
             /* 12 */ "      model: X\n"
             /* 13 */ "      bus_id: \"0000:1b:00.0\"\n"
             /* 14 */ "    - index: 2\n"
             /* 15 */ "      model: Y\n"
             /* 16 */ "provenance:\n"
             /* 17 */ "  kind: published\n"
             /* 18 */ "paths:\n"
             /* 19 */ "  - from: 0\n"
             /* 20 */ "    to: 1\n"
             /* 21 */ "    both_directions: true\n"
             /* 22 */ "    p2p: verified\n"
             /* 23 */ "    smi_class: PHB\n"
             /* 24 */ "    write_gbs: {median: 10.28, min: 7.08, max: 10.28, count: 50}\n"
             /* 25 */ "  - from: 0-1\n"
             /* 26 */ "    to: 2\n"
             /* 27 */ "groups:\n"
             /* 28 */ "  - gpus: 0-1\n"
             /* 29 */ "    op: AllReduce\n"
             /* 30 */ "    bytes: 1G\n"
             /* 31 */ "    ring: [0, 1]\n"
             /* 32 */ "    shm_edges: [[0, 1]]\n"
             /* 33 */ "    variants:\n"
             /* 34 */ "      - edit: none\n"
             /* 35 */ "        runs:\n"
             /* 36 */ "          - name: first\n"
             /* 37 */ "            busbw_gbs: [6.99, 7.01]\n"
             /* 38 */ "            throttled: [false, true]\n"
             /* 39 */ "      - edit: lend\n"
             /* 40 */ "        lend: [[0, 1]]\n"
             /* 41 */ "        runs: [{name: first, busbw_gbs: [7.5]}]\n"
             /* 42 */ "policy:\n"
             /* 43 */ "  min_gain: 0.04\n"
             /* 44 */ "complete: true\n";

/* `from` in the good text becomes `to`; the error is at line:column and has both parts. */
static const struct {
    const char *from, *to;
    unsigned line, column;
    const char *part, *part2;
} edits[] = {
    /* keys */
    {"numa_node", "numa_nod", 9, 7, "unknown key 'numa_nod' in this gpu", "mean 'numa_node'?"},
    {"policy:", "polcy:", 42, 1, "unknown key 'polcy' in this profile", "mean 'policy'?"},
    {"min_gain", "xyz", 43, 3, "unknown key 'xyz' in this policy", "knows: min_gain, max_loss"},
    {"min: 7.08", "mn: 7.08", 24, 32, "unknown key 'mn' in write_gbs", "median, min, max"},
    {"      model: Y", "      pci_device: 0x1\n      pci_device: 0x2", 16, 7, "'pci_device' stands",
     "first in line 15"},
    {"name: small\n", "name: small\nname: twice\n", 3, 1, "'name' stands twice", "line 2"},
    {"count: 50", "min: 7.08", 24, 55, "'min' stands twice in write_gbs", ""},
    {"name: small", "? [a]\n: b", 2, 3, "a key must be a word", ""},
    {"      model: Y\n", "", 14, 7, "'model' is missing in this gpu", ""},
    {"name: small\n", "", 1, 1, "'name' is missing in this profile", ""},
    {"complete: true\n", "", 1, 1, "'complete: true' is missing", "cut short"},
    {"complete: true", "complete: false", 44, 11, "not whole", ""},
    {"complete: true", "complete: tr", 44, 11, "neither true nor false", ""},
    /* schema */
    {"gv100_profile: 1", "gv100_profile: 2", 1, 16, "this file is gv100_profile: 2",
     "reads up to 1: upgrade gv100"},
    {"gv100_profile: 1\nname", "future: x\ngv100_profile: 7\nname", 2, 16,
     "this file is gv100_profile: 7", "upgrade"},
    {"gv100_profile: 1", "gv100_profile: 0", 1, 16, "outside 1 to", ""},
    {"gv100_profile: 1", "gv100_profile: one", 1, 16, "not a whole decimal number", ""},
    {"gv100_profile: 1\n", "", 1, 1, "'gv100_profile' is missing", ""},
    /* types */
    {"machine:\n  match: shape\n  gpus:\n    - index: 0", "machine: x\ny:\n    - index: 0", 4, 1,
     "unknown key 'y'", ""},
    {"policy:\n  min_gain: 0.04", "policy: 3", 42, 9, "a policy is expected here", ""},
    {"policy:\n  min_gain: 0.04", "policy:", 42, 8, "a policy is expected here", ""},
    {"op: AllReduce", "op: [AllReduce]", 29, 9, "op: a word is expected, found a list", ""},
    {"op: AllReduce", "op:", 29, 8, "op: a word is expected, found nothing", ""},
    {"op: AllReduce", "op: allreduce", 29, 9, "'allreduce' is not known", "mean 'AllReduce'?"},
    {"p2p: verified", "p2p: verifed", 22, 10, "mean 'verified'?", "may be: unverified, verified"},
    {"p2p: verified", "p2p: zzz", 22, 10, "p2p: 'zzz' is not known; it may be:", "hung"},
    {"ring: [0, 1]", "ring: 0-1", 31, 11, "ring: a list is expected", ""},
    {"numa_node: 0", "numa_node: zero", 9, 18, "not a whole decimal number", ""},
    {"numa_node: 0", "numa_node: \"0\"", 9, 18, "expected without quotes", ""},
    {"numa_node: 0", "numa_node: 010", 9, 18, "not a whole decimal number", ""},
    {"numa_node: 0", "numa_node: 1.5", 9, 18, "not a whole decimal number", ""},
    {"numa_node: 0", "numa_node: 99999999999999999999", 9, 18, "outside 0 to 1023", ""},
    {"both_directions: true", "both_directions: yes", 21, 22, "neither true nor false", ""},
    {"bytes: 1G", "bytes: 1X", 30, 12, "not a whole number of bytes", ""},
    {"bytes: 1G", "bytes: 0", 30, 12, "the size is 0", ""},
    {"bytes: 1G", "bytes: -8", 30, 12, "not a whole number of bytes", ""},
    {"0x1db6", "1db6", 8, 19, "no PCI id", "0x10de"},
    {"0x1db6", "0x11db6", 8, 19, "no PCI id", ""},
    {"0x1db6", "0x", 8, 19, "no PCI id", ""},
    {"\"0000:1a:00.0\"", "1a:00", 10, 15, "no PCI address", "0000:1a:00.0"},
    {"\"0000:1a:00.0\"", "\"0000:1a:20.0\"", 10, 15, "no PCI address", ""},
    {"name: small", "name: \"a\\nb\"", 2, 7, "control character", ""},
    {"name: small", "name: \"\"", 2, 7, "the text is empty", ""},
    {"name: small", "name: \"a\\0b\"", 2, 7, "NUL", ""},
    {"name: small", "name: 0123456789012345678901234567890123456789012345678901234567890123456789",
     2, 7, "longer than 63 bytes", ""},
    /* numbers */
    {"median: 10.28", "median: .nan", 24, 25, "not a finite decimal number", ""},
    {"median: 10.28", "median: NaN", 24, 25, "not a finite decimal number", ""},
    {"median: 10.28", "median: .inf", 24, 25, "not a finite decimal number", ""},
    {"median: 10.28", "median: inf", 24, 25, "not a finite decimal number", ""},
    {"median: 10.28", "median: 1e999", 24, 25, "outside", ""},
    {"median: 10.28", "median: 0x10", 24, 25, "not a finite decimal number", ""},
    {"median: 10.28", "median: -1", 24, 25, "-1 is negative", ""},
    {"median: 10.28", "median: -0.0", 24, 25, "negative", ""},
    {"median: 10.28", "median: 10,28", 24, 28, "unknown key '28'", ""},
    {"median: 10.28", "median: 11", 24, 16, "rising order", ""},
    {", count: 50", "", 24, 16, "'count' is missing", ""},
    {"count: 50", "count: 0", 24, 62, "outside 1 to", ""},
    {"{median: 10.28, min: 7.08, max: 10.28, count: 50}", "[1, 2]", 24, 16, "found a list", ""},
    {"min_gain: 0.04", "min_gain: -0.04", 43, 13, "negative", ""},
    {"6.99, 7.01", "6.99, nan", 37, 31, "not a finite decimal number", ""},
    {"6.99, 7.01", "6.99, -7", 37, 31, "negative", ""},
    {"6.99, 7.01", "6.99, 0", 37, 31, "measured nothing", ""},
    {"6.99, 7.01", "6.99, [7]", 37, 31, "a number is expected, found a list", ""},
    {"6.99, 7.01", "6.99, ~", 37, 31, "not a finite decimal number", ""},
    {"[6.99, 7.01]", "[]", 37, 24, "a run without samples", ""},
    {"[false, true]", "[false]", 38, 24, "1 values for 2 samples", ""},
    /* GPUs */
    {"to: 2", "to: 3", 26, 9, "there is no GPU 3", "0 to 2"},
    {"to: 2", "to: 2-", 26, 11, "the end of the range is missing", ""},
    {"to: 2", "to: 64", 26, 9, "0 to 63", ""},
    {"to: 2", "to: \"\"", 26, 10, "a GPU number is missing", ""},
    {"from: 0-1\n    to: 2", "from: 2\n    to: 2", 26, 9, "covers no pair", ""},
    {"ring: [0, 1]", "ring: [0, 7]", 31, 15, "there is no GPU 7", ""},
    {"policy:", "handoffs: [{from: 0, to: 3, bytes: 1M}]\npolicy:", 42, 26, "there is no GPU 3",
     "0-2"},
    {"policy:", "handoffs: [{from: 0, to: 1, bytes: 1M}, {from: 0, to: 1, bytes: 1024K}]\npolicy:",
     42, 41, "stands in line 42 already", ""},
    {"policy:", "handoffs: [{from: 0, to: 1, bytes: 1M, verdict: win}]\npolicy:", 42, 49, "gain",
     "loss"},
    {"policy:", "tuner: [{op: AllToAll, algorithm: RING, protocol: LL}]\npolicy:", 42, 14,
     "a tuner is not asked about AllToAll", ""},
    {"policy:", "tuner: [{op: Reduce, algorithm: any, protocol: LL}]\npolicy:", 42, 33,
     "both an algorithm and a protocol", ""},
    {"policy:",
     "tuner: [{op: Reduce, min_bytes: 2M, max_bytes: 1M, algorithm: RING, protocol: LL}]\npolicy:",
     42, 48, "less than min_bytes", ""},
    {"policy:",
     "tuner: [{op: Reduce, algorithm: RING, protocol: LL},\n"
     "  {op: Reduce, min_bytes: 1M, algorithm: RING, protocol: SIMPLE, ranks: 2}]\npolicy:",
     43, 3, "the row in line 42 holds for the same calls", ""},
    {"ring: [0, 1]", "ring: [0, 0]", 31, 15, "named twice", ""},
    {"ring: [0, 1]", "ring: [0, 2]", 31, 11, "exactly the GPUs of the group", ""},
    {"ring: [0, 1]", "ring: [0, -1]", 31, 15, "negative", ""},
    {"shm_edges: [[0, 1]]", "shm_edges: [[0, 2]]", 32, 17, "0 to 2 is no edge of the group", ""},
    {"shm_edges: [[0, 1]]", "shm_edges: [[0, 0]]", 32, 17, "paired with itself", ""},
    {"shm_edges: [[0, 1]]", "shm_edges: [[0, 1], [0, 1]]", 32, 25, "stands twice", ""},
    {"shm_edges: [[0, 1]]", "shm_edges: [0, 1]", 32, 17, "a pair of GPUs", ""},
    {"shm_edges: [[0, 1]]", "shm_edges: [[0, 1, 2]]", 32, 17, "a pair of GPUs", ""},
    {"- index: 2", "- index: 3", 14, 14, "2 is expected here, found 3", ""},
    {"- index: 2", "- index: 1", 14, 14, "2 is expected here, found 1", ""},
    {"1b:00.0", "1a:00.0", 13, 15, "bus_id: GPU 1 has the same as GPU 0", ""},
    {"match: shape", "match: bus-id", 14, 7, "'bus_id' is missing in this gpu", "match: bus-id"},
    {"match: shape", "match: uuid", 6, 7, "'uuid' is missing in this gpu", "match: uuid"},
    /* what contradicts itself */
    {"from: 0-1\n    to: 2", "from: 1\n    to: 0,2", 25, 5, "the pair 1 to 0 is covered", ""},
    {"p2p: verified", "p2p: refused", 24, 16, "P2P is refused on this path", "host_path_gbs"},
    {"smi_class: PHB", "smi_class: PBH", 23, 16, "'PBH' is not known", "NODE"},
    {"smi_class: PHB", "smi_class: NV", 23, 16, "'NV' is not known", ""},
    {"edit: none", "edit: bridge\n        lend: [[0, 1]]", 35, 15, "only a variant with edit: lend",
     ""},
    {"edit: none", "edit: none\n        lend_count: 2", 35, 21, "only a variant with edit: lend",
     ""},
    {"lend: [[0, 1]]", "lend: [[0, 1], [1, 0]]", 40, 24, "1, 0 stands twice", ""},
    {"lend: [[0, 1]]", "lend: [[0, 2]]", 40, 16, "not both in the group", ""},
    {"      - edit: lend\n        lend: [[0, 1]]", "      - edit: none", 39, 9, "same as number 1",
     ""},
    {"variants:\n", "variants: []\nx:\n", 34, 1, "unknown key 'x'", ""},
    {"runs: [{name: first, busbw_gbs: [7.5]}]", "runs: []", 41, 15, "runs: the list is empty", ""},
    {"policy:\n",
     "  - {gpus: \"1,0\", op: AllReduce, bytes: 1024M, variants: [{edit: none,\n"
     "     runs: [{name: a, busbw_gbs: [1]}]}]}\npolicy:\n",
     42, 5, "stands in line 28 already", ""},
    {"min_gain: 0.04", "operations: []", 43, 15, "the list is empty", ""},
    {"min_gain: 0.04", "operations: [AllGathr]", 43, 16, "mean 'AllGather'?", ""},
    {"min_gain: 0.04", "operations: AllReduce", 43, 15, "a list is expected", ""},
    /* YAML that a data file has no use for */
    {"name: small", "name: &a small", 2, 7, "anchors (&name) are not allowed", ""},
    {"name: small", "name: *a", 2, 7, "aliases (*name) are not allowed", ""},
    {"name: small", "name: !!str small", 2, 7, "tags (!name) are not allowed", ""},
    {"  min_gain: 0.04", "  <<: *x", 43, 7, "aliases", ""},
    {"complete: true\n", "complete: true\n---\na: b\n", 45, 1, "a second document", ""},
    {"[6.99, 7.01]", "[6.99, 7.01", 38, 22, "a flow sequence that began in line 37", "damaged"},
    {"name: small", "name: sm\tall: x", 2, 13, "not valid YAML", ""},
    {"name: small", "name: \xff\xfe", 2, 7, "not valid YAML", ""},
    {"name: small", "name: \"a", 0, 0, "not valid YAML", ""},
};

/* Returns 1 and says what differs where the row does not hold; a table reports all its rows. */
static int expect(
    const char *what, const char *text, size_t len, unsigned line, unsigned column,
    const char *part, const char *part2)
{
    struct gv_error err = {0};
    struct gv_profile *p = gv_profile_parse(text, len, "file.yaml", &err);
    bool placed = (!line || err.line == line) && (!column || err.column == column);
    bool said = strstr(err.text, part) && strstr(err.text, part2);
    if (!p && placed && said && !strcmp(err.file, "file.yaml"))
        return 0;
    print_error(
        "%s: expected %u:%u '%s' '%s', %s %s:%u:%u '%s'\n", what, line, column, part, part2,
        p ? "accepted" : "got", err.file, err.line, err.column, err.text);
    gv_profile_free(p);
    return 1;
}

static void test_good(void **state)
{
    (void)state;
    struct gv_error err = {0};
    struct gv_profile *p = gv_profile_parse(good, strlen(good), "good", &err);
    if (!p)
        fail_msg("%u:%u: %s", err.line, err.column, err.text);
    gv_profile_free(p);
}

static void test_edits(void **state)
{
    (void)state;
    int wrong = 0;
    for (unsigned i = 0; i < sizeof(edits) / sizeof(edits[0]); i++) {
        char text[sizeof(good) + 256];
        const char *at = strstr(good, edits[i].from);
        if (!at)
            fail_msg("the good profile has no '%s'", edits[i].from);
        int len = snprintf(
            text, sizeof(text), "%.*s%s%s", (int)(at - good), good, edits[i].to,
            at + strlen(edits[i].from));
        wrong += expect(
            edits[i].to, text, (size_t)len, edits[i].line, edits[i].column, edits[i].part,
            edits[i].part2);
    }
    assert_int_equal(wrong, 0);
}

static void test_whole_texts(void **state)
{
    (void)state;
    int wrong = 0;
    static const struct {
        const char *text;
        size_t len;
        unsigned line, column;
        const char *part;
    } rows[] = {
        {"", 0, 1, 1, "the file is empty"},
        {"# nothing\n\n", 11, 1, 1, "the file is empty"},
        {"hello", 5, 1, 1, "a profile is expected here"},
        {"- a\n", 4, 1, 1, "a profile is expected here"},
        {"<system version=\"1\">", 20, 1, 1, "a profile is expected here"},
        {"{\"gv100_profile\": 3}", 20, 1, 19, "this file is gv100_profile: 3"},
        {"ab\nc\0d", 6, 2, 2, "a NUL byte"},
        {"\xff\xfe"
         "a\0",
         4, 1, 4, "a NUL byte"}, /* UTF-16 */
        {"\x7f"
         "ELF\x02\x01",
         6, 1, 1, "not valid YAML"},
        {"[[[[[[[[[[[[[[[[[[[[", 20, 1, 17, "nested deeper"},
        {"a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n", 37, 1, 4, "anchors"}, /* a bomb's first step */
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        wrong += expect(
            rows[i].part, rows[i].text, rows[i].len, rows[i].line, rows[i].column, rows[i].part,
            "");
    assert_int_equal(wrong, 0);
}

/* Wherever a file was cut, it is refused: nothing that is missing goes unnoticed. */
static void test_cut_anywhere(void **state)
{
    (void)state;
    for (size_t len = 0; len < strlen(good) - 1; len++) {
        struct gv_error err = {0};
        struct gv_profile *p = gv_profile_parse(good, len, "cut", &err);
        if (p)
            fail_msg("accepted when cut after %zu bytes", len);
        assert_true(err.text[0] != '\0');
    }
}

/* Bytes changed one by one: refused or read, never a crash, and what is read can be released. */
static void test_damaged_bytes(void **state)
{
    (void)state;
    static const char bytes[] = {0, ' ', '\n', ':', '[', '}', '"', '-', '&', '9', (char)0xc3};
    char text[sizeof(good)];
    memcpy(text, good, sizeof(good));
    for (size_t i = 0; i < strlen(good); i++) {
        for (unsigned b = 0; b < sizeof(bytes); b++) {
            struct gv_error err = {0};
            text[i] = bytes[b];
            struct gv_profile *p = gv_profile_parse(text, sizeof(good) - 1, "damaged", &err);
            assert_true(p || err.text[0]);
            gv_profile_free(p);
        }
        text[i] = good[i];
    }
}

/* Many entries are bounded, and so is the time that they take. */
static void test_too_many(void **state)
{
    (void)state;
    size_t cap = 1 << 22, len = 0;
    char *text = malloc(cap);
    const char *at = strstr(good, "  - from: 0\n");
    len += (size_t)snprintf(text, cap, "%.*s", (int)(at - good), good);
    for (int i = 0; i < 20000; i++)
        len += (size_t)snprintf(text + len, cap - len, "  - {from: 0, to: 1}\n");
    assert_int_equal(
        expect("many paths", text, len, 19, 3, "20000 entries, more than 8192", ""), 0);
    len = (size_t)snprintf(text, cap, "gv100_profile: 1\nname: [");
    while (len < cap - 8)
        len += (size_t)snprintf(text + len, cap - len, "a,");
    assert_int_equal(expect("a million values", text, len, 2, 0, "over a million values", ""), 0);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),          cmocka_unit_test(test_edits),
        cmocka_unit_test(test_whole_texts),   cmocka_unit_test(test_cut_anywhere),
        cmocka_unit_test(test_damaged_bytes), cmocka_unit_test(test_too_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
