/* The configuration of NCCL's example tuner: one choice a row, 8 to 10 cells. That plugin takes an
 * unknown word for allreduce, ring or simple, and of several rows that fit the first; here an
 * unknown word is an error, and so is a row that can never be reached. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/gv_nearest.h"
#include "profiler/import/import.h"

enum { OP, LEAST, MOST, ALGORITHM, PROTOCOL, CHANNELS, NODES, RANKS, PIPE_OPS, REGISTERED, CELLS };

static const char *const cell_names[CELLS] = {
    "collective_type", "min_bytes", "max_bytes", "algorithm",  "protocol",
    "channels",        "nNodes",    "nRanks",    "numPipeOps", "regBuff"};
static const char *const op_words[] = {
    "broadcast", "reduce", "allgather", "reducescatter", "allreduce"}; /* as enum gv_op */
static const char *const algorithm_words[] = {
    "tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"};
static const char *const protocol_words[] = {"ll", "ll128", "simple"};

struct reader {
    const struct gv_text *t;
    struct gv_error *err;
    struct gv_import_source *s;
    struct gv_word w[GV_MAX_WORDS];
    int n;
    unsigned line;
    int said_4g; /* rows that end at 4 GiB - 1: said once */
};

static int fail(const struct reader *r, int cell, const char *text)
{
    return gv_error_at(
        r->err, r->t->path, r->line, r->w[cell].column, "%s: '%.30s' %s", cell_names[cell],
        r->w[cell].s, text);
}

/* One of the words, as the plugin spells them. */
static int word(const struct reader *r, int cell, const char *const *words, int n, int *out)
{
    char text[200];
    const char *given = r->w[cell].s, *near = NULL;
    for (*out = 0; *out < n; (*out)++)
        if (!strcmp(words[*out], given))
            return 0;
    for (int i = 0; i < n; i++)
        near = strcasecmp(words[i], given) ? near : words[i];
    near = near ? near : gv_nearest(given, words, n);
    size_t used = (size_t)snprintf(
        text, sizeof(text), "is not known%s%s%s; it may be", near ? "; did you mean '" : "",
        near ? near : "", near ? "'?" : "");
    for (int i = 0; i < n && used < sizeof(text); i++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s %s", i ? "," : "", words[i]);
    return fail(r, cell, text);
}

/* -1 (any, or NCCL's own) or a number from `least` to `most`. */
static int number(const struct reader *r, int cell, int least, int most, int *out)
{
    char text[120];
    const char *given = r->w[cell].s;
    *out = -1;
    if (!strcmp(given, "-1"))
        return 0;
    *out = gv_small(given);
    if (*out >= least && *out <= most)
        return 0;
    snprintf(
        text, sizeof(text), "is neither -1 (%s) nor a number from %d to %d",
        cell == CHANNELS ? "NCCL's own" : "any", least, most);
    return fail(r, cell, text);
}

/* Bytes as the plugin reads them: a whole number. */
static int size(const struct reader *r, int cell, uint64_t *out)
{
    const char *given = r->w[cell].s;
    errno = 0;
    *out = gv_is_digits(given) ? strtoull(given, NULL, 10) : 0;
    return gv_is_digits(given) && !errno ? 0 : fail(r, cell, "is no whole number of bytes");
}

static int sizes(const struct reader *r, struct gv_profile_tuner *row)
{
    if (size(r, LEAST, &row->min_bytes))
        return -1;
    if (!strcmp(r->w[MOST].s, "-1")) { /* the plugin reads it as its largest number: no end */
        row->max_bytes = 0;
        return 0;
    }
    if (size(r, MOST, &row->max_bytes))
        return -1;
    if (row->max_bytes < row->min_bytes)
        return fail(r, MOST, "is less than min_bytes: the row holds for no size");
    return row->max_bytes ? 0 : fail(r, MOST, "is no size that an operation has");
}

/* Whether NCCL's tuning offers this pair for the operation at all (2.19 to 2.30): else the row does
 * nothing, in that plugin as here. */
static bool offered(const struct gv_profile_tuner *row)
{
    bool scatter = row->op == GV_OP_ALL_GATHER || row->op == GV_OP_REDUCE_SCATTER;
    bool all = row->op == GV_OP_ALL_REDUCE;
    switch (row->algorithm) {
    case GV_ALGO_RING:
        return true;
    case GV_ALGO_TREE:
        return all;
    case GV_ALGO_PAT:
        return scatter && row->protocol == GV_PROTO_SIMPLE;
    case GV_ALGO_COLLNET_DIRECT:
    case GV_ALGO_NVLS:
        return (all || scatter) && row->protocol == GV_PROTO_SIMPLE;
    default:
        return all && row->protocol == GV_PROTO_SIMPLE;
    }
}

static void remarks(struct reader *r, const struct gv_profile_tuner *row)
{
    if (!offered(row))
        gv_import_note(
            r->s, r->line, "NCCL does not offer %s with %s for %s: the row does nothing",
            r->w[ALGORITHM].s, r->w[PROTOCOL].s, r->w[OP].s);
    if (row->nodes > 1)
        gv_import_note(
            r->s, r->line, "for %d nodes: kept, and never used (plans are for one node)",
            row->nodes);
    if (row->pipe_ops != -1 || row->registered != -1)
        gv_import_note(
            r->s, r->line,
            "it asks for %s: kept, and never used (choices are looked up by operation and size)",
            row->pipe_ops != -1 ? "a number of pipeline operations" : "one kind of buffer");
    if (row->max_bytes == UINT32_MAX && !r->said_4g++)
        gv_import_note(
            r->s, r->line,
            "max_bytes is 4 GiB - 1, and is compared as it stands: larger sizes keep NCCL's own "
            "choice (-1 is no end)");
}

static int hidden(const struct reader *r, const struct gv_import_choice *later)
{
    for (int i = 0; i < r->s->nchoices; i++) {
        const struct gv_import_choice *first = &r->s->choices[i];
        if (first->line != later->line && gv_profile_tuner_hides(&first->row, &later->row))
            return gv_error_at(
                r->err, r->t->path, r->line, r->w[LEAST].column,
                "the sizes overlap those of line %u, which holds for the same calls and stands "
                "first; cut the ranges, or put the narrower row (nNodes, nRanks) before the wider",
                first->line);
    }
    return 0;
}

static int row(struct reader *r)
{
    int op, algorithm, protocol, channels;
    struct gv_profile_tuner row = {.pipe_ops = -1, .registered = -1};
    if (r->n < PIPE_OPS || r->n > CELLS)
        return gv_error_at(
            r->err, r->t->path, r->line, 0,
            "the row has %d cells: 8 to 10 are expected (collective_type,min_bytes,max_bytes,"
            "algorithm,protocol,channels,nNodes,nRanks[,numPipeOps[,regBuff]])",
            r->n);
    if (word(r, OP, op_words, 5, &op) || sizes(r, &row) ||
        word(r, ALGORITHM, algorithm_words, GV_ALGO_COUNT, &algorithm) ||
        word(r, PROTOCOL, protocol_words, GV_PROTO_COUNT, &protocol) ||
        number(r, CHANNELS, 1, 64, &channels) || number(r, NODES, 1, 999999, &row.nodes) ||
        number(r, RANKS, 1, 999999, &row.ranks) ||
        (r->n > PIPE_OPS && number(r, PIPE_OPS, 1, 999999, &row.pipe_ops)) ||
        (r->n > REGISTERED && number(r, REGISTERED, 0, 1, &row.registered)))
        return -1;
    if (row.ranks != -1 && row.ranks < row.nodes)
        return fail(r, RANKS, "is less than nNodes: each node has a rank at least");
    row.op = (enum gv_op)op;
    row.algorithm = (enum gv_algo)algorithm;
    row.protocol = (enum gv_proto)protocol;
    row.channels = channels == -1 ? 0 : channels;
    struct gv_import_choice *choice = gv_import_choice(r->s, r->line);
    if (!choice)
        return gv_import_no_memory(r->err);
    choice->row = row;
    remarks(r, &row);
    return hidden(r, choice);
}

/* The heading that a spreadsheet keeps: the names in their order, 8 to 10. */
static bool is_heading(const struct reader *r)
{
    if (r->n < PIPE_OPS || r->n > CELLS)
        return false;
    for (int i = 0; i < r->n; i++)
        if (strcasecmp(r->w[i].s, cell_names[i]))
            return false;
    return true;
}

/* A row of configuration among other texts: an operation and a number, or at least as many cells as
 * a row has with a number second. */
bool gv_import_is_tuner(const char *row)
{
    size_t length = strcspn(row, "\n"), first = strspn(row, " \t\""), cells = 1;
    const char *comma = memchr(row, ',', length);
    if (!comma)
        return false;
    if (!strncasecmp(row + first, cell_names[OP], strlen(cell_names[OP])))
        return true;
    for (size_t i = 0; i < length; i++)
        cells += row[i] == ',';
    const char *second = comma + 1 + strspn(comma + 1, " \t\"");
    if (!strspn(second, "-0123456789") || row + first == comma)
        return false;
    for (int i = 0; i < 5; i++)
        if (!strncasecmp(row + first, op_words[i], strlen(op_words[i])) &&
            strcspn(row + first, " \t,\"") == strlen(op_words[i]))
            return true;
    return cells >= PIPE_OPS;
}

int gv_import_tuner(struct gv_import *im, struct gv_text *t, struct gv_error *err)
{
    struct reader r = {.t = t, .err = err, .s = gv_import_source(im, t, GV_IMPORT_TUNER)};
    bool first = true;
    int rc = r.s ? 0 : gv_import_no_memory(err);
    for (int i = 0; i < t->n && !rc; i++) {
        char *room = strdup(t->lines[i]);
        r.line = (unsigned)i + 1;
        if (!room)
            rc = gv_import_no_memory(err);
        else if (room[strspn(room, " \t")] && room[strspn(room, " \t")] != '#') {
            r.n = gv_words(room, ',', r.w);
            while (r.n && !*r.w[r.n - 1].s) /* a spreadsheet's empty cells, as that plugin has it */
                r.n--;
            rc = first && is_heading(&r) ? 0 : row(&r);
            first = false;
        }
        free(room);
    }
    if (!rc && !r.s->nchoices)
        rc = gv_error_at(err, t->path, 0, 0, "there is no row in it");
    return rc;
}
