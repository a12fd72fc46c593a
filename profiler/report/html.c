#include "profiler/report/html.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void end_tag(struct gv_html *h)
{
    if (h->in_tag)
        gv_str_add(h->out, ">");
    h->in_tag = false;
}

/* Elements that HTML closes by themselves. */
static bool is_void(const char *name)
{
    return !strcmp(name, "meta") || !strcmp(name, "br") || !strcmp(name, "col");
}

/* Control characters, which XML forbids even when escaped, become U+FFFD. */
static void escape(struct gv_str *out, const char *text)
{
    for (const char *at = text; *at; at++) {
        unsigned char c = (unsigned char)*at;
        if (c == '<')
            gv_str_add(out, "&lt;");
        else if (c == '>')
            gv_str_add(out, "&gt;");
        else if (c == '&')
            gv_str_add(out, "&amp;");
        else if (c == '"')
            gv_str_add(out, "&quot;");
        else if (c == 0x7f || (c < 0x20 && c != '\n' && c != '\t'))
            gv_str_add(out, "\xef\xbf\xbd");
        else
            gv_str_add_n(out, at, 1);
    }
}

static void escape_v(struct gv_str *out, const char *fmt, va_list ap)
{
    char text[2048];
    vsnprintf(text, sizeof(text), fmt, ap);
    escape(out, text);
}

void gv_open(struct gv_html *h, const char *name)
{
    end_tag(h);
    if (h->depth == (int)(sizeof(h->open) / sizeof(h->open[0]))) {
        h->out->failed = true;
        return;
    }
    h->open[h->depth++] = name;
    gv_str_add(h->out, "<");
    gv_str_add(h->out, name);
    h->in_tag = true;
}

void gv_open_class(struct gv_html *h, const char *name, const char *class)
{
    gv_open(h, name);
    gv_attr(h, "class", class);
}

static bool starts_line(const char *name)
{
    static const char *const names[] = {"tr",     "svg",    "table", "section", "p",
                                        "li",     "figure", "head",  "body",    "style",
                                        "script", "g",      "path",  "rect",    "line"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (!strcmp(names[i], name))
            return true;
    return false;
}

void gv_close(struct gv_html *h)
{
    if (!h->depth) {
        h->out->failed = true;
        return;
    }
    const char *name = h->open[--h->depth];
    if (is_void(name)) {
        gv_str_add(h->out, "/>");
        h->in_tag = false;
        return;
    }
    end_tag(h);
    gv_str_addf(h->out, "</%s>%s", name, starts_line(name) ? "\n" : "");
}

void gv_close_n(struct gv_html *h, int n)
{
    while (n-- > 0)
        gv_close(h);
}

void gv_attr(struct gv_html *h, const char *name, const char *value)
{
    gv_str_addf(h->out, " %s=\"", name);
    escape(h->out, value);
    gv_str_add(h->out, "\"");
}

void gv_attrf(struct gv_html *h, const char *name, const char *fmt, ...)
{
    va_list ap;
    gv_str_addf(h->out, " %s=\"", name);
    va_start(ap, fmt);
    escape_v(h->out, fmt, ap);
    va_end(ap);
    gv_str_add(h->out, "\"");
}

void gv_at(struct gv_html *h, const char *name, double value)
{
    gv_str_addf(h->out, " %s=\"%.1f\"", name, value);
}

void gv_data(struct gv_html *h, const char *name, double value)
{
    if (isfinite(value))
        gv_str_addf(h->out, " %s=\"%.12g\"", name, value);
}

void gv_text(struct gv_html *h, const char *text)
{
    end_tag(h);
    escape(h->out, text);
}

void gv_textf(struct gv_html *h, const char *fmt, ...)
{
    va_list ap;
    end_tag(h);
    va_start(ap, fmt);
    escape_v(h->out, fmt, ap);
    va_end(ap);
}

void gv_raw(struct gv_html *h, const char *text)
{
    end_tag(h);
    gv_str_add(h->out, text);
}

void gv_element(struct gv_html *h, const char *name, const char *text)
{
    gv_open(h, name);
    gv_text(h, text);
    gv_close(h);
}

void gv_elementf(struct gv_html *h, const char *name, const char *fmt, ...)
{
    va_list ap;
    gv_open(h, name);
    end_tag(h);
    va_start(ap, fmt);
    escape_v(h->out, fmt, ap);
    va_end(ap);
    gv_close(h);
}
