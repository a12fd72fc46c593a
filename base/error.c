#include "base/gv_error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#undef gv_error_set
#undef gv_error_at

static void fill(struct gv_error *err, const char *fmt, va_list ap)
{
    vsnprintf(err->text, sizeof(err->text), fmt, ap);
}

int gv_error_set(struct gv_error *err, const char *fmt, ...)
{
    if (!err)
        return -1;
    memset(err, 0, sizeof(*err));
    va_list ap;
    va_start(ap, fmt);
    fill(err, fmt, ap);
    va_end(ap);
    return -1;
}

int gv_error_at(
    struct gv_error *err, const char *file, unsigned line, unsigned column, const char *fmt, ...)
{
    if (!err)
        return -1;
    memset(err, 0, sizeof(*err));
    if (file)
        snprintf(err->file, sizeof(err->file), "%s", file);
    err->line = line;
    err->column = column;
    va_list ap;
    va_start(ap, fmt);
    fill(err, fmt, ap);
    va_end(ap);
    return -1;
}

const char *gv_error_format(const struct gv_error *err, char *out, unsigned long out_size)
{
    if (!err->file[0])
        snprintf(out, out_size, "%s", err->text);
    else if (!err->line)
        snprintf(out, out_size, "%s: %s", err->file, err->text);
    else if (!err->column)
        snprintf(out, out_size, "%s:%u: %s", err->file, err->line, err->text);
    else
        snprintf(out, out_size, "%s:%u:%u: %s", err->file, err->line, err->column, err->text);
    return out;
}
