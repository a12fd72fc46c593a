#include "profiler/probe/gv_host_facts.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#ifdef GV_HWLOC
#include <hwloc.h>
#endif

#define ACS_CAPABILITY 0x000d
#define ACS_REDIRECTS 0x1c /* request redirect, completion redirect, upstream forwarding */

static void name_vendor(const char *vendor, char *out, size_t size)
{
    static const char *const names[][2] = {
        {"GenuineIntel", "intel"},   {"AuthenticAMD", "amd"},     {"HygonGenuine", "hygon"},
        {"CentaurHauls", "zhaoxin"}, {"  Shanghai  ", "zhaoxin"}, {"ARM", "arm"},
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (!strcmp(names[i][0], vendor))
            snprintf(out, size, "%s", names[i][1]);
}

static void read_processor(struct gv_host_facts *f)
{
#ifdef GV_HWLOC
    hwloc_topology_t topology;
    if (hwloc_topology_init(&topology))
        return;
    if (!hwloc_topology_load(topology)) {
        hwloc_obj_t package = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0);
        const char *vendor = package ? hwloc_obj_get_info_by_name(package, "CPUVendor") : NULL;
        const char *model = package ? hwloc_obj_get_info_by_name(package, "CPUModel") : NULL;
        name_vendor(vendor ? vendor : "", f->cpu_vendor, sizeof(f->cpu_vendor));
        snprintf(f->cpu_model, sizeof(f->cpu_model), "%s", model ? model : "");
    }
    hwloc_topology_destroy(topology);
#else
    (void)name_vendor, (void)f;
#endif
}

/* Without a group the IOMMU is off, if this is the host's own sysfs: a copy may lack the files. */
static void
read_iommu(const char *sysfs, const char *bus_id, bool replayed, struct gv_host_facts *f)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/bus/pci/devices/%s/iommu_group/type", sysfs, bus_id);
    FILE *file = fopen(path, "r");
    if (!file) {
        snprintf(path, sizeof(path), "%s/bus/pci/devices/%s", sysfs, bus_id);
        snprintf(
            f->iommu, sizeof(f->iommu), "%s", replayed || access(path, F_OK) ? "unknown" : "off");
        return;
    }
    if (!fgets(f->iommu, sizeof(f->iommu), file))
        f->iommu[0] = 0;
    f->iommu[strcspn(f->iommu, "\n")] = 0;
    fclose(file);
}

void gv_host_facts_read(
    const char *sysfs, int replayed, const char *gpu_bus_id, struct gv_host_facts *f)
{
    struct statvfs shm;
    struct utsname u;
    const char *kind = getenv("container");

    memset(f, 0, sizeof(*f));
    f->shm_mib = -1;
    read_iommu(sysfs, gpu_bus_id, replayed, f);
    if (replayed)
        return;
    read_processor(f);
    if (!statvfs("/dev/shm", &shm))
        f->shm_mib = (long)((uint64_t)shm.f_blocks * shm.f_frsize >> 20);
    if (!uname(&u))
        snprintf(f->kernel, sizeof(f->kernel), "%.90s", u.release);
    snprintf(
        f->container, sizeof(f->container), "%s",
        !access("/.dockerenv", F_OK) ? "docker"
        : kind                       ? kind
                                     : "");
}

static uint32_t word(const unsigned char *bytes, size_t at)
{
    return bytes[at] | (uint32_t)bytes[at + 1] << 8 | (uint32_t)bytes[at + 2] << 16 |
           (uint32_t)bytes[at + 3] << 24;
}

enum gv_switch gv_host_acs(const char *sysfs, const char *bus_id)
{
    unsigned char config[4096];
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/bus/pci/devices/%s/config", sysfs, bus_id);
    FILE *file = fopen(path, "rb");
    size_t n = file ? fread(config, 1, sizeof(config), file) : 0;
    if (file)
        fclose(file);
    if (n < sizeof(config))
        return GV_UNKNOWN;
    /* The list of extended capabilities; 64 hops are more than fit. */
    size_t at = 0x100;
    for (int hops = 0; hops < 64 && at >= 0x100 && at + 8 <= n; hops++) {
        uint32_t head = word(config, at);
        if ((head & 0xffff) == ACS_CAPABILITY)
            return config[at + 6] & ACS_REDIRECTS ? GV_ON : GV_OFF;
        at = head >> 20;
    }
    return GV_OFF;
}
