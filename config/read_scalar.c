/* Reads single values: words, numbers, GPU sets. */
#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/gv_gpuset.h"
#include "base/gv_size.h"
#include "config/schema.h"

static const struct gv_yaml_node *node_of(const struct gv_reader *r, int node)
{
    return &r->tree->nodes[node];
}

/* The text of a scalar, or NULL with the error set. */
static const char *
scalar(const struct gv_reader *r, int node, const char *key, const char *expected)
{
    const struct gv_yaml_node *at = node_of(r, node);
    if (at->kind == GV_YAML_SCALAR && (*at->text || !at->plain))
        return at->text;
    const char *found = at->kind == GV_YAML_MAP    ? "a map"
                        : at->kind == GV_YAML_LIST ? "a list"
                                                   : "nothing";
    gv_reader_fail(r, node, "%s: %s is expected, found %s", key, expected, found);
    return NULL;
}

/* The same for values that must not be in quotes. */
static const char *plain(const struct gv_reader *r, int node, const char *key, const char *expected)
{
    const char *text = scalar(r, node, key, expected);
    if (!text || node_of(r, node)->plain)
        return text;
    gv_reader_fail(r, node, "%s: %s is expected without quotes", key, expected);
    return NULL;
}

/* Digits, a point, an exponent: what strtod would read beyond that (hex, nan, inf) is refused. */
static bool decimal(const char *s)
{
    if (*s == '-')
        s++;
    if (!isdigit((unsigned char)*s))
        return false;
    while (isdigit((unsigned char)*s))
        s++;
    if (*s == '.')
        for (s++; isdigit((unsigned char)*s);)
            s++;
    if (*s == 'e' || *s == 'E') {
        s++;
        if (*s == '+' || *s == '-')
            s++;
        if (!isdigit((unsigned char)*s))
            return false;
        while (isdigit((unsigned char)*s))
            s++;
    }
    return !*s;
}

static bool whole(const char *s)
{
    if (*s == '-')
        s++;
    if (!isdigit((unsigned char)*s) || (*s == '0' && s[1]))
        return false;
    return strspn(s, "0123456789") == strlen(s);
}

static int out_of_range(
    const struct gv_reader *r, int node, const char *key, const char *text, double min, double max)
{
    if (min == 0 && *text == '-')
        return gv_reader_fail(r, node, "%s: %.40s is negative", key, text);
    return gv_reader_fail(r, node, "%s: %.40s is outside %.0f to %.0f", key, text, min, max);
}

int gv_read_number(
    const struct gv_reader *r, int node, const char *key, double min, double max, double *out)
{
    const char *text = plain(r, node, key, "a number");
    if (!text)
        return -1;
    if (!decimal(text))
        return gv_reader_fail(r, node, "%s: '%.40s' is not a finite decimal number", key, text);
    double value = strtod(text, NULL);
    if (!isfinite(value) || value < min || value > max || (min == 0 && signbit(value)))
        return out_of_range(r, node, key, text, min, max);
    *out = value;
    return 0;
}

int gv_read_int(
    const struct gv_reader *r, int node, const char *key, double min, double max, int *out)
{
    const char *text = plain(r, node, key, "a whole number");
    if (!text)
        return -1;
    if (!whole(text))
        return gv_reader_fail(r, node, "%s: '%.40s' is not a whole decimal number", key, text);
    double value = strtod(text, NULL);
    if (value < min || value > max || (min == 0 && *text == '-'))
        return out_of_range(r, node, key, text, min, max);
    *out = (int)value;
    return 0;
}

int gv_read_bool(const struct gv_reader *r, int node, const char *key, bool *out)
{
    const char *text = plain(r, node, key, "true or false");
    if (!text)
        return -1;
    if (strcmp(text, "true") && strcmp(text, "false"))
        return gv_reader_fail(r, node, "%s: '%.40s' is neither true nor false", key, text);
    *out = *text == 't';
    return 0;
}

int gv_read_gpu(const struct gv_reader *r, int node, const char *key, int *out)
{
    int gpu = 0;
    if (gv_read_int(r, node, key, 0, 1e6, &gpu))
        return -1;
    if (gpu >= r->ngpus)
        return gv_reader_fail(
            r, node, "%s: there is no GPU %d: the machine has 0 to %d", key, gpu, r->ngpus - 1);
    *out = gpu;
    return 0;
}

static int read_text(struct gv_reader *r, int node, const struct gv_field *f, char *out)
{
    const char *text = scalar(r, node, f->key, "text");
    if (!text)
        return -1;
    if (strlen(text) >= f->size)
        return gv_reader_fail(
            r, node, "%s: the text is longer than %zu bytes", f->key, f->size - 1);
    for (const char *c = text; *c; c++)
        if (iscntrl((unsigned char)*c) && (unsigned char)*c < 0x80)
            return gv_reader_fail(r, node, "%s: a control character or line break in it", f->key);
    if (f->required && !*text)
        return gv_reader_fail(r, node, "%s: the text is empty", f->key);
    snprintf(out, f->size, "%s", text);
    return 0;
}

/* As sysfs and as nvidia-smi write it ("00000000:1A:00.0"); kept as sysfs does. */
static int read_bus_id(struct gv_reader *r, int node, const struct gv_field *f, char *out)
{
    const char *text = scalar(r, node, f->key, "a PCI address");
    if (!text)
        return -1;
    unsigned domain, bus, device, function;
    int end = 0;
    int n = sscanf(text, "%8x:%2x:%2x.%1x%n", &domain, &bus, &device, &function, &end);
    bool clean = strspn(text, "0123456789abcdefABCDEF:.") == strlen(text);
    if (n != 4 || text[end] || !clean || device > 31 || function > 7)
        return gv_reader_fail(
            r, node, "%s: '%.40s' is no PCI address; write it as in \"0000:1a:00.0\"", f->key,
            text);
    snprintf(out, 20, "%04x:%02x:%02x.%x", domain, bus, device, function);
    return 0;
}

static int read_hex16(struct gv_reader *r, int node, const struct gv_field *f, uint16_t *out)
{
    const char *text = plain(r, node, f->key, "a hexadecimal number");
    if (!text)
        return -1;
    char *end = NULL;
    unsigned long value = !strncmp(text, "0x", 2) && isxdigit((unsigned char)text[2])
                              ? strtoul(text + 2, &end, 16)
                              : 0;
    if (!end || *end || !value || value > 0xffff || strlen(text) > 6)
        return gv_reader_fail(
            r, node, "%s: '%.40s' is no PCI id; write it as in 0x10de", f->key, text);
    *out = (uint16_t)value;
    return 0;
}

static int read_bytes(struct gv_reader *r, int node, const struct gv_field *f, uint64_t *out)
{
    const char *text = plain(r, node, f->key, "a size");
    if (!text)
        return -1;
    struct gv_error inner;
    errno = 0;
    if (whole(text) && *text != '-') { /* exact, where a double would not be */
        unsigned long long value = strtoull(text, NULL, 10);
        if (!errno && value) {
            *out = value;
            return 0;
        }
    }
    uint64_t bytes;
    if (gv_size_parse(text, &bytes, &inner))
        return gv_reader_fail(r, node, "%s: %s", f->key, inner.text);
    if (!bytes)
        return gv_reader_fail(r, node, "%s: the size is 0", f->key);
    *out = bytes;
    return 0;
}

static int read_enum(struct gv_reader *r, int node, const struct gv_field *f, void *out)
{
    const char *text = scalar(r, node, f->key, "a word");
    if (!text)
        return -1;
    int value = gv_names_value(f->names, text);
    if (value == -2) {
        const char *near = gv_names_nearest(f->names, text);
        char list[200] = "";
        size_t len = 0;
        for (int i = 0; i < f->names->n && len < sizeof(list); i++)
            len += (size_t)snprintf(
                list + len, sizeof(list) - len, "%s%s", i ? ", " : "", f->names->words[i]);
        return gv_reader_fail(
            r, node, "%s: '%.40s' is not known%s%s%s; it may be: %s", f->key, text,
            near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "", list);
    }
    memcpy(out, &value, sizeof(value));
    return 0;
}

static int read_gpus(struct gv_reader *r, int node, const struct gv_field *f, gv_gpuset *out)
{
    const char *text = scalar(r, node, f->key, "a GPU list such as 0-5,7");
    if (!text)
        return -1;
    const struct gv_yaml_node *at = node_of(r, node);
    struct gv_error inner;
    gv_gpuset set;
    if (gv_gpuset_parse(text, &set, &inner))
        return gv_error_at(
            r->err, r->name, at->line,
            at->column + (inner.column ? inner.column - 1 : 0) + !at->plain, "%s: %s", f->key,
            inner.text);
    int last = 63 - __builtin_clzll(set);
    if (last >= r->ngpus)
        return gv_reader_fail(
            r, node, "%s: there is no GPU %d: the machine has 0 to %d", f->key, last, r->ngpus - 1);
    *out = set;
    return 0;
}

int gv_read_value(struct gv_reader *r, int node, const struct gv_field *f, void *object)
{
    void *out = (char *)object + f->offset;
    switch (f->type) {
    case GV_T_TEXT:
        return read_text(r, node, f, out);
    case GV_T_BUS_ID:
        return read_bus_id(r, node, f, out);
    case GV_T_INT:
        return gv_read_int(r, node, f->key, f->min, f->max, out);
    case GV_T_NUMBER:
        return gv_read_number(r, node, f->key, f->min, f->max, out);
    case GV_T_BOOL:
        return gv_read_bool(r, node, f->key, out);
    case GV_T_HEX16:
        return read_hex16(r, node, f, out);
    case GV_T_BYTES:
        return read_bytes(r, node, f, out);
    case GV_T_ENUM:
        return read_enum(r, node, f, out);
    case GV_T_GPUS:
        return read_gpus(r, node, f, out);
    default:
        return gv_reader_fail(r, node, "%s: cannot be read", f->key);
    }
}
