/* nvbandwidth: "Running TEST.", a title, a matrix, "SUM TEST x".
 *
 * Its tests (README of nvbandwidth): read copies from the other GPU to the one of the row, by the
 * row's context; write the other way. Of the tests both ways at once only the matrix that is named
 * Total is the sum. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/import/nvbandwidth.h"

/* What a test measures; copies by kernels (sm) and by the engine (ce) are both links' speeds, the
 * engine's are taken. */
enum gv_nvb_figure gv_nvb_figure_of(const char *test, const char *title)
{
    static const struct {
        const char *test;
        enum gv_nvb_figure figure;
    } known[] = {
        {"host_to_device_memcpy_ce", GV_NVB_TO_DEVICE},
        {"device_to_host_memcpy_ce", GV_NVB_TO_HOST},
        {"device_to_device_memcpy_write_ce", GV_NVB_WRITE},
        {"device_to_device_memcpy_read_ce", GV_NVB_READ},
    };
    if (!strcmp(test, "device_to_device_bidirectional_memcpy_write_ce"))
        return strstr(title, "Total") ? GV_NVB_BOTH : GV_NVB_NONE;
    for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (!strcmp(known[i].test, test))
            return known[i].figure;
    return GV_NVB_NONE;
}

static int take_cell(
    struct gv_import_source *s, const struct gv_nvb_matrix *m, int a, int b, struct gv_error *err)
{
    double value = m->value[a][b];
    if (m->figure == GV_NVB_TO_DEVICE || m->figure == GV_NVB_TO_HOST) {
        struct gv_import_single *one = gv_import_single(s, b, m->row_line[a]);
        if (!one)
            return gv_import_no_memory(err);
        *(m->figure == GV_NVB_TO_HOST ? &one->to_host_gbs : &one->to_device_gbs) = value;
        return 0;
    }
    struct gv_import_pair *p = a == b ? NULL : gv_import_pair(s, a, b, m->row_line[a]);
    if (!p)
        return a == b ? 0 : gv_import_no_memory(err);
    *(m->figure == GV_NVB_WRITE  ? &p->write_gbs
      : m->figure == GV_NVB_READ ? &p->read_gbs
                                 : &p->both_ways_gbs) = value;
    return 0;
}

int gv_nvb_take(
    const struct gv_text *t, struct gv_import_source *s, const struct gv_nvb_matrix *m,
    struct gv_error *err)
{
    bool pairs = m->figure >= GV_NVB_WRITE;
    if (m->figure == GV_NVB_NONE)
        return 0;
    if (!m->rows || (pairs && m->rows != m->columns) || (!pairs && m->rows != 1))
        return gv_error_at(
            err, t->path, m->line, 0, "this matrix has %d rows of %d cells: it is cut", m->rows,
            m->columns);
    if (s->ngpus && m->columns != s->ngpus)
        return gv_error_at(
            err, t->path, m->line, 0, "the matrix has %d GPUs, other lines name %d", m->columns,
            s->ngpus);
    for (int i = s->ngpus; i < m->columns; i++)
        gv_import_gpu(s, m->line);
    for (int a = 0; a < m->rows; a++)
        for (int b = 0; b < m->columns; b++) {
            if (!(m->value[a][b] > 0) && !(pairs && a == b))
                return gv_error_at(
                    err, t->path, m->row_line[a], 0, "GPU %d has %s here: nothing was measured", b,
                    isnan(m->value[a][b]) ? "N/A" : "0");
            if (take_cell(s, m, a, b, err))
                return -1;
        }
    return 0;
}

struct reader {
    const struct gv_text *t;
    struct gv_error *err;
    struct gv_import_source *s;
    char test[80]; /* "": the line that names it was left out of the paste; its SUM does too */
    struct gv_nvb_matrix m;
    bool in_matrix, open; /* a test runs whose SUM has not come */
    unsigned test_line;
    int taken;
    bool sums; /* this release prints them (0.2 and later) */
};

static bool device(struct reader *r, const char *s, int i)
{
    int index;
    char model[64], bus[32] = ""; /* without it up to 0.3 */
    if (sscanf(s, "Device %d: %63[^(](%31[0-9a-fA-F:.])", &index, model, bus) < 2)
        return false;
    struct gv_import_gpu *g = index == r->s->ngpus ? gv_import_gpu(r->s, (unsigned)i + 1) : NULL;
    if (!g)
        return true;
    size_t n = strlen(model);
    while (n && model[n - 1] == ' ')
        model[--n] = 0;
    memcpy(g->model, model, sizeof(model));
    gv_import_bus_id(bus, g->bus_id);
    return true;
}

static int end_matrix(struct reader *r)
{
    if (!r->in_matrix)
        return 0;
    r->in_matrix = false;
    r->taken += r->m.figure != GV_NVB_NONE;
    return gv_nvb_take(r->t, r->s, &r->m, r->err);
}

static int row(struct reader *r, const struct gv_word *w, int n, int i)
{
    struct gv_nvb_matrix *m = &r->m;
    unsigned line = (unsigned)i + 1;
    if (!m->columns) { /* the heading: 0 1 2 */
        m->columns = n;
        for (int c = 0; c < n; c++)
            if (n > GV_MAX_GPUS || gv_small(w[c].s) != c)
                return gv_error_at(
                    r->err, r->t->path, line, 0, "the columns are not GPUs 0, 1, 2 ...");
        return 0;
    }
    if (n != m->columns + 1 || m->rows >= GV_MAX_GPUS || gv_small(w[0].s) != m->rows)
        return gv_error_at(
            r->err, r->t->path, line, 0,
            "the row has %d cells, its heading %d: it is cut or damaged", n - 1, m->columns);
    for (int c = 0; c < m->columns; c++) {
        m->value[m->rows][c] = NAN;
        if (!strcmp(w[c + 1].s, "N/A")) {
            m->holes |= c != m->rows;
            continue;
        }
        if (!gv_is_number(w[c + 1].s, &m->value[m->rows][c]))
            return gv_error_at(
                r->err, r->t->path, line, w[c + 1].column, "'%.24s' is no figure", w[c + 1].s);
        const char *point = strchr(w[c + 1].s, '.');
        m->rounded |= !point || strlen(point) != 3;
        m->sum += m->value[m->rows][c];
    }
    m->row_line[m->rows++] = line;
    return 0;
}

static void facts(struct reader *r, const char *s)
{
    int major, release;
    sscanf(s, "Driver Version: %31[0-9.]", r->s->driver);
    if (sscanf(s, "nvbandwidth Version: v%d.%d", &major, &release) == 2)
        r->sums = major || release > 1;
    int cuda, minor; /* "12080", and "13.3 (13030)" from 0.10 on */
    int n = sscanf(s, "CUDA Runtime Version: %d.%d", &cuda, &minor);
    if (n == 2 && cuda > 0 && cuda < 1000 && minor >= 0 && minor < 1000)
        snprintf(r->s->cuda, sizeof(r->s->cuda), "%d.%d", cuda, minor);
    else if (n == 1 && cuda > 0 && cuda < 1000000)
        snprintf(r->s->cuda, sizeof(r->s->cuda), "%d.%d", cuda / 1000, cuda % 1000 / 10);
}

/* "SUM device_to_device_memcpy_read_ce 715.53": the check of the matrix above. */
static int sum(struct reader *r, const char *s, int i)
{
    char name[80];
    double said;
    const struct gv_nvb_matrix *m = &r->m;
    if (sscanf(s, "SUM %79[a-z0-9_] %lf", name, &said) != 2 || !r->in_matrix)
        return 0;
    if (!*r->test)
        r->m.figure = gv_nvb_figure_of(name, r->m.title);
    else if (strcmp(name, r->test))
        return gv_error_at(
            r->err, r->t->path, (unsigned)i + 1, 0, "the sum of %s below the matrix of %s", name,
            r->test);
    r->sums = true;
    if (!m->holes && fabs(m->sum - said) > 0.01 + 0.0051 * m->rows * m->columns + 0.001 * said)
        return gv_error_at(
            r->err, r->t->path, (unsigned)i + 1, 0,
            "the sum is said to be %.2f, that of the matrix in line %u is %.2f: a cell is damaged",
            said, m->line, m->sum);
    return 0;
}

static int line(struct reader *r, char *s, int i)
{
    struct gv_word w[GV_MAX_WORDS];
    s += strspn(s, " \t");
    facts(r, s);
    if (device(r, s, i))
        return 0;
    char test[80];
    if (sscanf(s, "Running %79[a-z0-9_]", test) == 1) {
        int rc = end_matrix(r);
        memcpy(r->test, test, sizeof(test));
        r->open = true;
        r->test_line = (unsigned)i + 1;
        return rc;
    }
    if (sscanf(s, "Waiving %79[a-z0-9_]", test) == 1) {
        gv_import_note(r->s, (unsigned)i + 1, "%.60s: waived, nothing to take", test);
        return end_matrix(r);
    }
    if (strstr(s, "bandwidth (GB/s)")) {
        if (end_matrix(r))
            return -1;
        memset(&r->m, 0, sizeof(r->m));
        r->m.figure = gv_nvb_figure_of(r->test, s);
        r->m.line = (unsigned)i + 1;
        snprintf(r->m.title, sizeof(r->m.title), "%s", s);
        r->in_matrix = true;
        return 0;
    }
    bool summed = !strncmp(s, "SUM ", 4);
    if (summed || !strncmp(s, "Waived", 6) || strstr(s, "waived")) {
        if (summed && sum(r, s, i))
            return -1;
        r->open = false;
        int rc = end_matrix(r);
        r->test[0] = 0;
        return rc;
    }
    if (strstr(s, "ERROR") || strstr(s, "Invalid value"))
        return gv_error_at(
            r->err, r->t->path, (unsigned)i + 1, 0,
            "nvbandwidth reports an error here: its figures are not taken");
    int n = r->in_matrix ? gv_words(s, 0, w) : 0;
    if (!n)
        return 0;
    return gv_is_digits(w[0].s) ? row(r, w, n, i) : end_matrix(r);
}

/* The last test has no SUM. Up to 0.1 none had one: a matrix with all its rows, and all cells as
 * they are printed, is whole all the same. */
static int unfinished(struct reader *r)
{
    const struct gv_nvb_matrix *m = &r->m;
    bool square = m->rows == m->columns, row = m->rows == 1;
    bool fits = m->figure == GV_NVB_NONE ? square || row : m->figure >= GV_NVB_WRITE ? square : row;
    bool whole = !r->sums && m->columns && m->rows && fits && !m->rounded;
    if (!whole)
        return gv_error_at(
            r->err, r->t->path, (unsigned)r->t->n, 0,
            "the output ends within the test that begins in line %u: it is cut", r->test_line);
    gv_import_note(r->s, m->line, "no SUM stands below this matrix: it could not be checked");
    return 0;
}

int gv_import_nvbandwidth(struct gv_import *im, struct gv_text *t, struct gv_error *err)
{
    struct reader *r = calloc(1, sizeof(*r));
    int rc =
        r && (r->s = gv_import_source(im, t, GV_IMPORT_NVBANDWIDTH)) ? 0 : gv_import_no_memory(err);
    if (!rc) {
        r->s->whole = true;
        r->t = t;
        r->err = err;
    }
    for (int i = 0; i < t->n && !rc; i++) {
        char *room = strdup(t->lines[i]);
        rc = room ? line(r, room, i) : gv_import_no_memory(err);
        free(room);
    }
    if (!rc)
        rc = r->in_matrix ? end_matrix(r) : 0;
    if (!rc && r->open)
        rc = unfinished(r);
    if (!rc && !r->taken)
        rc = gv_error_at(err, t->path, 0, 0, "none of its matrices is one that a profile holds");
    free(r);
    return rc;
}
