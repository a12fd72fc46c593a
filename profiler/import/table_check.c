/* A run of nccl-tests: is it whole, right, and of one host; then its figures. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/import/table.h"

struct gv_row *gv_run_row(struct gv_run *run, unsigned line)
{
    if (run->nrows >= 100000)
        return NULL;
    if (!(run->nrows & (run->nrows - 1))) {
        void *more =
            reallocarray(run->rows, run->nrows ? (size_t)run->nrows * 2 : 1, sizeof(*run->rows));
        if (!more)
            return NULL;
        run->rows = more;
    }
    struct gv_row *row = &run->rows[run->nrows++];
    *row = (struct gv_row){.line = line, .root = -1};
    return row;
}

struct gv_setting_seen *
gv_run_setting(struct gv_run *run, unsigned line, const char *name, const char *value)
{
    for (int i = 0; i < run->nsettings; i++)
        if (!strcmp(run->settings[i].name, name) && !strcmp(run->settings[i].value, value))
            return NULL;
    if (run->nsettings == 16)
        return NULL;
    struct gv_setting_seen *s = &run->settings[run->nsettings++];
    *s = (struct gv_setting_seen){.line = line};
    snprintf(s->name, sizeof(s->name), "%s", name);
    snprintf(s->value, sizeof(s->value), "%s", value);
    return s;
}

static int fail(const struct gv_text *t, unsigned line, struct gv_error *err, const char *text)
{
    return gv_error_at(err, t->path, line, 0, "%s", text);
}

static int check_devices(const struct gv_text *t, const struct gv_run *run, struct gv_error *err)
{
    for (int i = 0; i < run->ndevices; i++) {
        const struct gv_device *d = &run->devices[i];
        if (d->rank != i)
            return gv_error_at(
                err, t->path, d->line, 0, "rank %d where rank %d is expected: lines are missing",
                d->rank, i);
        if (strcmp(d->host, run->devices[0].host))
            return gv_error_at(
                err, t->path, d->line, 0,
                "rank %d ran on %s, rank 0 on %s: a profile holds one machine, a run over several "
                "measures their network",
                d->rank, d->host, run->devices[0].host);
        for (int k = 0; k < i; k++)
            if (run->devices[k].device == d->device && !strcmp(run->devices[k].bus, d->bus))
                return gv_error_at(
                    err, t->path, d->line, 0, "ranks %d and %d ran on one GPU", k, d->rank);
    }
    if (run->nranks > GV_MAX_GPUS)
        return fail(
            t, run->devices[0].line, err, "more ranks than the 64 GPUs that a profile can hold");
    return 0;
}

static bool in_place_open(enum gv_op op)
{
    return op == GV_OP_ALL_TO_ALL ||
           op == GV_OP_SEND_RECV; /* nccl-tests cannot check these in place */
}

static int check_half(
    const struct gv_text *t, const struct gv_run *run, const struct gv_row *row,
    const struct gv_half *h, bool in_place, enum gv_op op, int nranks, struct gv_error *err)
{
    const char *where = in_place ? "in place" : "out of place";
    if (!h->checked && !(in_place && in_place_open(op)))
        return gv_error_at(
            err, t->path, row->line, 0,
            "%s was not checked (N/A): its figures may be of wrong results", where);
    if (run->wrong_column && h->checked && h->wrong != 0)
        return gv_error_at(err, t->path, row->line, 0, "%.0f wrong elements %s", h->wrong, where);
    /* busbw = bytes / time * factor; both are printed rounded */
    double expected = (double)row->bytes / h->time_us / 1e3 * gv_run_factor(op, nranks);
    double slack = 0.0101 + expected * (row->digit_us / h->time_us * 1.1 + 0.006);
    if (h->time_us > 0 && fabs(expected - h->busbw_gbs) > slack)
        return gv_error_at(
            err, t->path, row->line, 0,
            "busbw %s is %.2f GB/s, but %llu bytes in %.2f us with %d ranks of %s make %.2f: the "
            "row is damaged, or --op or --gpus is wrong",
            where, h->busbw_gbs, (unsigned long long)row->bytes, h->time_us, nranks, gv_op_name(op),
            expected);
    return 0;
}

static int check_rows(
    const struct gv_text *t, const struct gv_run *run, enum gv_op op, int nranks,
    struct gv_error *err)
{
    for (int i = 0; i < run->nrows; i++) {
        const struct gv_row *row = &run->rows[i];
        if (strcmp(row->type, run->rows[0].type) || strcmp(row->redop, run->rows[0].redop) ||
            row->root != run->rows[0].root)
            return fail(
                t, row->line, err,
                "another type, operation or root than in the rows above: one of each at a time");
        if (row->out.there && check_half(t, run, row, &row->out, false, op, nranks, err))
            return -1;
        if (row->in.there && check_half(t, run, row, &row->in, true, op, nranks, err))
            return -1;
    }
    return 0;
}

static uint64_t next_size(const struct gv_run *run, uint64_t size)
{
    return run->factor ? size * run->step : size + run->step;
}

/* Sizes as the first lines announce them; an operation may round them down to whole elements for
 * each rank. The whole list may come several times (-N). */
static int
check_sizes(const struct gv_text *t, const struct gv_run *run, int nranks, struct gv_error *err)
{
    uint64_t size = run->min_bytes, slack = 32 * (uint64_t)nranks;
    if (!run->has_sizes || (run->factor && run->step < 2) || run->min_bytes > run->max_bytes)
        return 0;
    for (int i = 0; i < run->nrows; i++) {
        if (size > run->max_bytes)
            size = run->min_bytes;
        uint64_t got = run->rows[i].bytes;
        if (got > size || got + slack < size)
            return gv_error_at(
                err, t->path, run->rows[i].line, 0,
                "a row of %llu bytes is expected here, as line %u announces, found %llu: rows are "
                "missing",
                (unsigned long long)size, run->line, (unsigned long long)got);
        size = size ? next_size(run, size) : run->max_bytes + 1;
    }
    if (size <= run->max_bytes)
        return gv_error_at(
            err, t->path, run->rows[run->nrows - 1].line, 0,
            "the rows end before %llu bytes, which line %u announces: rows are missing",
            (unsigned long long)run->max_bytes, run->line);
    return 0;
}

/* The printed average is over both halves of all rows. */
static int check_average(const struct gv_text *t, const struct gv_run *run, struct gv_error *err)
{
    double sum = 0;
    int n = 0;
    if (isnan(run->average) || !run->nrows)
        return 0;
    for (int i = 0; i < run->nrows; i++) {
        sum += run->rows[i].out.there ? run->rows[i].out.busbw_gbs : 0;
        sum += run->rows[i].in.there ? run->rows[i].in.busbw_gbs : 0;
        n += run->rows[i].out.there + run->rows[i].in.there;
    }
    double mean = n ? sum / n : 0;
    if (fabs(mean - run->average) <= 0.012 + 0.002 * run->average)
        return 0;
    return gv_error_at(
        err, t->path, run->average_line, 0,
        "the average is said to be %.2f GB/s, that of the rows is %.2f: rows are missing or "
        "damaged",
        run->average, mean);
}

static int check_whole(const struct gv_text *t, const struct gv_run *run, struct gv_error *err)
{
    unsigned end = run->average_line ? run->average_line : run->line;
    if (!run->nrows)
        return fail(t, end, err, "there is no row of figures in this run");
    if (run->validation == 0)
        return fail(
            t, run->line, err,
            "it was run without checking its results (-c 0): measure with the check");
    if (!run->has_bounds)
        return fail(
            t, end, err,
            "the line that says whether the results were right (out of bounds values) is missing");
    return check_devices(t, run, err);
}

static void describe(struct gv_import_source *s, const struct gv_run *run)
{
    memcpy(s->nccl, run->nccl, sizeof(s->nccl));
    memcpy(s->nccl_tests, run->version, sizeof(s->nccl_tests));
    for (int i = 0; i < run->ndevices; i++) {
        const struct gv_device *d = &run->devices[i];
        struct gv_import_gpu *g = gv_import_gpu(s, d->line);
        if (!g)
            return;
        memcpy(g->model, d->model, sizeof(g->model));
        if (!gv_import_bus_id(d->bus, g->bus_id) && !strncmp(d->bus, "0x", 2))
            g->bus = (int)strtol(d->bus, NULL, 16) & 0xff;
    }
}

static int take_rows(
    const struct gv_import *im, const struct gv_text *t, struct gv_import_source *s,
    const struct gv_run *run, enum gv_op op, struct gv_error *err)
{
    struct gv_import_sample variant = {.algorithm = GV_ALGO_ANY, .protocol = GV_PROTO_ANY};
    if (gv_run_variant(im, t, run, &variant, err))
        return -1;
    for (int i = 0; i < run->nrows; i++) {
        const struct gv_row *row = &run->rows[i];
        const struct gv_half *h = im->options.in_place ? &row->in : &row->out;
        if (!h->there || !h->checked)
            return fail(
                t, row->line, err, "this half of the row was not checked (N/A): nothing to take");
        if (!row->bytes || h->busbw_gbs <= 0)
            continue; /* too small for two digits behind the point: no figure */
        struct gv_import_sample *to = gv_import_sample(s, row->line);
        if (!to)
            return gv_import_no_memory(err);
        *to = variant;
        to->line = row->line;
        to->op = op;
        to->bytes = row->bytes;
        to->busbw_gbs = h->busbw_gbs;
        to->algbw_gbs = h->algbw_gbs;
    }
    return 0;
}

static void notes(
    const struct gv_import *im, struct gv_import_source *s, const struct gv_run *run, enum gv_op op)
{
    if (!*run->program && im->options.op < 0)
        gv_import_note(
            s, run->header_line, "no line names the operation; columns and figures fit %s alone",
            gv_op_name(op));
    if (run->rows[0].in.there && !run->rows[0].in.checked)
        gv_import_note(
            s, run->rows[0].line, "in place was not checked (N/A): only out of place is taken");
}

int gv_run_take(
    struct gv_import *im, const struct gv_text *t, struct gv_run *run, enum gv_import_format format,
    struct gv_error *err)
{
    if (check_whole(t, run, err))
        return -1;
    int nranks = run->nranks ? run->nranks : im->options.ngpus;
    unsigned place = run->header_line ? run->header_line : run->line;
    if (!nranks)
        return fail(
            t, place, err, "no line says which GPUs ran (Using devices): name them with --gpus");
    if (nranks < 2)
        return fail(
            t, run->rows[0].line, err,
            "one rank alone: nothing was sent, so its bandwidths mean nothing (busbw 0, in place "
            "N/A)");
    int op = gv_run_op(im, t, run, nranks, err);
    if (op < 0 || check_rows(t, run, (enum gv_op)op, nranks, err) ||
        check_sizes(t, run, nranks, err) || check_average(t, run, err))
        return -1;
    struct gv_import_source *s = gv_import_source(im, t, format);
    if (!s)
        return gv_import_no_memory(err);
    describe(s, run);
    notes(im, s, run, (enum gv_op)op);
    return take_rows(im, t, s, run, (enum gv_op)op, err);
}
