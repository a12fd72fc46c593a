/* Making the graph: nodes, links, and the texts that describe them. */
#ifndef GV_NT_NODES_H
#define GV_NT_NODES_H

#include "testbench/nccl/graph.h"

/* A table of prefixes; the entry with text NULL ends it and holds the default. */
struct gv_nt_word {
    const char *text;
    int value;
};

/* Value of the first entry that `text` begins with. */
int gv_nt_look_up(const struct gv_nt_word *words, const char *text);

/* What a PCI class stands for; an unknown one is a PCI switch. */
enum gv_nt_kind gv_nt_class_kind(const char *pci_class);

/* Hex digits of a bus id without the separators; stops at anything else. */
int64_t gv_nt_busid(const char *text);

/* Reports a missing attribute; returns GV_NCCL_INTERNAL_ERROR. */
int gv_nt_missing(struct gv_nt_system *sys, const struct gv_nt_elem *e, const char *key);

/* NULL if there is none. */
struct gv_nt_node *gv_nt_find(const struct gv_nt_system *sys, enum gv_nt_kind kind, int64_t id);
struct gv_nt_node *gv_nt_add(struct gv_nt_system *sys, enum gv_nt_kind kind, int64_t id);
/* Frees the node; nobody may have a link to it. */
void gv_nt_remove(struct gv_nt_system *sys, struct gv_nt_node *node);

/* Adds bandwidth to the link of that wire, made if absent; links stay sorted, fastest first.
 * Returns a gv_nccl_result (a node has a limited number of links). */
int gv_nt_connect(
    struct gv_nt_system *sys, struct gv_nt_node *from, struct gv_nt_node *to, enum gv_nt_wire wire,
    float gbs);
/* The same in both directions. */
int gv_nt_connect_both(
    struct gv_nt_system *sys, struct gv_nt_node *a, struct gv_nt_node *b, enum gv_nt_wire wire,
    float gbs);

/* Adds nvlink, c2c and pcilink elements, once all nodes are there. Returns a gv_nccl_result. */
int gv_nt_add_links(struct gv_nt_system *sys, const struct gv_nt_elem *tree);

/* Merges the levels that Broadcom switches show and do not have. */
void gv_nt_flatten_switches(struct gv_nt_system *sys);

#endif
