/* Who wrote a line, and what it says. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/log/log.h"

/* The first mark of NCCL in `s` ("NCCL INFO ", "NCCL WARN ", "NCCL TRACE "), behind a blank or (who
 * spoke was taken off) at the beginning; its length goes to `len`. */
static char *find_mark(char *s, size_t *len)
{
    for (char *at = strstr(s, "NCCL "); at; at = strstr(at + 5, "NCCL ")) {
        const char *level = at + 5;
        if (at > s && !isspace((unsigned char)at[-1]))
            continue;
        *len = !strncmp(level, "TRACE ", 6) ? 11 : 10;
        if (*len == 11 || !strncmp(level, "INFO ", 5) || !strncmp(level, "WARN ", 5))
            return at;
    }
    return NULL;
}

static bool number_back(const char *start, const char **end, int *out)
{
    const char *p = *end;
    while (p > start && isdigit((unsigned char)p[-1]))
        p--;
    if (p == *end || *end - p > 10)
        return false;
    *out = (int)strtol(p, NULL, 10);
    *end = p;
    return true;
}

static bool word_back(const char *start, const char **end, char c)
{
    if (*end <= start || (*end)[-1] != c)
        return false;
    (*end)--;
    return true;
}

static bool host_char(char c)
{
    return isalnum((unsigned char)c) || c == '-' || c == '.' || c == '_';
}

/* Reads "host:pid:tid [dev]" backwards from `end`; `*begin` receives where the host begins. */
static bool
speaker(const char *start, const char *end, struct gv_nlog_line *out, const char **begin)
{
    const char *p = end, *q;
    if (!word_back(start, &p, ']')) { /* a WARN has "file.cc:41" between */
        while (p > start && p[-1] != ']')
            p--;
        if (!word_back(start, &p, ']'))
            return false;
    }
    if (!number_back(start, &p, &out->dev) || !word_back(start, &p, '['))
        return false;
    while (p > start && p[-1] == ' ')
        p--;
    if (!number_back(start, &p, &out->tid) || !word_back(start, &p, ':') ||
        !number_back(start, &p, &out->pid) || !word_back(start, &p, ':'))
        return false;
    q = p;
    while (q > start && host_char(q[-1]))
        q--;
    if (q == p)
        return false;
    size_t n = p - q < 63 ? (size_t)(p - q) : 63;
    memcpy(out->host, q, n);
    out->host[n] = 0;
    *begin = q;
    return true;
}

bool gv_nlog_line(char *line, struct gv_nlog_line *out, char **rest)
{
    size_t len = 0;
    const char *begin;
    if (rest)
        *rest = NULL;
    char *mark = find_mark(line, &len);
    if (!mark)
        return false;
    *out = (struct gv_nlog_line){.pid = -1, .tid = -1, .dev = -1};
    speaker(line, mark > line ? mark - 1 : mark, out, &begin);
    out->warn = mark[5] == 'W';
    out->text = mark + len;
    while (*out->text == ' ')
        out->text++;
    if (*line == '|') /* a row of a Markdown table */
        for (char *end = mark + strlen(mark); end > out->text && strchr(" |", end[-1]); end--)
            end[-1] = 0;
    /* Two ranks wrote at once: what is behind the second one's host belongs to it. */
    size_t len2 = 0;
    struct gv_nlog_line other;
    char *mark2 = find_mark(mark + len, &len2);
    if (mark2 && mark2 > out->text && speaker(out->text, mark2 - 1, &other, &begin)) {
        const char *glued = strstr(begin, out->host);
        char *cut = (char *)(*out->host && glued && glued < mark2 ? glued : begin);
        if (rest)
            *rest = strdup(cut);
        *cut = 0;
    }
    return true;
}
