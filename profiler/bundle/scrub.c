/* Names that do not leave the host. */
#include <ctype.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "profiler/bundle/gv_bundle.h"

/* Shorter names are words of other texts, too ("a"). */
#define SHORTEST 2

static void add_name(struct gv_scrub *s, const char *from, const char *to)
{
    if (!from || strlen(from) < SHORTEST || !strcmp(from, "root") || !strcmp(from, "localhost") ||
        s->nnames == GV_SCRUB_NAMES)
        return;
    snprintf(s->names[s->nnames].from, sizeof(s->names[0].from), "%.255s", from);
    snprintf(s->names[s->nnames++].to, sizeof(s->names[0].to), "%s", to);
}

void gv_scrub_init(struct gv_scrub *s)
{
    char host[256] = "";
    struct passwd *pw = getpwuid(getuid());
    memset(s, 0, sizeof(*s));
    const char *home = getenv("HOME");
    if (home && strcmp(home, "/") != 0 && strcmp(home, "/root") != 0)
        add_name(s, home, "/home/user");
    if (pw && strcmp(pw->pw_dir, "/root") != 0 && strcmp(pw->pw_dir, "/") != 0)
        add_name(s, pw->pw_dir, "/home/user");
    if (pw)
        add_name(s, pw->pw_name, "user");
    if (!gethostname(host, sizeof(host) - 1)) {
        add_name(s, host, "host");
        host[strcspn(host, ".")] = '\0';
        add_name(s, host, "host");
    }
}

static bool in_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-';
}

/* Length of a name that stands here as a word of its own; 0 none. */
static size_t name_at(struct gv_scrub *s, const char *start, const char *at, struct gv_str *out)
{
    for (int i = 0; i < s->nnames; i++) {
        size_t n = strlen(s->names[i].from);
        bool path = s->names[i].from[0] == '/';
        if (strncmp(at, s->names[i].from, n) != 0 || in_word(at[n]) ||
            (!path && at > start && in_word(at[-1])))
            continue;
        gv_str_add(out, s->names[i].to);
        return n;
    }
    return 0;
}

/* The number of a text among those seen; the last one again where there are too many. */
static int number_of(const char *text, size_t n, char *seen, size_t width, int *count)
{
    for (int i = 0; i < *count; i++)
        if (strlen(seen + i * width) == n && !strncmp(seen + i * width, text, n))
            return i;
    if (*count == GV_SCRUB_SEEN || n >= width)
        return GV_SCRUB_SEEN - 1;
    memcpy(seen + *count * width, text, n);
    return (*count)++;
}

/* "GPU-" and 36 hexadecimal digits and dashes. */
static size_t uuid_at(struct gv_scrub *s, const char *at, struct gv_str *out)
{
    if (strncmp(at, "GPU-", 4) != 0)
        return 0;
    size_t n = 4 + strspn(at + 4, "0123456789abcdefABCDEF-");
    if (n < 12)
        return 0;
    int number = number_of(at, n, s->uuids[0], sizeof(s->uuids[0]), &s->nuuids);
    gv_str_addf(out, "GPU-00000000-0000-0000-0000-%012d", number);
    return n;
}

/* Four numbers of at most three digits between dots, not part of a longer one: no version. */
static size_t ipv4_length(const char *start, const char *at)
{
    if (at > start && (isalnum((unsigned char)at[-1]) || at[-1] == '.'))
        return 0;
    size_t n = 0;
    for (int part = 0; part < 4; part++) {
        size_t digits = strspn(at + n, "0123456789");
        if (!digits || digits > 3 || atoi(at + n) > 255)
            return 0;
        n += digits;
        if (part < 3 && at[n++] != '.')
            return 0;
    }
    return isalnum((unsigned char)at[n]) || at[n] == '.' ? 0 : n;
}

/* Hexadecimal groups with "::" in them; a PCI address has none. */
static size_t ipv6_length(const char *start, const char *at)
{
    if (at > start && (isalnum((unsigned char)at[-1]) || at[-1] == ':'))
        return 0;
    size_t n = strspn(at, "0123456789abcdefABCDEF:");
    const char *twice = strstr(at, "::");
    return n > 3 && twice && twice < at + n - 1 && isxdigit((unsigned char)*at) ? n : 0;
}

static size_t address_at(struct gv_scrub *s, const char *start, const char *at, struct gv_str *out)
{
    size_t n = ipv4_length(start, at);
    bool old = n > 0;
    if (!n)
        n = ipv6_length(start, at);
    if (!n)
        return 0;
    int number = number_of(at, n, s->addresses[0], sizeof(s->addresses[0]), &s->naddresses);
    gv_str_addf(out, old ? "192.0.2.%d" : "2001:db8::%x", number + 1);
    return n;
}

static bool speaks_of_secrets(const char *name, size_t n)
{
    static const char *const words[] = {"KEY", "TOKEN", "SECRET", "PASSW", "CREDENTIAL"};
    char upper[128];
    size_t i;
    for (i = 0; i < n && i < sizeof(upper) - 1; i++)
        upper[i] = (char)toupper((unsigned char)name[i]);
    upper[i] = '\0';
    for (size_t k = 0; k < sizeof(words) / sizeof(words[0]); k++)
        if (strstr(upper, words[k]))
            return true;
    return false;
}

/* "AWS_SECRET_KEY=...": the value up to the next blank or quote. */
static size_t secret_at(const char *start, const char *at, struct gv_str *out)
{
    if (!isalpha((unsigned char)*at) || (at > start && in_word(at[-1])))
        return 0;
    size_t n = 0;
    while (isalnum((unsigned char)at[n]) || at[n] == '_')
        n++;
    if (at[n] != '=' || !speaks_of_secrets(at, n))
        return 0;
    gv_str_add_n(out, at, n + 1);
    gv_str_add(out, "(left out)");
    return n + 1 + strcspn(at + n + 1, " \t\r\n\"'");
}

void gv_scrub_text(struct gv_scrub *s, const char *text, struct gv_str *out)
{
    for (const char *at = text; *at;) {
        size_t n = secret_at(text, at, out);
        n = n ? n : name_at(s, text, at, out);
        n = n ? n : uuid_at(s, at, out);
        n = n ? n : address_at(s, text, at, out);
        s->replaced += n > 0;
        if (!n)
            gv_str_add_n(out, at, 1);
        at += n ? n : 1;
    }
}
