/* Reads which GPUs there are, and under which bridges, from sysfs. */
#include "config/gv_machine.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/gv_file.h"

#define NVIDIA 0x10de

struct pci_address {
    unsigned domain, bus, device, function;
};

static void format_address(const struct pci_address *a, char out[20])
{
    snprintf(
        out, 20, "%04x:%02x:%02x.%x", a->domain, a->bus & 0xffu, a->device & 0x1fu,
        a->function & 7u);
}

/* "0000:1a:00.0", as the kernel writes it and no other way, so that no device has two names; a
 * domain may have more than four digits. */
static bool parse_address(const char *text, size_t len, struct pci_address *out)
{
    char copy[20], again[20];
    if (len >= sizeof(again) || len < 12)
        return false;
    snprintf(copy, sizeof(copy), "%.*s", (int)len, text);
    if (sscanf(copy, "%8x:%2x:%2x.%1x", &out->domain, &out->bus, &out->device, &out->function) != 4)
        return false;
    format_address(out, again);
    return !strcmp(copy, again);
}

static uint64_t order_of(const char *bus_id)
{
    struct pci_address a = {0};
    parse_address(bus_id, strlen(bus_id), &a);
    return (uint64_t)a.domain << 16 | a.bus << 8 | a.device << 3 | a.function;
}

static int by_address(const void *a, const void *b)
{
    uint64_t x = order_of(((const struct gv_machine_gpu *)a)->bus_id);
    uint64_t y = order_of(((const struct gv_machine_gpu *)b)->bus_id);
    return (x > y) - (x < y);
}

/* A number in a file of the device's folder, or `unknown`. */
static long number_in(const char *dir, const char *name, int base, long unknown)
{
    char path[PATH_MAX], line[64], *end;
    if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path) ||
        gv_file_line(path, line, sizeof(line)))
        return unknown;
    long value = strtol(line, &end, base);
    return end == line || *end ? unknown : value;
}

static bool is_gpu(const char *dir)
{
    if (number_in(dir, "vendor", 16, -1) != NVIDIA)
        return false;
    long class = number_in(dir, "class", 16, -1);
    return class >> 8 == 0x0300 || class >> 8 == 0x0302;
}

/* "pci0000:16": a root complex; below it stand the bridges in order. */
static bool is_root(const char *text, size_t len)
{
    return len > 3 && !strncmp(text, "pci", 3) && memchr(text, ':', len);
}

/* The first PCI function behind the last root complex of the device's real path; "" where that is
 * the device itself. */
static void find_root_port(const char *dir, struct gv_machine_gpu *gpu)
{
    char path[PATH_MAX];
    struct pci_address a;
    bool taken = true; /* nothing counts before the first root complex */
    gpu->root_port[0] = '\0';
    if (!realpath(dir, path))
        return;
    for (const char *p = path; *p;) {
        p += *p == '/';
        size_t len = strcspn(p, "/");
        if (is_root(p, len)) {
            taken = false;
        } else if (!taken && parse_address(p, len, &a)) {
            format_address(&a, gpu->root_port);
            taken = true;
        }
        p += len;
    }
    if (!strcmp(gpu->root_port, gpu->bus_id))
        gpu->root_port[0] = '\0';
}

static int lanes(const char *dir, const char *name)
{
    long value = number_in(dir, name, 10, -1);
    return value >= 1 && value <= 64 ? (int)value : -1;
}

static void read_gpu(const char *dir, const struct pci_address *at, struct gv_machine_gpu *gpu)
{
    memset(gpu, 0, sizeof(*gpu));
    format_address(at, gpu->bus_id);
    find_root_port(dir, gpu);
    gpu->pci_vendor = NVIDIA;
    gpu->pci_device = (uint16_t)number_in(dir, "device", 16, 0);
    gpu->numa_node = (int)number_in(dir, "numa_node", 10, -1);
    gpu->link_width = lanes(dir, "current_link_width");
    gpu->link_width_max = lanes(dir, "max_link_width");
}

static int read_gpus(const char *sysfs, struct gv_machine *out, struct gv_error *err)
{
    char folder[PATH_MAX], dir[PATH_MAX];
    if (snprintf(folder, sizeof(folder), "%s/bus/pci/devices", sysfs) >= (int)sizeof(folder))
        return gv_error_at(err, sysfs, 0, 0, "the path is too long");
    DIR *devices = opendir(folder);
    if (!devices) {
        char text[128];
        return gv_error_at(
            err, folder, 0, 0,
            "cannot be read (%s): the machine's PCI devices must be listed there (is sysfs "
            "mounted?)",
            strerror_r(errno, text, sizeof(text)));
    }
    int rc = 0;
    for (struct dirent *entry; !rc && (entry = readdir(devices));) {
        struct pci_address at;
        if (!parse_address(entry->d_name, strlen(entry->d_name), &at) ||
            snprintf(dir, sizeof(dir), "%s/%s", folder, entry->d_name) >= (int)sizeof(dir) ||
            !is_gpu(dir))
            continue;
        if (out->ngpus == GV_MAX_GPUS)
            rc = gv_error_at(err, folder, 0, 0, "over %d GPUs, more than are handled", GV_MAX_GPUS);
        else
            read_gpu(dir, &at, &out->gpus[out->ngpus++]);
    }
    closedir(devices);
    qsort(out->gpus, (size_t)out->ngpus, sizeof(out->gpus[0]), by_address);
    return rc;
}

/* "GPU UUID: GPU-..." of the driver's text; question marks mean that it is not known yet. */
static void uuid_from_driver(const char *bus_id, char out[48])
{
    char path[PATH_MAX];
    size_t len;
    snprintf(path, sizeof(path), "/proc/driver/nvidia/gpus/%s/information", bus_id);
    char *text = gv_file_read(path, GV_FILE_ANY, 65536, &len, NULL);
    char *at = text ? strstr(text, "GPU UUID:") : NULL;
    if (at) {
        at += strlen("GPU UUID:");
        at += strspn(at, " \t");
        size_t n = strcspn(at, " \t\r\n");
        if (n < 48 && !memchr(at, '?', n))
            snprintf(out, 48, "%.*s", (int)n, at);
    }
    free(text);
}

static void replayed_line(const char *sysfs, const char *name, char *out, size_t size)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof(path), "%s/gv100/%s", sysfs, name) < (int)sizeof(path))
        gv_file_line(path, out, size);
}

static void read_uuids(const char *sysfs, struct gv_machine *m)
{
    char name[64];
    for (int i = 0; i < m->ngpus; i++) {
        struct gv_machine_gpu *gpu = &m->gpus[i];
        if (m->replayed) {
            snprintf(name, sizeof(name), "gpus/%s/uuid", gpu->bus_id);
            replayed_line(sysfs, name, gpu->uuid, sizeof(gpu->uuid));
        } else {
            uuid_from_driver(gpu->bus_id, gpu->uuid);
        }
    }
}

static void read_host(const char *sysfs, struct gv_machine *m)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof(path), "%s/module/nvidia/version", sysfs) < (int)sizeof(path))
        gv_file_line(path, m->driver, sizeof(m->driver));
    if (m->replayed) {
        replayed_line(sysfs, "boot_id", m->boot_id, sizeof(m->boot_id));
        replayed_line(sysfs, "host", m->host, sizeof(m->host));
    } else {
        gv_file_line("/proc/sys/kernel/random/boot_id", m->boot_id, sizeof(m->boot_id));
    }
    if (!*m->host && gethostname(m->host, sizeof(m->host)))
        m->host[0] = '\0';
    m->host[sizeof(m->host) - 1] = '\0';
}

const char *gv_sysfs_root(void)
{
    const char *root = secure_getenv("GV100_SYSFS");
    return root && *root ? root : "/sys";
}

int gv_machine_read(const char *sysfs, struct gv_machine *out, struct gv_error *err)
{
    char real[PATH_MAX];
    memset(out, 0, sizeof(*out));
    out->replayed = !realpath(sysfs, real) || strcmp(real, "/sys") != 0;
    if (read_gpus(sysfs, out, err))
        return -1;
    read_uuids(sysfs, out);
    read_host(sysfs, out);
    return 0;
}
