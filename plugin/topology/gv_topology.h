/* The machine's tree as NCCL reads it (XML), and the edits that steer transports. No NCCL, no CUDA,
 * no policy here: edits come as bus ids. */
#ifndef GV_TOPOLOGY_H
#define GV_TOPOLOGY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/gv_error.h"
#include "base/gv_str.h"

struct gv_tree; /* owned by the caller, gv_tree_free */

/* NCCL's own tree of this machine: every CPU node, and the branches that lead to GPUs and NICs
 * (NICs only while there is room: NCCL finds one that is not listed by itself, at the same place),
 * with the levels that NCCL's detection keeps (every second one of sysfs). Attributes of PCI
 * devices and GPUs that NCCL fills by itself (link speed and width, vendor ids, gpu fields,
 * NVLinks) are left out. CPUs carry affinity, arch, vendor, familyid and modelid as NCCL would
 * write them: from CPUID where `sysfs` is "/sys", else from <sysfs>/devices/system/cpu/modalias
 * (CPUID where that is not there): ranks whose GPU hangs on another CPU do not fill them in, and
 * NCCL fails without. The first CPU is one of no device: NICs that are no PCI devices go there
 * instead of changing the order of the real ones. NULL with `err`. */
struct gv_tree *gv_tree_from_sysfs(const char *sysfs, struct gv_error *err);

/* A topology file of the user's or NCCL's virtual one. Whole or not at all: cut files, version
 * other than 1, no cpu are errors with line. */
struct gv_tree *gv_tree_from_file(const char *path, struct gv_error *err);
struct gv_tree *gv_tree_parse(const char *text, size_t len, const char *name, struct gv_error *err);

/* The base in the design's order: `user_file` (NCCL_TOPO_FILE) if not NULL or empty,
 * /var/run/nvidia-topologyd/virtualTopology.xml if there, sysfs. A user's file that cannot be used
 * is an error (the caller then answers with the user's own value and leaves all to NCCL). */
struct gv_tree *gv_tree_base(const char *user_file, const char *sysfs, struct gv_error *err);

void gv_tree_free(struct gv_tree *tree);
struct gv_tree *gv_tree_copy(const struct gv_tree *tree); /* NULL: out of memory */

/* Bus ids of the GPUs (pci elements of class 0x03.. or with a gpu element) in file order. Returns
 * their number, at most `n`. */
int gv_tree_gpus(const struct gv_tree *tree, char (*bus_ids)[24], int n);

/* Facts about one GPU that the edits need and that the tree may not hold. */
struct gv_tree_gpu {
    const char *bus_id; /* "0000:1a:00.0" */
    int sm;             /* 70, 80, 90; -1 not known: LEND is refused then */
    int nvlinks; /* entries in nvlink[] : real NVLinks, to be listed when this GPU gets an entry of
                    ours */
    struct {
        const char *target;
        int count;
    } nvlink[18];
};

/* The edits check first and change then: a refused edit leaves the tree as it was. */

/* LEND: an nvlink entry in both GPUs' elements. count 0: the smallest whose bandwidth (count x the
 * per-link figure of that sm) is not below the slower of both GPUs' PCIe links (read from `sysfs`
 * where the tree has no speed). Refused: sm 80 on either side, a pair already joined by NVLink, a
 * GPU that is not in the tree. */
int gv_tree_lend(
    struct gv_tree *tree, const struct gv_tree_gpu *a, const struct gv_tree_gpu *b, int count,
    const char *sysfs, struct gv_error *err);

/* BRIDGE: one made-up PCI bridge between the CPU node and the top-level branches that hold the
 * GPUs, as wide as their uplinks together. Refused: GPUs under two CPU nodes, over 9 GPUs under the
 * bridge, fewer than two branches. */
int gv_tree_bridge(
    struct gv_tree *tree, const char *const *bus_ids, int n, const char *sysfs,
    struct gv_error *err);

/* SEPARATE: GPU `a` moved to its CPU directly and its NVLink entries to `b` left out on both sides.
 */
int gv_tree_separate(
    struct gv_tree *tree, const struct gv_tree_gpu *a, const struct gv_tree_gpu *b,
    struct gv_error *err);

/* Checks what NCCL needs (nccl-facts section 10): attribute and child limits for `nccl_version`
 * (22809), every CPU node there, every one of `bus_ids` there once. 0, or -1 with `err`. */
int gv_tree_check(
    const struct gv_tree *tree, const char *const *bus_ids, int n, int nccl_version,
    struct gv_error *err);

/* NCCL's dialect of XML (no prolog, one blank before each attribute, double quotes). */
int gv_tree_format(const struct gv_tree *tree, struct gv_str *out);

/* Writes the tree into a sealed memfd (close on exec), reads it back, parses and compares it.
 * Returns the descriptor, owned by the caller; -1 with `err`. The file is answered to NCCL as
 * /proc/self/fd/N. */
int gv_tree_memfd(const struct gv_tree *tree, struct gv_error *err);

#endif
