/* What NCCL takes a link to be worth. */
#ifndef GV_TOPOLOGY_LINK_H
#define GV_TOPOLOGY_LINK_H

#include "plugin/topology/tree.h"

/* One PCIe link: `units` are 100 Mbit/s a lane, as NCCL counts (8 GT/s is 60). */
struct gv_link {
    int units, width;
};

/* The link of a pci element to its parent: its link_speed and link_width where it has them, else
 * what NCCL (2.19 to 2.29) fills in from sysfs: the slower and narrower of the device and its port.
 * 2.30 asks NVML for a GPU's present link instead. */
struct gv_link gv_link_of(const struct gv_elem *pci, const char *sysfs);

/* GB/s: width * units / 80, NCCL 2.19 to 2.30. */
double gv_link_gbs(struct gv_link link);

/* The link_speed that stands for `units`, or NULL. */
const char *gv_link_speed(int units);

/* GB/s of one NVLink of a GPU of that compute capability (70, 86, ...) in NCCL's model. */
double gv_link_nvlink_gbs(int sm);

#endif
