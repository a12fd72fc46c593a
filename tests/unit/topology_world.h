/* A pretended sysfs from a table, in a temporary folder. */
#ifndef GV_TOPOLOGY_WORLD_H
#define GV_TOPOLOGY_WORLD_H

#include <errno.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/gv_test.h"

#define WORLD_SYSFS 64

/* One PCI function. `path` is below sysfs/devices. NULL (width 0): the file is not there. */
struct world_device {
    const char *path, *class, *vendor, *numa, *speed;
    int width;
    bool vf;
};

static inline void world_folder(const char *path)
{
    char part[1024];
    snprintf(part, sizeof(part), "%s", path);
    for (char *p = part + 1; *p; p++) {
        if (*p != '/')
            continue;
        *p = '\0';
        if (mkdir(part, 0755) && errno != EEXIST)
            fail_msg("mkdir %s: %s", part, strerror(errno));
        *p = '/';
    }
    if (mkdir(part, 0755) && errno != EEXIST)
        fail_msg("mkdir %s: %s", part, strerror(errno));
}

static inline void world_put(const char *folder, const char *name, const char *text)
{
    char path[1024];
    if (!text)
        return;
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    if (!file)
        fail_msg("fopen %s: %s", path, strerror(errno));
    fprintf(file, "%s\n", text);
    fclose(file);
}

/* An empty sysfs: DIR/sys with bus/pci/devices; out has WORLD_SYSFS. */
static inline void world_make(char *out)
{
    char dir[] = "/tmp/gv-world-XXXXXX", path[1024];
    assert_non_null(mkdtemp(dir));
    snprintf(out, WORLD_SYSFS, "%s/sys", dir);
    snprintf(path, sizeof(path), "%s/bus/pci/devices", out);
    world_folder(path);
}

static inline void world_add(const char *sysfs, const struct world_device *d)
{
    char folder[768], link[768], target[768], number[16];
    snprintf(folder, sizeof(folder), "%s/devices/%s", sysfs, d->path);
    world_folder(folder);
    world_put(folder, "class", d->class);
    world_put(folder, "vendor", d->vendor ? d->vendor : "0x8086");
    world_put(folder, "numa_node", d->numa);
    world_put(folder, "max_link_speed", d->speed);
    snprintf(number, sizeof(number), "%d", d->width);
    world_put(folder, "max_link_width", d->width ? number : NULL);
    if (d->vf)
        world_put(folder, "physfn", "");
    const char *last = strrchr(d->path, '/');
    snprintf(link, sizeof(link), "%s/bus/pci/devices/%s", sysfs, last ? last + 1 : d->path);
    snprintf(target, sizeof(target), "../../../devices/%s", d->path);
    if (symlink(target, link))
        fail_msg("symlink %s: %s", link, strerror(errno));
}

/* The usual function: no link in the way of what is tested. */
static inline void world_pci(
    const char *sysfs, const char *path, const char *class, const char *vendor, const char *numa)
{
    world_add(
        sysfs, &(struct world_device){
                   .path = path,
                   .class = class,
                   .vendor = vendor,
                   .numa = numa,
                   .speed = "8.0 GT/s PCIe",
                   .width = 16});
}

static inline void world_node(const char *sysfs, int node, const char *mask)
{
    char folder[768];
    snprintf(folder, sizeof(folder), "%s/devices/system/node/node%d", sysfs, node);
    world_folder(folder);
    world_put(folder, "cpumap", mask);
}

static inline void world_cpu(const char *sysfs, const char *modalias)
{
    char folder[768];
    snprintf(folder, sizeof(folder), "%s/devices/system/cpu", sysfs);
    world_folder(folder);
    world_put(folder, "modalias", modalias);
}

static inline int world_unlink(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

/* Removes what world_make made, and what was put beside it. */
static inline void world_remove(char *sysfs)
{
    *strrchr(sysfs, '/') = '\0';
    nftw(sysfs, world_unlink, 16, FTW_DEPTH | FTW_PHYS);
}

#define WORLD_INTEL "cpu:type:x86,ven0000fam0006mod0055:feature:,0000,0001"
#define WORLD_AMD "cpu:type:x86,ven0002fam0017mod0031:feature:,0000,0001"
/* What NCCL writes for these two. */
#define WORLD_INTEL_XML " arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"85\""
#define WORLD_AMD_XML " arch=\"x86_64\" vendor=\"AuthenticAMD\" familyid=\"143\" modelid=\"49\""

#endif
