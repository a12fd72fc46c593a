/* What the evaluator says beside rings: costs, all-to-all, files that NCCL refuses, files that
 * leave out what NCCL fills in. Expectations were seen with the real NCCL. */
#include "tests/replay/nccl_rows.h"

#include <math.h>

#include "testbench/nccl/gv_nccl_eval.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static struct gv_nccl_eval_out out; /* too large for the stack */

struct comm {
    const char *topology, *gpus;
    const char *no_p2p;
    int release;
};

static void evaluate_text(
    const char *xml, size_t len, const char *machine, const char *gpus, const char *no_p2p,
    int release)
{
    int list[GV_NCCL_MAX_GPUS];
    struct gv_nccl_eval_in in = {
        .xml = xml,
        .xml_len = len,
        .machine_xml = machine,
        .machine_xml_len = machine ? strlen(machine) : 0,
        .release = release,
        .gpus = list,
        .ngpus = gv_rows_list(gpus, list),
        .nop2p = gv_rows_set(no_p2p),
        .p2p_level = -1};
    gv_nccl_evaluate(&in, &out);
}

static void evaluate(const struct comm *c)
{
    char name[128];
    size_t len;
    snprintf(name, sizeof(name), "%s.xml", c->topology);
    char *xml = gv_rows_file(gv_rows_folder(), name, &len);
    evaluate_text(xml, len, NULL, c->gpus, c->no_p2p, c->release);
    free(xml);
    if (out.result)
        fail_msg("%s: %s", c->topology, out.error);
}

/* ---- costs ---- */

static enum gv_nccl_func func_of(const char *name)
{
    static const char *const names[] = {
        "Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (!strcmp(name, names[i]))
            return (enum gv_nccl_func)i;
    fail_msg("%s is no function", name);
    return GV_NCCL_NUM_FUNC;
}

/* Latency is the time of nothing, bandwidth what a size beyond all corrections adds. */
static void check_cells(char *cells, enum gv_nccl_func func, int release)
{
    float none[GV_NCCL_NUM_ALGO][GV_NCCL_NUM_PROTO], much[GV_NCCL_NUM_ALGO][GV_NCCL_NUM_PROTO];
    const uint64_t bytes = (uint64_t)1 << 33;
    assert_int_equal(0, gv_nccl_costs(&out, release, func, 0, 1, none));
    assert_int_equal(0, gv_nccl_costs(&out, release, func, bytes, 1, much));
    char *word = strtok(cells, " ");
    for (int a = 0; a < 2; a++)
        for (int p = 0; p < GV_NCCL_NUM_PROTO; p++, word = strtok(NULL, " ")) {
            double us, gbs;
            assert_non_null(word);
            assert_int_equal(2, sscanf(word, "%lf/%lf", &us, &gbs));
            if (gbs == 0) {
                assert_true(none[a][p] == -1);
                continue;
            }
            double got = (double)bytes / 1000 / ((double)much[a][p] - (double)none[a][p]);
            if (fabs((double)none[a][p] - us) > 0.06 || fabs(got - gbs) > 0.06 + 0.003 * gbs)
                fail_msg(
                    "algorithm %d protocol %d: %.2f us %.2f GB/s, NCCL has %s", a, p,
                    (double)none[a][p], got, word);
        }
    for (int a = 2; a < GV_NCCL_NUM_ALGO; a++)
        for (int p = 0; p < GV_NCCL_NUM_PROTO; p++)
            assert_true(none[a][p] == -1);
}

static void test_costs(void **state)
{
    (void)state;
    size_t len;
    int rows = 0;
    char *table = gv_rows_file(gv_rows_folder(), "costs.txt", &len), *rest = table;
    for (char *line; (line = gv_rows_line(&rest)); rows++) {
        struct comm c = {.topology = gv_rows_field(&line), .no_p2p = gv_rows_field(&line)};
        c.release = gv_rows_release(gv_rows_field(&line));
        c.gpus = gv_rows_field(&line);
        enum gv_nccl_func func = func_of(gv_rows_field(&line));
        evaluate(&c);
        check_cells(gv_rows_field(&line), func, c.release);
    }
    free(table);
    assert_true(rows >= 80);
}

/* Which pair is cheapest, by size: small messages LL, large ones Simple, LL128 only over NVLink. */
static void test_choice(void **state)
{
    (void)state;
    static const struct {
        struct comm comm;
        uint64_t bytes;
        int algo, proto;
    } rows[] = {
        {{"4028-none", "0-9", "10", 22809}, 1024, GV_NCCL_RING, GV_NCCL_LL},
        {{"4028-none", "0-9", "10", 22809}, 1 << 30, GV_NCCL_RING, GV_NCCL_SIMPLE},
        {{"4028-none", "7,9", "10", 22809}, 1 << 22, GV_NCCL_RING, GV_NCCL_SIMPLE},
        {{"dgx1-v100", "0-7", "-", 22809}, 1 << 20, GV_NCCL_RING, GV_NCCL_LL128},
        {{"4028-none", "0,5", "10", 22304}, 1 << 30, GV_NCCL_RING, GV_NCCL_SIMPLE},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        float table[GV_NCCL_NUM_ALGO][GV_NCCL_NUM_PROTO];
        int algo = -1, proto = -1;
        evaluate(&rows[i].comm);
        gv_nccl_costs(&out, rows[i].comm.release, GV_NCCL_ALLREDUCE, rows[i].bytes, 1, table);
        for (int a = 0; a < GV_NCCL_NUM_ALGO; a++)
            for (int p = 0; p < GV_NCCL_NUM_PROTO; p++)
                if (table[a][p] >= 0 && (algo < 0 || table[a][p] < table[algo][proto])) {
                    algo = a;
                    proto = p;
                }
        assert_int_equal(rows[i].algo, algo);
        assert_int_equal(rows[i].proto, proto);
    }
}

/* ---- all-to-all ---- */

static void test_alltoall(void **state)
{
    (void)state;
    static const struct {
        struct comm comm;
        int result;
    } rows[] = {
        {{"4028-bridge", "0-9", "10", 22809}, GV_NCCL_CUDA_ERROR}, /* nine peers each: error 711 */
        {{"4028-bridge", "0-8", "10", 22809}, GV_NCCL_SUCCESS},
        {{"4028-lend-4-5-8-0", "0-9", "10", 22809}, GV_NCCL_SUCCESS},
        {{"4028-none", "0-10", "10", 22809}, GV_NCCL_SUCCESS},
        {{"dgx1-v100", "0-7", "-", 22809}, GV_NCCL_SUCCESS},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        char error[256] = "";
        evaluate(&rows[i].comm);
        assert_int_equal(rows[i].result, gv_nccl_alltoall(&out, error, sizeof(error)));
        assert_true(!rows[i].result == !strstr(error, "711"));
    }
}

static void test_indirect(void **state)
{
    (void)state;
    struct comm square = {"nvlink-square", "0-3", "-", 22809};
    evaluate(&square);
    assert_int_equal(GV_NCCL_NVB, out.pair[0][2].path);
    assert_true(out.pair[0][2].p2p && out.pair[0][2].via >= 0);
    assert_int_equal(-1, out.pair[0][1].via);
    assert_true(out.ll128_allowed);
}

/* ---- files that NCCL refuses ---- */

struct fault {
    const char *name, *find, *replace; /* find NULL: `replace` comes before the file */
    int release, result;
};

#define LONG_50 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define LONG_250 LONG_50 LONG_50 LONG_50 LONG_50 LONG_50

static const struct fault faults[] = {
    {"declaration", NULL, "<?xml version=\"1.0\"?>", 22809, 3},
    {"comments", "<cpu", "<!-- a\n b --><cpu", 22809, 0},
    {"tab between tags", "<cpu", "\t<cpu", 22809, 3},
    {"line break in a tag", " affinity", "\naffinity", 22809, 3},
    {"two blanks", " affinity", "  affinity", 22809, 0},
    {"single quotes", "version=\"1\"", "version='1'", 22809, 0},
    {"single quotes, old", "version=\"1\"", "version='1'", 22304, 3},
    {"version 2", "version=\"1\"", "version=\"2\"", 22809, 5},
    {"no version", " version=\"1\"", "", 22809, 3},
    {"unknown element", "<cpu", "<foo><bar/></foo><cpu", 22809, 0},
    {"wrong closing tag", "</system>", "</cpu>", 22809, 3},
    {"text", "<cpu", "x<cpu", 22809, 3},
    {"blank before the slash", "gdr=\"1\"/>", "gdr=\"1\" />", 22809, 0},
    {"value of 253", "<system", "<system name=\"" LONG_250 "xxx\"", 22809, 0},
    {"value of 254", "<system", "<system name=\"" LONG_250 "xxxx\"", 22809, 3},
    {"value of 254, old", "<system", "<system name=\"" LONG_250 "xxxx\"", 22304, 0},
    {"bridge without class", "busid=\"0000:80:00.0\" class=\"0x060400\"", "busid=\"0000:80:00.0\"",
     22809, 3},
    {"bridge without speed", "class=\"0x060400\" link_speed=\"8.0 GT/s PCIe\"",
     "class=\"0x060400\"", 22809, 0},
    {"cpu without numaid", " numaid=\"0\"", "", 22809, 3},
    {"one-sided nvlink", "<gpu dev=\"0\" sm=\"70\" gdr=\"1\"/>",
     "<gpu dev=\"0\" sm=\"70\" gdr=\"1\"><nvlink target=\"0000:22:00.0\" count=\"1\" "
     "tclass=\"0x030200\"/></gpu>",
     22809, 3},
    {"16 attributes on a GPU", "<gpu dev=\"0\"",
     "<gpu a1=\"\" a2=\"\" a3=\"\" a4=\"\" a5=\"\" a6=\"\" a7=\"\" a8=\"\" a9=\"\" b1=\"\" "
     "b2=\"\" b3=\"\" b4=\"\" dev=\"0\"",
     22809, GV_NCCL_CRASH},
};

static char *edited(const char *xml, const struct fault *fault)
{
    char *text = NULL;
    const char *at = fault->find ? strstr(xml, fault->find) : xml;
    if (!at)
        fail_msg("%s: nothing to edit", fault->name);
    assert_true(
        asprintf(
            &text, "%.*s%s%s", (int)(at - xml), xml, fault->replace,
            at + (fault->find ? strlen(fault->find) : 0)) > 0);
    return text;
}

static void test_faults(void **state)
{
    (void)state;
    size_t len;
    char *xml = gv_rows_file(gv_rows_folder(), "4028-none.xml", &len);
    for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
        char *text = edited(xml, &faults[i]);
        evaluate_text(text, strlen(text), NULL, "0,1", "10", faults[i].release);
        if (out.result != faults[i].result)
            fail_msg(
                "%s: %d (%s), NCCL %d", faults[i].name, out.result, out.error, faults[i].result);
        assert_true(!out.result == !out.error[0]);
        free(text);
    }
    for (size_t cut = 0; cut < len; cut += 97) { /* wherever it is cut */
        evaluate_text(xml, cut, NULL, "0,1", "10", 22809);
        assert_int_equal(cut ? 3 : GV_NCCL_AUTODETECT, out.result);
    }
    free(xml);
}

/* More children than a release allows, by one. */
static void test_limits(void **state)
{
    (void)state;
    static const struct {
        int children, release, result;
    } rows[] = {
        {32, 22005, 0},  {33, 22005, 3},  {128, 22809, 0}, {129, 22809, 3},
        {129, 22907, 0}, {250, 22907, 0}, {260, 22907, 3},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct gv_str text = {0};
        gv_str_add(
            &text, "<system version=\"1\"><cpu numaid=\"0\" arch=\"x86_64\" "
                   "vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"85\">"
                   "<pci busid=\"0000:01:00.0\" class=\"0x0302\"><gpu dev=\"0\" sm=\"70\"/></pci>");
        for (int k = 1; k < rows[i].children; k++)
            gv_str_addf(&text, "<pci busid=\"0001:%02x:00.0\" class=\"0x0604\"/>", k);
        gv_str_add(&text, "</cpu></system>");
        evaluate_text(text.data, text.len, NULL, "0", "-", rows[i].release);
        assert_int_equal(rows[i].result, out.result);
        gv_str_free(&text);
    }
}

/* ---- files that leave things out ---- */

#define CPU0                                                                                       \
    "<cpu numaid=\"0\" affinity=\"f\" arch=\"x86_64\" vendor=\"GenuineIntel\" "                    \
    "familyid=\"6\" modelid=\"85\">"
#define ISLAND_A                                                                                   \
    "<pci busid=\"0000:80:00.0\"><pci busid=\"0000:20:00.0\"/><pci busid=\"0000:22:00.0\"/></pci>"
#define ISLAND_B "<pci busid=\"0000:81:00.0\"><pci busid=\"0000:2a:00.0\"/></pci>"
#define NODE1 "<cpu numaid=\"1\"><pci busid=\"0000:34:00.0\"/></cpu>"

/* The machine is 4028; the file has the branches of GPUs 0, 1, 5 and 10 at most. */
static void test_left_out(void **state)
{
    (void)state;
    static const struct {
        const char *xml, *gpus;
        int release, result;
        const char *transports;
    } rows[] = {
        {"", "0-5", 22809, 0, "PPPPSS"}, /* no file at all: the machine */
        {"<system version=\"1\">" CPU0 ISLAND_A ISLAND_B "</cpu>" NODE1 "</system>", "0,1,5,10",
         22809, 0, "PSSS"},
        {"<system version=\"1\">" CPU0 ISLAND_A ISLAND_B "</cpu>" NODE1 "</system>", "0-9", 22809,
         0, "PPPPSPPPPS"}, /* GPUs that the file forgets, NVLinks from NVML */
        {"<system version=\"1\"><cpu numaid=\"0\">" ISLAND_A ISLAND_B "</cpu></system>", "0,1,5",
         22809, 0, "PSS"},
        /* a rank elsewhere leaves its copy of the first cpu bare */
        {"<system version=\"1\"><cpu numaid=\"0\">" ISLAND_A "</cpu>" NODE1 "</system>", "0,1,10",
         22809, 3, ""},
        {"<system version=\"1\"><cpu numaid=\"0\">" ISLAND_A "</cpu>" NODE1 "</system>", "0,1,10",
         22005, 0, "PSS"},
        /* a cpu that is needed and not there */
        {"<system version=\"1\">" CPU0 ISLAND_A "</cpu></system>", "0,1,10", 22809, 0, "PSS"},
        {"<system version=\"1\">" CPU0 ISLAND_A "</cpu></system>", "0,1,10", 22304, GV_NCCL_CRASH,
         ""},
    };
    size_t len;
    char *machine = gv_rows_file(gv_rows_folder(), "4028-none.xml", &len);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        evaluate_text(
            rows[i].xml, strlen(rows[i].xml), machine, rows[i].gpus, "10", rows[i].release);
        if (out.result != rows[i].result)
            fail_msg("row %zu: %d %s", i, out.result, out.error);
        assert_string_equal(rows[i].transports, out.transport);
    }
    free(machine);
}

static void test_level_names(void **state)
{
    (void)state;
    assert_int_equal(GV_NCCL_PHB, gv_nccl_p2p_level("PHB", 22809));
    assert_int_equal(GV_NCCL_PHB, gv_nccl_p2p_level("3", 22809));
    assert_int_equal(GV_NCCL_SYS, gv_nccl_p2p_level("9", 22809));
    assert_int_equal(-1, gv_nccl_p2p_level("phb", 22809));
    assert_int_equal(-1, gv_nccl_p2p_level("NET", 22809));
    assert_int_equal(-1, gv_nccl_p2p_level("C2C", 22304));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_costs),    cmocka_unit_test(test_choice),
        cmocka_unit_test(test_alltoall), cmocka_unit_test(test_indirect),
        cmocka_unit_test(test_faults),   cmocka_unit_test(test_limits),
        cmocka_unit_test(test_left_out), cmocka_unit_test(test_level_names),
    };
    return cmocka_run_group_tests_name("nccl eval", tests, NULL, NULL);
}
