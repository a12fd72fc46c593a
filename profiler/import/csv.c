/* CSV: our own columns (named as the profile's keys), and the measurements that the script of
 * NCCL's example tuner is fed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/gv_size.h"
#include "profiler/import/table.h"

#define MAX_COLUMNS 24

static const char *const columns_known[] = {
    "gpus",
    "op",
    "bytes",
    "busbw_gbs",
    "algbw_gbs",
    "edit",
    "algorithm",
    "protocol",
    "channels",
    "from",
    "to",
    "smi_class",
    "p2p",
    "write_gbs",
    "read_gbs",
    "both_ways_gbs",
    "latency_us",
    "host_path_gbs",
    "gpu",
    "copy_gbs",
    "to_device_gbs",
    "to_host_gbs",
    "collective",
    "size_bytes",
    "nodes",
    "ranks",
    "pipeOps",
    "regBuff",
    "bandwidth_gbps",
    "cost_metric"};

struct reader {
    struct gv_import *im;
    const struct gv_text *t;
    struct gv_error *err;
    struct gv_import_source *s;
    char names[MAX_COLUMNS][24];
    int n, line;
    struct gv_word *w;
};

static const char *cell(const struct reader *r, const char *name)
{
    for (int i = 0; i < r->n; i++)
        if (!strcmp(r->names[i], name))
            return r->w[i].s;
    return "";
}

static bool has(const struct reader *r, const char *name)
{
    for (int i = 0; i < r->n; i++)
        if (!strcmp(r->names[i], name))
            return true;
    return false;
}

static int fail(const struct reader *r, const char *name, const char *text)
{
    unsigned column = 0;
    for (int i = 0; i < r->n && name; i++)
        if (!strcmp(r->names[i], name))
            column = r->w[i].column;
    return gv_error_at(
        r->err, r->t->path, (unsigned)r->line + 1, column, "%s%s%s", name ? name : "",
        name ? ": " : "", text);
}

/* NAN where the column is not there or the cell is empty. */
static int figure(const struct reader *r, const char *name, double *out)
{
    const char *text = cell(r, name);
    *out = NAN;
    if (!*text || (gv_is_number(text, out) && *out < 1e9))
        return 0;
    return fail(r, name, "it is no figure");
}

static int index_of(const struct reader *r, const char *name)
{
    const char *text = cell(r, name);
    if (gv_small(text) >= 0 && gv_small(text) < GV_MAX_GPUS)
        return gv_small(text);
    fail(r, name, "a GPU from 0 to 63 is expected");
    return -1;
}

/* "0-5 7" or "0-5;7": commas separate columns. */
static int gpu_list(const struct reader *r, gv_gpuset *out)
{
    char text[200];
    struct gv_error why;
    snprintf(text, sizeof(text), "%s", cell(r, "gpus"));
    for (char *p = text; *p; p++)
        if (*p == ' ' || *p == ';' || *p == '+')
            *p = ',';
    return gv_gpuset_parse(text, out, &why) ? fail(r, "gpus", why.text) : 0;
}

static int variant(const struct reader *r, struct gv_import_sample *s)
{
    char word[24];
    const char *edit = cell(r, "edit");
    int value = *edit ? (int)gv_edit_from_name(edit) : (int)GV_EDIT_NONE;
    if (value < 0)
        return fail(r, "edit", "it may be none, lend, bridge, separate, p2p-level");
    s->edit = (enum gv_edit_kind)value;
    for (int i = 0; i < 2; i++) {
        const char *name = i ? "protocol" : "algorithm";
        snprintf(word, sizeof(word), "%s", cell(r, name));
        for (char *p = word; *p; p++)
            *p = (char)(*p >= 'a' && *p <= 'z' ? *p - 32 : *p);
        if (!*word || !strcmp(word, "ANY"))
            continue;
        value = i ? gv_proto_from_name(word) : gv_algo_from_name(word);
        if (value < 0)
            return fail(r, name, "NCCL has none of this name");
        if (i)
            s->protocol = (enum gv_proto)value;
        else
            s->algorithm = (enum gv_algo)value;
    }
    const char *channels = cell(r, "channels");
    if (*channels && strcmp(channels, "-1") && (gv_small(channels) < 0 || gv_small(channels) > 64))
        return fail(r, "channels", "a number up to 64 is expected");
    s->channels = *channels && *channels != '-' ? gv_small(channels) : 0;
    return 0;
}

static int group_row(struct reader *r)
{
    struct gv_import_sample *s = gv_import_sample(r->s, (unsigned)r->line + 1);
    struct gv_error why;
    if (!s)
        return gv_import_no_memory(r->err);
    int op = gv_op_from_name(cell(r, "op"));
    if (op < 0)
        return fail(
            r, "op",
            "it may be AllReduce, AllGather, ReduceScatter, Broadcast, Reduce, SendRecv, AllToAll");
    s->op = (enum gv_op)op;
    if (gpu_list(r, &s->gpus) || variant(r, s))
        return -1;
    if (gv_size_parse(cell(r, "bytes"), &s->bytes, &why))
        return fail(r, "bytes", why.text);
    if (figure(r, "busbw_gbs", &s->busbw_gbs) || figure(r, "algbw_gbs", &s->algbw_gbs))
        return -1;
    return isnan(s->busbw_gbs) ? fail(r, "busbw_gbs", "the figure is missing") : 0;
}

static int pair_row(struct reader *r)
{
    int a = index_of(r, "from"), b = a < 0 ? -1 : index_of(r, "to");
    if (b < 0)
        return -1;
    if (a == b)
        return fail(r, "to", "it is the same GPU");
    struct gv_import_pair *p = gv_import_pair(r->s, a, b, (unsigned)r->line + 1);
    if (!p)
        return gv_import_no_memory(r->err);
    const char *state = cell(r, "p2p");
    if (*state && strcmp(state, "refused") && strcmp(state, "unverified"))
        return fail(
            r, "p2p", "only refused or unverified can be imported: `gv100 verify` proves more");
    p->refused = !strcmp(state, "refused");
    snprintf(p->smi_class, sizeof(p->smi_class), "%.7s", cell(r, "smi_class"));
    return figure(r, "write_gbs", &p->write_gbs) || figure(r, "read_gbs", &p->read_gbs) ||
                   figure(r, "both_ways_gbs", &p->both_ways_gbs) ||
                   figure(r, "latency_us", &p->latency_us) ||
                   figure(r, "host_path_gbs", &p->host_path_gbs)
               ? -1
               : 0;
}

static int single_row(struct reader *r)
{
    int gpu = index_of(r, "gpu");
    struct gv_import_single *s =
        gpu < 0 ? NULL : gv_import_single(r->s, gpu, (unsigned)r->line + 1);
    if (!s)
        return gpu < 0 ? -1 : gv_import_no_memory(r->err);
    return figure(r, "copy_gbs", &s->copy_gbs) || figure(r, "to_device_gbs", &s->to_device_gbs) ||
                   figure(r, "to_host_gbs", &s->to_host_gbs)
               ? -1
               : 0;
}

static int op_of(const char *name)
{
    static const char *const names[] = {
        "broadcast", "reduce", "allgather", "reducescatter", "allreduce"};
    for (int i = 0; i < 5; i++)
        if (!strcasecmp(names[i], name))
            return i; /* as enum gv_op and ncclFunc_t have them */
    return -1;
}

/* What optimize_config.py reads. Whether its bandwidth is algbw or busbw is not said; the time is
 * clear, and the bandwidth must be one of the two. */
static int performance_row(struct reader *r)
{
    int op = op_of(cell(r, "collective")), ranks = gv_small(cell(r, "ranks"));
    double time_us, bandwidth;
    struct gv_import_sample *s = gv_import_sample(r->s, (unsigned)r->line + 1);
    if (!s)
        return gv_import_no_memory(r->err);
    if (op < 0)
        return fail(
            r, "collective", "it may be broadcast, reduce, allgather, reducescatter, allreduce");
    if (strcmp(cell(r, "nodes"), "1"))
        return fail(r, "nodes", "a profile holds one machine: 1 is expected");
    if (ranks < 2 || ranks != r->im->options.ngpus)
        return fail(
            r, "ranks", "which GPUs these ranks were is not said: name as many with --gpus");
    if (!gv_is_digits(cell(r, "size_bytes")) || strlen(cell(r, "size_bytes")) > 15)
        return fail(r, "size_bytes", "a number of bytes is expected");
    if (figure(r, "latency_us", &time_us) || figure(r, "bandwidth_gbps", &bandwidth) ||
        variant(r, s))
        return -1;
    if (isnan(time_us) || time_us <= 0)
        return fail(r, "latency_us", "the time is missing: what bandwidth_gbps is of is not said");
    s->op = (enum gv_op)op;
    s->bytes = strtoull(cell(r, "size_bytes"), NULL, 10);
    s->algbw_gbs = (double)s->bytes / time_us / 1e3;
    s->busbw_gbs = s->algbw_gbs * gv_run_factor(s->op, ranks);
    double least = fmin(fabs(bandwidth / s->algbw_gbs - 1), fabs(bandwidth / s->busbw_gbs - 1));
    if (!isnan(bandwidth) && bandwidth > 0 && least > 0.05)
        return fail(
            r, "bandwidth_gbps",
            "it is neither bytes / time nor busbw: the row is damaged or in another unit");
    return 0;
}

typedef int (*row_fn)(struct reader *r);

static row_fn kind_of(const struct reader *r)
{
    if (has(r, "gpus") && has(r, "op") && has(r, "bytes") && has(r, "busbw_gbs"))
        return group_row;
    if (has(r, "from") && has(r, "to"))
        return pair_row;
    if (has(r, "gpu"))
        return single_row;
    if (has(r, "collective") && has(r, "size_bytes") && has(r, "latency_us") && has(r, "ranks") &&
        has(r, "nodes"))
        return performance_row;
    return NULL;
}

static int heading(struct reader *r, int n)
{
    for (int i = 0; i < n; i++) {
        bool known = false;
        for (unsigned k = 0; k < sizeof(columns_known) / sizeof(columns_known[0]); k++)
            known |= !strcmp(columns_known[k], r->w[i].s);
        if (!known)
            return gv_error_at(
                r->err, r->t->path, (unsigned)r->line + 1, r->w[i].column,
                "there is no column '%.24s'", r->w[i].s);
        snprintf(r->names[i], sizeof(r->names[i]), "%.23s", r->w[i].s);
    }
    r->n = n;
    return 0;
}

static int line(struct reader *r, row_fn *kind, int n)
{
    if (*kind) {
        if (n != r->n)
            return gv_error_at(
                r->err, r->t->path, (unsigned)r->line + 1, 0,
                "the row has %d cells, the heading %d", n, r->n);
        return (*kind)(r);
    }
    if (n > MAX_COLUMNS || heading(r, n))
        return n > MAX_COLUMNS ? fail(r, NULL, "too many columns") : -1;
    *kind = kind_of(r);
    return *kind ? 0
                 : fail(
                       r, NULL,
                       "the columns must be gpus,op,bytes,busbw_gbs,... or from,to,... or gpu,... "
                       "(docs: gv100 import --help)");
}

int gv_import_csv(struct gv_import *im, struct gv_text *t, struct gv_error *err)
{
    struct gv_word w[GV_MAX_WORDS];
    struct reader r = {
        .im = im, .t = t, .err = err, .w = w, .s = gv_import_source(im, t, GV_IMPORT_CSV)};
    row_fn kind = NULL;
    int rc = r.s ? 0 : gv_import_no_memory(err);
    for (int i = 0; i < t->n && !rc; i++) {
        char *room = strdup(t->lines[i]);
        r.line = i;
        if (!room)
            rc = gv_import_no_memory(err);
        else if (room[strspn(room, " \t")] && *room != '#')
            rc = line(&r, &kind, gv_words(room, ',', w));
        free(room);
    }
    if (!rc && !(r.s->nsamples + r.s->npairs + r.s->nsingles))
        rc = gv_error_at(err, t->path, 0, 0, "there is no row in it");
    return rc;
}
