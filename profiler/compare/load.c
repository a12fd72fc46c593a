/* A saved comparison read again. Only samples, wiring and settings are taken; all that was derived
 * is derived anew. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/collective/gv_release.h"
#include "profiler/compare/parts.h"

int gv_load_bad(const struct gv_loading *l, const char *what)
{
    return gv_error_at(l->err, l->path, 0, 0, "is no saved comparison: %s", what);
}

void gv_load_text(char *to, size_t size, const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    snprintf(to, size, "%.*s", (int)size - 1, text ? text : "");
}

double gv_load_number(const json_t *value)
{
    return json_is_number(value) ? json_number_value(value) : NAN;
}

int gv_load_small(const json_t *value, int most)
{
    json_int_t n = json_is_integer(value) ? json_integer_value(value) : -1;
    return n >= 0 && n < most ? (int)n : -1;
}

static int load_head(const struct gv_loading *l, const json_t *root)
{
    struct gv_compared *c = l->out;
    char version[16], hash[20];
    const json_t *nccl = json_object_get(root, "nccl"), *gpus = json_object_get(root, "gpus");
    const json_t *bus_ids = json_object_get(root, "bus_ids");
    const json_t *models = json_object_get(root, "models");
    if (gv_load_small(json_object_get(root, "gv100_compare"), 1000) != GV_COMPARED_SCHEMA)
        return gv_load_bad(l, "gv100_compare is not 2");
    gv_load_text(c->host, sizeof(c->host), root, "host");
    gv_load_text(c->driver, sizeof(c->driver), root, "driver");
    gv_load_text(c->date, sizeof(c->date), root, "date");
    gv_load_text(c->tool, sizeof(c->tool), root, "tool");
    gv_load_text(c->profile, sizeof(c->profile), root, "profile");
    gv_load_text(c->run.nccl_path, sizeof(c->run.nccl_path), nccl, "path");
    gv_load_text(version, sizeof(version), nccl, "version");
    c->run.nccl_version = gv_nccl_parse(version);
    gv_load_text(hash, sizeof(hash), root, "profile_hash");
    c->profile_hash = strtoull(hash, NULL, 16);
    c->virtual_machine = json_is_true(json_object_get(root, "virtual"));
    c->thin = json_is_true(json_object_get(root, "thin"));
    c->min_gain = gv_load_number(json_object_get(root, "min_gain"));
    c->max_loss = gv_load_number(json_object_get(root, "max_loss"));
    size_t n = json_array_size(gpus);
    if (!n || n > GV_MAX_GPUS || json_array_size(bus_ids) != n || isnan(c->min_gain) ||
        isnan(c->max_loss))
        return gv_load_bad(l, "gpus, bus_ids, min_gain or max_loss");
    c->run.nranks = (int)n;
    for (size_t i = 0; i < n; i++) {
        const char *id = json_string_value(json_array_get(bus_ids, i));
        c->run.gpu[i] = gv_load_small(json_array_get(gpus, i), GV_MAX_GPUS);
        const char *model = json_string_value(json_array_get(models, i));
        snprintf(c->bus_id[i], sizeof(c->bus_id[i]), "%.19s", id ? id : "");
        snprintf(c->model[i], sizeof(c->model[i]), "%.63s", model ? model : "");
        if (c->run.gpu[i] < 0)
            return gv_load_bad(l, "gpus");
    }
    return 0;
}

static int load_ring(const struct gv_loading *l, const json_t *ring, int s)
{
    struct gv_wiring *w = &l->out->run.wiring[s];
    struct gv_compared_ring *r = &l->out->ring[s];
    const json_t *order = json_object_get(ring, "order"), *edges = json_object_get(ring, "edges");
    size_t n = json_array_size(order);
    if (n > GV_MAX_GPUS || json_array_size(edges) != n)
        return gv_load_bad(l, "ring");
    w->nring = r->n = (int)n;
    for (size_t i = 0; i < n; i++) {
        const json_t *e = json_array_get(edges, i);
        struct gv_compared_edge *edge = &r->edge[i];
        w->ring[i] = gv_load_small(json_array_get(order, i), GV_MAX_GPUS);
        edge->from = gv_load_small(json_object_get(e, "from"), GV_MAX_GPUS);
        edge->to = gv_load_small(json_object_get(e, "to"), GV_MAX_GPUS);
        if (w->ring[i] < 0 || edge->from < 0 || edge->to < 0)
            return gv_load_bad(l, "ring");
        gv_load_text(edge->path, sizeof(edge->path), e, "path");
        gv_load_text(edge->transport, sizeof(edge->transport), e, "transport");
        edge->gbs = gv_load_number(json_object_get(e, "gbs"));
        w->edge[i].from = edge->from;
        w->edge[i].to = edge->to;
        memcpy(w->edge[i].transport, edge->transport, sizeof(edge->transport));
    }
    r->slowest = gv_load_small(json_object_get(ring, "slowest"), r->n);
    return 0;
}

static int load_variants(const struct gv_loading *l, const json_t *root)
{
    struct gv_compared *c = l->out;
    const json_t *list = json_object_get(root, "variants");
    const char *base = json_string_value(json_object_get(root, "base"));
    size_t n = json_array_size(list);
    char version[16];
    if (!n || n > GV_MAX_STEERS || !base)
        return gv_load_bad(l, "variants");
    c->base = -1;
    for (size_t s = 0; s < n; s++) {
        const json_t *v = json_array_get(list, s);
        struct gv_steer *steer = &c->run.steer[s];
        struct gv_wiring *w = &c->run.wiring[s];
        gv_load_text(steer->name, sizeof(steer->name), v, "name");
        gv_load_text(steer->force, sizeof(steer->force), v, "force");
        gv_load_text(version, sizeof(version), v, "nccl");
        w->nccl_version = gv_nccl_parse(version);
        gv_load_text(w->decided, sizeof(w->decided), v, "decided");
        gv_load_text(w->plugin_transport, sizeof(w->plugin_transport), v, "plugin_transport");
        w->channels = gv_load_small(json_object_get(v, "channels"), 1024);
        if (load_ring(l, json_object_get(v, "ring"), (int)s))
            return -1;
        if (!strcmp(steer->name, base))
            c->base = (int)s;
    }
    c->run.nsteers = (int)n;
    return c->base < 0 ? gv_load_bad(l, "base") : 0;
}

static int load_case(const struct gv_loading *l, const json_t *r, struct gv_case *out)
{
    const char *op = json_string_value(json_object_get(r, "operation"));
    const char *type = json_string_value(json_object_get(r, "type"));
    const char *redop = json_string_value(json_object_get(r, "redop"));
    const json_t *size = json_object_get(r, "size");
    int o = op ? gv_op_from_name(op) : -1, t = type ? gv_type_from_name(type) : -1;
    int d = redop && strcmp(redop, "none") ? gv_redop_from_name(redop) : 0;
    if (o < 0 || t < 0 || d < 0 || !json_is_integer(size) || json_integer_value(size) <= 0)
        return gv_load_bad(l, "operation, size, type or redop of a result");
    *out = (struct gv_case){
        .op = (enum gv_op)o,
        .bytes = (uint64_t)json_integer_value(size),
        .type = (enum gv_type)t,
        .redop = (enum gv_redop)d,
        .in_place = json_is_true(json_object_get(r, "in_place")),
    };
    return 0;
}

static bool same_case(const struct gv_case *a, const struct gv_case *b)
{
    return a->op == b->op && a->bytes == b->bytes && a->type == b->type && a->redop == b->redop &&
           a->in_place == b->in_place;
}

static int load_cell(const struct gv_loading *l, const json_t *r, struct gv_cell *cell)
{
    const json_t *times = json_object_get(r, "times"), *first = json_object_get(r, "first_times");
    const json_t *throttled = json_object_get(r, "throttled");
    size_t n = json_array_size(times);
    if (n > GV_MAX_REPEATS || json_array_size(first) != n)
        return gv_load_bad(l, "times of a result");
    cell->count = (int)n;
    for (size_t i = 0; i < n; i++) {
        cell->time_us[i] = gv_load_number(json_array_get(times, i));
        cell->first_us[i] = gv_load_number(json_array_get(first, i));
    }
    for (size_t i = 0; i < json_array_size(throttled); i++) {
        int at = gv_load_small(json_array_get(throttled, i), cell->count);
        if (at < 0)
            return gv_load_bad(l, "throttled of a result");
        cell->throttled[at] = true;
    }
    json_int_t wrong = json_integer_value(json_object_get(r, "nwrong"));
    cell->wrong = wrong > 0 ? (uint64_t)wrong : 0;
    cell->bound = gv_load_number(json_object_get(r, "bound"));
    gv_load_text(cell->error, sizeof(cell->error), r, "error");
    return 0;
}

static int load_results(const struct gv_loading *l, const json_t *root)
{
    struct gv_collective *run = &l->out->run;
    const json_t *list = json_object_get(root, "results");
    size_t n = json_array_size(list), each = n / (size_t)run->nsteers;
    if (!each || each > GV_MAX_CASES || n != each * (size_t)run->nsteers)
        return gv_load_bad(l, "results");
    run->ncases = (int)each;
    run->cell = calloc(n, sizeof(*run->cell));
    if (!run->cell)
        return gv_error_set(l->err, "out of memory");
    for (size_t i = 0; i < n; i++) {
        const json_t *r = json_array_get(list, i);
        struct gv_case what;
        const char *variant = json_string_value(json_object_get(r, "variant"));
        if (!variant || strcmp(variant, run->steer[i / each].name))
            return gv_load_bad(l, "results are not in the order of the variants");
        if (load_case(l, r, &what) || load_cell(l, r, &run->cell[i]))
            return -1;
        if (i < each)
            run->cases[i] = what;
        else if (!same_case(&run->cases[i % each], &what))
            return gv_load_bad(l, "variants were measured with different sizes");
    }
    return 0;
}

static int steer_named(const struct gv_compared *c, const char *name)
{
    for (int s = 0; name && s < c->run.nsteers; s++)
        if (!strcmp(c->run.steer[s].name, name))
            return s;
    return -1;
}

static int load_witness(const struct gv_loading *l, const json_t *witness)
{
    struct gv_compared *c = l->out;
    const json_t *list = json_object_get(witness, "results");
    size_t n = json_array_size(list);
    gv_load_text(c->witness_program, sizeof(c->witness_program), witness, "program");
    c->witness = calloc(n ? n : 1, sizeof(*c->witness));
    if (!c->witness)
        return gv_error_set(l->err, "out of memory");
    for (size_t i = 0; i < n; i++) {
        const json_t *r = json_array_get(list, i);
        const char *op = json_string_value(json_object_get(r, "operation"));
        struct gv_witness w = {
            .steer = steer_named(c, json_string_value(json_object_get(r, "variant"))),
            .bytes = (uint64_t)json_integer_value(json_object_get(r, "size")),
            .in_place = json_is_true(json_object_get(r, "in_place")),
            .algbw_gbs = gv_load_number(json_object_get(r, "alg_bw")),
            .busbw_gbs = gv_load_number(json_object_get(r, "bus_bw")),
        };
        int found = op ? gv_op_from_name(op) : -1;
        if (found < 0 || w.steer < 0)
            return gv_load_bad(l, "witness");
        w.op = (enum gv_op)found;
        c->witness[c->nwitness++] = w;
    }
    return 0;
}

static int load_notes(const struct gv_loading *l, const json_t *list)
{
    struct gv_compared *c = l->out;
    if (json_array_size(list) > GV_MAX_NOTES)
        return gv_load_bad(l, "notes");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *text = json_string_value(json_array_get(list, i));
        gv_compared_note(c, "%.255s", text ? text : "");
    }
    return 0;
}

static int load_all(const struct gv_loading *l, const json_t *root)
{
    if (load_head(l, root) || load_variants(l, root) || load_results(l, root) ||
        load_witness(l, json_object_get(root, "witness")) ||
        gv_settings_load(l, json_object_get(root, "settings")) ||
        gv_origins_load(l, json_object_get(root, "origins")) ||
        load_notes(l, json_object_get(root, "notes")) ||
        gv_compared_job_load(l, json_object_get(root, "job")))
        return -1;
    return l->out->measured || l->out->norigins ? 0 : gv_load_bad(l, "settings and origins");
}

int gv_compared_load(const char *path, struct gv_compared *out, struct gv_error *err)
{
    struct gv_loading l = {path, out, err};
    json_error_t why;
    memset(out, 0, sizeof(*out));
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &why);
    if (!root)
        return gv_error_at(
            err, path, why.line > 0 ? (unsigned)why.line : 0,
            why.column > 0 ? (unsigned)why.column : 0, "%s", why.text);
    int rc = load_all(&l, root);
    snprintf(out->loaded, sizeof(out->loaded), "%s", path);
    json_decref(root);
    if (!rc && gv_compared_judge(out))
        rc = gv_error_set(err, "out of memory");
    if (rc)
        gv_compared_finish(out);
    return rc;
}
