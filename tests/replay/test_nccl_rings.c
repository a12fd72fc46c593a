/* The evaluator against the real NCCL: every communicator of data/nccl-rings (rows.txt, and
 * variants.txt with one variable set), in every release named there, and of a folder of the same
 * make named by GV_NCCL_RINGS (rows.jsonl). */
#include "tests/replay/nccl_rows.h"

#include <jansson.h>

#include "testbench/nccl/gv_nccl_eval.h"

#define MAX_RELEASES 8

struct row {
    char topology[64];
    uint64_t nop2p;
    int gpus[GV_NCCL_MAX_GPUS], ngpus;
    int ring[GV_NCCL_MAX_GPUS];
    char transports[GV_NCCL_MAX_GPUS + 1], path[8]; /* path empty: the graph is not known */
    int p2p_level;
    bool p2p_disable, nvb_disable;
    int graph_channels;
    double graph_gbs;
    int release[MAX_RELEASES], channels[MAX_RELEASES], nreleases;
};

struct tally {
    int evaluated, ring, path, graph, channels;
};

static struct gv_nccl_eval_out out; /* too large for the stack */

static int count(const char *transports, char kind)
{
    int n = 0;
    for (; *transports; transports++)
        n += *transports == kind;
    return n;
}

static bool same_counts(const char *a, const char *b)
{
    return count(a, 'P') == count(b, 'P') && count(a, 'S') == count(b, 'S') &&
           count(a, 'N') == count(b, 'N') && strlen(a) == strlen(b);
}

static void evaluate(const struct row *row, const char *xml, size_t len, int k)
{
    struct gv_nccl_eval_in in = {
        .xml = xml,
        .xml_len = len,
        .release = row->release[k],
        .gpus = row->gpus,
        .ngpus = row->ngpus,
        .nop2p = row->nop2p,
        .p2p_level = row->p2p_level,
        .p2p_disable = row->p2p_disable,
        .nvb_disable = row->nvb_disable};
    if (gv_nccl_evaluate(&in, &out))
        fail_msg("%s, release %d: %s", row->topology, row->release[k], out.error);
}

/* Transports must agree in every row and release; the rest is counted. */
static void check(const struct row *row, const char *xml, size_t len, struct tally *tally)
{
    int newest = 0;
    for (int k = 1; k < row->nreleases; k++)
        if (row->release[k] > row->release[newest])
            newest = k;
    for (int k = 0; k < row->nreleases; k++) {
        evaluate(row, xml, len, k);
        if (!same_counts(out.transport, row->transports))
            fail_msg(
                "%s, %d GPUs from %d on, release %d: transports %s, NCCL has %s", row->topology,
                row->ngpus, row->gpus[0], row->release[k], out.transport, row->transports);
        tally->evaluated++;
        tally->ring += !memcmp(out.ring, row->ring, (size_t)row->ngpus * sizeof(int)) &&
                       !strcmp(out.transport, row->transports);
        tally->channels += out.channels == row->channels[k];
        bool known = k == newest && row->path[0];
        tally->graph += !known || (out.graph_channels == row->graph_channels &&
                                   out.graph_gbs == row->graph_gbs);
        tally->path += !known || !strcmp(gv_nccl_path_name(out.graph_path), row->path);
    }
}

static void report(const char *what, const struct tally *t)
{
    print_message(
        "%s: %d evaluated, transports right in all; ring %d, path %d, graph %d, channels %d\n",
        what, t->evaluated, t->ring, t->path, t->graph, t->channels);
}

/* ---- our own table ---- */

static void parse_channels(char *text, struct row *row)
{
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " ")) {
        row->release[row->nreleases] = gv_rows_release(word);
        row->channels[row->nreleases++] = atoi(strchr(word, '=') + 1);
    }
}

static void parse_setting(const char *text, int release, struct row *row)
{
    row->p2p_disable = !strcmp(text, "NCCL_P2P_DISABLE=1");
    row->nvb_disable = !strcmp(text, "NCCL_NVB_DISABLE=1");
    if (!strncmp(text, "NCCL_P2P_LEVEL=", 15))
        row->p2p_level = gv_nccl_p2p_level(text + 15, release);
}

/* A line of rows.txt, or of variants.txt, which has the variable and lacks the graph. */
static void parse_row(char *line, bool variant, struct row *row)
{
    memset(row, 0, sizeof(*row));
    row->p2p_level = -1;
    snprintf(row->topology, sizeof(row->topology), "%s.xml", gv_rows_field(&line));
    row->nop2p = gv_rows_set(gv_rows_field(&line));
    const char *setting = variant ? gv_rows_field(&line) : "";
    row->ngpus = gv_rows_list(gv_rows_field(&line), row->gpus);
    assert_int_equal(row->ngpus, gv_rows_list(gv_rows_field(&line), row->ring));
    snprintf(row->transports, sizeof(row->transports), "%s", gv_rows_field(&line));
    if (!variant) {
        snprintf(row->path, sizeof(row->path), "%s", gv_rows_field(&line));
        assert_int_equal(
            2, sscanf(gv_rows_field(&line), "%d %lf", &row->graph_channels, &row->graph_gbs));
    }
    parse_channels(gv_rows_field(&line), row);
    parse_setting(setting, row->release[0], row);
}

static void check_table(const char *name, bool variant, int at_least)
{
    size_t len;
    char *table = gv_rows_file(gv_rows_folder(), name, &len), *rest = table;
    struct tally tally = {0};
    int rows = 0;
    for (char *line; (line = gv_rows_line(&rest)); rows++) {
        struct row row;
        parse_row(line, variant, &row);
        char *xml = gv_rows_file(gv_rows_folder(), row.topology, &len);
        check(&row, xml, len, &tally);
        free(xml);
    }
    free(table);
    report(name, &tally);
    assert_true(rows >= at_least);
    assert_int_equal(tally.evaluated, tally.ring);
    assert_int_equal(tally.evaluated, tally.path);
    assert_int_equal(tally.evaluated, tally.graph);
    assert_int_equal(tally.evaluated, tally.channels);
}

static void test_rows(void **state)
{
    (void)state;
    check_table("rows.txt", false, 400);
}

static void test_variants(void **state)
{
    (void)state;
    check_table("variants.txt", true, 100);
}

/* ---- a folder from outside ---- */

static int json_list(json_t *array, int *list)
{
    size_t i;
    json_t *value;
    json_array_foreach(array, i, value) list[i] = (int)json_integer_value(value);
    return (int)json_array_size(array);
}

static void json_row(json_t *json, struct row *row)
{
    memset(row, 0, sizeof(*row));
    row->p2p_level = -1;
    const char *nop2p = json_string_value(json_object_get(json, "no_p2p"));
    row->nop2p = gv_rows_set(nop2p ? nop2p : "");
    snprintf(
        row->topology, sizeof(row->topology), "%s",
        json_string_value(json_object_get(json, "topology")));
    snprintf(
        row->transports, sizeof(row->transports), "%s",
        json_string_value(json_object_get(json, "transports")));
    snprintf(row->path, sizeof(row->path), "%s", json_string_value(json_object_get(json, "path")));
    row->ngpus = json_list(json_object_get(json, "gpus"), row->gpus);
    json_list(json_object_get(json, "ring"), row->ring);
    row->graph_channels = (int)json_integer_value(json_object_get(json, "graph_channels"));
    row->graph_gbs = json_number_value(json_object_get(json, "graph_gbs"));
    const char *release;
    json_t *value;
    json_object_foreach(json_object_get(json, "channels"), release, value)
    {
        row->release[row->nreleases] = gv_rows_release(release);
        row->channels[row->nreleases++] = (int)json_integer_value(value);
    }
}

static void test_outside_rows(void **state)
{
    (void)state;
    const char *folder = getenv("GV_NCCL_RINGS");
    if (!folder)
        skip();
    size_t len;
    char *text = gv_rows_file(folder, "rows.jsonl", &len), *rest = text;
    struct tally tally = {0};
    for (char *line; (line = strsep(&rest, "\n"));) {
        struct row row;
        json_t *json = *line ? json_loads(line, 0, NULL) : NULL;
        if (!json)
            continue;
        json_row(json, &row);
        char *xml = gv_rows_file(folder, row.topology, &len);
        check(&row, xml, len, &tally);
        free(xml);
        json_decref(json);
    }
    free(text);
    report(folder, &tally);
    assert_true(tally.evaluated > 0);
    assert_true(tally.ring * 100 >= tally.evaluated * 95);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_variants),
        cmocka_unit_test(test_outside_rows),
    };
    return cmocka_run_group_tests_name("nccl rings", tests, NULL, NULL);
}
