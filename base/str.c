#include "base/gv_str.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool reserve(struct gv_str *s, size_t more)
{
    if (s->failed)
        return false;
    size_t need = s->len + more + 1;
    if (need <= s->cap)
        return true;
    size_t cap = s->cap ? s->cap * 2 : 256;
    while (cap < need)
        cap *= 2;
    char *data = realloc(s->data, cap);
    if (!data) {
        s->failed = true;
        return false;
    }
    s->data = data;
    s->cap = cap;
    return true;
}

void gv_str_add_n(struct gv_str *s, const char *text, size_t n)
{
    if (!reserve(s, n))
        return;
    memcpy(s->data + s->len, text, n);
    s->len += n;
    s->data[s->len] = '\0';
}

void gv_str_add(struct gv_str *s, const char *text)
{
    gv_str_add_n(s, text, strlen(text));
}

void gv_str_addf(struct gv_str *s, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0)
        s->failed = true;
    else if (reserve(s, (size_t)n)) {
        vsnprintf(s->data + s->len, (size_t)n + 1, fmt, again);
        s->len += (size_t)n;
    }
    va_end(again);
}

void gv_str_free(struct gv_str *s)
{
    free(s->data);
    memset(s, 0, sizeof(*s));
}
