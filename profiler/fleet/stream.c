/* Several profiles in one text, as they are collected from many hosts: one after another (Ansible,
 * a loop over ssh), or line by line with a label in front (srun --label, pdsh, clush; mpirun is in
 * tags.c). A label is whatever stands before "gv100_profile:", so no launcher needs a rule of its
 * own. Lines without one belong together. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/fleet/fleet.h"

#define FIRST_KEY "gv100_profile:"
#define LAST_LINE "complete: true"

struct line {
    const char *at;
    size_t len;
    int label; /* index of labels; -1 none */
};

struct label {
    const char *at;
    size_t len;
};

struct stream {
    struct line *lines;
    int nlines;
    struct label *labels;
    int nlabels;
    const char *name;
    struct gv_fleet *fleet;
    struct gv_error *err;
};

/* A profile on its way: its text, and the line in the stream that each of its lines was. */
struct document {
    struct gv_str text;
    int *place, n;
    char host[96];
};

static bool starts(const struct line *l, const char *text)
{
    size_t n = strlen(text);
    return l->len >= n && !memcmp(l->at, text, n);
}

static bool blank(const struct line *l)
{
    for (size_t i = 0; i < l->len; i++)
        if (!strchr(" \t\r", l->at[i]))
            return false;
    return true;
}

static int split_lines(struct stream *s, const char *text)
{
    for (const char *p = text; *p;) {
        struct line *one = gv_fleet_grow(&s->lines, &s->nlines, sizeof(*one));
        if (!one)
            return gv_fleet_no_memory(s->err);
        size_t len = strcspn(p, "\n");
        *one = (struct line){p, len - (len && p[len - 1] == '\r'), -1};
        p += len + (p[len] == '\n');
    }
    return 0;
}

/* Notes the label of a line that begins a profile. */
static int find_label(struct stream *s, const struct line *l)
{
    const char *key = memmem(l->at, l->len, FIRST_KEY, strlen(FIRST_KEY));
    if (!key || key == l->at || memchr(l->at, '#', (size_t)(key - l->at)))
        return 0;
    size_t len = (size_t)(key - l->at);
    for (int i = 0; i < s->nlabels; i++)
        if (s->labels[i].len == len && !memcmp(s->labels[i].at, l->at, len))
            return 0;
    struct label *one = gv_fleet_grow(&s->labels, &s->nlabels, sizeof(*one));
    if (!one)
        return gv_fleet_no_memory(s->err);
    *one = (struct label){l->at, len};
    return 0;
}

/* An empty line keeps its label, but may have lost the blank at its end. */
static void take_label(const struct stream *s, struct line *l)
{
    for (int i = 0; i < s->nlabels; i++) {
        size_t n = s->labels[i].len, bare = n;
        while (bare && s->labels[i].at[bare - 1] == ' ')
            bare--;
        bool whole = l->len >= n && !memcmp(l->at, s->labels[i].at, n);
        if (!whole && (l->len != bare || memcmp(l->at, s->labels[i].at, bare) != 0))
            continue;
        l->at += whole ? n : bare;
        l->len -= whole ? n : bare;
        l->label = i;
        return;
    }
}

static int label_all(struct stream *s)
{
    for (int i = 0; i < s->nlines; i++)
        if (find_label(s, &s->lines[i]))
            return -1;
    for (int i = 0; i < s->nlines; i++)
        take_label(s, &s->lines[i]);
    return 0;
}

static int unread(struct stream *s, int line, const char *host, const char *why)
{
    struct gv_error e;
    gv_error_at(&e, s->name, (unsigned)line + 1, 0, "%s%s%s", host, *host ? ": " : "", why);
    return gv_fleet_unread(s->fleet, &e) ? gv_fleet_no_memory(s->err) : 0;
}

/* Hands the profile on; an error in it gets the stream's line. */
static int finish(struct stream *s, struct document *d)
{
    char name[256];
    int before = s->fleet->nunread, rc = 0;
    if (d->text.len) {
        snprintf(name, sizeof(name), "%.200s:%d", s->name, d->place[0] + 1);
        rc = d->text.failed ? gv_fleet_no_memory(s->err)
                            : gv_fleet_take_text(s->fleet, d->text.data, d->text.len, name, s->err);
    }
    if (s->fleet->nunread > before) {
        struct gv_error *e = &s->fleet->unread[before];
        int line = e->line && (int)e->line <= d->n ? d->place[e->line - 1] : d->place[0];
        snprintf(e->file, sizeof(e->file), "%s", s->name);
        e->line = (unsigned)line + 1;
        e->column = 0;
    }
    gv_str_free(&d->text);
    d->n = 0;
    return rc;
}

static int add_line(struct stream *s, struct document *d, int line)
{
    int *place = gv_fleet_grow(&d->place, &d->n, sizeof(int));
    if (!place)
        return gv_fleet_no_memory(s->err);
    *place = line;
    gv_str_add_n(&d->text, s->lines[line].at, s->lines[line].len);
    gv_str_add(&d->text, "\n");
    return 0;
}

/* "node1 | CHANGED | rc=0 >>", as Ansible heads what a host printed. */
static bool ansible_head(const struct line *l, char host[96])
{
    const char *bar = memmem(l->at, l->len, " | ", 3);
    if (!bar || bar == l->at || memchr(l->at, ' ', (size_t)(bar - l->at)))
        return false;
    size_t rest = l->len - (size_t)(bar - l->at);
    if (!memmem(bar, rest, ">>", 2) && !memmem(bar, rest, "=>", 2))
        return false;
    snprintf(host, 96, "%.*s", (int)(bar - l->at < 95 ? bar - l->at : 95), l->at);
    return true;
}

/* Where the lines of one label are: before, in or after a profile. */
enum where { OUTSIDE, SAID, INSIDE };

static int outside(struct stream *s, struct document *d, enum where *where, int i)
{
    const struct line *l = &s->lines[i];
    if (ansible_head(l, d->host)) {
        *where = OUTSIDE;
        return 0;
    }
    if (blank(l) || *l->at == '#' || starts(l, "---") || *where == SAID)
        return 0;
    char text[160];
    *where = SAID; /* the first line of what was said instead tells enough */
    snprintf(
        text, sizeof(text), "no profile, but '%.*s'", (int)(l->len < 120 ? l->len : 120), l->at);
    return unread(s, i, d->host, text);
}

static int one_label(struct stream *s, int label, struct document *d)
{
    enum where where = OUTSIDE;
    d->host[0] = '\0';
    for (int i = 0; i < s->nlines; i++) {
        const struct line *l = &s->lines[i];
        if (l->label != label)
            continue;
        bool begins = starts(l, FIRST_KEY), head = where == INSIDE && ansible_head(l, d->host);
        if (where == INSIDE && (begins || head)) {
            if (unread(
                    s, i, "",
                    "another profile begins before the last one ended: lines of several hosts may "
                    "be "
                    "mixed (srun --label, mpirun --tag-output keep them apart)"))
                return -1;
            gv_str_free(&d->text);
            d->n = 0;
            where = OUTSIDE;
        }
        if (begins)
            where = INSIDE;
        if (where != INSIDE ? outside(s, d, &where, i) : add_line(s, d, i))
            return -1;
        if (where == INSIDE && starts(l, LAST_LINE)) {
            /* what Ansible adds before the next host's head is about that one */
            where = *d->host ? SAID : OUTSIDE;
            if (finish(s, d))
                return -1;
        }
    }
    return finish(s, d);
}

int gv_fleet_take_stream(
    struct gv_fleet *fleet, const char *text, size_t len, const char *name, struct gv_error *err)
{
    struct stream s = {.name = name, .fleet = fleet, .err = err};
    struct document d = {0};
    int rc = strlen(text) != len ? gv_error_at(err, name, 0, 0, "it is no text") : 0;
    if (!rc && gv_fleet_is_tagged(text))
        return gv_fleet_take_tagged(fleet, text, name, err);
    if (!rc)
        rc = split_lines(&s, text) || label_all(&s) ? -1 : 0;
    for (int label = -1; !rc && label < s.nlabels; label++)
        rc = one_label(&s, label, &d);
    gv_str_free(&d.text);
    free(d.place);
    free(s.lines);
    free(s.labels);
    return rc;
}
