/* A YAML text as a tree whose every node knows its place. Only what a data file needs: no anchors,
 * aliases, tags, several documents; depth and number of nodes are bounded. */
#ifndef GV_CONFIG_YAML_TREE_H
#define GV_CONFIG_YAML_TREE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/gv_error.h"

enum gv_yaml_kind { GV_YAML_SCALAR, GV_YAML_MAP, GV_YAML_LIST };

struct gv_yaml_node {
    enum gv_yaml_kind kind;
    bool plain;            /* a scalar without quotes */
    unsigned line, column; /* from 1 */
    const char *text;      /* of a scalar; belongs to the tree */
    int first, next; /* child and sibling, -1 none; a map's children are key, value, key ... */
    int nchildren;
};

struct gv_yaml {
    struct gv_yaml_node *nodes; /* nodes[0] is the root */
    int n, cap;
};

/* Parses `len` bytes; `name` stands for the file in errors. Returns 0 and a tree for
 * gv_yaml_finish, or -1 with `err` set and nothing to finish. */
int gv_yaml_parse(
    struct gv_yaml *tree, const char *text, size_t len, const char *name, struct gv_error *err);
void gv_yaml_finish(struct gv_yaml *tree);

/* The value of `key` in the map `node`, or -1. */
int gv_yaml_value(const struct gv_yaml *tree, int node, const char *key);

#endif
