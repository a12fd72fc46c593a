#include "testbench/nccl/xml.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Longest name or value that NCCL's buffers hold. */
#define MAX_TEXT 254
#define RESULT_INTERNAL 3
#define RESULT_USAGE 5
#define RESULT_OVERRUN 101

enum tag_type { TAG_EOF, TAG_OPEN, TAG_SINGLE, TAG_CLOSE };

struct parser {
    const char *text;
    size_t len, at;
    int release;
    int nodes, max_nodes, max_children;
    struct gv_nt_error *err;
};

/* A tag as read, before it is known whether the element counts. */
struct tag {
    enum tag_type type;
    char name[GV_NT_TEXT];
    struct gv_nt_elem *elem; /* attributes; taken over by whoever keeps the element */
};

struct rule {
    const char *parent, *name;
};

/* Elements that count, by parent; all others are skipped. */
static const struct rule rules[] = {
    {"", "system"},    {"system", "cpu"}, {"cpu", "pci"}, {"cpu", "nic"},
    {"pci", "pci"},    {"pci", "gpu"},    {"pci", "nic"}, {"pci", "pcilink"},
    {"gpu", "nvlink"}, {"gpu", "c2c"},    {"nic", "net"},
};

__attribute__((format(printf, 2, 3))) static int fail(struct parser *p, const char *fmt, ...)
{
    size_t line = 1;
    for (size_t i = 0; i < p->at && i < p->len; i++)
        line += p->text[i] == '\n';
    int n = snprintf(p->err->text, sizeof(p->err->text), "topology file, line %zu: ", line);
    va_list args;
    va_start(args, fmt);
    vsnprintf(p->err->text + n, sizeof(p->err->text) - (size_t)n, fmt, args);
    va_end(args);
    return RESULT_INTERNAL;
}

/* A character for a message, in a text of its own. */
static const char *visible(char c, char text[8])
{
    snprintf(text, 8, c >= ' ' && c <= '~' ? "'%c'" : "0x%02x", (unsigned char)c);
    return text;
}

static int next_char(struct parser *p, char *c)
{
    if (p->at >= p->len)
        return fail(p, "ends in the middle of an element");
    *c = p->text[p->at++];
    return 0;
}

/* Up to 2.26 a value ends at a double quote whatever it began with, and nobody looks whether it
 * fits into its 256 bytes. */
static int read_value(struct parser *p, char *value, char *last)
{
    char quote = 0, c = 0;
    int rc = next_char(p, &quote);
    if (rc)
        return rc;
    if (quote != '"' && quote != '\'')
        return fail(p, "a value must be in quotes");
    char stop = p->release < 22700 ? '"' : quote;
    for (int n = 0; !(rc = next_char(p, &c)); n++) {
        if (p->release >= 22700 && n >= MAX_TEXT)
            return fail(p, "a value is longer than %d characters", MAX_TEXT - 1);
        if (n >= GV_NT_TEXT) {
            fail(p, "a value overruns its buffer of %d bytes", GV_NT_TEXT);
            return RESULT_OVERRUN;
        }
        if (c == stop) {
            value[n] = '\0';
            return next_char(p, last);
        }
        value[n] = c;
    }
    return rc;
}

static bool ends_token(char c)
{
    return c == ' ' || c == '>' || c == '/' || c == '\n' || c == '\r';
}

/* A name, with its value if one follows. `value` NULL where none may. */
static int read_token(struct parser *p, char *name, char *value, char *last)
{
    char c = 0;
    int rc;
    for (int n = 0; !(rc = next_char(p, &c)); n++) {
        if (c == '=') {
            name[n] = '\0';
            return value ? read_value(p, value, last)
                         : fail(p, "unexpected value after '%.40s'", name);
        }
        if (n >= MAX_TEXT)
            return fail(p, "a name is longer than %d characters", MAX_TEXT);
        if (ends_token(c)) {
            name[n] = '\0';
            *last = c;
            return 0;
        }
        name[n] = c;
    }
    return rc;
}

/* The name that opened the comment may hold its end already. */
static int skip_comment(struct parser *p, size_t start)
{
    for (size_t i = start; i + 3 <= p->len; i++)
        if (!memcmp(p->text + i, "-->", 3)) {
            p->at = i + 3;
            return 0;
        }
    p->at = p->len;
    return fail(p, "a comment does not end");
}

static void add_attr(struct gv_nt_elem *elem, const char *key, const char *value)
{
    if (elem->nattrs == GV_NT_ROOM_ATTRS)
        return;
    elem->attr[elem->nattrs].key = strdup(key);
    elem->attr[elem->nattrs++].value = strdup(value);
}

static int read_attrs(struct parser *p, struct gv_nt_elem *elem, char *last)
{
    while (*last == ' ') {
        char key[GV_NT_TEXT], value[GV_NT_TEXT] = "";
        int rc = read_token(p, key, value, last);
        if (rc)
            return rc;
        if (elem->nattrs < GV_NT_MAX_ATTRS)
            add_attr(elem, key, value);
    }
    return 0;
}

static int read_close(struct parser *p, struct tag *tag)
{
    char c = 0;
    int rc = read_token(p, tag->name, NULL, &c);
    tag->type = TAG_CLOSE;
    return rc || c == '>' ? rc : fail(p, "the closing tag %.40s does not end at once", tag->name);
}

static int read_open(struct parser *p, struct tag *tag, char last)
{
    char skipped[GV_NT_TEXT];
    tag->elem = calloc(1, sizeof(*tag->elem));
    tag->elem->name = strdup(tag->name);
    tag->type = TAG_OPEN;
    int rc = read_attrs(p, tag->elem, &last);
    if (!rc && last == '/') {
        tag->type = TAG_SINGLE;
        rc = read_token(p, skipped, NULL, &last);
    }
    if (!rc && last != '>')
        rc = fail(
            p, "expected '>' in element %.40s, got %s", tag->name, visible(last, (char[8]){""}));
    if (rc) {
        gv_nt_xml_free(tag->elem);
        tag->elem = NULL;
    }
    return rc;
}

static int read_tag(struct parser *p, struct tag *tag)
{
    char c = ' ';
    tag->type = TAG_EOF;
    tag->elem = NULL;
    while (c == ' ' || c == '\n' || c == '\r') {
        if (p->at >= p->len)
            return 0;
        c = p->text[p->at++];
    }
    if (c != '<')
        return fail(p, "expected '<', got %s", visible(c, (char[8]){""}));
    size_t start = p->at;
    int rc = read_token(p, tag->name, NULL, &c);
    if (rc)
        return rc;
    if (!strncmp(tag->name, "!--", 3)) {
        rc = skip_comment(p, start + 3);
        return rc ? rc : read_tag(p, tag);
    }
    if (!tag->name[0] && c == '/')
        return read_close(p, tag);
    return read_open(p, tag, c);
}

static bool counts(const char *parent, const char *name)
{
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
        if (!strcmp(rules[i].parent, parent) && !strcmp(rules[i].name, name))
            return true;
    return false;
}

static int check_version(struct parser *p, const struct gv_nt_elem *system)
{
    if (!gv_nt_xml_get(system, "version"))
        return fail(p, "system has no version");
    int version = gv_nt_xml_int(system, "version", 0);
    if (version == 1)
        return 0;
    fail(p, "version %d, NCCL reads version 1", version);
    return RESULT_USAGE;
}

/* Skips an element that does not count. NCCL never compares the names of its tags. */
static int skip_children(struct parser *p)
{
    for (long depth = 1; depth > 0;) { /* no recursion: a file may be as deep as it likes */
        struct tag tag;
        int rc = read_tag(p, &tag);
        gv_nt_xml_free(rc ? NULL : tag.elem);
        if (!rc && tag.type == TAG_EOF)
            rc = fail(p, "an element does not end");
        if (rc)
            return rc;
        depth += (tag.type == TAG_OPEN) - (tag.type == TAG_CLOSE);
    }
    return 0;
}

static int read_children(struct parser *p, struct gv_nt_elem *parent, struct gv_nt_elem **system);

static int
keep_elem(struct parser *p, struct tag *tag, struct gv_nt_elem *parent, struct gv_nt_elem **system)
{
    if (parent && parent->nchild == p->max_children) {
        gv_nt_xml_free(tag->elem);
        return fail(p, "%s has more than %d children", parent->name, p->max_children);
    }
    p->nodes++;
    if (parent)
        gv_nt_xml_insert(parent, tag->elem, parent->nchild);
    else if (!*system)
        *system = tag->elem;
    else
        gv_nt_xml_insert(*system, tag->elem, (*system)->nchild); /* a second one: nobody looks */
    int rc = parent ? 0 : check_version(p, tag->elem);
    if (!rc && tag->type == TAG_OPEN)
        rc = read_children(p, tag->elem, system);
    return rc;
}

static int
take_tag(struct parser *p, struct tag *tag, struct gv_nt_elem *parent, struct gv_nt_elem **system)
{
    if (tag->type == TAG_CLOSE)
        return fail(p, "unexpected </%.40s>", tag->name);
    if (counts(parent ? parent->name : "", tag->name))
        return keep_elem(p, tag, parent, system);
    gv_nt_xml_free(tag->elem);
    return tag->type == TAG_OPEN ? skip_children(p) : 0;
}

static int read_children(struct parser *p, struct gv_nt_elem *parent, struct gv_nt_elem **system)
{
    for (;;) {
        struct tag tag;
        if (p->nodes == p->max_nodes)
            return fail(p, "more than %d elements", p->max_nodes - 1);
        int rc = read_tag(p, &tag);
        if (rc)
            return rc;
        if (tag.type == TAG_EOF)
            return parent ? fail(p, "%s does not end", parent->name) : 0;
        if (parent && tag.type == TAG_CLOSE)
            return strcmp(tag.name, parent->name)
                       ? fail(p, "%s is closed as %.40s", parent->name, tag.name)
                       : 0;
        rc = take_tag(p, &tag, parent, system);
        if (rc)
            return rc;
    }
}

int gv_nt_xml_parse(
    const char *text, size_t len, int release, struct gv_nt_elem **out, struct gv_nt_error *err)
{
    struct parser p = {
        .text = text,
        .len = len,
        .release = release,
        .max_nodes = release < 22100 ? 1024 : 256,
        .max_children = release < 22100   ? 32
                        : release < 22907 ? 128
                                          : 640,
        .err = err,
    };
    *out = NULL;
    int rc = read_children(&p, NULL, out);
    if (rc) {
        gv_nt_xml_free(*out);
        *out = NULL;
    }
    return rc;
}

void gv_nt_xml_free(struct gv_nt_elem *elem)
{
    if (!elem)
        return;
    for (int i = 0; i < elem->nchild; i++)
        gv_nt_xml_free(elem->child[i]);
    for (int i = 0; i < elem->nattrs; i++) {
        free(elem->attr[i].key);
        free(elem->attr[i].value);
    }
    free(elem->child);
    free(elem->name);
    free(elem);
}

const char *gv_nt_xml_get(const struct gv_nt_elem *elem, const char *key)
{
    for (int i = 0; i < elem->nattrs; i++)
        if (!strcmp(elem->attr[i].key, key))
            return elem->attr[i].value;
    return NULL;
}

void gv_nt_xml_set(struct gv_nt_elem *elem, const char *key, const char *value)
{
    for (int i = 0; i < elem->nattrs; i++)
        if (!strcmp(elem->attr[i].key, key)) {
            char *copy = strdup(value);
            free(elem->attr[i].value);
            elem->attr[i].value = copy;
            return;
        }
    add_attr(elem, key, value);
}

int gv_nt_xml_int(const struct gv_nt_elem *elem, const char *key, int otherwise)
{
    const char *value = gv_nt_xml_get(elem, key);
    return value ? (int)strtol(value, NULL, 0) : otherwise;
}

struct gv_nt_elem *gv_nt_xml_child(const struct gv_nt_elem *elem, const char *name)
{
    for (int i = 0; i < elem->nchild; i++)
        if (!strcmp(elem->child[i]->name, name))
            return elem->child[i];
    return NULL;
}

void gv_nt_xml_insert(struct gv_nt_elem *parent, struct gv_nt_elem *child, int at)
{
    if (parent->nchild == parent->child_cap) {
        parent->child_cap = parent->child_cap ? 2 * parent->child_cap : 8;
        parent->child = realloc(parent->child, (size_t)parent->child_cap * sizeof(child));
        if (!parent->child)
            abort();
    }
    memmove(
        parent->child + at + 1, parent->child + at, (size_t)(parent->nchild - at) * sizeof(child));
    parent->child[at] = child;
    parent->nchild++;
    child->parent = parent;
}

struct gv_nt_elem *gv_nt_xml_clone(const struct gv_nt_elem *elem)
{
    struct gv_nt_elem *copy = calloc(1, sizeof(*copy));
    copy->name = strdup(elem->name);
    copy->first = -1;
    for (int i = 0; i < elem->nattrs; i++)
        add_attr(copy, elem->attr[i].key, elem->attr[i].value);
    return copy;
}

struct gv_nt_elem *
gv_nt_xml_find(struct gv_nt_elem *root, const char *name, const char *key, const char *value)
{
    if (!root)
        return NULL;
    if (!strcmp(root->name, name)) {
        const char *has = value ? gv_nt_xml_get(root, key) : NULL;
        if (!value || (has && !strcmp(has, value)))
            return root;
    }
    for (int i = 0; i < root->nchild; i++) {
        struct gv_nt_elem *found = gv_nt_xml_find(root->child[i], name, key, value);
        if (found)
            return found;
    }
    return NULL;
}
