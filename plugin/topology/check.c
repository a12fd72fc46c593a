#include <string.h>

#include "plugin/topology/tree.h"

/* Limits of NCCL's own reader (graph/xml.h, graph/topo.h of the releases named). */
struct limits {
    int children; /* 32 up to 2.20, 128 from 2.21.5, 640 from 2.29.7 */
    int elems;    /* 1024 up to 2.20, 256 from 2.21.5 */
};

/* Elements that NCCL adds to the same store: gpu and nvlink of a rank's GPU, nic and net. */
#define ROOM 40

static struct limits limits_of(int nccl_version)
{
    struct limits l = {.children = 128, .elems = 256};
    if (nccl_version < 22100) {
        l.children = 32;
        l.elems = 1024;
    } else if (nccl_version >= 22907) {
        l.children = 640;
    }
    return l;
}

static int
check_elem(const struct gv_elem *elem, const struct limits *l, int *count, struct gv_error *err)
{
    ++*count;
    if (elem->nsubs > l->children)
        return gv_error_set(
            err, "%s %s has %d children, this NCCL reads %d", elem->name,
            elem->nattrs ? elem->attr[0].value : "", elem->nsubs, l->children);
    for (int i = 0; i < elem->nattrs; i++) {
        const char *value = elem->attr[i].value;
        if (strlen(value) > GV_TREE_MAX_VALUE || strpbrk(value, "&<\"\n\r\t"))
            return gv_error_set(
                err, "attribute %.32s of %s cannot be read by NCCL", elem->attr[i].key, elem->name);
    }
    for (int i = 0; i < elem->nsubs; i++) {
        if (check_elem(elem->sub[i], l, count, err))
            return -1;
    }
    return 0;
}

static int check_cpus(const struct gv_tree *tree, struct gv_error *err)
{
    int cpus = 0;
    for (int i = 0; i < tree->root->nsubs; i++) {
        const struct gv_elem *cpu = tree->root->sub[i];
        if (!gv_elem_is(cpu, "cpu"))
            continue;
        cpus++;
        if (gv_tree_find_cpu(tree, gv_elem_get(cpu, "numaid")) != cpu)
            return gv_error_set(err, "two CPUs have numaid %s", gv_elem_get(cpu, "numaid"));
    }
    for (int i = 0; i < tree->ncpus; i++) {
        if (!gv_tree_find_cpu(tree, tree->cpu[i]))
            return gv_error_set(err, "CPU node %s of this host is missing", tree->cpu[i]);
    }
    return cpus ? 0 : gv_error_set(err, "no cpu in the topology");
}

static int times_in(const struct gv_elem *elem, const char *bus_id)
{
    int n = 0;
    for (int i = 0; i < elem->nsubs; i++) {
        const struct gv_elem *sub = elem->sub[i];
        if (gv_elem_is(sub, "pci")) {
            const char *own = gv_elem_get(sub, "busid");
            n += (own && !strcmp(own, bus_id)) + times_in(sub, bus_id);
        } else if (gv_elem_is(sub, "cpu")) {
            n += times_in(sub, bus_id);
        }
    }
    return n;
}

int gv_tree_check(
    const struct gv_tree *tree, const char *const *bus_ids, int n, int nccl_version,
    struct gv_error *err)
{
    struct limits l = limits_of(nccl_version);
    int count = 0;
    if (check_elem(tree->root, &l, &count, err) || check_cpus(tree, err))
        return -1;
    if (count + n + ROOM > l.elems)
        return gv_error_set(
            err, "%d elements: this NCCL holds %d, %d of them for what it adds", count, l.elems,
            n + ROOM);
    for (int i = 0; i < n; i++) {
        char normal[GV_BUS_ID];
        if (!gv_bus_id_normal(bus_ids[i], normal))
            return gv_error_set(err, "'%.32s' is no PCI bus id", bus_ids[i]);
        int times = times_in(tree->root, normal);
        if (times != 1)
            return gv_error_set(
                err, "GPU %s is %s in the topology", normal, times ? "twice" : "not");
    }
    return 0;
}
