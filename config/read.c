/* Reads maps and lists by the schema. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/gv_nearest.h"
#include "config/schema.h"

#define MAX_FIELDS 32

static const struct gv_yaml_node *node_of(const struct gv_reader *r, int node)
{
    return &r->tree->nodes[node];
}

int gv_reader_fail(const struct gv_reader *r, int node, const char *fmt, ...)
{
    char text[GV_ERROR_TEXT];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    const struct gv_yaml_node *at = node_of(r, node);
    return gv_error_at(r->err, r->name, at->line, at->column, "%s", text);
}

static int field_index(const struct gv_object *type, const char *key)
{
    for (int i = 0; i < type->nfields; i++)
        if (!strcmp(type->fields[i].key, key))
            return i;
    return -1;
}

static int unknown_key(const struct gv_reader *r, int node, const struct gv_object *type)
{
    const char *keys[MAX_FIELDS], *key = node_of(r, node)->text;
    char list[300] = "";
    size_t len = 0;
    for (int i = 0; i < type->nfields; i++) {
        keys[i] = type->fields[i].key;
        if (len < sizeof(list))
            len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%s", i ? ", " : "", keys[i]);
    }
    const char *near = gv_nearest(key, keys, type->nfields);
    if (near)
        return gv_reader_fail(
            r, node, "unknown key '%.60s' in this %s; did you mean '%s'?", key, type->name, near);
    return gv_reader_fail(
        r, node, "unknown key '%.60s' in this %s; it knows: %s", key, type->name, list);
}

/* Fills value[i] with the node of field i, -1 where the file is silent. */
static int
sort_keys(const struct gv_reader *r, int node, const struct gv_object *type, int value[MAX_FIELDS])
{
    const struct gv_yaml_node *nodes = r->tree->nodes;
    for (int i = 0; i < type->nfields; i++)
        value[i] = -1;
    for (int key = nodes[node].first; key >= 0; key = nodes[nodes[key].next].next) {
        if (nodes[key].kind != GV_YAML_SCALAR)
            return gv_reader_fail(r, key, "a key must be a word");
        int i = field_index(type, nodes[key].text);
        if (i < 0)
            return unknown_key(r, key, type);
        if (value[i] >= 0)
            return gv_reader_fail(
                r, key, "'%s' stands twice in this %s (first in line %u)", nodes[key].text,
                type->name, nodes[value[i]].line);
        value[i] = nodes[key].next;
    }
    return 0;
}

static int read_list(struct gv_reader *r, int node, const struct gv_field *field, void *object)
{
    const struct gv_yaml_node *list = node_of(r, node);
    if (list->kind != GV_YAML_LIST)
        return gv_reader_fail(
            r, node, "%s: a list is expected, each entry begins with '- '", field->key);
    if (list->nchildren > field->limit)
        return gv_reader_fail(
            r, node, "%s: %d entries, more than %d", field->key, list->nchildren, field->limit);
    if (!list->nchildren)
        return field->required ? gv_reader_fail(r, node, "%s: the list is empty", field->key) : 0;
    size_t size = field->object->size;
    char *array = calloc((size_t)list->nchildren, size);
    if (!array)
        return gv_reader_fail(r, node, "out of memory");
    memcpy((char *)object + field->offset, &array, sizeof(array));
    int n = 0;
    for (int child = list->first; child >= 0; child = node_of(r, child)->next) {
        n++; /* counted before it is read, so that it is released after an error too */
        memcpy((char *)object + field->count_offset, &n, sizeof(n));
        if (gv_read_object(r, child, field->object, array + (size_t)(n - 1) * size))
            return -1;
    }
    return 0;
}

/* The schema's number. A newer one is refused by name, before any key that only it knows. */
static int read_schema(struct gv_reader *r, int node, const struct gv_field *field)
{
    int schema;
    if (gv_read_int(r, node, field->key, 1, 1e9, &schema))
        return -1;
    if (schema > (int)field->max)
        return gv_reader_fail(
            r, node, "this file is %s: %d, this build reads up to %d: upgrade gv100", field->key,
            schema, (int)field->max);
    return 0;
}

static int read_end(struct gv_reader *r, int node, const struct gv_field *field)
{
    bool end;
    if (gv_read_bool(r, node, field->key, &end))
        return -1;
    return end ? 0
               : gv_reader_fail(
                     r, node, "%s: false: the file says itself that it is not whole", field->key);
}

static int read_field(struct gv_reader *r, int node, const struct gv_field *field, void *object)
{
    switch (field->type) {
    case GV_T_SCHEMA:
        return read_schema(r, node, field);
    case GV_T_END:
        return read_end(r, node, field);
    case GV_T_SECTION:
        return gv_read_object(r, node, field->object, (char *)object + field->offset);
    case GV_T_LIST:
        return read_list(r, node, field, object);
    case GV_T_FIGURE:
    case GV_T_ORDER:
    case GV_T_PAIRS:
    case GV_T_SAMPLES:
    case GV_T_FLAGS:
    case GV_T_OPS:
        return gv_read_listed(r, node, field, object);
    default:
        return gv_read_value(r, node, field, object);
    }
}

static int missing(
    const struct gv_reader *r, int node, const struct gv_object *type, const struct gv_field *field)
{
    if (field->type == GV_T_END)
        return gv_reader_fail(
            r, node,
            "'%s: true' is missing: it is the last line of a whole file, so this one was "
            "cut short",
            field->key);
    return gv_reader_fail(r, node, "'%s' is missing in this %s", field->key, type->name);
}

/* The number stands first in the table; whatever else is wrong, a newer schema is said first. */
static int schema_first(struct gv_reader *r, int node, const struct gv_object *type)
{
    const struct gv_field *field = &type->fields[0];
    int value = field->type == GV_T_SCHEMA ? gv_yaml_value(r->tree, node, field->key) : -1;
    return value < 0 ? 0 : read_schema(r, value, field);
}

int gv_read_object(struct gv_reader *r, int node, const struct gv_object *type, void *object)
{
    gv_object_init(type, object);
    if (node_of(r, node)->kind != GV_YAML_MAP)
        return gv_reader_fail(
            r, node, "a %s is expected here, as lines of 'key: value'", type->name);
    int value[MAX_FIELDS];
    if (schema_first(r, node, type) || sort_keys(r, node, type, value))
        return -1;
    for (int i = 0; i < type->nfields; i++) {
        const struct gv_field *field = &type->fields[i];
        if (value[i] >= 0) {
            if (read_field(r, value[i], field, object))
                return -1;
        } else if (field->required) {
            return missing(r, node, type, field);
        }
    }
    return type->check ? type->check(r, node, object) : 0;
}
