#include "profiler/compare/gv_histogram.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/gv_size.h"
#include "profiler/collective/gv_collective.h"

#define LINE 2048

static int add(struct gv_histogram *h, enum gv_op op, uint64_t bytes, double calls)
{
    for (int i = 0; i < h->n; i++)
        if (h->rows[i].op == op && h->rows[i].bytes == bytes) {
            h->rows[i].calls += calls;
            return 0;
        }
    struct gv_histogram_row *grown = realloc(h->rows, sizeof(*grown) * (size_t)(h->n + 1));
    if (!grown)
        return -1;
    h->rows = grown;
    h->rows[h->n++] = (struct gv_histogram_row){op, bytes, calls};
    return 0;
}

/* The call that a line of NCCL's log tells of. False: none. */
static bool log_call(const char *line, enum gv_op *op, uint64_t *bytes)
{
    static const enum gv_op ops[] = {
        GV_OP_ALL_REDUCE, GV_OP_ALL_GATHER, GV_OP_REDUCE_SCATTER, GV_OP_BROADCAST, GV_OP_REDUCE};
    const char *text = strstr(line, "NCCL INFO "), *count = strstr(line, " count ");
    const char *type = strstr(line, " datatype "), *ranks = strstr(line, "[nranks=");
    if (!text || !count || !type || !strstr(text, ": opCount "))
        return false;
    text += strlen("NCCL INFO ");
    int t = atoi(type + strlen(" datatype ")), n = ranks ? atoi(ranks + 8) : 1;
    unsigned long long elements = strtoull(count + strlen(" count "), NULL, 10);
    if (t < 0 || t >= GV_TYPE_COUNT || !elements)
        return false;
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        const char *name = gv_op_name(ops[i]);
        if (strncmp(text, name, strlen(name)) || text[strlen(name)] != ':')
            continue;
        bool pieces = ops[i] == GV_OP_ALL_GATHER || ops[i] == GV_OP_REDUCE_SCATTER;
        *op = ops[i];
        return !__builtin_mul_overflow(
            elements,
            (uint64_t)gv_type_bytes((enum gv_type)t) * (uint64_t)(pieces && n > 0 ? n : 1), bytes);
    }
    return false;
}

/* "host:pid:" before NCCL's text: who speaks. */
static void speaker(const char *line, char *out, size_t size)
{
    const char *end = strstr(line, " NCCL INFO "), *colon = NULL;
    out[0] = 0;
    for (const char *p = line; end && p < end; p++)
        if (*p == ':')
            colon = colon ? colon : p;
    const char *second = colon ? strchr(colon + 1, ':') : NULL;
    if (second && second < end)
        snprintf(out, size, "%.*s", (int)(second - line), line);
}

struct reading {
    const char *path;
    struct gv_histogram *h;
    struct gv_error *err;
    unsigned line;
    char first[256]; /* the process whose calls count */
};

static int log_line(struct reading *r, const char *line)
{
    char who[256];
    enum gv_op op;
    uint64_t bytes;
    if (!log_call(line, &op, &bytes))
        return 0;
    speaker(line, who, sizeof(who));
    if (!r->h->from_log)
        memcpy(r->first, who, sizeof(who));
    r->h->from_log = true;
    return strcmp(who, r->first) ? 0 : add(r->h, op, bytes, 1);
}

static int table_line(struct reading *r, char *line)
{
    char *save = NULL, *end, *words[4] = {0};
    struct gv_error why;
    uint64_t bytes;
    int n = 0;
    line[strcspn(line, "#\r\n")] = 0;
    for (char *w = strtok_r(line, " \t,", &save); w; w = strtok_r(NULL, " \t,", &save))
        if (n < 4)
            words[n++] = w;
    if (!n)
        return 0;
    if (n != 3)
        return gv_error_at(r->err, r->path, r->line, 0, "SIZE OPERATION CALLS is expected");
    if (gv_size_parse(words[0], &bytes, &why))
        return gv_error_at(r->err, r->path, r->line, 0, "%.200s", why.text);
    if (!bytes)
        return gv_error_at(r->err, r->path, r->line, 0, "a size of 0 bytes moves nothing");
    int op = gv_op_from_name(words[1]);
    double calls = strtod(words[2], &end);
    if (op < 0)
        return gv_error_at(r->err, r->path, r->line, 0, "'%.60s' is no operation", words[1]);
    if (*end || !(calls > 0) || calls > 1e15)
        return gv_error_at(r->err, r->path, r->line, 0, "'%.60s' is no number of calls", words[2]);
    return add(r->h, (enum gv_op)op, bytes, calls) ? gv_error_set(r->err, "out of memory") : 0;
}

static bool looks_like_log(FILE *f)
{
    char line[LINE];
    bool log = false;
    for (int i = 0; i < 200 && !log && fgets(line, sizeof(line), f); i++)
        log = strstr(line, "NCCL INFO ") || strstr(line, "NCCL version");
    rewind(f);
    return log;
}

static int by_op_and_size(const void *a, const void *b)
{
    const struct gv_histogram_row *x = a, *y = b;
    if (x->op != y->op)
        return x->op < y->op ? -1 : 1;
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

int gv_histogram_read(const char *path, struct gv_histogram *out, struct gv_error *err)
{
    struct reading r = {.path = path, .h = out, .err = err};
    char line[LINE];
    int rc = 0;
    *out = (struct gv_histogram){0};
    FILE *f = fopen(path, "re");
    if (!f)
        return gv_error_at(err, path, 0, 0, "cannot be read: %s", strerror(errno));
    bool log = looks_like_log(f);
    while (!rc && fgets(line, sizeof(line), f)) {
        r.line++;
        rc = log ? log_line(&r, line) : table_line(&r, line);
    }
    fclose(f);
    if (!rc && !out->n)
        rc = gv_error_at(
            err, path, 0, 0,
            log ? "this NCCL log holds no calls; NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=COLL logs them"
                : "holds no line SIZE OPERATION CALLS");
    if (rc)
        gv_histogram_finish(out);
    else
        qsort(out->rows, (size_t)out->n, sizeof(*out->rows), by_op_and_size);
    return rc;
}

void gv_histogram_finish(struct gv_histogram *h)
{
    free(h->rows);
    *h = (struct gv_histogram){0};
}
