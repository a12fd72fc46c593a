/* Which operation a run measured, and how NCCL was told to do it. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/import/table.h"

/* What nccl-tests prints for each operation: program, the redop column, the root column, whether it
 * checks in place, and busbw as a multiple of bytes / time (its doc/PERFORMANCE.md). */
static const struct shape {
    enum gv_op op;
    const char *program;
    bool reduces, rooted, checks_in_place;
    enum { ALL, TWICE, ONE } factor; /* (n-1)/n, 2(n-1)/n, 1 */
} shapes[] = {
    {GV_OP_ALL_REDUCE, "all_reduce_perf", true, false, true, TWICE},
    {GV_OP_ALL_GATHER, "all_gather_perf", false, false, true, ALL},
    {GV_OP_REDUCE_SCATTER, "reduce_scatter_perf", true, false, true, ALL},
    {GV_OP_BROADCAST, "broadcast_perf", false, true, true, ONE},
    {GV_OP_REDUCE, "reduce_perf", true, true, true, ONE},
    {GV_OP_ALL_TO_ALL, "alltoall_perf", false, false, false, ALL},
    {GV_OP_SEND_RECV, "sendrecv_perf", true, false, false, ONE},
};
#define SHAPES ((int)(sizeof(shapes) / sizeof(shapes[0])))

static double factor_of(const struct shape *s, int n)
{
    double part = (double)(n - 1) / n;
    return s->factor == ONE ? 1 : s->factor == TWICE ? 2 * part : part;
}

double gv_run_factor(enum gv_op op, int nranks)
{
    for (int i = 0; i < SHAPES; i++)
        if (shapes[i].op == op)
            return factor_of(&shapes[i], nranks);
    return NAN;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median of busbw / (bytes / time) over rows that are printed with three digits or more. */
static double seen_factor(const struct gv_run *run)
{
    double *all = malloc((size_t)(run->nrows + 1) * sizeof(double));
    int n = 0;
    for (int i = 0; all && i < run->nrows; i++) {
        const struct gv_half *h = &run->rows[i].out;
        if (h->busbw_gbs >= 1 && h->time_us > 0)
            all[n++] = h->busbw_gbs / ((double)run->rows[i].bytes / h->time_us / 1e3);
    }
    if (n)
        qsort(all, (size_t)n, sizeof(double), by_value);
    double median = n ? all[n / 2] : NAN;
    free(all);
    return median;
}

static bool fits(const struct shape *s, const struct gv_run *run, int nranks, double factor)
{
    const struct gv_row *row = &run->rows[0];
    bool reduces = *row->redop && strcmp(row->redop, "none"), rooted = row->root >= 0;
    bool in_checked = row->in.there && row->in.checked;
    return s->reduces == reduces && s->rooted == rooted && s->checks_in_place == in_checked &&
           fabs(factor / factor_of(s, nranks) - 1) < 0.03;
}

static int
by_columns(const struct gv_text *t, const struct gv_run *run, int nranks, struct gv_error *err)
{
    int found = -1, n = 0;
    double factor = seen_factor(run);
    for (int i = 0; i < SHAPES; i++)
        if (!isnan(factor) && fits(&shapes[i], run, nranks, factor)) {
            found = i;
            n++;
        }
    /* Unchecked in place is also what tests have that are none of these (hypercube, alltoallv). */
    if (n == 1 && shapes[found].checks_in_place)
        return shapes[found].op;
    unsigned line = run->header_line ? run->header_line : run->line;
    return gv_error_at(
        err, t->path, line, 0,
        "no line says which operation was measured, and columns and figures do not tell: name it "
        "with --op (AllReduce, AllGather, ...)");
}

int gv_run_op(
    const struct gv_import *im, const struct gv_text *t, const struct gv_run *run, int nranks,
    struct gv_error *err)
{
    if (im->options.op >= 0)
        return im->options.op;
    if (!*run->program)
        return by_columns(t, run, nranks, err);
    for (int i = 0; i < SHAPES; i++)
        if (!strcmp(shapes[i].program, run->program))
            return shapes[i].op;
    return gv_error_at(
        err, t->path, run->program_line, 0, "%s is no operation that a profile holds",
        run->program);
}

static void upper(char *s)
{
    for (; *s; s++)
        *s = (char)toupper((unsigned char)*s);
}

/* 0: taken, 1: it does not matter here, -1: it does, and how is not known. */
static int one_setting(const struct gv_setting_seen *s, struct gv_import_sample *out)
{
    static const char *const decide[] = {
        "NCCL_P2P_LEVEL",     "NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE",
        "NCCL_GRAPH_FILE",    "NCCL_TOPO_FILE",   "NCCL_MIN_NCHANNELS",
        "NCCL_MAX_NCHANNELS", "NCCL_NTHREADS",    "NCCL_P2P_DIRECT_DISABLE"};
    char value[64];
    snprintf(value, sizeof(value), "%s", s->value);
    upper(value);
    if (!strcmp(s->name, "NCCL_ALGO") && gv_algo_from_name(value) >= 0)
        return out->algorithm = (enum gv_algo)gv_algo_from_name(value), 0;
    if (!strcmp(s->name, "NCCL_PROTO") && gv_proto_from_name(value) >= 0)
        return out->protocol = (enum gv_proto)gv_proto_from_name(value), 0;
    if (!strcmp(s->name, "NCCL_P2P_LEVEL") && !strcmp(value, "PHB"))
        return out->edit = GV_EDIT_P2P_LEVEL, 0;
    if (!strcmp(s->name, "NCCL_ALGO") || !strcmp(s->name, "NCCL_PROTO"))
        return -1;
    for (unsigned i = 0; i < sizeof(decide) / sizeof(decide[0]); i++)
        if (!strcmp(s->name, decide[i]))
            return -1;
    return 1;
}

int gv_run_variant(
    const struct gv_import *im, const struct gv_text *t, const struct gv_run *run,
    struct gv_import_sample *out, struct gv_error *err)
{
    for (int i = 0; i < run->nsettings; i++) {
        const struct gv_setting_seen *s = &run->settings[i];
        if (one_setting(s, out) < 0 && im->options.edit < 0)
            return gv_error_at(
                err, t->path, s->line, 0,
                "%s=%s was set: the figures are not NCCL's default; say what they are of with "
                "--edit (none, p2p-level, bridge, lend, separate)",
                s->name, s->value);
    }
    if (im->options.edit >= 0)
        out->edit = (enum gv_edit_kind)im->options.edit;
    return 0;
}
