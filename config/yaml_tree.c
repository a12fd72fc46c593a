#include "config/yaml_tree.h"

#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#define MAX_DEPTH 16
#define MAX_NODES (1 << 20)

/* An open map or list and its last child. */
struct level {
    int node, last;
};

struct builder {
    struct gv_yaml *tree;
    const char *name;
    struct gv_error *err;
    struct level stack[MAX_DEPTH];
    int depth;
    bool done; /* the document has ended */
};

static int fail_at(struct builder *b, const yaml_mark_t *mark, const char *why)
{
    return gv_error_at(
        b->err, b->name, (unsigned)mark->line + 1, (unsigned)mark->column + 1, "%s", why);
}

static int grow(struct builder *b, const yaml_mark_t *mark)
{
    struct gv_yaml *tree = b->tree;
    if (tree->n < tree->cap)
        return 0;
    if (tree->n >= MAX_NODES)
        return fail_at(b, mark, "over a million values: this is no profile");
    int cap = tree->cap ? tree->cap * 2 : 256;
    struct gv_yaml_node *nodes = realloc(tree->nodes, (size_t)cap * sizeof(*nodes));
    if (!nodes)
        return gv_error_at(b->err, b->name, 0, 0, "out of memory");
    tree->nodes = nodes;
    tree->cap = cap;
    return 0;
}

/* Adds a node below the innermost open level. Returns its number, or -1. */
static int add(struct builder *b, enum gv_yaml_kind kind, const yaml_mark_t *mark)
{
    if (grow(b, mark))
        return -1;
    struct gv_yaml_node *nodes = b->tree->nodes;
    int node = b->tree->n++;
    nodes[node] = (struct gv_yaml_node){
        .kind = kind,
        .line = (unsigned)mark->line + 1,
        .column = (unsigned)mark->column + 1,
        .first = -1,
        .next = -1};
    if (b->depth) {
        struct level *level = &b->stack[b->depth - 1];
        nodes[level->node].nchildren++;
        if (level->last < 0)
            nodes[level->node].first = node;
        else
            nodes[level->last].next = node;
        level->last = node;
    }
    return node;
}

static int add_scalar(struct builder *b, const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    size_t len = event->data.scalar.length;
    if (strlen(text) != len)
        return fail_at(b, &event->start_mark, "a NUL character inside a value");
    int node = add(b, GV_YAML_SCALAR, &event->start_mark);
    if (node < 0)
        return -1;
    char *copy = strdup(text);
    if (!copy)
        return gv_error_at(b->err, b->name, 0, 0, "out of memory");
    b->tree->nodes[node].text = copy;
    b->tree->nodes[node].plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    return 0;
}

static int open_level(struct builder *b, enum gv_yaml_kind kind, const yaml_event_t *event)
{
    if (b->depth == MAX_DEPTH)
        return fail_at(b, &event->start_mark, "nested deeper than any profile is");
    int node = add(b, kind, &event->start_mark);
    if (node < 0)
        return -1;
    b->stack[b->depth++] = (struct level){node, -1};
    return 0;
}

/* Anchors and tags have no use in a profile; with them a small file could stand for a huge one. */
static int refuse_decoration(struct builder *b, const yaml_event_t *event)
{
    const yaml_char_t *anchor = NULL, *tag = NULL;
    if (event->type == YAML_SCALAR_EVENT) {
        anchor = event->data.scalar.anchor;
        tag = event->data.scalar.tag;
    } else if (event->type == YAML_MAPPING_START_EVENT) {
        anchor = event->data.mapping_start.anchor;
        tag = event->data.mapping_start.tag;
    } else if (event->type == YAML_SEQUENCE_START_EVENT) {
        anchor = event->data.sequence_start.anchor;
        tag = event->data.sequence_start.tag;
    }
    if (anchor)
        return fail_at(b, &event->start_mark, "anchors (&name) are not allowed: write it out");
    if (tag)
        return fail_at(b, &event->start_mark, "tags (!name) are not allowed: leave it out");
    return 0;
}

static int take(struct builder *b, const yaml_event_t *event)
{
    if (refuse_decoration(b, event))
        return -1;
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return add_scalar(b, event);
    case YAML_MAPPING_START_EVENT:
        return open_level(b, GV_YAML_MAP, event);
    case YAML_SEQUENCE_START_EVENT:
        return open_level(b, GV_YAML_LIST, event);
    case YAML_MAPPING_END_EVENT:
    case YAML_SEQUENCE_END_EVENT:
        b->depth--;
        return 0;
    case YAML_ALIAS_EVENT:
        return fail_at(b, &event->start_mark, "aliases (*name) are not allowed: write it out");
    case YAML_DOCUMENT_START_EVENT:
        if (b->done)
            return fail_at(b, &event->start_mark, "a second document starts here: one is expected");
        return 0;
    case YAML_DOCUMENT_END_EVENT:
        b->done = true;
        return 0;
    default:
        return 0;
    }
}

/* Line and column of a byte, for errors that libyaml gives by offset. */
static void place_of(const char *text, size_t offset, unsigned *line, unsigned *column)
{
    *line = *column = 1;
    for (size_t i = 0; i < offset; i++) {
        if (text[i] == '\n') {
            (*line)++;
            *column = 1;
        } else {
            (*column)++;
        }
    }
}

static int syntax_error(struct builder *b, const yaml_parser_t *parser, const char *text)
{
    if (parser->error == YAML_MEMORY_ERROR)
        return gv_error_at(b->err, b->name, 0, 0, "out of memory");
    const char *problem = parser->problem ? parser->problem : "unknown problem";
    unsigned line = (unsigned)parser->problem_mark.line + 1;
    unsigned column = (unsigned)parser->problem_mark.column + 1;
    if (parser->error == YAML_READER_ERROR)
        place_of(text, parser->problem_offset, &line, &column);
    if (!parser->context)
        return gv_error_at(
            b->err, b->name, line, column, "not valid YAML: %s (is the file cut or damaged?)",
            problem);
    return gv_error_at(
        b->err, b->name, line, column,
        "not valid YAML: %s that began in line %u: %s (is the file cut or damaged?)",
        parser->context, (unsigned)parser->context_mark.line + 1, problem);
}

static int build(struct builder *b, yaml_parser_t *parser, const char *text)
{
    for (;;) {
        yaml_event_t event;
        if (!yaml_parser_parse(parser, &event))
            return syntax_error(b, parser, text);
        bool end = event.type == YAML_STREAM_END_EVENT;
        int rc = take(b, &event);
        yaml_event_delete(&event);
        if (rc || end)
            return rc;
    }
}

static int refuse_unreadable(const char *text, size_t len, const char *name, struct gv_error *err)
{
    const char *nul = len ? memchr(text, '\0', len) : NULL;
    if (!nul)
        return 0;
    unsigned line, column;
    place_of(text, (size_t)(nul - text), &line, &column);
    return gv_error_at(err, name, line, column, "a NUL byte: this is not a text file");
}

int gv_yaml_parse(
    struct gv_yaml *tree, const char *text, size_t len, const char *name, struct gv_error *err)
{
    memset(tree, 0, sizeof(*tree));
    if (refuse_unreadable(text, len, name, err))
        return -1;
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser))
        return gv_error_at(err, name, 0, 0, "out of memory");
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
    struct builder b = {.tree = tree, .name = name, .err = err};
    int rc = build(&b, &parser, text);
    yaml_parser_delete(&parser);
    if (!rc && !tree->n)
        rc = gv_error_at(err, name, 1, 1, "the file is empty");
    if (rc)
        gv_yaml_finish(tree);
    return rc;
}

void gv_yaml_finish(struct gv_yaml *tree)
{
    for (int i = 0; i < tree->n; i++)
        free((char *)tree->nodes[i].text);
    free(tree->nodes);
    memset(tree, 0, sizeof(*tree));
}

int gv_yaml_value(const struct gv_yaml *tree, int node, const char *key)
{
    const struct gv_yaml_node *nodes = tree->nodes;
    if (nodes[node].kind != GV_YAML_MAP)
        return -1;
    for (int k = nodes[node].first; k >= 0; k = nodes[nodes[k].next].next)
        if (nodes[k].kind == GV_YAML_SCALAR && !strcmp(nodes[k].text, key))
            return nodes[k].next;
    return -1;
}
