#include <string.h>

#include "plugin/topology/edit.h"

/* An NVLink to nowhere: NCCL ignores links to GPUs outside of the communicator, and one entry keeps
 * it from asking NVML, which would bring the dropped link back. */
#define NOWHERE GV_EDIT_DOMAIN ":ff:1f.7"

static int add_nowhere(struct gv_elem *entry)
{
    struct gv_elem *nvlink = gv_elem_append(entry, "nvlink");
    return nvlink && !gv_elem_set(nvlink, "target", NOWHERE) &&
                   !gv_elem_set(nvlink, "count", "1") && !gv_elem_set(nvlink, "tclass", "0x030200")
               ? 0
               : -1;
}

/* Lists the GPU's links without those to `peer`. -1: out of memory. */
static int drop_link(
    const struct gv_tree *tree, struct gv_elem *pci, const struct gv_tree_gpu *gpu,
    const char *peer)
{
    struct gv_elem *entry = gv_edit_entry(tree, pci, gpu);
    if (!entry)
        return -1;
    for (int i = 0; i < entry->nsubs;) {
        struct gv_elem *sub = entry->sub[i];
        const char *target = gv_elem_is(sub, "nvlink") ? gv_elem_get(sub, "target") : NULL;
        char normal[GV_BUS_ID];
        if (!target || !gv_bus_id_normal(target, normal) || strcmp(normal, peer)) {
            i++;
            continue;
        }
        gv_elem_unlink(sub);
        gv_elem_free(sub);
    }
    return gv_elem_child(entry, "nvlink") ? 0 : add_nowhere(entry);
}

/* Under its CPU, unless it is there already. */
static int move_up(struct gv_elem *pci)
{
    struct gv_elem *cpu = gv_elem_cpu(pci), *parent = pci->parent;
    if (parent == cpu)
        return 0;
    int at = gv_elem_index(pci);
    if (gv_elem_insert_sorted(cpu, pci))
        return -1;
    for (int i = at + 1; i < parent->nsubs; i++)
        parent->sub[i - 1] = parent->sub[i];
    parent->nsubs--;
    return 0;
}

int gv_tree_separate(
    struct gv_tree *tree, const struct gv_tree_gpu *a, const struct gv_tree_gpu *b,
    struct gv_error *err)
{
    char of_a[GV_BUS_ID], of_b[GV_BUS_ID];
    struct gv_elem *pci_a = gv_edit_gpu(tree, a->bus_id, of_a, err);
    struct gv_elem *pci_b = pci_a ? gv_edit_gpu(tree, b->bus_id, of_b, err) : NULL;
    if (!pci_b)
        return -1;
    if (pci_a == pci_b)
        return gv_error_set(err, "GPU %s cannot be separated from itself", of_a);
    enum gv_edit_nvlink joined = gv_edit_joined(tree, a, b);
    if (joined == GV_NVLINK_SWITCH)
        return gv_error_set(
            err, "GPUs %s and %s share an NVSwitch: a topology cannot separate them", of_a, of_b);
    if (joined && (drop_link(tree, pci_a, a, of_b) || drop_link(tree, pci_b, b, of_a)))
        return gv_error_set(err, "out of memory");
    return move_up(pci_a) ? gv_error_set(err, "out of memory") : 0;
}
