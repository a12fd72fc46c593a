#include "plugin/topology/edit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gv_elem *gv_edit_gpu(
    const struct gv_tree *tree, const char *bus_id, char normal[GV_BUS_ID], struct gv_error *err)
{
    if (!gv_bus_id_normal(bus_id, normal)) {
        gv_error_set(err, "'%.32s' is no PCI bus id", bus_id ? bus_id : "");
        return NULL;
    }
    struct gv_elem *pci = gv_tree_find_pci(tree, normal);
    if (!pci)
        gv_error_set(err, "GPU %s is not in the topology", normal);
    return pci;
}

/* The class of an NVLink's far end; NULL where the tree does not say (NCCL looks itself then). */
static const char *class_of(const struct gv_tree *tree, const char *target)
{
    const struct gv_elem *pci = gv_tree_find_pci(tree, target);
    if (!pci || !gv_elem_is_gpu(pci))
        return NULL;
    const char *class = gv_elem_get(pci, "class");
    return class && !strncmp(class, "0x03", 4) ? class : "0x030200";
}

int gv_edit_add_nvlink(
    const struct gv_tree *tree, struct gv_elem *gpu, const char *target, int count)
{
    char number[16];
    snprintf(number, sizeof(number), "%d", count);
    const char *class = class_of(tree, target);
    struct gv_elem *nvlink = gv_elem_append(gpu, "nvlink");
    if (!nvlink || gv_elem_set(nvlink, "target", target) || gv_elem_set(nvlink, "count", number))
        return -1;
    return class ? gv_elem_set(nvlink, "tclass", class) : 0;
}

static const char *normal_target(const struct gv_tree_gpu *gpu, int i, char out[GV_BUS_ID])
{
    return gv_bus_id_normal(gpu->nvlink[i].target, out) ? out : gpu->nvlink[i].target;
}

struct gv_elem *
gv_edit_entry(const struct gv_tree *tree, struct gv_elem *pci, const struct gv_tree_gpu *gpu)
{
    struct gv_elem *elem = gv_elem_child(pci, "gpu");
    if (!elem)
        elem = gv_elem_append(pci, "gpu");
    if (!elem || gv_elem_child(elem, "nvlink"))
        return elem;
    for (int i = 0; i < gpu->nvlinks; i++) {
        char target[GV_BUS_ID];
        const char *to = normal_target(gpu, i, target);
        if (gpu->nvlink[i].count > 0 && gv_edit_add_nvlink(tree, elem, to, gpu->nvlink[i].count))
            return NULL;
    }
    return elem;
}

/* Whether the entry leads to an NVSwitch: its class says so, or the tree does not have the device
 * (users' files list GPUs without a class, but no switches). */
static bool to_switch(const struct gv_tree *tree, const char *target, const char *class)
{
    return class ? !strncmp(class, "0x0680", 6) : !gv_tree_find_pci(tree, target);
}

static enum gv_edit_nvlink
worth(const struct gv_tree *tree, const char *target, const char *class, const char *peer)
{
    char normal[GV_BUS_ID];
    if (target && gv_bus_id_normal(target, normal))
        target = normal;
    if (target && !strcmp(target, peer))
        return GV_NVLINK_PAIR;
    return to_switch(tree, target ? target : "", class) ? GV_NVLINK_SWITCH : GV_NVLINK_NONE;
}

/* Best of one side's entries. */
static enum gv_edit_nvlink
side(const struct gv_tree *tree, const struct gv_tree_gpu *gpu, const char *peer)
{
    enum gv_edit_nvlink best = GV_NVLINK_NONE, now;
    char normal[GV_BUS_ID], target[GV_BUS_ID];
    const struct gv_elem *pci =
        gv_bus_id_normal(gpu->bus_id, normal) ? gv_tree_find_pci(tree, normal) : NULL;
    const struct gv_elem *elem = pci ? gv_elem_child(pci, "gpu") : NULL;

    if (elem && gv_elem_child(elem, "nvlink")) {
        for (int i = 0; i < elem->nsubs && best != GV_NVLINK_PAIR; i++) {
            const struct gv_elem *sub = elem->sub[i];
            if (!gv_elem_is(sub, "nvlink"))
                continue;
            now = worth(tree, gv_elem_get(sub, "target"), gv_elem_get(sub, "tclass"), peer);
            best = now ? now : best;
        }
        return best;
    }
    for (int i = 0; i < gpu->nvlinks && best != GV_NVLINK_PAIR; i++) {
        now = worth(tree, normal_target(gpu, i, target), NULL, peer);
        best = now ? now : best;
    }
    return best;
}

enum gv_edit_nvlink
gv_edit_joined(const struct gv_tree *tree, const struct gv_tree_gpu *a, const struct gv_tree_gpu *b)
{
    char of_a[GV_BUS_ID], of_b[GV_BUS_ID];
    if (!gv_bus_id_normal(a->bus_id, of_a) || !gv_bus_id_normal(b->bus_id, of_b))
        return GV_NVLINK_NONE;
    enum gv_edit_nvlink x = side(tree, a, of_b), y = side(tree, b, of_a);
    if (x == GV_NVLINK_PAIR || y == GV_NVLINK_PAIR)
        return GV_NVLINK_PAIR;
    return x == GV_NVLINK_SWITCH && y == GV_NVLINK_SWITCH ? GV_NVLINK_SWITCH : GV_NVLINK_NONE;
}
