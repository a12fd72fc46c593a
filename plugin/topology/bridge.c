#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "plugin/topology/edit.h"
#include "plugin/topology/link.h"

/* CUDA maps the memory of 8 other GPUs at most: with more under one bridge the first all-to-all
 * fails (error 711). */
#define MAX_GPUS 9

struct branches {
    struct gv_elem *cpu, *top[MAX_GPUS];
    int n;
};

/* The child of the CPU that the element hangs on. */
static struct gv_elem *top_of(struct gv_elem *pci)
{
    while (!gv_elem_is(pci->parent, "cpu"))
        pci = pci->parent;
    return pci;
}

static int add_branch(struct branches *all, struct gv_elem *pci, struct gv_error *err)
{
    struct gv_elem *cpu = gv_elem_cpu(pci), *top = top_of(pci);
    if (all->cpu && all->cpu != cpu)
        return gv_error_set(
            err, "the GPUs hang on two CPU nodes (%s and %s): a bridge covers one only",
            gv_elem_get(all->cpu, "numaid"), gv_elem_get(cpu, "numaid"));
    all->cpu = cpu;
    for (int i = 0; i < all->n; i++) {
        if (all->top[i] == top)
            return 0;
    }
    all->top[all->n++] = top;
    return 0;
}

static int collect(
    const struct gv_tree *tree, const char *const *bus_ids, int n, struct branches *all,
    struct gv_error *err)
{
    char normal[GV_BUS_ID];
    if (n > MAX_GPUS)
        return gv_error_set(
            err, "%d GPUs under one bridge: CUDA allows a GPU %d peers, an all-to-all would fail",
            n, MAX_GPUS - 1);
    for (int i = 0; i < n; i++) {
        struct gv_elem *pci = gv_edit_gpu(tree, bus_ids[i], normal, err);
        if (!pci || add_branch(all, pci, err))
            return -1;
    }
    if (all->n < 2)
        return gv_error_set(err, "all GPUs are in one branch already: nothing to bridge");
    return 0;
}

/* As wide as the uplinks together: the fastest uplink's speed, or a slower one that divides the sum
 * without rest (every speed is a multiple of the slowest). */
static struct gv_link together(const struct branches *all, const char *sysfs)
{
    struct gv_link sum = {.units = 1, .width = 0};
    int total = 0;
    for (int i = 0; i < all->n; i++) {
        struct gv_link link = gv_link_of(all->top[i], sysfs);
        total += link.units * link.width;
        if (link.units > sum.units)
            sum.units = link.units;
    }
    while (total % sum.units && sum.units > 15)
        sum.units /= 2;
    sum.width = total / sum.units;
    return sum;
}

/* A bus id that neither the machine nor the tree has: the same on every rank. */
static int free_bus_id(
    const struct gv_tree *tree, const char *sysfs, char out[GV_BUS_ID], struct gv_error *err)
{
    for (int bus = 0; bus < 256; bus++) {
        char path[PATH_MAX];
        snprintf(out, GV_BUS_ID, GV_EDIT_DOMAIN ":%02x:00.0", bus);
        snprintf(path, sizeof(path), "%s/bus/pci/devices/%s", sysfs, out);
        if (!gv_tree_find_pci(tree, out) && access(path, F_OK))
            return 0;
    }
    return gv_error_set(err, "PCI domain " GV_EDIT_DOMAIN " is full: no bus id for a bridge");
}

static struct gv_elem *new_bridge(const char *bus_id, struct gv_link link)
{
    char width[16];
    snprintf(width, sizeof(width), "%d", link.width);
    struct gv_elem *elem = gv_elem_new("pci");
    if (elem && !gv_elem_set(elem, "busid", bus_id) && !gv_elem_set(elem, "class", "0x060400") &&
        !gv_elem_set(elem, "link_speed", gv_link_speed(link.units)) &&
        !gv_elem_set(elem, "link_width", width))
        return elem;
    gv_elem_free(elem);
    return NULL;
}

/* Moves the branches into `bridge`, in their order. -1: out of memory. */
static int move(struct branches *all, struct gv_elem *bridge)
{
    int first = INT_MAX;
    for (int i = 0; i < all->n; i++) {
        int at = gv_elem_index(all->top[i]);
        first = at < first ? at : first;
    }
    if (gv_elem_insert(all->cpu, bridge, first))
        return -1;
    for (int at = first + 1; at < all->cpu->nsubs;) {
        struct gv_elem *sub = all->cpu->sub[at];
        bool ours = false;
        for (int i = 0; i < all->n; i++)
            ours |= all->top[i] == sub;
        if (!ours) {
            at++;
            continue;
        }
        gv_elem_unlink(sub);
        if (gv_elem_insert(bridge, sub, bridge->nsubs)) {
            gv_elem_free(sub);
            return -1;
        }
    }
    return 0;
}

int gv_tree_bridge(
    struct gv_tree *tree, const char *const *bus_ids, int n, const char *sysfs,
    struct gv_error *err)
{
    struct branches all = {0};
    char bus_id[GV_BUS_ID];
    if (collect(tree, bus_ids, n, &all, err) || free_bus_id(tree, sysfs, bus_id, err))
        return -1;
    struct gv_elem *bridge = new_bridge(bus_id, together(&all, sysfs));
    if (!bridge)
        return gv_error_set(err, "out of memory");
    if (!move(&all, bridge))
        return 0;
    if (!bridge->parent)
        gv_elem_free(bridge);
    return gv_error_set(err, "out of memory");
}
