#include "plugin/topology/tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gv_elem *gv_elem_new(const char *name)
{
    struct gv_elem *elem = calloc(1, sizeof(*elem));
    if (elem && !(elem->name = strdup(name))) {
        free(elem);
        return NULL;
    }
    return elem;
}

void gv_elem_free(struct gv_elem *elem)
{
    if (!elem)
        return;
    for (int i = 0; i < elem->nsubs; i++)
        gv_elem_free(elem->sub[i]);
    for (int i = 0; i < elem->nattrs; i++) {
        free(elem->attr[i].key);
        free(elem->attr[i].value);
    }
    free(elem->sub);
    free(elem->name);
    free(elem);
}

struct gv_elem *gv_elem_copy(const struct gv_elem *elem)
{
    struct gv_elem *copy = gv_elem_new(elem->name);
    if (!copy)
        return NULL;
    for (int i = 0; i < elem->nattrs; i++) {
        if (gv_elem_set(copy, elem->attr[i].key, elem->attr[i].value))
            goto fail;
    }
    for (int i = 0; i < elem->nsubs; i++) {
        struct gv_elem *sub = gv_elem_copy(elem->sub[i]);
        if (!sub)
            goto fail;
        if (gv_elem_insert(copy, sub, i)) {
            gv_elem_free(sub);
            goto fail;
        }
    }
    return copy;
fail:
    gv_elem_free(copy);
    return NULL;
}

bool gv_elem_equal(const struct gv_elem *a, const struct gv_elem *b)
{
    if (strcmp(a->name, b->name) || a->nattrs != b->nattrs || a->nsubs != b->nsubs)
        return false;
    for (int i = 0; i < a->nattrs; i++) {
        if (strcmp(a->attr[i].key, b->attr[i].key) || strcmp(a->attr[i].value, b->attr[i].value))
            return false;
    }
    for (int i = 0; i < a->nsubs; i++) {
        if (!gv_elem_equal(a->sub[i], b->sub[i]))
            return false;
    }
    return true;
}

const char *gv_elem_get(const struct gv_elem *elem, const char *key)
{
    for (int i = 0; i < elem->nattrs; i++) {
        if (!strcmp(elem->attr[i].key, key))
            return elem->attr[i].value;
    }
    return NULL;
}

static struct gv_attr *find_attr(struct gv_elem *elem, const char *key)
{
    for (int i = 0; i < elem->nattrs; i++) {
        if (!strcmp(elem->attr[i].key, key))
            return &elem->attr[i];
    }
    return NULL;
}

int gv_elem_set(struct gv_elem *elem, const char *key, const char *value)
{
    struct gv_attr *attr = find_attr(elem, key);
    if (!attr && elem->nattrs == GV_TREE_MAX_ATTRS)
        return -1;
    char *text = strdup(value);
    if (!text)
        return -1;
    if (attr) {
        free(attr->value);
        attr->value = text;
        return 0;
    }
    attr = &elem->attr[elem->nattrs];
    if (!(attr->key = strdup(key))) {
        free(text);
        return -1;
    }
    attr->value = text;
    elem->nattrs++;
    return 0;
}

bool gv_elem_is(const struct gv_elem *elem, const char *name)
{
    return !strcmp(elem->name, name);
}

struct gv_elem *gv_elem_child(const struct gv_elem *elem, const char *name)
{
    for (int i = 0; i < elem->nsubs; i++) {
        if (gv_elem_is(elem->sub[i], name))
            return elem->sub[i];
    }
    return NULL;
}

int gv_elem_index(const struct gv_elem *elem)
{
    for (int i = 0; i < elem->parent->nsubs; i++) {
        if (elem->parent->sub[i] == elem)
            return i;
    }
    return -1;
}

int gv_elem_insert(struct gv_elem *parent, struct gv_elem *child, int at)
{
    if (parent->nsubs == parent->cap) {
        int cap = parent->cap ? parent->cap * 2 : 4;
        struct gv_elem **sub = realloc(parent->sub, (size_t)cap * sizeof(*sub));
        if (!sub)
            return -1;
        parent->sub = sub;
        parent->cap = cap;
    }
    for (int i = parent->nsubs; i > at; i--)
        parent->sub[i] = parent->sub[i - 1];
    parent->sub[at] = child;
    parent->nsubs++;
    child->parent = parent;
    return 0;
}

int gv_elem_insert_sorted(struct gv_elem *parent, struct gv_elem *pci)
{
    const char *bus_id = gv_elem_get(pci, "busid");
    int at = 0;
    for (; at < parent->nsubs; at++) {
        const char *other = gv_elem_get(parent->sub[at], "busid");
        if (other && strcmp(bus_id, other) < 0)
            break;
    }
    return gv_elem_insert(parent, pci, at);
}

struct gv_elem *gv_elem_append(struct gv_elem *parent, const char *name)
{
    struct gv_elem *elem = gv_elem_new(name);
    if (elem && gv_elem_insert(parent, elem, parent->nsubs)) {
        gv_elem_free(elem);
        return NULL;
    }
    return elem;
}

void gv_elem_unlink(struct gv_elem *elem)
{
    struct gv_elem *parent = elem->parent;
    int at = gv_elem_index(elem);
    for (int i = at + 1; i < parent->nsubs; i++)
        parent->sub[i - 1] = parent->sub[i];
    parent->nsubs--;
    elem->parent = NULL;
}

static struct gv_elem *find_below(struct gv_elem *parent, const char *bus_id)
{
    for (int i = 0; i < parent->nsubs; i++) {
        struct gv_elem *sub = parent->sub[i];
        if (!gv_elem_is(sub, "pci"))
            continue;
        const char *own = gv_elem_get(sub, "busid");
        if (own && !strcmp(own, bus_id))
            return sub;
        struct gv_elem *found = find_below(sub, bus_id);
        if (found)
            return found;
    }
    return NULL;
}

struct gv_elem *gv_tree_find_pci(const struct gv_tree *tree, const char *bus_id)
{
    for (int i = 0; i < tree->root->nsubs; i++) {
        struct gv_elem *cpu = tree->root->sub[i];
        struct gv_elem *found = gv_elem_is(cpu, "cpu") ? find_below(cpu, bus_id) : NULL;
        if (found)
            return found;
    }
    return NULL;
}

bool gv_elem_is_gpu(const struct gv_elem *pci)
{
    const char *class = gv_elem_get(pci, "class");
    return gv_elem_child(pci, "gpu") || (class && !strncmp(class, "0x03", 4));
}

static int gpus_below(const struct gv_elem *elem, char (*bus_ids)[GV_BUS_ID], int have, int most)
{
    for (int i = 0; i < elem->nsubs && have < most; i++) {
        const struct gv_elem *sub = elem->sub[i];
        if (gv_elem_is(sub, "pci") && gv_elem_is_gpu(sub))
            snprintf(bus_ids[have++], GV_BUS_ID, "%s", gv_elem_get(sub, "busid"));
        else if (gv_elem_is(sub, "pci") || gv_elem_is(sub, "cpu"))
            have = gpus_below(sub, bus_ids, have, most);
    }
    return have;
}

int gv_tree_gpus(const struct gv_tree *tree, char (*bus_ids)[24], int n)
{
    return gpus_below(tree->root, bus_ids, 0, n);
}

struct gv_elem *gv_tree_find_cpu(const struct gv_tree *tree, const char *numaid)
{
    for (int i = 0; i < tree->root->nsubs; i++) {
        struct gv_elem *cpu = tree->root->sub[i];
        const char *own = gv_elem_is(cpu, "cpu") ? gv_elem_get(cpu, "numaid") : NULL;
        if (own && !strcmp(own, numaid))
            return cpu;
    }
    return NULL;
}

struct gv_elem *gv_elem_cpu(struct gv_elem *pci)
{
    while (pci && !gv_elem_is(pci, "cpu"))
        pci = pci->parent;
    return pci;
}

struct gv_tree *gv_tree_new(void)
{
    struct gv_tree *tree = calloc(1, sizeof(*tree));
    if (!tree)
        return NULL;
    tree->root = gv_elem_new("system");
    if (!tree->root || gv_elem_set(tree->root, "version", "1")) {
        gv_tree_free(tree);
        return NULL;
    }
    return tree;
}

void gv_tree_free(struct gv_tree *tree)
{
    if (!tree)
        return;
    gv_elem_free(tree->root);
    free(tree->cpu);
    free(tree);
}

struct gv_tree *gv_tree_copy(const struct gv_tree *tree)
{
    struct gv_tree *copy = calloc(1, sizeof(*copy));
    if (!copy)
        return NULL;
    copy->root = gv_elem_copy(tree->root);
    if (tree->ncpus)
        copy->cpu = malloc((size_t)tree->ncpus * sizeof(*copy->cpu));
    if (!copy->root || (tree->ncpus && !copy->cpu)) {
        gv_tree_free(copy);
        return NULL;
    }
    if (tree->ncpus)
        memcpy(copy->cpu, tree->cpu, (size_t)tree->ncpus * sizeof(*copy->cpu));
    copy->ncpus = tree->ncpus;
    return copy;
}
