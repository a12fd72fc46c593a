/* A pretended /sys for tests, made from a table: GPUs with the bridges above them. */
#ifndef GV_TEST_SYSFS_H
#define GV_TEST_SYSFS_H

#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/gv_test.h"

/* One PCI function. */
struct fake_gpu {
    const char *bus_id;  /* "0000:1a:00.0" */
    const char *bridges; /* from the root port down, parted by '/'; "" for none */
    unsigned device;     /* PCI device id */
    int numa;
    const char *uuid;    /* NULL: not readable */
    unsigned vendor;     /* 0: 0x10de */
    unsigned class_code; /* 0: 0x030200 */
};

struct fake_machine {
    const struct fake_gpu *gpus;
    int n;
    const char *driver, *boot_id, *host; /* NULL: no such file */
};

/* The reference machine: two switches with two levels below their root ports, and a lone GPU. */
#define FAKE_A "0000:16:00.0/0000:17:00.0/0000:18:0"
#define FAKE_B "0000:39:00.0/0000:3a:00.0/0000:3b:0"
static const struct fake_gpu fake_4028[] = {
    {"0000:1a:00.0", FAKE_A "4.0", 0x1db6, 0, "GPU-00", 0, 0},
    {"0000:1b:00.0", FAKE_A "8.0", 0x1db6, 0, "GPU-01", 0, 0},
    {"0000:1c:00.0", FAKE_A "c.0", 0x1db6, 0, "GPU-02", 0, 0},
    {"0000:1d:00.0", FAKE_A "d.0", 0x1db6, 0, "GPU-03", 0, 0},
    {"0000:1e:00.0", FAKE_A "e.0", 0x1db6, 0, "GPU-04", 0, 0},
    {"0000:3d:00.0", FAKE_B "4.0", 0x1db6, 0, "GPU-05", 0, 0},
    {"0000:3e:00.0", FAKE_B "8.0", 0x1df6, 0, "GPU-06", 0, 0},
    {"0000:3f:00.0", FAKE_B "c.0", 0x1dba, 0, "GPU-07", 0, 0},
    {"0000:40:00.0", FAKE_B "d.0", 0x1df0, 0, "GPU-08", 0, 0},
    {"0000:41:00.0", FAKE_B "e.0", 0x1dba, 0, "GPU-09", 0, 0},
    {"0000:b1:00.0", "0000:b0:00.0", 0x1db3, 1, "GPU-10", 0, 0},
};
#define FAKE_4028_N 11

/* Writes a file below `root`, with all folders on the way. */
static inline void fake_file(const char *root, const char *below, const char *text)
{
    char path[PATH_MAX];
    assert_true(snprintf(path, sizeof(path), "%s/%s", root, below) < (int)sizeof(path));
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0755);
        *slash = '/';
    }
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static inline void fake_attribute(const char *root, const char *dir, const char *key, const char *v)
{
    char below[PATH_MAX], line[128];
    assert_true(snprintf(below, sizeof(below), "%s/%s", dir, key) < (int)sizeof(below));
    assert_true(snprintf(line, sizeof(line), "%s\n", v) < (int)sizeof(line));
    fake_file(root, below, line);
}

/* One function at devices/pciDDDD:BB/<bridges>/<bus id>, and the link to it. */
static inline void fake_function(const char *root, const struct fake_gpu *gpu)
{
    char dir[512], at[512], to[600], text[32];
    const char *top = *gpu->bridges ? gpu->bridges : gpu->bus_id;
    int root_len = (int)(strchr(strchr(top, ':') + 1, ':') - top); /* domain:bus */
    snprintf(
        dir, sizeof(dir), "devices/pci%.*s/%s%s%s", root_len, top, gpu->bridges,
        *gpu->bridges ? "/" : "", gpu->bus_id);
    snprintf(text, sizeof(text), "0x%04x", gpu->vendor ? gpu->vendor : 0x10deu);
    fake_attribute(root, dir, "vendor", text);
    snprintf(text, sizeof(text), "0x%06x", gpu->class_code ? gpu->class_code : 0x030200u);
    fake_attribute(root, dir, "class", text);
    snprintf(text, sizeof(text), "0x%04x", gpu->device);
    fake_attribute(root, dir, "device", text);
    snprintf(text, sizeof(text), "%d", gpu->numa);
    fake_attribute(root, dir, "numa_node", text);
    fake_attribute(root, dir, "max_link_width", "16");
    fake_file(root, "bus/pci/devices/.made", "");
    snprintf(at, sizeof(at), "%s/bus/pci/devices/%s", root, gpu->bus_id);
    snprintf(to, sizeof(to), "../../../%s", dir);
    assert_int_equal(symlink(to, at), 0);
}

/* Makes the tree in a new folder below /tmp; writes its path into `root` (64 bytes). */
static inline void fake_sysfs(const struct fake_machine *m, char root[64])
{
    char below[128];
    strcpy(root, "/tmp/gv-sysfs-XXXXXX");
    assert_non_null(mkdtemp(root));
    fake_file(root, "bus/pci/devices/.made", "");
    for (int i = 0; i < m->n; i++) {
        fake_function(root, &m->gpus[i]);
        snprintf(below, sizeof(below), "gv100/gpus/%s/uuid", m->gpus[i].bus_id);
        if (m->gpus[i].uuid)
            fake_file(root, below, m->gpus[i].uuid);
    }
    if (m->driver)
        fake_file(root, "module/nvidia/version", m->driver);
    if (m->boot_id)
        fake_file(root, "gv100/boot_id", m->boot_id);
    if (m->host)
        fake_file(root, "gv100/host", m->host);
}

static inline int
fake_remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

/* Removes a folder and all below it. */
static inline void fake_remove(const char *root)
{
    nftw(root, fake_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

#endif
