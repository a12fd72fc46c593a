/* A machine that is not here, as data: read from testbench/machines (README.md has the format). */
#ifndef GV_BENCH_MACHINE_H
#define GV_BENCH_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/gv_error.h"
#include "base/gv_gpuset.h"
#include "base/gv_str.h"

#define GV_BENCH_MAX_BRIDGES 320
#define GV_BENCH_MAX_NODES 16
#define GV_BENCH_MAX_NVLINKS 256

/* One PCI function. `speed` is its link to its parent, as sysfs prints it. */
struct gv_bench_pci {
    char bus_id[20]; /* "0000:1a:00.0", lower case */
    char parent[20]; /* bus id of a bridge, or a host bridge ("pci0000:16") */
    char pci_class[12];
    char speed[24];
    int node, width;
    uint16_t vendor, device;
};

struct gv_bench_gpu {
    struct gv_bench_pci pci;
    char model[64], uuid[48];
    int sm, memory_mib;
    bool p2p; /* false: the driver refuses P2P to and from it */
};

struct gv_bench_cpu {
    char arch[16], vendor[24];
    int family, model;
};

struct gv_bench_node {
    int node;
    char cpus[160]; /* sysfs mask */
};

struct gv_bench_nvlink {
    int gpus[2], count;
};

struct gv_bench_machine {
    char name[64], driver[32], boot_id[40];
    struct gv_bench_cpu cpu;
    struct gv_bench_node nodes[GV_BENCH_MAX_NODES];
    int nnodes;
    struct gv_bench_pci bridges[GV_BENCH_MAX_BRIDGES];
    int nbridges;
    struct gv_bench_gpu gpus[GV_MAX_GPUS]; /* in PCI order */
    int ngpus;
    struct gv_bench_nvlink nvlinks[GV_BENCH_MAX_NVLINKS];
    int nnvlinks;
};

/* Reads a machine file. The whole file is checked; 0, or -1 with file, line, column and cause. */
int gv_bench_machine_read(const char *path, struct gv_bench_machine *out, struct gv_error *err);

/* A path if `name_or_path` holds a '/' or ends in .yaml; else NAME/machine.yaml in
 * $GV_MACHINES_DIR or in `folder` (may be NULL). Fills out[PATH_MAX]; -1 with `err`. */
int gv_bench_machine_resolve(
    const char *name_or_path, const char *folder, char *out, struct gv_error *err);

/* Writes a sysfs tree below `root` (made if absent): PCI devices with their links, NUMA nodes, the
 * driver's version, the boot id, and GPU UUIDs under proc/driver/nvidia. 0, or -1 with `err`. */
int gv_bench_machine_sysfs(
    const struct gv_bench_machine *machine, const char *root, struct gv_error *err);

/* What NCCL's own detection writes for this machine, all GPUs: a complete topology file. */
int gv_bench_machine_topology(const struct gv_bench_machine *machine, struct gv_str *out);

/* GPUs that refuse P2P. */
gv_gpuset gv_bench_machine_nop2p(const struct gv_bench_machine *machine);

/* The bridge with that bus id, or NULL (a host bridge, or none). */
const struct gv_bench_pci *
gv_bench_machine_bridge(const struct gv_bench_machine *machine, const char *bus_id);

#endif
