/* The format's documentation, from the same tables that read and write it. */
#include <math.h>
#include <string.h>

#include "config/gv_profile.h"
#include "config/schema.h"

static const char *type_text(const struct gv_field *f)
{
    switch (f->type) {
    case GV_T_SCHEMA:
    case GV_T_INT:
        return "whole number";
    case GV_T_END:
    case GV_T_BOOL:
        return "true or false";
    case GV_T_TEXT:
        return "text";
    case GV_T_BUS_ID:
        return "PCI address";
    case GV_T_NUMBER:
        return "number";
    case GV_T_HEX16:
        return "hexadecimal number";
    case GV_T_BYTES:
        return "size";
    case GV_T_ENUM:
        return "word";
    case GV_T_FIGURE:
        return "figure";
    case GV_T_OPS:
        return "list of operations";
    case GV_T_GPUS:
        return "GPU set";
    case GV_T_ORDER:
        return "list of GPUs";
    case GV_T_PAIRS:
        return "list of pairs of GPUs";
    case GV_T_SAMPLES:
        return "list of numbers";
    case GV_T_FLAGS:
        return "list of true or false";
    case GV_T_SECTION:
        return "map";
    case GV_T_LIST:
        return "list of maps";
    }
    return "";
}

static void add_words(const struct gv_field *f, struct gv_str *out)
{
    gv_str_add(out, " One of");
    for (int i = 0; i < f->names->n; i++)
        gv_str_addf(out, "%s `%s`", i ? "," : "", f->names->words[i]);
    gv_str_add(out, ".");
}

static void add_default(const struct gv_field *f, struct gv_str *out)
{
    bool number = f->type == GV_T_NUMBER && !isnan(f->silent);
    if (f->required || (!number && f->type != GV_T_ENUM))
        return;
    gv_str_add(out, " Left out: `");
    if (number)
        gv_write_number(f->silent, out);
    else
        gv_str_add(out, gv_names_word(f->names, (int)f->silent));
    gv_str_add(out, "`.");
}

static void add_object(const struct gv_object *type, const char *path, struct gv_str *out)
{
    gv_str_addf(out, "\n## %s\n%s\n\n", *path ? path : "The file", type->doc);
    gv_str_add(out, "| key | type | needed | meaning |\n|---|---|---|---|\n");
    for (int i = 0; i < type->nfields; i++) {
        const struct gv_field *f = &type->fields[i];
        gv_str_addf(
            out, "| `%s` | %s | %s | %s", f->key, type_text(f), f->required ? "yes" : "", f->doc);
        if (f->type == GV_T_ENUM)
            add_words(f, out);
        add_default(f, out);
        gv_str_add(out, " |\n");
    }
    for (int i = 0; i < type->nfields; i++) {
        const struct gv_field *f = &type->fields[i];
        if (!f->object)
            continue;
        struct gv_str below = {0};
        gv_str_addf(
            &below, "%s%s%s%s", path, *path ? "." : "", f->key, f->type == GV_T_LIST ? "[]" : "");
        if (below.failed)
            out->failed = true;
        else
            add_object(f->object, below.data, out);
        gv_str_free(&below);
    }
}

void gv_profile_schema_markdown(struct gv_str *out)
{
    gv_str_add(
        out,
        "# The profile\n"
        "A YAML file of at most 8 MiB. Units stand in the keys: `_gbs` is 1e9 bytes/s, `_us` "
        "microseconds, `_mib` 1048576 bytes. A figure is `{median: 10.28, min: 7.08, max: 10.28, "
        "count: 50}`, or a bare number where one sample was taken. A GPU set is written as "
        "`0-5,7`. Keys that are not listed here, keys that stand twice, anchors, aliases and tags "
        "are errors. What is not known is left out.\n");
    add_object(&gv_object_profile, "", out);
}
