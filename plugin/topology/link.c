#include "plugin/topology/link.h"

#include <float.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/gv_file.h"

/* NCCL 2.19.3 to 2.30.7 compare the beginnings only, in this order; a speed that is not here
 * ("16.0 GT/s" without "PCIe", "") counts as 60. */
static const struct {
    const char *speed;
    int units;
} speeds[] = {
    {"2.5 GT/s", 15},        {"5 GT/s", 30},          {"8 GT/s", 60},
    {"16 GT/s", 120},        {"32 GT/s", 240},        {"5.0 GT/s PCIe", 30},
    {"8.0 GT/s PCIe", 60},   {"16.0 GT/s PCIe", 120}, {"32.0 GT/s PCIe", 240},
    {"64.0 GT/s PCIe", 480},
};
enum {
    NSPEEDS = sizeof(speeds) / sizeof(speeds[0]),
    UNKNOWN_UNITS = 60,
    UNKNOWN_WIDTH = 16,
    MOST_LANES = 1024
};

static int units_of(const char *speed)
{
    for (int i = 0; i < NSPEEDS; i++) {
        if (!strncmp(speed, speeds[i].speed, strlen(speeds[i].speed)))
            return speeds[i].units;
    }
    return UNKNOWN_UNITS;
}

const char *gv_link_speed(int units)
{
    for (int i = NSPEEDS - 1; i >= 0; i--) {
        if (speeds[i].units == units)
            return speeds[i].speed;
    }
    return NULL;
}

/* A line of the device's or, with `up` "/..", of its port's folder. */
static void line_of(
    const char *sysfs, const char *bus_id, const char *up, const char *file, char *out, size_t size)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/bus/pci/devices/%s%s/%s", sysfs, bus_id, up, file);
    gv_file_line(path, out, size);
}

static float number_of(const char *speed)
{
    float value = FLT_MAX;
    return sscanf(speed, "%f GT/s", &value) == 1 ? value : FLT_MAX;
}

static int sysfs_units(const char *sysfs, const char *bus_id)
{
    char device[64], port[64];
    line_of(sysfs, bus_id, "", "max_link_speed", device, sizeof(device));
    line_of(sysfs, bus_id, "/..", "max_link_speed", port, sizeof(port));
    return units_of(number_of(port) < number_of(device) ? port : device);
}

/* No more than could be multiplied without care. */
static int lanes(const char *text)
{
    long n = strtol(text, NULL, 0);
    return n < 0 ? 0 : n < MOST_LANES ? (int)n : MOST_LANES;
}

static int sysfs_width(const char *sysfs, const char *bus_id)
{
    char device[64], port[64];
    line_of(sysfs, bus_id, "", "max_link_width", device, sizeof(device));
    line_of(sysfs, bus_id, "/..", "max_link_width", port, sizeof(port));
    int own = lanes(device), up = lanes(port);
    return up < own ? up : own;
}

struct gv_link gv_link_of(const struct gv_elem *pci, const char *sysfs)
{
    const char *bus_id = gv_elem_get(pci, "busid");
    const char *speed = gv_elem_get(pci, "link_speed"), *width = gv_elem_get(pci, "link_width");
    struct gv_link link;
    link.units = speed ? units_of(speed) : sysfs_units(sysfs, bus_id);
    link.width = width ? lanes(width) : sysfs_width(sysfs, bus_id);
    if (link.width <= 0)
        link.width = UNKNOWN_WIDTH;
    return link;
}

double gv_link_gbs(struct gv_link link)
{
    return link.width * link.units / 80.0;
}

double gv_link_nvlink_gbs(int sm)
{
    /* topo.h of NCCL 2.27.7 to 2.30.7. Before: sm 100 has 40.0 (2.25.1 to 2.27.3), sm 90 has 20.0
     * (2.19.3). */
    if (sm >= 100)
        return 40.1;
    if (sm >= 90)
        return 20.6;
    if (sm == 86)
        return 12.0;
    return sm >= 60 && sm < 70 ? 18.0 : 20.0;
}
