/* Topology files are read by expat, narrowed to what NCCL's own reader understands: one `system`
 * element of version 1, no DTD, no entities, no text. */
#include <expat.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/topology/tree.h"

struct reader {
    XML_Parser parser;
    struct gv_tree *tree;
    struct gv_elem *current; /* NULL outside of the root */
    const char *name;        /* of the file, for errors */
    struct gv_error *err;
    int depth, count;
    bool failed;
};

/* Reports at the parser's place and stops it. */
#define FAIL(r, ...)                                                                               \
    do {                                                                                           \
        gv_error_at(                                                                               \
            (r)->err, (r)->name, (unsigned)XML_GetCurrentLineNumber((r)->parser),                  \
            (unsigned)XML_GetCurrentColumnNumber((r)->parser) + 1, __VA_ARGS__);                   \
        stop(r);                                                                                   \
    } while (0)

static void stop(struct reader *r)
{
    r->failed = true;
    XML_StopParser(r->parser, XML_FALSE);
}

static bool root_is_right(struct reader *r, const struct gv_elem *elem)
{
    if (gv_elem_is(elem, "graphs")) {
        FAIL(r, "this is a graph file (NCCL_GRAPH_FILE), not a topology");
        return false;
    }
    if (!gv_elem_is(elem, "system")) {
        FAIL(r, "the outermost element is '%.64s', a topology starts with 'system'", elem->name);
        return false;
    }
    const char *version = gv_elem_get(elem, "version");
    if (!version || strtol(version, NULL, 0) != 1) {
        FAIL(r, "version is %.32s, NCCL reads version 1 only", version ? version : "missing");
        return false;
    }
    return true;
}

/* What NCCL cannot do without, by element. */
static bool has_needed(struct reader *r, const struct gv_elem *elem)
{
    static const struct {
        const char *name, *key;
    } needs[] = {{"cpu", "numaid"}, {"pci", "busid"}};
    for (int i = 0; i < 2; i++) {
        if (gv_elem_is(elem, needs[i].name) && !gv_elem_get(elem, needs[i].key)) {
            FAIL(r, "%s without %s", needs[i].name, needs[i].key);
            return false;
        }
    }
    return true;
}

static bool attr_is_right(struct reader *r, const char *key, const char *value)
{
    if (strlen(key) > GV_TREE_MAX_VALUE || strlen(value) > GV_TREE_MAX_VALUE) {
        FAIL(
            r, "attribute %.32s is longer than the %d letters that NCCL reads", key,
            GV_TREE_MAX_VALUE);
        return false;
    }
    if (strpbrk(value, "&<\"\n\r\t")) {
        FAIL(r, "attribute %.32s has a letter that NCCL cannot read (one of & < \" or a tab)", key);
        return false;
    }
    return true;
}

static bool take_attrs(struct reader *r, struct gv_elem *elem, const XML_Char **attrs)
{
    for (; attrs[0]; attrs += 2) {
        if (elem->nattrs == GV_TREE_MAX_ATTRS) {
            FAIL(r, "more than the %d attributes that NCCL reads", GV_TREE_MAX_ATTRS);
            return false;
        }
        if (!attr_is_right(r, attrs[0], attrs[1]))
            return false;
        if (gv_elem_set(elem, attrs[0], attrs[1])) {
            FAIL(r, "out of memory");
            return false;
        }
    }
    return true;
}

static bool link_in(struct reader *r, struct gv_elem *elem)
{
    if (!r->current) {
        r->tree->root = elem;
        return true;
    }
    if (!gv_elem_insert(r->current, elem, r->current->nsubs))
        return true;
    gv_elem_free(elem);
    FAIL(r, "out of memory");
    return false;
}

static void on_start(void *user, const XML_Char *name, const XML_Char **attrs)
{
    struct reader *r = user;
    if (r->failed)
        return;
    if (++r->depth > GV_TREE_MAX_DEPTH || ++r->count > GV_TREE_MAX_ELEMS) {
        FAIL(
            r, "more than %d elements, or more than %d levels: NCCL reads 256", GV_TREE_MAX_ELEMS,
            GV_TREE_MAX_DEPTH);
        return;
    }
    struct gv_elem *elem = gv_elem_new(name);
    if (!elem) {
        FAIL(r, "out of memory");
        return;
    }
    bool root = !r->current;
    if (!link_in(r, elem) || !take_attrs(r, elem, attrs) || !has_needed(r, elem))
        return;
    if (root && !root_is_right(r, elem))
        return;
    r->current = elem;
}

static void on_end(void *user, const XML_Char *name)
{
    (void)name;
    struct reader *r = user;
    if (r->failed)
        return;
    r->depth--;
    if (r->current->parent)
        r->current = r->current->parent;
    else if (!gv_elem_child(r->current, "cpu"))
        FAIL(r, "no cpu element: NCCL needs one for every NUMA node");
}

static void on_text(void *user, const XML_Char *text, int len)
{
    struct reader *r = user;
    for (int i = 0; !r->failed && i < len; i++) {
        if (!strchr(" \t\r\n", text[i]))
            FAIL(r, "text between the elements: NCCL cannot read that");
    }
}

static void on_doctype(
    void *user, const XML_Char *name, const XML_Char *sysid, const XML_Char *pubid, int internal)
{
    (void)name, (void)sysid, (void)pubid, (void)internal;
    struct reader *r = user;
    if (!r->failed)
        FAIL(r, "a DOCTYPE is not allowed in a topology");
}

static bool run(struct reader *r, const char *text, size_t len)
{
    XML_SetUserData(r->parser, r);
    XML_SetElementHandler(r->parser, on_start, on_end);
    XML_SetCharacterDataHandler(r->parser, on_text);
    XML_SetStartDoctypeDeclHandler(r->parser, on_doctype);
    if (XML_Parse(r->parser, text, (int)len, 1) == XML_STATUS_OK)
        return true;
    enum XML_Error code = XML_GetErrorCode(r->parser);
    if (r->failed)
        return false;
    if (code == XML_ERROR_NO_ELEMENTS || code == XML_ERROR_UNCLOSED_TOKEN)
        FAIL(r, "the file ends in the middle (%s): it is cut", XML_ErrorString(code));
    else
        FAIL(r, "%s", XML_ErrorString(code));
    return false;
}

struct gv_tree *gv_tree_parse(const char *text, size_t len, const char *name, struct gv_error *err)
{
    if (len > GV_TREE_MAX_FILE) {
        gv_error_at(err, name, 0, 0, "larger than 4 MiB: this is no topology");
        return NULL;
    }
    struct reader r = {.name = name, .err = err};
    r.tree = calloc(1, sizeof(*r.tree));
    r.parser = XML_ParserCreate("UTF-8");
    bool ok = r.tree && r.parser;
    if (!ok)
        gv_error_at(err, name, 0, 0, "out of memory");
    ok = ok && run(&r, text, len);
    if (r.parser)
        XML_ParserFree(r.parser);
    if (ok)
        return r.tree;
    gv_tree_free(r.tree);
    return NULL;
}
