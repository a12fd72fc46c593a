/* The evaluator against the real NCCL: every communicator of data/nccl-rings/rows.txt, in every
 * release named there, and of a folder of the same make named by GV_NCCL_RINGS (rows.jsonl). */
#include "tests/gv_test.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/gv_gpuset.h"
#include "testbench/nccl/gv_nccl_eval.h"

#define MAX_RELEASES 8

struct row {
    char topology[64];
    uint64_t nop2p;
    int gpus[GV_NCCL_MAX_GPUS], ngpus;
    int ring[GV_NCCL_MAX_GPUS];
    char transports[GV_NCCL_MAX_GPUS + 1], path[8];
    int graph_channels;
    double graph_gbs;
    int release[MAX_RELEASES], channels[MAX_RELEASES], nreleases;
};

struct tally {
    int evaluated, ring, path, graph, channels;
};

static struct gv_nccl_eval_out out; /* too large for the stack */

static char *read_file(const char *folder, const char *name, size_t *len)
{
    char path[1024], *text = malloc(1 << 20);
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "r");
    if (!file)
        fail_msg("cannot open %s", path);
    *len = fread(text, 1, (1 << 20) - 1, file);
    text[*len] = '\0';
    fclose(file);
    return text;
}

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

static int parse_release(const char *text)
{
    int major, minor, patch;
    assert_int_equal(3, sscanf(text, "%d.%d.%d", &major, &minor, &patch));
    return major * 10000 + minor * 100 + patch;
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
        .p2p_level = -1};
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
        bool graph = k != newest ||
                     (out.graph_channels == row->graph_channels && out.graph_gbs == row->graph_gbs);
        tally->graph += graph;
        tally->path += k != newest || !strcmp(gv_nccl_path_name(out.graph_path), row->path);
    }
}

static void report(const char *what, const struct tally *t)
{
    print_message(
        "%s: %d evaluated, transports right in all; ring %d, path %d, graph %d, channels %d\n",
        what, t->evaluated, t->ring, t->path, t->graph, t->channels);
}

/* ---- our own table ---- */

static char *field(char **rest)
{
    char *text = strsep(rest, "|");
    assert_non_null(text);
    text += strspn(text, " ");
    text[strcspn(text, "\n")] = '\0';
    for (size_t n = strlen(text); n && text[n - 1] == ' ';)
        text[--n] = '\0';
    return text;
}

static int parse_list(const char *text, int *list)
{
    struct gv_error err = {0};
    int n = gv_gpulist_parse(text, list, &err);
    if (n < 0)
        fail_msg("%s: %s", text, err.text);
    return n;
}

static void parse_channels(char *text, struct row *row)
{
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " ")) {
        row->release[row->nreleases] = parse_release(word);
        row->channels[row->nreleases++] = atoi(strchr(word, '=') + 1);
    }
}

static void parse_row(char *line, struct row *row)
{
    char *text;
    memset(row, 0, sizeof(*row));
    snprintf(row->topology, sizeof(row->topology), "%s.xml", field(&line));
    text = field(&line);
    if (strcmp(text, "-"))
        assert_int_equal(0, gv_gpuset_parse(text, &row->nop2p, NULL));
    row->ngpus = parse_list(field(&line), row->gpus);
    assert_int_equal(row->ngpus, parse_list(field(&line), row->ring));
    snprintf(row->transports, sizeof(row->transports), "%s", field(&line));
    snprintf(row->path, sizeof(row->path), "%s", field(&line));
    assert_int_equal(2, sscanf(field(&line), "%d %lf", &row->graph_channels, &row->graph_gbs));
    parse_channels(field(&line), row);
}

static void test_own_rows(void **state)
{
    (void)state;
    char folder[1024];
    snprintf(
        folder, sizeof(folder), "%s/tests/replay/data/nccl-rings", gv_test_dir("GV_SOURCE_DIR"));
    size_t len;
    char *table = read_file(folder, "rows.txt", &len), *rest = table;
    struct tally tally = {0};
    int rows = 0;
    for (char *line; (line = strsep(&rest, "\n"));) {
        struct row row;
        if (!*line || *line == '#')
            continue;
        parse_row(line, &row);
        char *xml = read_file(folder, row.topology, &len);
        check(&row, xml, len, &tally);
        free(xml);
        rows++;
    }
    free(table);
    report("rows.txt", &tally);
    assert_true(rows > 300);
    assert_int_equal(tally.evaluated, tally.ring);
    assert_int_equal(tally.evaluated, tally.path);
    assert_int_equal(tally.evaluated, tally.graph);
    assert_int_equal(tally.evaluated, tally.channels);
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
    const char *nop2p = json_string_value(json_object_get(json, "no_p2p"));
    if (nop2p && *nop2p)
        assert_int_equal(0, gv_gpuset_parse(nop2p, &row->nop2p, NULL));
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
        row->release[row->nreleases] = parse_release(release);
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
    char *text = read_file(folder, "rows.jsonl", &len), *rest = text;
    struct tally tally = {0};
    for (char *line; (line = strsep(&rest, "\n"));) {
        struct row row;
        json_t *json = *line ? json_loads(line, 0, NULL) : NULL;
        if (!json)
            continue;
        json_row(json, &row);
        char *xml = read_file(folder, row.topology, &len);
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
        cmocka_unit_test(test_own_rows),
        cmocka_unit_test(test_outside_rows),
    };
    return cmocka_run_group_tests_name("nccl rings", tests, NULL, NULL);
}
