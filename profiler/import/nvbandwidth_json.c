/* nvbandwidth's JSON (0.4 on): the same tests. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "profiler/import/nvbandwidth.h"

/* The line in which the n-th `word` stands. jansson keeps no places. */
static unsigned line_of(const struct gv_text *t, const char *word, int n)
{
    for (int i = 0; i < t->n; i++)
        for (const char *at = strstr(t->lines[i], word); at; at = strstr(at + 1, word))
            if (n-- == 0)
                return (unsigned)i + 1;
    return 0;
}

static int json_row(
    const struct gv_text *t, const json_t *row, int a, unsigned line, struct gv_nvb_matrix *m,
    struct gv_error *err)
{
    int n = (int)json_array_size(row);
    if (!json_is_array(row) || !n || n > GV_MAX_GPUS || (m->columns && n != m->columns))
        return gv_error_at(
            err, t->path, line, 0, "row %d of this matrix does not fit the others", a);
    m->columns = n;
    m->row_line[a] = line;
    for (int b = 0; b < n; b++) {
        const json_t *cell = json_array_get(row, (size_t)b);
        const char *text = json_string_value(cell);
        m->value[a][b] = json_is_number(cell) ? json_number_value(cell) : NAN;
        if (!json_is_number(cell) &&
            (!text || (strcmp(text, "N/A") && !gv_is_number(text, &m->value[a][b]))))
            return gv_error_at(
                err, t->path, line, 0, "cell %d of row %d of this matrix is no figure", b, a);
        if (isnan(m->value[a][b]))
            m->holes |= a != b;
        else
            m->sum += m->value[a][b];
    }
    return 0;
}

static int json_test(
    const struct gv_text *t, struct gv_import_source *s, const json_t *test, int i, int *taken,
    struct gv_error *err)
{
    unsigned line = line_of(t, "\"name\"", i);
    const char *name = json_string_value(json_object_get(test, "name"));
    const char *status = json_string_value(json_object_get(test, "status"));
    const char *title = json_string_value(json_object_get(test, "bandwidth_description"));
    const json_t *rows = json_object_get(test, "bandwidth_matrix");
    if (!name || !status)
        return gv_error_at(err, t->path, line, 0, "test %d has no name or no status", i);
    if (strcmp(status, "Passed")) {
        gv_import_note(s, line, "%.60s: %.40s, nothing to take", name, status);
        return strcmp(status, "Error")
                   ? 0
                   : gv_error_at(err, t->path, line, 0, "%s ended with an error", name);
    }
    struct gv_nvb_matrix *m = calloc(1, sizeof(*m));
    if (!m)
        return gv_import_no_memory(err);
    m->figure = gv_nvb_figure_of(name, title ? title : "");
    m->line = line;
    m->rows = (int)json_array_size(rows);
    int rc = m->rows > GV_MAX_GPUS
                 ? gv_error_at(err, t->path, line, 0, "more rows than GPUs can be")
                 : 0;
    for (int a = 0; a < m->rows && !rc && m->figure; a++)
        rc = json_row(t, json_array_get(rows, (size_t)a), a, line, m, err);
    const json_t *said = json_object_get(test, "sum");
    if (!rc && m->figure && json_is_number(said) && !m->holes &&
        fabs(m->sum - json_number_value(said)) > 0.01 + 0.002 * json_number_value(said))
        rc = gv_error_at(
            err, t->path, line, 0,
            "the sum is said to be %.2f, that of the matrix is %.2f: a cell is damaged",
            json_number_value(said), m->sum);
    if (!rc)
        rc = gv_nvb_take(t, s, m, err);
    *taken += m->figure != GV_NVB_NONE;
    free(m);
    return rc;
}

/* "0: NVIDIA A40 (00000000:1A:00): (host)" */
static void json_devices(const struct gv_text *t, struct gv_import_source *s, const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *text = json_string_value(json_array_get(list, i));
        char model[64], bus[32] = "";
        int index = -1;
        if (!text || sscanf(text, "%d: %63[^(](%31[0-9a-fA-F:.])", &index, model, bus) < 2 ||
            index != s->ngpus)
            return;
        struct gv_import_gpu *g = gv_import_gpu(s, line_of(t, text, 0));
        if (!g)
            return;
        size_t n = strlen(model);
        while (n && strchr(" :", model[n - 1]))
            model[--n] = 0;
        memcpy(g->model, model, sizeof(model));
        gv_import_bus_id(bus, g->bus_id);
    }
}

int gv_import_nvbandwidth_json(struct gv_import *im, struct gv_text *t, struct gv_error *err)
{
    json_error_t at;
    int taken = 0, rc = 0;
    json_t *root = json_loadb(t->raw, t->len, 0, &at);
    if (!root)
        return gv_error_at(
            err, t->path, (unsigned)(at.line > 0 ? at.line : 0),
            (unsigned)(at.column > 0 ? at.column : 0), "%s: the JSON is damaged or cut", at.text);
    const json_t *all = json_object_get(root, "nvbandwidth"),
                 *tests = json_object_get(all, "testcases");
    struct gv_import_source *s = gv_import_source(im, t, GV_IMPORT_NVBANDWIDTH_JSON);
    if (!s)
        rc = gv_import_no_memory(err);
    else if (json_object_get(all, "error"))
        rc = gv_error_at(
            err, t->path, line_of(t, "\"error\"", 0), 0,
            "nvbandwidth reports an error: its figures are not taken");
    if (!rc)
        json_devices(t, s, json_object_get(all, "GPU Device list"));
    for (size_t i = 0; !rc && i < json_array_size(tests); i++)
        rc = json_test(t, s, json_array_get(tests, i), (int)i, &taken, err);
    const char *driver = json_string_value(json_object_get(all, "Driver Version"));
    if (!rc) {
        s->whole = true;
        snprintf(s->driver, sizeof(s->driver), "%s", driver ? driver : "");
    }
    if (!rc && !taken)
        rc = gv_error_at(err, t->path, 0, 0, "none of its matrices is one that a profile holds");
    json_decref(root);
    return rc;
}
