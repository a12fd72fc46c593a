#include "testbench/nccl/nodes.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct gv_nt_word classes[] = {{"0x060400", GV_NT_PCI}, {"0x080100", GV_NT_PCI},
                                            {"0x068000", GV_NT_NVS}, {"0x068001", GV_NT_CPU},
                                            {"0x03", GV_NT_GPU},     {"0x02", GV_NT_NIC},
                                            {NULL, GV_NT_PCI}};
int gv_nt_look_up(const struct gv_nt_word *words, const char *text)
{
    while (words->text && strncmp(text, words->text, strlen(words->text)))
        words++;
    return words->value;
}

enum gv_nt_kind gv_nt_class_kind(const char *pci_class)
{
    return (enum gv_nt_kind)gv_nt_look_up(classes, pci_class);
}

int64_t gv_nt_busid(const char *text)
{
    int64_t id = 0;
    for (; *text; text++) {
        if (*text == '.' || *text == ':')
            continue;
        if (!isxdigit((unsigned char)*text))
            break;
        id = id << 4 | (isdigit((unsigned char)*text) ? *text - '0' : tolower(*text) - 'a' + 10);
    }
    return id;
}

int gv_nt_missing(struct gv_nt_system *sys, const struct gv_nt_elem *e, const char *key)
{
    snprintf(sys->err->text, sizeof(sys->err->text), "element %.40s has no %s", e->name, key);
    return GV_NCCL_INTERNAL_ERROR;
}

struct gv_nt_node *gv_nt_find(const struct gv_nt_system *sys, enum gv_nt_kind kind, int64_t id)
{
    for (int i = 0; i < sys->count[kind]; i++)
        if (sys->node[kind][i]->id == id)
            return sys->node[kind][i];
    return NULL;
}

struct gv_nt_node *gv_nt_add(struct gv_nt_system *sys, enum gv_nt_kind kind, int64_t id)
{
    if (sys->count[kind] == sys->cap[kind]) {
        sys->cap[kind] = sys->cap[kind] ? 2 * sys->cap[kind] : 16;
        sys->node[kind] = realloc(sys->node[kind], (size_t)sys->cap[kind] * sizeof(void *));
        if (!sys->node[kind])
            abort();
    }
    struct gv_nt_node *n = calloc(1, sizeof(*n));
    n->kind = kind;
    n->id = id;
    n->index = sys->count[kind]++;
    sys->node[kind][n->index] = n;
    return n;
}

void gv_nt_remove(struct gv_nt_system *sys, struct gv_nt_node *node)
{
    struct gv_nt_node **list = sys->node[node->kind];
    int last = --sys->count[node->kind];
    for (int i = node->index; i < last; i++) {
        list[i] = list[i + 1];
        list[i]->index = i;
    }
    free(node);
}

int gv_nt_connect(
    struct gv_nt_system *sys, struct gv_nt_node *from, struct gv_nt_node *to, enum gv_nt_wire wire,
    float gbs)
{
    int at = 0;
    while (at < from->nlinks && (from->link[at].to != to || from->link[at].wire != wire))
        at++;
    if (at == sys->max_links) {
        snprintf(
            sys->err->text, sizeof(sys->err->text), "a node has more than %d links",
            sys->max_links);
        return GV_NCCL_INTERNAL_ERROR;
    }
    struct gv_nt_link link = {to, wire, gbs};
    if (at == from->nlinks)
        from->nlinks++;
    else
        link.gbs += from->link[at].gbs;
    for (; at > 0 && from->link[at - 1].gbs < link.gbs; at--)
        from->link[at] = from->link[at - 1];
    from->link[at] = link;
    return 0;
}

int gv_nt_connect_both(
    struct gv_nt_system *sys, struct gv_nt_node *a, struct gv_nt_node *b, enum gv_nt_wire wire,
    float gbs)
{
    int rc = gv_nt_connect(sys, a, b, wire, gbs);
    return rc ? rc : gv_nt_connect(sys, b, a, wire, gbs);
}
