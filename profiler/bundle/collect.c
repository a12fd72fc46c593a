/* The parts of a machine's sysfs that a replay reads. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/gv_file.h"
#include "profiler/bundle/gv_bundle.h"

/* One copy in progress. */
struct copy {
    const char *sysfs;
    char root[PATH_MAX]; /* real path of sysfs */
    char to[PATH_MAX];   /* the copy's sysfs */
    struct gv_error *err;
};

int gv_bundle_text(
    const char *folder, const char *name, const char *text, struct gv_scrub *scrub,
    struct gv_error *err)
{
    char path[PATH_MAX];
    struct gv_str clean = {0};
    if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path))
        return gv_error_set(err, "the path %.100s is too long", name);
    gv_scrub_text(scrub, text, &clean);
    int rc = clean.failed
                 ? gv_error_set(err, "out of memory")
                 : gv_file_replace(path, clean.data ? clean.data : "", clean.len, 0644, err);
    gv_str_free(&clean);
    return rc;
}

/* A small file, byte by byte as it is; one that cannot be read is left out. */
static int copy_file(const struct copy *c, const char *below)
{
    char from[PATH_MAX], to[PATH_MAX], data[4096];
    if (snprintf(from, sizeof(from), "%s/%s", c->root, below) >= (int)sizeof(from) ||
        snprintf(to, sizeof(to), "%s/%s", c->to, below) >= (int)sizeof(to))
        return gv_error_set(c->err, "the path %.100s is too long", below);
    int fd = open(from, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd < 0 ? -1 : read(fd, data, sizeof(data));
    if (fd >= 0)
        close(fd);
    return n < 0 ? 0 : gv_file_replace(to, data, (size_t)n, 0644, c->err);
}

/* Folders of `path` below the copy. */
static int make_folders(const struct copy *c, const char *below)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof(path), "%s/%s", c->to, below) >= (int)sizeof(path))
        return gv_error_set(c->err, "the path %.100s is too long", below);
    for (char *p = path + 1; *p; p++) {
        if (*p != '/')
            continue;
        *p = '\0';
        if (mkdir(path, 0755) && errno != EEXIST)
            return gv_error_at(c->err, path, 0, 0, "cannot be made: %m");
        *p = '/';
    }
    return 0;
}

static int device_files(const struct copy *c, const char *below)
{
    static const char *const names[] = {
        "vendor",    "device",         "class",          "subsystem_vendor",   "subsystem_device",
        "numa_node", "max_link_speed", "max_link_width", "current_link_speed", "current_link_width",
        "config"};
    char path[PATH_MAX];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", below, names[i]);
        if (copy_file(c, path))
            return -1;
    }
    return 0;
}

static int link_to(const struct copy *c, const char *bus_id, const char *below)
{
    char link[PATH_MAX], target[PATH_MAX];
    snprintf(link, sizeof(link), "bus/pci/devices/%s", bus_id);
    if (make_folders(c, link))
        return -1;
    if (snprintf(link, sizeof(link), "%s/bus/pci/devices/%s", c->to, bus_id) >= (int)sizeof(link) ||
        snprintf(target, sizeof(target), "../../../%s", below) >= (int)sizeof(target))
        return gv_error_set(c->err, "the path of %.40s is too long", bus_id);
    if (symlink(target, link) && errno != EEXIST)
        return gv_error_at(c->err, link, 0, 0, "cannot be made: %m");
    return 0;
}

static bool is_address(const char *name)
{
    unsigned d, b, v, f;
    int end = 0;
    return sscanf(name, "%x:%2x:%2x.%1x%n", &d, &b, &v, &f, &end) == 4 && !name[end];
}

/* The device and every bridge above it. */
static int copy_branch(const struct copy *c, const char *bus_id)
{
    char link[PATH_MAX], real[PATH_MAX], group[PATH_MAX];
    snprintf(link, sizeof(link), "%s/bus/pci/devices/%s", c->sysfs, bus_id);
    size_t root = strlen(c->root);
    if (!realpath(link, real) || strncmp(real, c->root, root) != 0)
        return 0;
    char *below = real + root + 1;
    snprintf(group, sizeof(group), "%s/iommu_group/type", below);
    if (copy_file(c, group))
        return -1;
    for (char *name; (name = strrchr(below, '/')) && is_address(name + 1); *name = '\0')
        if (device_files(c, below) || link_to(c, name + 1, below))
            return -1;
    return 0;
}

/* Display and 3D controllers of NVIDIA are the machine's GPUs; class 02 are NICs. */
static int copy_devices(const struct copy *c, const struct gv_machine *machine)
{
    char path[PATH_MAX], class[16];
    for (int i = 0; i < machine->ngpus; i++)
        if (copy_branch(c, machine->gpus[i].bus_id))
            return -1;
    snprintf(path, sizeof(path), "%s/bus/pci/devices", c->sysfs);
    DIR *dir = opendir(path);
    int rc = 0;
    for (struct dirent *e; dir && !rc && (e = readdir(dir));) {
        snprintf(path, sizeof(path), "%s/bus/pci/devices/%s/class", c->sysfs, e->d_name);
        if (is_address(e->d_name) && !gv_file_line(path, class, sizeof(class)) &&
            !strncmp(class, "0x02", 4))
            rc = copy_branch(c, e->d_name);
    }
    if (dir)
        closedir(dir);
    return rc;
}

static int copy_nodes(const struct copy *c)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/devices/system/node", c->sysfs);
    DIR *dir = opendir(path);
    int rc = copy_file(c, "devices/system/cpu/modalias");
    for (struct dirent *e; dir && !rc && (e = readdir(dir));) {
        unsigned number;
        if (sscanf(e->d_name, "node%u", &number) != 1)
            continue;
        snprintf(path, sizeof(path), "devices/system/node/%.32s/cpumap", e->d_name);
        rc = copy_file(c, path);
    }
    if (dir)
        closedir(dir);
    return rc ? rc : copy_file(c, "module/nvidia/version");
}

/* What is not in sysfs, where gv_machine_read looks for it in a replayed machine. */
static int own_facts(const struct copy *c, const struct gv_machine *machine, struct gv_scrub *scrub)
{
    char name[64], text[64];
    for (int i = 0; i < machine->ngpus; i++) {
        if (!machine->gpus[i].uuid[0])
            continue;
        snprintf(name, sizeof(name), "gv100/gpus/%s/uuid", machine->gpus[i].bus_id);
        snprintf(text, sizeof(text), "%s\n", machine->gpus[i].uuid);
        if (gv_bundle_text(c->to, name, text, scrub, c->err))
            return -1;
    }
    snprintf(text, sizeof(text), "%s\n", machine->boot_id);
    return gv_bundle_text(c->to, "gv100/boot_id", text, scrub, c->err) ||
                   gv_bundle_text(c->to, "gv100/host", "host\n", scrub, c->err)
               ? -1
               : 0;
}

int gv_bundle_sysfs(
    const char *sysfs, const struct gv_machine *machine, const char *folder, struct gv_scrub *scrub,
    struct gv_error *err)
{
    struct copy c = {.sysfs = sysfs, .err = err};
    if (!realpath(sysfs, c.root))
        return gv_error_at(err, sysfs, 0, 0, "cannot be opened: %m");
    if (snprintf(c.to, sizeof(c.to), "%s/sysfs", folder) >= (int)sizeof(c.to))
        return gv_error_set(err, "the path %.100s is too long", folder);
    char devices[PATH_MAX + 32];
    snprintf(devices, sizeof(devices), "bus/pci/devices/x");
    if (make_folders(&c, devices))
        return -1;
    return copy_devices(&c, machine) || copy_nodes(&c) || own_facts(&c, machine, scrub) ? -1 : 0;
}
