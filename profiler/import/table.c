/* Tables of nccl-tests as it prints them. Columns are taken by the heading's words, so old and new
 * layouts (error or #wrong, with and without redop and root) are the same to this reader. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/import/table.h"

#define MAX_COLUMNS 32

struct reader {
    struct gv_import *im;
    struct gv_text *t;
    struct gv_error *err;
    struct gv_run run;
    char columns[MAX_COLUMNS][16];
    int ncolumns, second; /* where the in-place half begins */
    bool open, in_table;  /* a run has begun; its heading was read */
    char hint[64];        /* a program named on a command line above */
    unsigned hint_line;
    int taken;
};

static int fail(struct reader *r, int i, const char *text)
{
    return gv_error_at(r->err, r->t->path, (unsigned)i + 1, 0, "%s", text);
}

static void start(struct reader *r, int i)
{
    struct gv_run fresh = {.line = (unsigned)i + 1, .validation = -1, .average = NAN};
    if (!r->open) { /* what stood above belongs to this run */
        memcpy(fresh.settings, r->run.settings, sizeof(fresh.settings));
        fresh.nsettings = r->run.nsettings;
        memcpy(fresh.version, r->run.version, sizeof(fresh.version));
        memcpy(fresh.nccl, r->run.nccl, sizeof(fresh.nccl));
        memcpy(fresh.program, r->run.program, sizeof(fresh.program));
        fresh.program_line = r->run.program_line;
        memcpy(fresh.devices, r->run.devices, sizeof(fresh.devices));
        fresh.ndevices = r->run.ndevices;
        fresh.nranks = r->run.nranks;
    }
    free(r->run.rows);
    r->run = fresh;
    if (!*r->run.program && *r->hint) {
        memcpy(r->run.program, r->hint, sizeof(r->hint));
        r->run.program_line = r->hint_line;
    }
    r->hint[0] = 0;
    r->open = true;
    r->in_table = false;
}

/* "nThread 1 nGpus 1 minBytes 8 maxBytes 128M step: 2(factor) ..." */
static int begin(struct reader *r, const char *s, int i)
{
    unsigned long long min, max, step;
    char kind[16];
    if (r->open)
        return gv_error_at(
            r->err, r->t->path, (unsigned)i + 1, 0,
            "another run begins here, but the one that began in line %u has no end: its rows are "
            "cut",
            r->run.line);
    start(r, i);
    const char *at = strstr(s, "minBytes");
    if (at &&
        sscanf(at, "minBytes %llu maxBytes %llu step: %llu(%15[a-z]", &min, &max, &step, kind) ==
            4) {
        r->run.has_sizes = step > 0;
        r->run.min_bytes = min;
        r->run.max_bytes = max;
        r->run.step = step;
        r->run.factor = !strcmp(kind, "factor");
    }
    at = strstr(s, "validation:");
    if (at)
        sscanf(at, "validation: %d", &r->run.validation);
    return 0;
}

/* "Rank  0 Group  0 Pid 77 on host device  0 [0000:3b:00] NVIDIA A40" */
static bool device(struct reader *r, const char *s, int i)
{
    struct gv_device d = {.line = (unsigned)i + 1};
    int group, pid, used = 0;
    if (sscanf(
            s, "Rank %d Group %d Pid %d on %63s device %d [%19[0-9a-fA-Fx:.]] %n", &d.rank, &group,
            &pid, d.host, &d.device, d.bus, &used) < 6 &&
        sscanf(
            s, "Rank %d Pid %d on %63s device %d [%19[0-9a-fA-Fx:.]] %n", &d.rank, &pid, d.host,
            &d.device, d.bus, &used) < 5)
        return false;
    snprintf(d.model, sizeof(d.model), "%.63s", used ? s + used : "");
    if (r->run.ndevices < GV_MAX_GPUS)
        r->run.devices[r->run.ndevices++] = d;
    r->run.nranks++;
    return true;
}

static bool word_in(const char *s, const char *const *words, int n)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(s, words[i]))
            return true;
    return false;
}

/* The half that begins at column `at`: time algbw busbw error, then what else there is up to the
 * next time. Returns where that is, -1 where it is no half. */
static int half(const struct reader *r, int at)
{
    static const char *const extra[] = {"i_min", "i_max", "i_p99", "i_cv%"};
    if (at + 4 > r->ncolumns || strcmp(r->columns[at], "time") ||
        strcmp(r->columns[at + 1], "algbw") || strcmp(r->columns[at + 2], "busbw") ||
        (strcmp(r->columns[at + 3], "error") && strcmp(r->columns[at + 3], "#wrong")))
        return -1;
    at += 4;
    while (at < r->ncolumns && word_in(r->columns[at], extra, 4))
        at++;
    return at;
}

static int heading(struct reader *r, const struct gv_word *w, int n, int i)
{
    int at = 3;
    if (!r->open)
        start(r, i);
    if (r->in_table)
        return fail(r, i, "a second column heading in one run: two tables were pasted together");
    r->ncolumns = n < MAX_COLUMNS ? n : MAX_COLUMNS;
    for (int c = 0; c < r->ncolumns; c++)
        snprintf(r->columns[c], sizeof(r->columns[c]), "%.15s", w[c].s);
    if (at < n && !strcmp(r->columns[at], "redop"))
        r->run.has_redop = at++ > 0;
    if (at < n && !strcmp(r->columns[at], "root"))
        r->run.has_root = at++ > 0;
    if (at < n && !strcmp(r->columns[at], "cputime"))
        return fail(r, i, "the times are of the CPU (-C), not of the operation: run it without -C");
    r->second = half(r, at);
    int end = r->second < 0 ? -1 : half(r, r->second);
    bool stamp = end >= 0 && end + 1 == n && !strcmp(r->columns[end], "timestamp");
    if (end < 0 || (end != n && !stamp))
        return fail(
            r, i,
            "the column heading is cut or not one of nccl-tests: expected is size count type "
            "[redop] [root] and twice time algbw busbw error (or #wrong)");
    r->run.wrong_column = !strcmp(r->columns[at + 3], "#wrong");
    r->run.header_line = (unsigned)i + 1;
    r->in_table = true;
    return 0;
}

static bool read_half(const struct gv_word *w, struct gv_half *h)
{
    h->there = true;
    h->checked = gv_is_number(w[3].s, &h->wrong);
    return gv_is_number(w[0].s, &h->time_us) && gv_is_number(w[1].s, &h->algbw_gbs) &&
           gv_is_number(w[2].s, &h->busbw_gbs) && (h->checked || !strcmp(w[3].s, "N/A"));
}

static double half_digit(const char *number)
{
    const char *point = strchr(number, '.');
    return 0.5 * pow(10, point ? -(double)strlen(point + 1) : 0);
}

static int bad_row(struct reader *r, int i, int n, int wanted)
{
    bool last = i + 1 >= r->t->n;
    return gv_error_at(
        r->err, r->t->path, (unsigned)i + 1, 0,
        "the row has %d cells, the heading in line %u %d: the row is %s", n, r->run.header_line,
        wanted,
        n > wanted ? "glued to something else"
        : last     ? "cut, as is the file"
                   : "cut");
}

static int row(struct reader *r, const struct gv_word *w, int n, int i)
{
    bool stamp = !strcmp(r->columns[r->ncolumns - 1], "timestamp");
    int wanted = r->ncolumns + stamp, at = 3;
    double number;
    /* up to 2.11 AllToAll left the cell below redop blank */
    int blank = r->run.has_redop && n == wanted - 1 && gv_is_number(w[at].s, &number);
    if (n != wanted - blank)
        return bad_row(r, i, n, wanted);
    struct gv_row *row = gv_run_row(&r->run, (unsigned)i + 1);
    if (!row)
        return gv_import_no_memory(r->err);
    row->bytes = strtoull(w[0].s, NULL, 10);
    row->count = strtoull(w[1].s, NULL, 10);
    snprintf(row->type, sizeof(row->type), "%.15s", w[2].s);
    if (r->run.has_redop && !blank)
        snprintf(row->redop, sizeof(row->redop), "%.15s", w[at++].s);
    if (r->run.has_root && strcmp(w[at].s, "-1") && gv_small(w[at].s) < 0)
        return fail(r, i, "the root of this row is no rank: the row is damaged");
    row->root = r->run.has_root ? gv_small(w[at++].s) : -1;
    row->digit_us = half_digit(w[at].s);
    if (!gv_is_digits(w[0].s) || !gv_is_digits(w[1].s) || strlen(w[0].s) > 15 ||
        !read_half(w + at, &row->out) || !read_half(w + r->second - blank, &row->in))
        return fail(r, i, "a cell of this row is no number: the row is damaged");
    return 0;
}

static int finish(struct reader *r)
{
    int rc = gv_run_take(r->im, r->t, &r->run, GV_IMPORT_NCCL_TESTS, r->err);
    struct gv_run next = {.validation = -1, .average = NAN};
    for (int i = 0; i < r->run.nsettings; i++)
        if (r->run.settings[i].exported)
            next.settings[next.nsettings++] = r->run.settings[i];
    r->open = r->in_table = false;
    r->taken++;
    free(r->run.rows);
    r->run = next;
    return rc;
}

/* "./build/all_reduce_perf -b 8", "Collective test starting: all_reduce_perf" */
static void program(struct reader *r, const char *s, int i)
{
    const char *at = strstr(s, "_perf");
    if (!at || strstr(s, "NCCL INFO") || strstr(s, "test concluded"))
        return;
    const char *from = at;
    while (from > s && strchr("abcdefghijklmnopqrstuvwxyz_", from[-1]))
        from--;
    size_t n = (size_t)(at - from) + 5;
    if (n >= sizeof(r->hint))
        return;
    bool starts = strstr(s, "test starting") != NULL;
    char *to = starts ? r->run.program : r->hint;
    memcpy(to, from, n);
    to[n] = 0;
    *(starts ? &r->run.program_line : &r->hint_line) = (unsigned)i + 1;
}

/* "NCCL_ALGO set by environment to Ring", "-x NCCL_ALGO=Ring" */
static void setting(struct reader *r, const char *s, int i)
{
    char name[40], value[64];
    for (const char *at = strstr(s, "NCCL_"); at; at = strstr(at + 5, "NCCL_"))
        if (sscanf(at, "%39[A-Z0-9_] set by environment to %63s", name, value) == 2 ||
            sscanf(at, "%39[A-Z0-9_]=%63[A-Za-z0-9_./^-]", name, value) == 2) {
            size_t n = strlen(value);
            if (n && value[n - 1] == '.')
                value[n - 1] = 0;
            struct gv_setting_seen *seen = gv_run_setting(&r->run, (unsigned)i + 1, name, value);
            if (seen)
                seen->exported = strstr(s, "export ") != NULL;
        }
}

static void versions(struct reader *r, const char *s)
{
    int library;
    const char *at = strstr(s, "nccl-tests version ");
    if (at)
        sscanf(at, "nccl-tests version %31s", r->run.version);
    at = strstr(s, "nccl-library=");
    if (at && sscanf(at, "nccl-library=%d", &library) == 1 && library > 0 && library < 1000000)
        snprintf(
            r->run.nccl, sizeof(r->run.nccl), "%d.%d.%d", library / 10000, library / 100 % 100,
            library % 100);
    at = strstr(s, "NCCL version ");
    if (at && !*r->run.nccl)
        sscanf(at, "NCCL version %15[0-9.]", r->run.nccl);
}

/* Lines around the table. 1: understood, 0: something else, -1 with the error. */
static int around(struct reader *r, const char *s, int i)
{
    double wrong;
    char verdict[16];
    if (!strncmp(s, "nThread ", 8))
        return begin(r, s, i) ? -1 : 1;
    if (device(r, s, i))
        return 1;
    if (sscanf(s, "Out of bounds values : %lf %15s", &wrong, verdict) == 2) {
        if (wrong != 0 || strcmp(verdict, "OK"))
            return fail(
                r, i,
                "the results were wrong (out of bounds values): figures of wrong results are none");
        r->run.has_bounds = true;
        return 1;
    }
    if (sscanf(s, "Avg bus bandwidth : %lf", &r->run.average) == 1) {
        r->run.average_line = (unsigned)i + 1;
        if (!r->open)
            return fail(r, i, "the end of a run whose beginning is missing");
        return finish(r) ? -1 : 1;
    }
    if (r->open && (strstr(s, "Test NCCL failure") || strstr(s, "Test CUDA failure") ||
                    strstr(s, "Test failure")))
        return fail(
            r, i,
            r->run.nrows ? "the test failed here, in the middle of its rows"
                         : "the test failed before its first row: there is no figure in it");
    return 0;
}

static bool is_heading(const struct gv_word *w, int n)
{
    return n > 4 && !strcmp(w[0].s, "size") && !strcmp(w[1].s, "count") && !strcmp(w[2].s, "type");
}

static bool old_heading(const struct gv_word *w, int n)
{
    return n > 5 && !strcmp(w[0].s, "bytes") && !strcmp(w[1].s, "N") && !strcmp(w[2].s, "type");
}

/* A row of some table although no heading was read. */
static bool looks_like_row(const struct gv_word *w, int n)
{
    double number;
    return n >= 7 && gv_is_digits(w[0].s) && gv_is_digits(w[1].s) &&
           !gv_is_number(w[2].s, &number) && gv_is_number(w[n - 2].s, &number) &&
           gv_is_number(w[n - 3].s, &number);
}

static int line(struct reader *r, int i, char *room)
{
    struct gv_word w[GV_MAX_WORDS];
    char *s = room + strspn(room, "# \t>`");
    versions(r, s);
    program(r, s, i);
    setting(r, s, i);
    int done = around(r, s, i);
    if (done || strstr(s, "NCCL INFO"))
        return done < 0 ? -1 : 0;
    int n = gv_words(s, 0, w);
    if (old_heading(w, n))
        return fail(
            r, i,
            "this is a table of NCCL 1 or of the first tests of NCCL 2 (bytes, N, type, op, res; "
            "time "
            "in ms): it does not say what today's do; measure with nccl-tests 2.0 or later");
    if (is_heading(w, n))
        return heading(r, w, n, i);
    if (n && gv_is_digits(w[0].s) && r->in_table)
        return row(r, w, n, i);
    if (looks_like_row(w, n))
        return fail(
            r, i, "figures without their column heading: which column is which is not said");
    return 0;
}

static int last_line(const struct gv_text *t)
{
    int i = t->n - 1;
    while (i > 0 && !t->lines[i][strspn(t->lines[i], " \t#`")])
        i--;
    return i < 0 ? 0 : i;
}

int gv_import_nccl_tests(struct gv_import *im, struct gv_text *t, struct gv_error *err)
{
    struct reader r = {.im = im, .t = t, .err = err, .run = {.validation = -1, .average = NAN}};
    int rc = 0;
    for (int i = 0; i < t->n && !rc; i++) {
        char *room = strdup(t->lines[i]);
        rc = room ? line(&r, i, room) : gv_import_no_memory(err);
        free(room);
    }
    if (!rc && r.open)
        rc = fail(
            &r, last_line(t),
            r.run.nrows ? "the table ends without its last lines (out of bounds values, average): "
                          "it is cut"
                        : "the table ends before its first row: there is no figure in it");
    if (!rc && !r.taken)
        rc = gv_error_at(err, t->path, 0, 0, "no table of nccl-tests is in it");
    free(r.run.rows);
    return rc;
}
