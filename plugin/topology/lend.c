#include <math.h>

#include "plugin/topology/edit.h"
#include "plugin/topology/link.h"

#include <string.h>

/* The smallest count of lent links that is worth the slower of both PCIe links. */
static int
count_for(const struct gv_elem *a, int sm_a, const struct gv_elem *b, int sm_b, const char *sysfs)
{
    double pcie = fmin(gv_link_gbs(gv_link_of(a, sysfs)), gv_link_gbs(gv_link_of(b, sysfs)));
    double one = fmin(gv_link_nvlink_gbs(sm_a), gv_link_nvlink_gbs(sm_b));
    int count = (int)ceil(pcie / one - 1e-9);
    return count > 1 ? count : 1;
}

static int sm_is_right(const struct gv_tree_gpu *gpu, struct gv_error *err)
{
    if (gpu->sm <= 0)
        return gv_error_set(
            err, "the compute capability of GPU %.32s is not known: no link can be lent",
            gpu->bus_id);
    if (gpu->sm == 80)
        return gv_error_set(
            err,
            "GPU %.32s has compute capability 8.0: NCCL would read over a lent link instead "
            "of writing",
            gpu->bus_id);
    return 0;
}

static int put_link(
    const struct gv_tree *tree, struct gv_elem *pci, const struct gv_tree_gpu *gpu,
    const char *target, int count)
{
    struct gv_elem *entry = gv_edit_entry(tree, pci, gpu);
    return entry ? gv_edit_add_nvlink(tree, entry, target, count) : -1;
}

int gv_tree_lend(
    struct gv_tree *tree, const struct gv_tree_gpu *a, const struct gv_tree_gpu *b, int count,
    const char *sysfs, struct gv_error *err)
{
    char of_a[GV_BUS_ID], of_b[GV_BUS_ID];
    struct gv_elem *pci_a = gv_edit_gpu(tree, a->bus_id, of_a, err);
    struct gv_elem *pci_b = pci_a ? gv_edit_gpu(tree, b->bus_id, of_b, err) : NULL;
    if (!pci_b || sm_is_right(a, err) || sm_is_right(b, err))
        return -1;
    if (pci_a == pci_b)
        return gv_error_set(err, "GPU %s cannot be joined with itself", of_a);
    if (count < 0)
        return gv_error_set(err, "a count of %d lent links makes no sense", count);
    enum gv_edit_nvlink joined = gv_edit_joined(tree, a, b);
    if (joined)
        return gv_error_set(
            err, "GPUs %s and %s are joined by %s already", of_a, of_b,
            joined == GV_NVLINK_SWITCH ? "an NVSwitch" : "NVLink");
    if (!count)
        count = count_for(pci_a, a->sm, pci_b, b->sm, sysfs);
    if (put_link(tree, pci_a, a, of_b, count) || put_link(tree, pci_b, b, of_a, count))
        return gv_error_set(err, "out of memory");
    return 0;
}
