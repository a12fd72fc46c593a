/* The elements of a topology, inside this folder only. Every function that makes something returns
 * NULL or -1 where memory ran out. */
#ifndef GV_TOPOLOGY_TREE_H
#define GV_TOPOLOGY_TREE_H

#include <stdbool.h>
#include <stddef.h>

#include "plugin/topology/gv_topology.h"

/* NCCL's own limits (2.19 to 2.30): 16 attributes an element, a value ends before its 254th letter.
 */
#define GV_TREE_MAX_ATTRS 16
#define GV_TREE_MAX_VALUE 253
/* Ours, so that hostile input ends: NCCL itself stops at 256 elements (1024 before 2.21). */
#define GV_TREE_MAX_DEPTH 64
#define GV_TREE_MAX_ELEMS 4096
#define GV_TREE_MAX_FILE (4u << 20)
#define GV_TREE_MAX_CPUS 256

#define GV_BUS_ID 24 /* room for a bus id and its end */

struct gv_attr {
    char *key, *value;
};

struct gv_elem {
    char *name;
    struct gv_attr attr[GV_TREE_MAX_ATTRS];
    int nattrs;
    struct gv_elem *parent, **sub;
    int nsubs, cap;
};

struct gv_tree {
    struct gv_elem *root; /* system */
    /* CPU nodes that sysfs has, to be found again by gv_tree_check; none for a file's tree. */
    char (*cpu)[8];
    int ncpus;
};

struct gv_elem *gv_elem_new(const char *name);
void gv_elem_free(struct gv_elem *elem); /* with all below; NULL allowed; not unlinked */
struct gv_elem *gv_elem_copy(const struct gv_elem *elem);
bool gv_elem_equal(const struct gv_elem *a, const struct gv_elem *b);

const char *gv_elem_get(const struct gv_elem *elem, const char *key);
int gv_elem_set(struct gv_elem *elem, const char *key, const char *value);

bool gv_elem_is(const struct gv_elem *elem, const char *name);
struct gv_elem *gv_elem_child(const struct gv_elem *elem, const char *name);
int gv_elem_index(const struct gv_elem *elem); /* among the children of its parent */

/* Puts `child` before the `at`th child; -1 if memory ran out (the child stays the caller's). */
int gv_elem_insert(struct gv_elem *parent, struct gv_elem *child, int at);
/* Where NCCL would put a pci element: before the first one with a greater bus id. */
int gv_elem_insert_sorted(struct gv_elem *parent, struct gv_elem *pci);
/* A new, last child, or NULL. */
struct gv_elem *gv_elem_append(struct gv_elem *parent, const char *name);
/* Takes the element out of its parent; it belongs to the caller then. */
void gv_elem_unlink(struct gv_elem *elem);

struct gv_tree *gv_tree_new(void); /* with an empty <system version="1"> */

/* The pci element that NCCL would find under that bus id (exact letters), or NULL. Only where NCCL
 * looks: cpu > pci > ... > pci. */
struct gv_elem *gv_tree_find_pci(const struct gv_tree *tree, const char *bus_id);
struct gv_elem *gv_tree_find_cpu(const struct gv_tree *tree, const char *numaid);
/* A pci element with a gpu element or of a display class. */
bool gv_elem_is_gpu(const struct gv_elem *pci);
/* The cpu element above, or NULL. */
struct gv_elem *gv_elem_cpu(struct gv_elem *pci);

/* "00000000:1A:00.0" or "0000:1a:00.0" as sysfs and NCCL write it. false if it is no bus id. */
bool gv_bus_id_normal(const char *text, char out[GV_BUS_ID]);

#endif
