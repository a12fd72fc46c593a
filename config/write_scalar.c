/* Writes single values. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/gv_gpuset.h"
#include "base/gv_size.h"
#include "config/gv_profile.h"
#include "config/schema.h"

void gv_write_number(double value, struct gv_str *out)
{
    char text[40];
    if (value == floor(value) && fabs(value) < 1e15) {
        gv_str_addf(out, "%.0f", value);
        return;
    }
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    gv_str_add(out, text);
}

/* Words that YAML 1.1 readers take for something else. */
static bool reserved(const char *text)
{
    static const char *const words[] = {"true", "false", "yes", "no",  "on",
                                        "off",  "y",     "n",   "null"};
    for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (!strcasecmp(text, words[i]))
            return true;
    return false;
}

static bool needs_quotes(const char *text)
{
    size_t len = strlen(text);
    if (!isalpha((unsigned char)text[0]) || text[len - 1] == ' ' || reserved(text))
        return true;
    for (const char *c = text; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr(" ._/+-()%=", *c))
            return true;
    return false;
}

void gv_write_text(const char *text, struct gv_str *out)
{
    if (!needs_quotes(text)) {
        gv_str_add(out, text);
        return;
    }
    gv_str_add(out, "\"");
    for (const char *c = text; *c; c++) {
        if (*c == '"' || *c == '\\')
            gv_str_addf(out, "\\%c", *c);
        else if ((unsigned char)*c < 0x20 || *c == 0x7f)
            gv_str_addf(out, "\\x%02x", (unsigned)(unsigned char)*c);
        else
            gv_str_add_n(out, c, 1);
    }
    gv_str_add(out, "\"");
}

static void write_figure(const struct gv_figure *f, struct gv_str *out)
{
    if (f->count == 1 && f->min == f->median && f->max == f->median) {
        gv_write_number(f->median, out);
        return;
    }
    gv_str_add(out, "{median: ");
    gv_write_number(f->median, out);
    gv_str_add(out, ", min: ");
    gv_write_number(f->min, out);
    gv_str_add(out, ", max: ");
    gv_write_number(f->max, out);
    gv_str_addf(out, ", count: %d}", f->count);
}

static const char *comma(int i)
{
    return i ? ", " : "";
}

static void write_order(const int *gpus, int n, struct gv_str *out)
{
    gv_str_add(out, "[");
    for (int i = 0; i < n; i++)
        gv_str_addf(out, "%s%d", comma(i), gpus[i]);
    gv_str_add(out, "]");
}

static void write_pairs(const int (*pairs)[2], int n, struct gv_str *out)
{
    gv_str_add(out, "[");
    for (int i = 0; i < n; i++)
        gv_str_addf(out, "%s[%d, %d]", comma(i), pairs[i][0], pairs[i][1]);
    gv_str_add(out, "]");
}

static void write_samples(const double *samples, int n, struct gv_str *out)
{
    gv_str_add(out, "[");
    for (int i = 0; i < n; i++) {
        gv_str_add(out, comma(i));
        gv_write_number(samples[i], out);
    }
    gv_str_add(out, "]");
}

static void write_flags(const bool *flags, int n, struct gv_str *out)
{
    gv_str_add(out, "[");
    for (int i = 0; i < n; i++)
        gv_str_addf(out, "%s%s", comma(i), flags[i] ? "true" : "false");
    gv_str_add(out, "]");
}

static void write_ops(unsigned bits, struct gv_str *out)
{
    int n = 0;
    gv_str_add(out, "[");
    for (int op = 0; op < GV_OP_COUNT; op++)
        if (bits & GV_OP_BIT(op))
            gv_str_addf(out, "%s%s", comma(n++), gv_op_name((enum gv_op)op));
    gv_str_add(out, "]");
}

static void write_counted(const struct gv_field *f, const void *object, struct gv_str *out)
{
    const void *place = (const char *)object + f->offset;
    int n;
    memcpy(&n, (const char *)object + f->count_offset, sizeof(n));
    const void *heap = NULL;
    if (f->type == GV_T_SAMPLES || f->type == GV_T_FLAGS)
        memcpy(&heap, place, sizeof(heap));
    if (f->type == GV_T_ORDER)
        write_order(place, n, out);
    else if (f->type == GV_T_PAIRS)
        write_pairs(place, n, out);
    else if (f->type == GV_T_SAMPLES)
        write_samples(heap, n, out);
    else if (f->type == GV_T_FLAGS)
        write_flags(heap, n, out);
}

void gv_write_value(const struct gv_field *f, const void *object, struct gv_str *out)
{
    const void *place = (const char *)object + f->offset;
    char text[256];
    switch (f->type) {
    case GV_T_SCHEMA:
        gv_str_addf(out, "%.0f", f->max);
        break;
    case GV_T_END:
        gv_str_add(out, "true");
        break;
    case GV_T_TEXT:
    case GV_T_BUS_ID:
        gv_write_text(place, out);
        break;
    case GV_T_INT:
        gv_str_addf(out, "%d", *(const int *)place);
        break;
    case GV_T_NUMBER:
        gv_write_number(*(const double *)place, out);
        break;
    case GV_T_BOOL:
        gv_str_add(out, *(const bool *)place ? "true" : "false");
        break;
    case GV_T_HEX16:
        gv_str_addf(out, "0x%04x", (unsigned)*(const uint16_t *)place);
        break;
    case GV_T_BYTES:
        gv_str_add(out, gv_size_format(*(const uint64_t *)place, text, sizeof(text)));
        break;
    case GV_T_ENUM:
        gv_str_add(out, gv_names_word(f->names, *(const int *)place));
        break;
    case GV_T_GPUS:
        gv_str_add(out, gv_gpuset_format(*(const gv_gpuset *)place, text, sizeof(text)));
        break;
    case GV_T_OPS:
        write_ops(*(const unsigned *)place, out);
        break;
    case GV_T_FIGURE:
        write_figure(place, out);
        break;
    default:
        write_counted(f, object, out);
        break;
    }
}
