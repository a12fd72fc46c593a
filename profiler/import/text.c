/* Text as lines and words. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/import/import.h"

/* Length of an escape at `p` ("\033[4m", or "[4m" where its first byte was lost), 0 for none. */
static size_t escape(const char *p, const char *end)
{
    const char *q = p + (*p == '\033');
    if (q >= end || *q != '[')
        return *p == '\033';
    const char *first = ++q;
    while (q < end && (isdigit((unsigned char)*q) || *q == ';'))
        q++;
    if (q >= end || !isalpha((unsigned char)*q) || (*p != '\033' && (*q != 'm' || q == first)))
        return *p == '\033';
    return (size_t)(q - p) + 1;
}

static size_t clean(const char *raw, size_t len, char *out)
{
    size_t n = 0;
    for (const char *p = raw, *end = raw + len; p < end;) {
        size_t skip = escape(p, end);
        if (!skip && *p != '\r')
            out[n++] = *p ? *p : ' ';
        p += skip ? skip : 1;
    }
    out[n] = 0;
    return n;
}

int gv_text_init(struct gv_text *t, const char *raw, size_t len, const char *path)
{
    if (len >= 3 && !memcmp(raw, "\xef\xbb\xbf", 3)) {
        raw += 3;
        len -= 3;
    }
    *t = (struct gv_text){.path = path, .raw = raw, .len = len, .copy = malloc(len + 1)};
    if (!t->copy)
        return -1;
    size_t n = clean(raw, len, t->copy);
    int lines = 1;
    for (size_t i = 0; i < n; i++)
        lines += t->copy[i] == '\n';
    t->lines = calloc((size_t)lines, sizeof(char *));
    if (!t->lines) {
        gv_text_finish(t);
        return -1;
    }
    for (char *p = t->copy; p;) {
        char *end = strchr(p, '\n');
        if (end)
            *end++ = 0;
        if (end || *p) {
            gv_untag(p);
            t->lines[t->n++] = p;
        }
        p = end;
    }
    gv_untag_all(t);
    return 0;
}

void gv_text_finish(struct gv_text *t)
{
    free(t->copy);
    free(t->lines);
}

static int split_at(char *line, char separator, struct gv_word *out)
{
    int n = 0;
    for (char *p = line; p && n < GV_MAX_WORDS;) {
        char *next = strchr(p, separator);
        if (next)
            *next++ = 0;
        char *end = p + strlen(p);
        while (isspace((unsigned char)*p))
            p++;
        while (end > p && isspace((unsigned char)end[-1]))
            *--end = 0;
        out[n++] = (struct gv_word){p, (unsigned)(p - line) + 1};
        p = next;
    }
    return n;
}

int gv_words(char *line, char separator, struct gv_word *out)
{
    int n = 0;
    if (separator)
        return split_at(line, separator, out);
    for (char *p = line; n < GV_MAX_WORDS;) {
        while (isspace((unsigned char)*p))
            p++;
        if (!*p)
            break;
        out[n++] = (struct gv_word){p, (unsigned)(p - line) + 1};
        while (*p && !isspace((unsigned char)*p))
            p++;
        if (*p)
            *p++ = 0;
    }
    return n;
}

bool gv_is_digits(const char *s)
{
    return *s && strspn(s, "0123456789") == strlen(s);
}

int gv_small(const char *s)
{
    return gv_is_digits(s) && strlen(s) <= 6 ? atoi(s) : -1;
}

bool gv_is_number(const char *s, double *out)
{
    size_t n = strlen(s);
    if (!n || n > 40 || strspn(s, "0123456789.eE+-") != n ||
        !(isdigit((unsigned char)*s) || *s == '.'))
        return false;
    char *end;
    *out = strtod(s, &end);
    return !*end;
}
