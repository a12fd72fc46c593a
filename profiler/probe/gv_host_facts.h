/* What the host is, beside its GPUs: facts that decide whether P2P can work, or that move figures.
 * An unknown is said to be unknown. */
#ifndef GV_HOST_FACTS_H
#define GV_HOST_FACTS_H

#include <limits.h>
#include <stddef.h>

enum gv_switch { GV_UNKNOWN, GV_OFF, GV_ON };

struct gv_host_facts {
    char cpu_model[96], cpu_vendor[16]; /* "" not known; vendor as the profile names it */
    long shm_mib;                       /* size of /dev/shm, -1 not known */
    char iommu[32];                     /* "off", "identity", "DMA", "unknown" */
    char container[64];                 /* "" none that shows */
    char kernel[96];
};

/* Reads the facts of this host (hwloc for the processor); of a machine that is replayed only what
 * its sysfs root has. `gpu_bus_id` is any GPU: its IOMMU group's type stands for all. */
void gv_host_facts_read(
    const char *sysfs, int replayed, const char *gpu_bus_id, struct gv_host_facts *out);

/* Whether ACS redirects P2P at a bridge (request or completion redirect, upstream forwarding): its
 * extended capability 0x000d (PCI Express Base Specification, "Access Control Services"). UNKNOWN
 * without root, since only root may read that far. A bridge without the capability is OFF. */
enum gv_switch gv_host_acs(const char *sysfs, const char *bus_id);

/* acs.c. The device's folder in sysfs with all its bridges; "" where not known. */
void gv_host_device_path(const char *sysfs, const char *bus_id, char out[PATH_MAX]);
/* Length of the common part of two such folders, which ends at a folder. */
size_t gv_host_common_path(const char *a, const char *b);
/* Bridges between two devices, their own ports included, at which ACS redirects P2P, as a list that
 * fits; "off" where none does, "unknown" where one could not be read and none is known to. Returns
 * `out`. */
const char *gv_host_acs_between(
    const char *sysfs, const char *bus_a, const char *bus_b, char *out, size_t size);

#endif
