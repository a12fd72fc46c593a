/* NCCL's own tree of a machine. NCCL (2.19 to 2.30) goes up from a device two levels of sysfs at a
 * time: the port above a device is passed over, the one above that becomes its pci parent. Where a
 * level on the way is no PCI device (the host bridge), the CPU of the NUMA node that the lower
 * device names is the parent. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plugin/topology/cpu.h"
#include "base/gv_file.h"
#include "plugin/topology/tree.h"

/* NICs are listed while the tree stays so small: NCCL adds its gpu, nvlink, nic and net elements to
 * the same store of 256, and finds a NIC that is not listed by itself, at the same place. */
#define ROOM_ELEMS 128
#define ROOM_CHILDREN 24
#define MAX_DEVICES 8192

struct device {
    char bus_id[13];
    bool gpu;
    bool counts; /* stands in the tree; false: a NIC's virtual or second function */
};

struct builder {
    const char *sysfs;
    struct device *device;
    int ndevices, cap;
    struct gv_cpu_kind kind;
    struct gv_tree *tree;
};

static bool is_bus_id(const char *name)
{
    static const char shape[] = "xxxx:xx:xx.x";
    for (int i = 0; i < 12; i++) {
        if (shape[i] == 'x' ? !isxdigit((unsigned char)name[i]) : name[i] != shape[i])
            return false;
    }
    return !name[12];
}

static void
device_file(const struct builder *b, const char *bus_id, const char *file, char *out, size_t size)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/bus/pci/devices/%s/%s", b->sysfs, bus_id, file);
    gv_file_line(path, out, size);
}

static bool is_virtual(const struct builder *b, const char *bus_id)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/bus/pci/devices/%s/physfn", b->sysfs, bus_id);
    return !access(path, F_OK);
}

/* 0 or -1: out of memory. Devices that are neither an NVIDIA GPU nor a NIC are passed over. */
static int look_at(struct builder *b, const char *bus_id)
{
    char class[16], vendor[16];
    device_file(b, bus_id, "class", class, sizeof(class));
    bool display = !strncmp(class, "0x03", 4);
    if (display)
        device_file(b, bus_id, "vendor", vendor, sizeof(vendor));
    bool gpu = display && !strcmp(vendor, "0x10de"), nic = !strncmp(class, "0x02", 4);
    if (!gpu && !nic)
        return 0;
    if (b->ndevices == b->cap) {
        int cap = b->cap ? b->cap * 2 : 64;
        struct device *device = realloc(b->device, (size_t)cap * sizeof(*device));
        if (!device)
            return -1;
        b->device = device;
        b->cap = cap;
    }
    struct device *d = &b->device[b->ndevices++];
    memcpy(d->bus_id, bus_id, sizeof(d->bus_id));
    d->gpu = gpu;
    d->counts = gpu || (bus_id[11] == '0' && !is_virtual(b, bus_id));
    return 0;
}

static int by_bus_id(const void *a, const void *b)
{
    return strcmp(((const struct device *)a)->bus_id, ((const struct device *)b)->bus_id);
}

static int scan(struct builder *b, struct gv_error *err)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/bus/pci/devices", b->sysfs);
    DIR *dir = opendir(path);
    if (!dir)
        return gv_error_at(err, path, 0, 0, "cannot be read: %s", strerror(errno));
    int rc = 0;
    const struct dirent *entry;
    for (int n = 0; !rc && n < MAX_DEVICES && (entry = readdir(dir)); n++) {
        if (is_bus_id(entry->d_name) && look_at(b, entry->d_name))
            rc = gv_error_set(err, "out of memory");
    }
    closedir(dir);
    bool gpu = false;
    for (int i = 0; i < b->ndevices; i++)
        gpu |= b->device[i].gpu;
    if (!rc && !gpu)
        return gv_error_at(err, path, 0, 0, "no NVIDIA GPU (vendor 0x10de, class 0x03) is there");
    if (!rc)
        qsort(b->device, (size_t)b->ndevices, sizeof(*b->device), by_bus_id);
    return rc;
}

/* Cuts the last part of `path` and returns the new last part. */
static const char *go_up(char *path)
{
    char *end = strrchr(path, '/');
    if (!end || end == path)
        return "";
    *end = '\0';
    return strrchr(path, '/') ? strrchr(path, '/') + 1 : "";
}

static struct gv_elem *new_pci(const char *path)
{
    char file[PATH_MAX + 16], class[16];
    struct gv_elem *elem = gv_elem_new("pci");
    if (!elem)
        return NULL;
    snprintf(file, sizeof(file), "%s/class", path);
    gv_file_line(file, class, sizeof(class));
    if (gv_elem_set(elem, "busid", strrchr(path, '/') + 1) ||
        (class[0] && gv_elem_set(elem, "class", class))) {
        gv_elem_free(elem);
        return NULL;
    }
    return elem;
}

/* Cuts `path` to the pci parent as NCCL sees it; false: the parent is the CPU. */
static bool to_parent(char *path)
{
    return is_bus_id(go_up(path)) && is_bus_id(go_up(path));
}

/* The CPU of the device at `path`, made if new; NULL: out of memory. */
static struct gv_elem *cpu_of(struct builder *b, const char *path)
{
    char file[PATH_MAX + 16], numaid[8];
    snprintf(file, sizeof(file), "%s/numa_node", path);
    gv_file_line(file, numaid, sizeof(numaid));
    return gv_cpu_element(b->tree, numaid, &b->kind, b->sysfs);
}

/* One level: the element of the device at `path`, found or made (`*made`), with `below` in it. */
static struct gv_elem *
level_of(struct builder *b, const char *path, struct gv_elem *below, bool *made)
{
    struct gv_elem *elem = gv_tree_find_pci(b->tree, strrchr(path, '/') + 1);
    *made = !elem;
    if (!elem)
        elem = new_pci(path);
    if (elem && (!below || !gv_elem_insert_sorted(elem, below)))
        return elem;
    if (*made)
        gv_elem_free(elem);
    return NULL;
}

/* Puts the device at `path` (consumed) and what is missing above it into the tree. */
static int place(struct builder *b, char *path)
{
    struct gv_elem *below = NULL;
    for (int level = 0; level < GV_TREE_MAX_DEPTH; level++) {
        bool made;
        struct gv_elem *elem = level_of(b, path, below, &made);
        if (!elem)
            break;
        if (!made)
            return 0;
        below = elem;
        char here[PATH_MAX];
        strcpy(here, path);
        if (to_parent(path))
            continue;
        struct gv_elem *cpu = cpu_of(b, here);
        if (cpu && !gv_elem_insert_sorted(cpu, elem))
            return 0;
        break;
    }
    gv_elem_free(below);
    return -1;
}

/* Only the CPU that the device would hang on, so that every CPU NCCL may ask for is there. */
static int place_cpu(struct builder *b, char *path)
{
    char here[PATH_MAX];
    do
        strcpy(here, path);
    while (to_parent(path));
    return cpu_of(b, here) ? 0 : -1;
}

/* GPUs come first and in the order of their bus ids: up to 2.21 NCCL takes the CPUs as the file has
 * them, and finds them in that order itself where ranks follow bus ids. Later ones follow the ranks
 * alone. */
static int add_devices(struct builder *b, bool gpus, bool nics)
{
    for (int i = 0; i < b->ndevices; i++) {
        const struct device *d = &b->device[i];
        char link[PATH_MAX], path[PATH_MAX];
        snprintf(link, sizeof(link), "%s/bus/pci/devices/%s", b->sysfs, d->bus_id);
        if (d->gpu != gpus || !realpath(link, path) || !is_bus_id(strrchr(path, '/') + 1))
            continue;
        bool whole = d->gpu || (nics && d->counts);
        if (whole ? place(b, path) : place_cpu(b, path))
            return -1;
    }
    return 0;
}

static int by_number(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

/* Every NUMA node that has processors. What this process lacks for reading them must not look like
 * a machine without nodes: this rank's tree would be another than the others'. */
static int add_nodes(struct builder *b)
{
    char path[PATH_MAX], mask[4096];
    int node[GV_TREE_MAX_CPUS], n = 0, rc = 0;
    snprintf(path, sizeof(path), "%s/devices/system/node", b->sysfs);
    DIR *dir = opendir(path);
    if (!dir)
        return errno == ENOMEM || errno == EMFILE || errno == ENFILE ? -1 : 0;
    const struct dirent *entry;
    while (n < GV_TREE_MAX_CPUS && (entry = readdir(dir))) {
        char end;
        if (sscanf(entry->d_name, "node%d%c", &node[n], &end) == 1 && node[n] >= 0)
            n++;
    }
    closedir(dir);
    qsort(node, (size_t)n, sizeof(*node), by_number);
    for (int i = 0; !rc && i < n; i++) {
        char numaid[16], map[PATH_MAX];
        snprintf(numaid, sizeof(numaid), "%d", node[i]);
        snprintf(map, sizeof(map), "%s/devices/system/node/node%s/cpumap", b->sysfs, numaid);
        gv_file_line(map, mask, sizeof(mask));
        if (mask[strspn(mask, "0,")] && !gv_cpu_element(b->tree, numaid, &b->kind, b->sysfs))
            rc = -1;
    }
    return rc;
}

/* NCCL hangs NICs without a PCI device (lo, eth0 of a container) on the first CPU of the file,
 * keeps that CPU for it in every rank's tree, and so puts it before the CPU of rank 0, which turns
 * rings where rank 0 is elsewhere. A first CPU of no device takes them; without such NICs it is
 * trimmed. */
static int add_nic_cpu(struct builder *b)
{
    struct gv_elem *root = b->tree->root;
    long last = 0;
    char numaid[8];
    for (int i = 0; i < root->nsubs; i++) {
        long id = strtol(gv_elem_get(root->sub[i], "numaid"), NULL, 10);
        last = id > last ? id : last;
    }
    snprintf(numaid, sizeof(numaid), "%d", (int)(last + 1) % 10000);
    struct gv_elem *cpu = gv_cpu_element(b->tree, numaid, &b->kind, b->sysfs);
    if (!cpu)
        return -1;
    gv_elem_unlink(cpu);
    return gv_elem_insert(root, cpu, 0); /* cannot fail: there was room for it */
}

/* The CPUs as they must be found again later. */
static int note_cpus(struct gv_tree *tree)
{
    tree->cpu = calloc((size_t)tree->root->nsubs, sizeof(*tree->cpu));
    if (!tree->cpu)
        return -1;
    tree->ncpus = tree->root->nsubs;
    for (int i = 0; i < tree->ncpus; i++)
        snprintf(tree->cpu[i], sizeof(*tree->cpu), "%s", gv_elem_get(tree->root->sub[i], "numaid"));
    return 0;
}

static bool fits(const struct gv_elem *elem, int *count)
{
    ++*count;
    bool ok = elem->nsubs <= ROOM_CHILDREN;
    for (int i = 0; i < elem->nsubs; i++)
        ok = fits(elem->sub[i], count) && ok;
    return ok && *count <= ROOM_ELEMS;
}

static struct gv_tree *build(struct builder *b, bool nics)
{
    b->tree = gv_tree_new();
    if (b->tree && !add_devices(b, true, nics) && !add_nodes(b) && !add_devices(b, false, nics) &&
        !add_nic_cpu(b) && !note_cpus(b->tree))
        return b->tree;
    gv_tree_free(b->tree);
    return NULL;
}

struct gv_tree *gv_tree_from_sysfs(const char *sysfs, struct gv_error *err)
{
    struct builder b = {.sysfs = sysfs};
    struct gv_tree *tree = NULL;
    int count = 0;

    if (!scan(&b, err)) {
        b.kind = gv_cpu_kind_of(sysfs);
        tree = build(&b, true);
        if (tree && !fits(tree->root, &count)) {
            gv_tree_free(tree);
            tree = build(&b, false);
        }
        if (!tree)
            gv_error_set(
                err, "out of memory or descriptors, or a PCI path of over %d levels",
                GV_TREE_MAX_DEPTH);
    }
    free(b.device);
    return tree;
}
