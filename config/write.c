/* Writes objects by the schema, in the table's order. */
#include <string.h>

#include "config/schema.h"

static void indent(struct gv_str *out, int depth)
{
    gv_str_addf(out, "%*s", depth * 2, "");
}

static void write_fields(
    const struct gv_object *type, const void *object, int depth, bool in_list, struct gv_str *out);

static void write_list(const struct gv_field *f, const void *object, int depth, struct gv_str *out)
{
    int n;
    const char *array;
    memcpy(&n, (const char *)object + f->count_offset, sizeof(n));
    memcpy(&array, (const char *)object + f->offset, sizeof(array));
    gv_str_add(out, n ? "\n" : " []\n");
    for (int i = 0; i < n; i++) {
        indent(out, depth + 1);
        gv_str_add(out, "- ");
        write_fields(f->object, array + (size_t)i * f->object->size, depth + 2, true, out);
    }
}

static void write_field(const struct gv_field *f, const void *object, int depth, struct gv_str *out)
{
    gv_str_addf(out, "%s:", f->key);
    if (f->type == GV_T_SECTION) {
        gv_str_add(out, "\n");
        write_fields(f->object, (const char *)object + f->offset, depth + 1, false, out);
    } else if (f->type == GV_T_LIST) {
        write_list(f, object, depth, out);
    } else {
        gv_str_add(out, " ");
        gv_write_value(f, object, out);
        gv_str_add(out, "\n");
    }
}

/* The first field of a list's entry stands behind its "- ". */
static void write_fields(
    const struct gv_object *type, const void *object, int depth, bool in_list, struct gv_str *out)
{
    for (int i = 0; i < type->nfields; i++) {
        const struct gv_field *f = &type->fields[i];
        if (!f->required && gv_field_silent(f, object))
            continue;
        if (!in_list)
            indent(out, depth);
        in_list = false;
        write_field(f, object, depth, out);
    }
}

void gv_write_object(const struct gv_object *type, const void *object, struct gv_str *out)
{
    write_fields(type, object, 0, false, out);
}
