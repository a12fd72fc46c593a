/* How a comparison was made: its settings, or the files that it comes from. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profiler/compare/number.h"
#include "profiler/compare/parts.h"

/* What steers NCCL, CUDA or the plugin; the last two are the testbench's. */
static bool steers(const char *entry)
{
    static const char *const prefixes[] = {
        "NCCL_", "GV100_", "CUDA_VISIBLE_DEVICES=", "CUDA_DEVICE_ORDER=", "GV_HOST_", "GV_VIRTUAL_",
    };
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
        if (!strncmp(entry, prefixes[i], strlen(prefixes[i])))
            return true;
    return false;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int gv_compared_environment(struct gv_compared_settings *settings)
{
    for (char **e = environ; *e && settings->nenvironment < GV_MAX_ENVIRONMENT; e++) {
        if (!steers(*e) || !strchr(*e, '='))
            continue;
        char *copy = strdup(*e);
        if (!copy)
            return -1;
        settings->environment[settings->nenvironment++] = copy;
    }
    qsort(
        settings->environment, (size_t)settings->nenvironment, sizeof(settings->environment[0]),
        by_text);
    return 0;
}

static json_t *environment(const struct gv_compared_settings *s)
{
    json_t *object = json_object();
    for (int i = 0; i < s->nenvironment; i++) {
        const char *equals = strchr(s->environment[i], '=');
        char name[256];
        snprintf(name, sizeof(name), "%.*s", (int)(equals - s->environment[i]), s->environment[i]);
        json_object_set_new(object, name, gv_json_text(equals + 1));
    }
    return object;
}

static json_t *operations(unsigned ops)
{
    json_t *list = json_array();
    for (int op = 0; op < GV_OP_COUNT; op++)
        if (ops >> op & 1)
            json_array_append_new(list, json_string(gv_op_name((enum gv_op)op)));
    return list;
}

static json_t *variants(const struct gv_compared_settings *s)
{
    json_t *list = json_array();
    for (int i = 0; i < s->nvariants; i++)
        json_array_append_new(list, gv_json_text(s->variant[i]));
    return list;
}

static json_t *libraries(const struct gv_compared_settings *s)
{
    json_t *list = json_array();
    for (int i = 0; i < 2; i++)
        if (s->nccl[i][0])
            json_array_append_new(list, gv_json_text(s->nccl[i]));
    return list;
}

json_t *gv_settings_json(const struct gv_compared *c)
{
    const struct gv_compared_settings *s = &c->settings;
    struct gv_str command = {0};
    if (!c->measured)
        return json_null();
    gv_compared_command(c, &command);
    json_t *out = json_pack(
        "{s:o, s:o, s:o, s:o, s:s, s:s, s:I, s:I, s:f, s:b, s:b, s:i, s:i, s:i, s:f, s:I, s:o, "
        "s:o, s:o}",
        "command", gv_json_text(command.data ? command.data : ""), "machine",
        gv_json_text(s->machine), "libraries", libraries(s), "operations", operations(s->ops),
        "type", gv_type_name(s->type), "redop", gv_redop_name(s->redop), "min_bytes",
        (json_int_t)s->min_bytes, "max_bytes", (json_int_t)s->max_bytes, "factor", s->factor,
        "in_place", s->in_place, "threads", s->threads, "repeats", s->repeats, "iterations",
        s->iterations, "ranks_per_gpu", s->ranks_per_gpu, "timeout_s", s->timeout_s, "check_bytes",
        (json_int_t)s->check_bytes, "variants", variants(s), "witness", gv_json_text(s->witness),
        "environment", environment(s));
    gv_str_free(&command);
    return out;
}

static uint64_t whole(const json_t *object, const char *key)
{
    json_int_t n = json_integer_value(json_object_get(object, key));
    return n > 0 ? (uint64_t)n : 0;
}

/* It becomes a word of a command line. */
static bool is_name(const char *name)
{
    return name[0] && strlen(name) < 200 &&
           strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") ==
               strlen(name);
}

static int load_environment(const struct gv_loading *l, json_t *object)
{
    struct gv_compared_settings *s = &l->out->settings;
    const char *name;
    json_t *value;
    json_object_foreach(object, name, value)
    {
        const char *text = json_string_value(value);
        if (!text || s->nenvironment == GV_MAX_ENVIRONMENT || !is_name(name))
            return gv_load_bad(l, "settings.environment");
        if (asprintf(&s->environment[s->nenvironment], "%s=%s", name, text) < 0)
            return gv_error_set(l->err, "out of memory");
        s->nenvironment++;
    }
    return 0;
}

static int load_lists(const struct gv_loading *l, const json_t *settings)
{
    struct gv_compared_settings *s = &l->out->settings;
    const json_t *names = json_object_get(settings, "variants");
    const json_t *files = json_object_get(settings, "libraries");
    const json_t *ops = json_object_get(settings, "operations");
    if (json_array_size(names) > GV_MAX_STEERS || json_array_size(files) > 2)
        return gv_load_bad(l, "settings.variants or settings.libraries");
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *text = json_string_value(json_array_get(names, i));
        snprintf(
            s->variant[s->nvariants++], sizeof(s->variant[0]), "%.*s",
            (int)sizeof(s->variant[0]) - 1, text ? text : "");
    }
    for (size_t i = 0; i < json_array_size(files); i++) {
        const char *text = json_string_value(json_array_get(files, i));
        snprintf(s->nccl[i], sizeof(s->nccl[i]), "%.4095s", text ? text : "");
    }
    for (size_t i = 0; i < json_array_size(ops); i++) {
        const char *text = json_string_value(json_array_get(ops, i));
        int op = text ? gv_op_from_name(text) : -1;
        if (op < 0)
            return gv_load_bad(l, "settings.operations");
        s->ops |= GV_OP_BIT(op);
    }
    return 0;
}

int gv_settings_load(const struct gv_loading *l, const json_t *settings)
{
    struct gv_compared_settings *s = &l->out->settings;
    const char *type = json_string_value(json_object_get(settings, "type"));
    const char *redop = json_string_value(json_object_get(settings, "redop"));
    if (!settings || json_is_null(settings))
        return 0;
    int t = type ? gv_type_from_name(type) : -1, d = redop ? gv_redop_from_name(redop) : -1;
    if (t < 0 || d < 0)
        return gv_load_bad(l, "settings.type or settings.redop");
    l->out->measured = true;
    s->type = (enum gv_type)t;
    s->redop = (enum gv_redop)d;
    gv_load_text(s->machine, sizeof(s->machine), settings, "machine");
    gv_load_text(s->witness, sizeof(s->witness), settings, "witness");
    s->min_bytes = whole(settings, "min_bytes");
    s->max_bytes = whole(settings, "max_bytes");
    s->check_bytes = whole(settings, "check_bytes");
    s->factor = gv_load_number(json_object_get(settings, "factor"));
    s->timeout_s = gv_load_number(json_object_get(settings, "timeout_s"));
    s->in_place = json_is_true(json_object_get(settings, "in_place"));
    s->threads = json_is_true(json_object_get(settings, "threads"));
    s->repeats = gv_load_small(json_object_get(settings, "repeats"), GV_MAX_REPEATS + 1);
    s->iterations = gv_load_small(json_object_get(settings, "iterations"), 100001);
    s->ranks_per_gpu = gv_load_small(json_object_get(settings, "ranks_per_gpu"), GV_MAX_GPUS + 1);
    if (!s->min_bytes || !s->max_bytes || !isfinite(s->factor) || !isfinite(s->timeout_s) ||
        s->repeats < 0 || s->iterations < 0 || s->ranks_per_gpu < 0)
        return gv_load_bad(l, "a number of settings");
    return load_lists(l, settings) || load_environment(l, json_object_get(settings, "environment"))
               ? -1
               : 0;
}

json_t *gv_origins_json(const struct gv_compared *c)
{
    json_t *list = json_array();
    for (int i = 0; i < c->norigins; i++) {
        const struct gv_compared_origin *o = &c->origin[i];
        json_array_append_new(
            list, json_pack(
                      "{s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "file", gv_json_text(o->file),
                      "kind", o->profile ? "profile" : "run", "label", gv_json_text(o->label),
                      "host", gv_json_text(o->host), "driver", gv_json_text(o->driver), "date",
                      gv_json_text(o->date), "nccl", gv_json_text(o->nccl), "command",
                      o->command ? gv_json_text(o->command) : json_null()));
    }
    return list;
}

int gv_origins_load(const struct gv_loading *l, const json_t *list)
{
    size_t n = json_array_size(list);
    if (n > 2)
        return gv_load_bad(l, "origins");
    for (size_t i = 0; i < n; i++) {
        const json_t *o = json_array_get(list, i);
        const char *kind = json_string_value(json_object_get(o, "kind"));
        const char *command = json_string_value(json_object_get(o, "command"));
        struct gv_compared_origin *to = &l->out->origin[l->out->norigins++];
        gv_load_text(to->file, sizeof(to->file), o, "file");
        gv_load_text(to->label, sizeof(to->label), o, "label");
        gv_load_text(to->host, sizeof(to->host), o, "host");
        gv_load_text(to->driver, sizeof(to->driver), o, "driver");
        gv_load_text(to->date, sizeof(to->date), o, "date");
        gv_load_text(to->nccl, sizeof(to->nccl), o, "nccl");
        to->profile = kind && !strcmp(kind, "profile");
        if (command && !(to->command = strdup(command)))
            return gv_error_set(l->err, "out of memory");
    }
    return 0;
}
