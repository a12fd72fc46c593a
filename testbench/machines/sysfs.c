/* The sysfs tree that the machine would show. */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "testbench/machines/gv_bench_machine.h"

/* Makes every missing folder of `path`. */
static int make_folders(const char *path)
{
    char part[PATH_MAX];
    snprintf(part, sizeof(part), "%s", path);
    for (char *p = part + 1; *p; p++) {
        if (*p != '/')
            continue;
        *p = 0;
        if (mkdir(part, 0755) && errno != EEXIST)
            return -1;
        *p = '/';
    }
    return mkdir(part, 0755) && errno != EEXIST ? -1 : 0;
}

static int put(const char *folder, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static int put(const char *folder, const char *name, const char *fmt, ...)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path))
        return -1;
    FILE *file = fopen(path, "w");
    if (!file)
        return -1;
    va_list args;
    va_start(args, fmt);
    int rc = vfprintf(file, fmt, args);
    va_end(args);
    return fclose(file) || rc < 0 ? -1 : 0;
}

/* "devices/pci0000:16/0000:16:00.0/..." of a function. */
static void device_path(
    const struct gv_bench_machine *m, const struct gv_bench_pci *pci, char *out, size_t size)
{
    const struct gv_bench_pci *parent = gv_bench_machine_bridge(m, pci->parent);
    if (parent)
        device_path(m, parent, out, size);
    else
        snprintf(out, size, "devices/%s", pci->parent);
    size_t used = strlen(out);
    snprintf(out + used, size - used, "/%s", pci->bus_id);
}

static int
write_pci(const struct gv_bench_machine *m, const struct gv_bench_pci *pci, const char *root)
{
    char relative[PATH_MAX / 2], folder[PATH_MAX], link[PATH_MAX], target[PATH_MAX];

    device_path(m, pci, relative, sizeof(relative));
    snprintf(folder, sizeof(folder), "%s/%s", root, relative);
    if (make_folders(folder))
        return -1;
    int rc = put(folder, "class", "%s\n", pci->pci_class);
    rc |= put(folder, "vendor", "0x%04x\n", pci->vendor);
    rc |= put(folder, "device", "0x%04x\n", pci->device);
    rc |= put(folder, "subsystem_vendor", "0x%04x\n", pci->vendor);
    rc |= put(folder, "subsystem_device", "0x0000\n");
    rc |= put(folder, "numa_node", "%d\n", pci->node);
    rc |= put(folder, "max_link_speed", "%s\n", pci->speed);
    rc |= put(folder, "max_link_width", "%d\n", pci->width);
    rc |= put(folder, "current_link_speed", "%s\n", pci->speed);
    rc |= put(folder, "current_link_width", "%d\n", pci->width);
    snprintf(link, sizeof(link), "%s/bus/pci/devices/%s", root, pci->bus_id);
    snprintf(target, sizeof(target), "../../../%s", relative);
    unlink(link);
    return symlink(target, link) ? -1 : rc;
}

static int write_node(const struct gv_bench_node *node, const char *root)
{
    char folder[PATH_MAX];
    snprintf(folder, sizeof(folder), "%s/devices/system/node/node%d", root, node->node);
    return make_folders(folder) ? -1 : put(folder, "cpumap", "%s\n", node->cpus);
}

/* The kernel's line about the processor. NCCL's family (in the machine file) shifts the extended
 * part by four, the kernel's does not. */
static int write_cpu(const struct gv_bench_cpu *cpu, const char *root)
{
    static const struct {
        const char *vendor;
        int number; /* arch/x86/include/asm/processor.h */
    } known[] = {
        {"GenuineIntel", 0},
        {"AuthenticAMD", 2},
        {"CentaurHauls", 5},
        {"HygonGenuine", 9},
        {"  Shanghai  ", 10}};
    char folder[PATH_MAX];
    int vendor = 0xff, family = cpu->family > 0xf ? 0xf + ((cpu->family - 0xf) >> 4) : cpu->family;

    snprintf(folder, sizeof(folder), "%s/devices/system/cpu", root);
    if (make_folders(folder))
        return -1;
    if (strcmp(cpu->arch, "x86_64"))
        return put(
            folder, "modalias", "cpu:type:%s:feature:\n",
            strcmp(cpu->arch, "arm64") ? "ppc64le" : "aarch64");
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (!strcmp(known[i].vendor, cpu->vendor))
            vendor = known[i].number;
    return put(
        folder, "modalias", "cpu:type:x86,ven%04Xfam%04Xmod%04X:feature:\n", vendor, family,
        cpu->model);
}

static int write_uuid(const struct gv_bench_gpu *gpu, const char *root)
{
    char folder[PATH_MAX];
    snprintf(folder, sizeof(folder), "%s/proc/driver/nvidia/gpus/%s", root, gpu->pci.bus_id);
    if (make_folders(folder))
        return -1;
    return put(
        folder, "information", "Model: \t\t %s\nGPU UUID: \t %s\nBus Location: \t %s\n", gpu->model,
        gpu->uuid, gpu->pci.bus_id);
}

static int write_facts(const struct gv_bench_machine *m, const char *root)
{
    char folder[PATH_MAX];
    snprintf(folder, sizeof(folder), "%s/module/nvidia", root);
    if (make_folders(folder) || put(folder, "version", "%s\n", m->driver))
        return -1;
    snprintf(folder, sizeof(folder), "%s/gv100", root);
    return make_folders(folder) ? -1 : put(folder, "boot_id", "%s\n", m->boot_id);
}

int gv_bench_machine_sysfs(
    const struct gv_bench_machine *machine, const char *root, struct gv_error *err)
{
    char folder[PATH_MAX];
    int rc = snprintf(folder, sizeof(folder), "%s/bus/pci/devices", root) >= PATH_MAX - 128;

    rc = rc || make_folders(folder) || write_facts(machine, root) || write_cpu(&machine->cpu, root);
    for (int i = 0; !rc && i < machine->nbridges; i++)
        rc = write_pci(machine, &machine->bridges[i], root);
    for (int i = 0; !rc && i < machine->ngpus; i++) {
        rc = write_pci(machine, &machine->gpus[i].pci, root);
        if (!rc && machine->gpus[i].uuid[0])
            rc = write_uuid(&machine->gpus[i], root);
    }
    for (int i = 0; !rc && i < machine->nnodes; i++)
        rc = write_node(&machine->nodes[i], root);
    return rc ? gv_error_set(
                    err, "the sysfs tree of %s cannot be written below %s: %m", machine->name, root)
              : 0;
}
