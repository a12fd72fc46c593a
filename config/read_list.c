/* Reads values that are written as a list or a map of numbers: figures, rings, pairs, samples. */
#include <stdlib.h>
#include <string.h>

#include "config/gv_profile.h"
#include "config/schema.h"

static const struct gv_yaml_node *node_of(const struct gv_reader *r, int node)
{
    return &r->tree->nodes[node];
}

static void set_count(const struct gv_field *f, void *object, int n)
{
    memcpy((char *)object + f->count_offset, &n, sizeof(n));
}

static int get_count(const struct gv_field *f, const void *object)
{
    int n;
    memcpy(&n, (const char *)object + f->count_offset, sizeof(n));
    return n;
}

/* A list with at most f->limit entries; 0, or -1 with the error set. */
static int expect_list(struct gv_reader *r, int node, const struct gv_field *f, const char *how)
{
    const struct gv_yaml_node *list = node_of(r, node);
    if (list->kind != GV_YAML_LIST)
        return gv_reader_fail(r, node, "%s: a list is expected, as in %s", f->key, how);
    if (f->limit && list->nchildren > f->limit)
        return gv_reader_fail(
            r, node, "%s: %d entries, more than %d", f->key, list->nchildren, f->limit);
    return 0;
}

static int
figure_part(struct gv_reader *r, int node, const struct gv_field *f, const char *part, double *out)
{
    int value = gv_yaml_value(r->tree, node, part);
    if (value < 0)
        return gv_reader_fail(
            r, node, "%s: '%s' is missing; a figure is a number or {median:, min:, max:, count:}",
            f->key, part);
    return gv_read_number(r, value, part, f->min, f->max, out);
}

static int figure_keys(struct gv_reader *r, int node, const struct gv_field *f)
{
    static const char *const known[] = {"median", "min", "max", "count"};
    unsigned seen = 0;
    for (int k = node_of(r, node)->first; k >= 0; k = node_of(r, node_of(r, k)->next)->next) {
        const char *key = node_of(r, k)->kind == GV_YAML_SCALAR ? node_of(r, k)->text : "";
        unsigned i = 0;
        while (i < 4 && strcmp(key, known[i]))
            i++;
        if (i == 4)
            return gv_reader_fail(
                r, k, "unknown key '%.60s' in %s; a figure has median, min, max, count", key,
                f->key);
        if (seen >> i & 1)
            return gv_reader_fail(r, k, "'%s' stands twice in %s", key, f->key);
        seen |= 1u << i;
    }
    return 0;
}

static int
read_figure(struct gv_reader *r, int node, const struct gv_field *f, struct gv_figure *out)
{
    if (node_of(r, node)->kind != GV_YAML_MAP) {
        double value;
        if (gv_read_number(r, node, f->key, f->min, f->max, &value))
            return -1;
        *out = (struct gv_figure){value, value, value, 1};
        return 0;
    }
    struct gv_figure figure;
    if (figure_keys(r, node, f) || figure_part(r, node, f, "median", &figure.median) ||
        figure_part(r, node, f, "min", &figure.min) || figure_part(r, node, f, "max", &figure.max))
        return -1;
    int count = gv_yaml_value(r->tree, node, "count");
    if (count < 0)
        return gv_reader_fail(r, node, "%s: 'count' is missing", f->key);
    if (gv_read_int(r, count, "count", 1, 1e9, &figure.count))
        return -1;
    if (figure.min > figure.median || figure.median > figure.max)
        return gv_reader_fail(r, node, "%s: min, median, max are not in rising order", f->key);
    *out = figure;
    return 0;
}

static int read_order(struct gv_reader *r, int node, const struct gv_field *f, void *object)
{
    if (expect_list(r, node, f, "[0, 1, 2]"))
        return -1;
    int *out = (int *)((char *)object + f->offset), n = 0;
    gv_gpuset seen = 0;
    for (int c = node_of(r, node)->first; c >= 0; c = node_of(r, c)->next) {
        if (gv_read_gpu(r, c, f->key, &out[n]))
            return -1;
        if (gv_gpuset_has(seen, out[n]))
            return gv_reader_fail(r, c, "%s: GPU %d is named twice", f->key, out[n]);
        seen |= GV_GPU_BIT(out[n]);
        n++;
    }
    set_count(f, object, n);
    return 0;
}

static int read_pair(struct gv_reader *r, int node, const struct gv_field *f, int out[2])
{
    const struct gv_yaml_node *pair = node_of(r, node);
    if (pair->kind != GV_YAML_LIST || pair->nchildren != 2)
        return gv_reader_fail(
            r, node, "%s: each entry is a pair of GPUs, as in [[4, 5], [8, 0]]", f->key);
    if (gv_read_gpu(r, pair->first, f->key, &out[0]) ||
        gv_read_gpu(r, node_of(r, pair->first)->next, f->key, &out[1]))
        return -1;
    if (out[0] == out[1])
        return gv_reader_fail(r, node, "%s: GPU %d is paired with itself", f->key, out[0]);
    return 0;
}

static int read_pairs(struct gv_reader *r, int node, const struct gv_field *f, void *object)
{
    if (expect_list(r, node, f, "[[4, 5], [8, 0]]"))
        return -1;
    int(*out)[2] = (int(*)[2])((char *)object + f->offset), n = 0;
    for (int c = node_of(r, node)->first; c >= 0; c = node_of(r, c)->next) {
        if (read_pair(r, c, f, out[n]))
            return -1;
        for (int i = 0; i < n; i++)
            if (out[i][0] == out[n][0] && out[i][1] == out[n][1])
                return gv_reader_fail(
                    r, c, "%s: the pair %d, %d stands twice", f->key, out[n][0], out[n][1]);
        n++;
    }
    set_count(f, object, n);
    if (f->known_offset != GV_NO_OFFSET)
        *(bool *)((char *)object + f->known_offset) = true;
    return 0;
}

static int read_samples(struct gv_reader *r, int node, const struct gv_field *f, void *object)
{
    if (expect_list(r, node, f, "[6.75, 6.89]"))
        return -1;
    int n = node_of(r, node)->nchildren;
    if (!n)
        return gv_reader_fail(r, node, "%s: a run without samples", f->key);
    double *out = calloc((size_t)n, sizeof(*out));
    if (!out)
        return gv_reader_fail(r, node, "out of memory");
    memcpy((char *)object + f->offset, &out, sizeof(out));
    set_count(f, object, n);
    for (int c = node_of(r, node)->first; c >= 0; c = node_of(r, c)->next) {
        if (gv_read_number(r, c, f->key, f->min, f->max, out))
            return -1;
        if (*out++ == 0)
            return gv_reader_fail(r, c, "%s: a sample of 0 measured nothing", f->key);
    }
    return 0;
}

static int read_flags(struct gv_reader *r, int node, const struct gv_field *f, void *object)
{
    if (expect_list(r, node, f, "[false, true]"))
        return -1;
    int n = node_of(r, node)->nchildren, samples = get_count(f, object);
    if (n != samples)
        return gv_reader_fail(r, node, "%s: %d values for %d samples", f->key, n, samples);
    bool *out = calloc((size_t)n, sizeof(*out));
    if (!out)
        return gv_reader_fail(r, node, "out of memory");
    memcpy((char *)object + f->offset, &out, sizeof(out));
    for (int c = node_of(r, node)->first; c >= 0; c = node_of(r, c)->next)
        if (gv_read_bool(r, c, f->key, out++))
            return -1;
    return 0;
}

static int read_ops(struct gv_reader *r, int node, const struct gv_field *f, unsigned *out)
{
    if (expect_list(r, node, f, "[AllReduce, AllGather]"))
        return -1;
    unsigned bits = 0;
    for (int c = node_of(r, node)->first; c >= 0; c = node_of(r, c)->next) {
        const char *word = node_of(r, c)->kind == GV_YAML_SCALAR ? node_of(r, c)->text : "";
        int op = gv_op_from_name(word);
        if (op < 0) {
            const char *near = gv_names_nearest(&gv_names_op, word);
            return gv_reader_fail(
                r, c, "%s: operation '%.40s' is not known%s%s%s", f->key, word,
                near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
        }
        bits |= GV_OP_BIT(op);
    }
    if (!bits)
        return gv_reader_fail(r, node, "%s: the list is empty; leave it out for any", f->key);
    *out = bits;
    return 0;
}

int gv_read_listed(struct gv_reader *r, int node, const struct gv_field *f, void *object)
{
    void *out = (char *)object + f->offset;
    switch (f->type) {
    case GV_T_FIGURE:
        return read_figure(r, node, f, out);
    case GV_T_ORDER:
        return read_order(r, node, f, object);
    case GV_T_PAIRS:
        return read_pairs(r, node, f, object);
    case GV_T_SAMPLES:
        return read_samples(r, node, f, object);
    case GV_T_FLAGS:
        return read_flags(r, node, f, object);
    default:
        return read_ops(r, node, f, out);
    }
}
