/* nccl-tests' JSON (2.17 on): the same run, field by field. Its lines are found by counting keys.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "profiler/import/table.h"

struct reader {
    struct gv_import *im;
    const struct gv_text *t;
    struct gv_error *err;
    struct gv_run run;
};

/* The line of the n-th `key` in the file, 0 where there are fewer. */
static unsigned line_of(const struct gv_text *t, const char *key, size_t n)
{
    for (int i = 0; i < t->n; i++)
        for (const char *at = strstr(t->lines[i], key); at; at = strstr(at + 1, key))
            if (n-- == 0)
                return (unsigned)i + 1;
    return 0;
}

static const char *word(const json_t *o, const char *key)
{
    const char *text = json_string_value(json_object_get(o, key));
    return text ? text : "";
}

static bool whole(const json_t *o, const char *key, uint64_t *out)
{
    const json_t *value = json_object_get(o, key);
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return false;
    *out = (uint64_t)json_integer_value(value);
    return true;
}

/* Numbers may stand as text. */
static bool number(const json_t *o, const char *key, double *out)
{
    const json_t *value = json_object_get(o, key);
    if (json_is_number(value))
        return *out = json_number_value(value), true;
    return json_is_string(value) && gv_is_number(json_string_value(value), out);
}

static bool read_half(const json_t *o, struct gv_half *h)
{
    if (!o || json_is_null(o))
        return true;
    h->there = true;
    h->checked = number(o, "nwrong", &h->wrong);
    return number(o, "time", &h->time_us) && number(o, "alg_bw", &h->algbw_gbs) &&
           number(o, "bus_bw", &h->busbw_gbs) &&
           (h->checked || json_is_null(json_object_get(o, "nwrong")));
}

static int row(struct reader *r, const json_t *o, size_t i)
{
    unsigned line = line_of(r->t, "\"size\"", i);
    struct gv_row *row = gv_run_row(&r->run, line);
    if (!row)
        return gv_import_no_memory(r->err);
    const char *root = word(o, "root");
    root += strspn(root, " ");
    row->root = gv_small(root);
    if (json_is_integer(json_object_get(o, "root")))
        row->root = (int)json_integer_value(json_object_get(o, "root"));
    snprintf(row->type, sizeof(row->type), "%.15s", word(o, "type"));
    snprintf(row->redop, sizeof(row->redop), "%.15s", word(o, "redop"));
    if (whole(o, "size", &row->bytes) && whole(o, "count", &row->count) &&
        read_half(json_object_get(o, "out_of_place"), &row->out) &&
        read_half(json_object_get(o, "in_place"), &row->in) && (row->out.there || row->in.there))
        return 0;
    return gv_error_at(
        r->err, r->t->path, line, 0,
        "this result lacks size, count, or a half with time, alg_bw, bus_bw and nwrong (a cpu_time "
        "is no time of the operation)");
}

static int device(struct reader *r, const json_t *o, size_t i)
{
    struct gv_device d = {.line = line_of(r->t, "\"device_hex\"", i)};
    uint64_t rank, index;
    if (!whole(o, "rank", &rank) || !whole(o, "device", &index) || !*word(o, "hostname") ||
        rank > 1 << 20 || index > 1 << 20)
        return gv_error_at(
            r->err, r->t->path, d.line, 0, "device %zu lacks rank, device or hostname", i);
    d.rank = (int)rank;
    d.device = (int)index;
    snprintf(d.host, sizeof(d.host), "%.63s", word(o, "hostname"));
    snprintf(d.bus, sizeof(d.bus), "%.19s", word(o, "device_hex"));
    snprintf(d.model, sizeof(d.model), "%.63s", word(o, "device_info"));
    if (r->run.ndevices < GV_MAX_GPUS)
        r->run.devices[r->run.ndevices++] = d;
    r->run.nranks++;
    return 0;
}

/* Several threads or GPUs in a process: 2.17 to 2.19 list the first of each process alone. */
static int check_devices(struct reader *r, const json_t *config)
{
    uint64_t threads = 1, gpus = 1;
    whole(config, "nthreads", &threads);
    whole(config, "ngpus", &gpus);
    if (threads > 64 || gpus > 64 || threads * gpus <= (uint64_t)r->run.nranks || !r->run.nranks)
        return 0;
    if (r->im->options.ngpus > 0) {
        r->run.ndevices = r->run.nranks = 0;
        return 0;
    }
    return gv_error_at(
        r->err, r->t->path, line_of(r->t, "\"devices\"", 0), 0,
        "%d devices are listed, but a process ran %d: name all GPUs with --gpus, in the order of "
        "ranks",
        r->run.nranks, (int)(threads * gpus));
}

static int config(struct reader *r, const json_t *o)
{
    const json_t *devices = json_object_get(o, "devices");
    uint64_t step = 0, validation;
    r->run.header_line = r->run.line = line_of(r->t, "\"config\"", 0);
    r->run.factor = whole(o, "step_factor", &step);
    r->run.has_sizes = (r->run.factor || whole(o, "step_bytes", &step)) &&
                       whole(o, "minimum_bytes", &r->run.min_bytes) &&
                       whole(o, "maximum_bytes", &r->run.max_bytes) && step > 0;
    r->run.step = step;
    if (whole(o, "validation", &validation))
        r->run.validation = validation > 0;
    for (size_t i = 0; i < json_array_size(devices); i++)
        if (device(r, json_array_get(devices, i), i))
            return -1;
    return check_devices(r, o);
}

static void program(struct reader *r, const json_t *args)
{
    const char *path = json_string_value(json_array_get(args, 0));
    const char *name = path && strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    const char *end = name ? strstr(name, "_perf") : NULL;
    if (end && end - name < 50)
        snprintf(r->run.program, sizeof(r->run.program), "%.*s", (int)(end - name) + 5, name);
    r->run.program_line = line_of(r->t, "\"args\"", 0);
}

static void settings(struct reader *r, const json_t *env)
{
    char name[40], value[64];
    for (size_t i = 0; i < json_array_size(env); i++) {
        const char *s = json_string_value(json_array_get(env, i));
        if (s && sscanf(s, "%39[A-Z0-9_]=%63s", name, value) == 2 && !strncmp(name, "NCCL_", 5))
            gv_run_setting(&r->run, line_of(r->t, name, 0), name, value);
    }
}

static int read_root(struct reader *r, const json_t *root)
{
    const json_t *results = json_object_get(root, "results");
    uint64_t version = 0;
    if (json_is_array(json_object_get(results, "table")))
        results = json_object_get(results, "table");
    if (!json_is_array(results) || !json_is_object(json_object_get(root, "config")))
        return gv_error_at(
            r->err, r->t->path, 0, 0,
            "it has no config and results: it is no JSON of nccl-tests, or its run did not end");
    if (whole(root, "nccl_version", &version) && version < 1000000)
        snprintf(
            r->run.nccl, sizeof(r->run.nccl), "%d.%d.%d", (int)version / 10000,
            (int)version / 100 % 100, (int)version % 100);
    program(r, json_object_get(root, "args"));
    settings(r, json_object_get(root, "env"));
    if (config(r, json_object_get(root, "config")))
        return -1;
    for (size_t i = 0; i < json_array_size(results); i++)
        if (row(r, json_array_get(results, i), i))
            return -1;
    return 0;
}

/* The end of the run: out of bounds and the average. */
static int read_end(struct reader *r, const json_t *root)
{
    const json_t *results = json_object_get(root, "results"), *bounds = NULL;
    const json_t *places[] = {root, results};
    for (int i = 0; i < 2; i++) {
        bounds = bounds ? bounds : json_object_get(places[i], "out_of_bounds");
        const json_t *average = json_object_get(places[i], "average_bus_bandwidth");
        if (json_is_object(average))
            number(average, "bandwidth", &r->run.average);
        else
            number(places[i], "average_bus_bandwidth", &r->run.average);
    }
    r->run.average_line = line_of(r->t, "\"average_bus_bandwidth\"", 0);
    double wrong = 0;
    bool told = number(bounds, "out_of_bounds", &wrong) || number(bounds, "count", &wrong);
    const char *okay = word(bounds, "okay");
    if (wrong != 0 || (*okay && strcmp(okay, "true")))
        return gv_error_at(
            r->err, r->t->path, line_of(r->t, "\"out_of_bounds\"", 0), 0,
            "the results were wrong: figures of wrong results are none");
    r->run.has_bounds = told || *okay;
    return 0;
}

int gv_import_nccl_tests_json(struct gv_import *im, struct gv_text *t, struct gv_error *err)
{
    json_error_t at;
    struct reader r = {
        .im = im,
        .t = t,
        .err = err,
        .run = {.validation = -1, .average = NAN, .wrong_column = true}};
    json_t *root = json_loadb(t->raw, t->len, 0, &at);
    if (!root)
        return gv_error_at(
            err, t->path, (unsigned)(at.line > 0 ? at.line : 0),
            (unsigned)(at.column > 0 ? at.column : 0), "%s: the JSON is damaged or cut", at.text);
    int rc = read_root(&r, root);
    if (!rc)
        rc = read_end(&r, root);
    if (!rc)
        rc = gv_run_take(im, t, &r.run, GV_IMPORT_NCCL_TESTS_JSON, err);
    free(r.run.rows);
    json_decref(root);
    return rc;
}
