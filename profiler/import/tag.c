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
