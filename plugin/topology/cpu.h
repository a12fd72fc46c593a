/* CPU nodes as NCCL describes them. */
#ifndef GV_TOPOLOGY_CPU_H
#define GV_TOPOLOGY_CPU_H

#include "plugin/topology/tree.h"

/* What NCCL writes about the processor, the same for all its nodes. */
struct gv_cpu_kind {
    char arch[16];     /* x86_64, arm64, ppc64; empty: not known */
    char vendor[16];   /* x86_64 only, CPUID's letters */
    int family, model; /* as NCCL computes them from CPUID leaf 1 */
};

/* On the running machine (`sysfs` is /sys) by CPUID as NCCL does; for another machine's sysfs from
 * devices/system/cpu/modalias, and CPUID where that is not there. */
struct gv_cpu_kind gv_cpu_kind_of(const char *sysfs);

/* The cpu element of that NUMA id, added (as the last one) with all attributes that NCCL would fill
 * in if it is not there yet; NULL: out of memory. */
struct gv_elem *gv_cpu_element(
    struct gv_tree *tree, const char *numaid, const struct gv_cpu_kind *kind, const char *sysfs);

#endif
