/* What the edits share. */
#ifndef GV_TOPOLOGY_EDIT_H
#define GV_TOPOLOGY_EDIT_H

#include "plugin/topology/tree.h"

/* PCI domain of devices that only our files have. Real ones are checked for all the same. */
#define GV_EDIT_DOMAIN "fffe"

/* The pci element of a GPU that an edit names, or NULL with `err`. `normal` gets its bus id. */
struct gv_elem *gv_edit_gpu(
    const struct gv_tree *tree, const char *bus_id, char normal[GV_BUS_ID], struct gv_error *err);

/* How two GPUs are joined by NVLink, by the tree's entries or, where it has none, by `gpu`. */
enum gv_edit_nvlink { GV_NVLINK_NONE, GV_NVLINK_PAIR, GV_NVLINK_SWITCH };
enum gv_edit_nvlink gv_edit_joined(
    const struct gv_tree *tree, const struct gv_tree_gpu *a, const struct gv_tree_gpu *b);

/* The gpu element of a GPU with all its real NVLinks listed: one entry of ours switches NCCL's own
 * probe off. NULL: out of memory. */
struct gv_elem *
gv_edit_entry(const struct gv_tree *tree, struct gv_elem *pci, const struct gv_tree_gpu *gpu);

/* An nvlink entry to `target` (a normal bus id). 0, or -1: out of memory. */
int gv_edit_add_nvlink(
    const struct gv_tree *tree, struct gv_elem *gpu, const char *target, int count);

#endif
