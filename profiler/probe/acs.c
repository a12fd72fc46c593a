/* What lies between two GPUs in sysfs, and whether PCIe access control redirects P2P there. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/probe/gv_host_facts.h"

void gv_host_device_path(const char *sysfs, const char *bus_id, char out[PATH_MAX])
{
    char link[PATH_MAX];
    snprintf(link, sizeof(link), "%.4000s/bus/pci/devices/%s", sysfs, bus_id);
    if (!realpath(link, out))
        out[0] = 0;
}

size_t gv_host_common_path(const char *a, const char *b)
{
    size_t last = 0;
    for (size_t i = 0; a[i] && a[i] == b[i]; i++)
        if (a[i + 1] == '/' || b[i + 1] == '/')
            last = a[i + 1] == b[i + 1] ? i + 1 : last;
    return last;
}

/* Adds what is known of the bridges of `path` below its first `len` characters, the last folder
 * (the GPU itself) aside. Returns the number of bridges that could not be read. */
static int add_acs(const char *sysfs, const char *path, size_t len, char *out, size_t size)
{
    int unknown = 0;
    const char *p = path + len;
    while (*p == '/' && strchr(p + 1, '/')) {
        char bus_id[24];
        size_t n = strcspn(p + 1, "/"), used = strlen(out);
        snprintf(bus_id, sizeof(bus_id), "%.*s", (int)n, p + 1);
        p += n + 1;
        enum gv_switch acs = gv_host_acs(sysfs, bus_id);
        unknown += acs == GV_UNKNOWN;
        if (acs == GV_ON && !strstr(out, bus_id) && used + strlen(bus_id) + 3 < size)
            snprintf(out + used, size - used, "%s%s", used ? ", " : "", bus_id);
    }
    return unknown;
}

const char *
gv_host_acs_between(const char *sysfs, const char *bus_a, const char *bus_b, char *out, size_t size)
{
    char pa[PATH_MAX], pb[PATH_MAX];
    gv_host_device_path(sysfs, bus_a, pa);
    gv_host_device_path(sysfs, bus_b, pb);
    size_t len = gv_host_common_path(pa, pb);
    const char *root = strstr(pa, "/pci");
    out[0] = 0;
    /* Across host bridges every bridge up to the root port is on the path. */
    if (root && len <= (size_t)(root - pa))
        len = (size_t)(root - pa) + strcspn(root + 1, "/") + 1;
    int unknown = !pa[0] || !pb[0];
    unknown += add_acs(sysfs, pa, len, out, size) + add_acs(sysfs, pb, len, out, size);
    if (!out[0])
        snprintf(out, size, "%s", unknown ? "unknown" : "off");
    return out;
}
