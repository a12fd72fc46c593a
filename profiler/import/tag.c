/* What launchers and log collectors put before each line. It is made blank, so that columns stay.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "profiler/import/import.h"

/* A pattern: '0' a digit, '#' digits, '*' a word's characters, ' ' blanks or none; else itself. */
static size_t fits(const char *s, const char *pattern)
{
    const char *p = s;
    for (; *pattern; pattern++) {
        size_t n = 1;
        if (*pattern == '0')
            n = isdigit((unsigned char)*p) ? 1 : 0;
        else if (*pattern == '#')
            n = strspn(p, "0123456789");
        else if (*pattern == '*')
            for (n = 0; isalnum((unsigned char)p[n]) || (p[n] && strchr("-_./", p[n])); n++)
                ;
        else if (*pattern == ' ')
            n = strspn(p, " \t");
        else if (*p != *pattern)
            n = 0;
        if (!n && *pattern != ' ')
            return 0;
        p += n;
    }
    return (size_t)(p - s);
}

/* The fraction and zone behind "10:00:00", and what the container runtime adds. */
static size_t behind_time(const char *s)
{
    size_t n = strspn(s, ".,0123456789");
    n += s[n] == 'Z' ? 1 : fits(s + n, "+00:00") + fits(s + n, "-00:00");
    n += fits(s + n, " stdout F") + fits(s + n, " stderr F");
    return n;
}

/* Length of the tag that `s` begins with, 0 for none. */
static size_t tag(const char *s)
{
    static const char *const tags[] = {
        "[#,#]<*>:",                             /* mpirun --tag-output */
        "[*@#,#]<*>:",                           /* the same of Open MPI 5 */
        "[rank#]:",    "[default#]:", "[pod/*]", /* torchrun, kubectl logs --prefix */
        " #: ",                                  /* srun --label */
    };
    static const char *const times[] = {
        "0000-00-00T00:00:00", "0000-00-00 00:00:00", "[0000-00-00 00:00:00",
        "[0000-00-00T00:00:00"};
    for (unsigned i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        size_t n = fits(s, times[i]);
        if (!n)
            continue;
        n += behind_time(s + n);
        return n + (*s == '[' && s[n] == ']');
    }
    for (unsigned i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
        size_t n = fits(s, tags[i]);
        if (n)
            return n;
    }
    return 0;
}

void gv_untag(char *line)
{
    size_t n;
    for (int i = 0; i < 3 && (n = tag(line)); i++) {
        if (line[n] && line[n - 1] != ' ' && line[n - 1] != ':' && line[n - 1] != ']' &&
            line[n] != ' ')
            return; /* a word goes on behind it: no tag */
        memset(line, ' ', n);
        line += n;
        line += strspn(line, " ");
    }
}

/* Length of what `line` has of `tag`, numbers being alike whatever they are; 0 where it differs. */
static size_t alike(const char *line, const char *tag, size_t n)
{
    const char *p = line, *end = tag + n;
    while (tag < end) {
        const char *set = isdigit((unsigned char)*tag) ? "0123456789" : *tag == ' ' ? " " : NULL;
        size_t here = set ? strspn(p, set) : *p == *tag;
        if (!here)
            return 0;
        p += here;
        tag += set ? strspn(tag, set) : 1;
    }
    return (size_t)(p - line);
}

/* Where a result's first line begins behind something else; NULL where it does not. */
static const char *behind(const char *line)
{
    static const char *const firsts[] = {
        "# nThread ", "nvbandwidth Version", "[P2P (Peer-to-Peer) GPU"};
    for (unsigned i = 0; i < sizeof(firsts) / sizeof(firsts[0]); i++) {
        const char *at = strstr(line, firsts[i]);
        if (at && at - line < 100 && line + strspn(line, " \t>#`") < at)
            return at;
    }
    const char *gpu = strstr(line, "GPU0"); /* the heading of topo -m */
    const char *next = gpu ? gpu + 4 + strspn(gpu + 4, " \t") : line;
    bool heading = gpu && next > gpu + 4 && (!strncmp(next, "GPU1", 4) || !strncmp(next, "CPU", 3));
    return heading && gpu - line < 100 && line + strspn(line, " \t>#`|") < gpu ? gpu : NULL;
}

void gv_untag_all(struct gv_text *t)
{
    char tag[100];
    size_t n = 0;
    for (int i = 0; i < t->n && !n; i++) {
        const char *at = behind(t->lines[i]);
        n = at ? (size_t)(at - t->lines[i]) : 0;
        while (n && strchr(" \t", t->lines[i][n - 1]))
            n--;
        memcpy(tag, t->lines[i], n);
    }
    for (int i = 0; i < t->n && n; i++)
        memset(t->lines[i], ' ', alike(t->lines[i], tag, n));
}
