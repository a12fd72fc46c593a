#include "plugin/topology/cpu.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "base/gv_file.h"

/* NCCL (2.19 to 2.30) adds the extended family shifted by four, the kernel adds it unshifted. */
static int nccl_family(int kernel_family)
{
    return kernel_family > 0xf ? 0xf + ((kernel_family - 0xf) << 4) : kernel_family;
}

static bool by_modalias(const char *sysfs, struct gv_cpu_kind *kind)
{
    /* Numbers of arch/x86/include/asm/processor.h. */
    static const char *const vendors[] = {
        [0] = "GenuineIntel",
        [2] = "AuthenticAMD",
        [5] = "CentaurHauls",
        [9] = "HygonGenuine",
        [10] = "  Shanghai  "};
    char path[PATH_MAX], line[128];
    unsigned vendor, family, model;

    snprintf(path, sizeof(path), "%s/devices/system/cpu/modalias", sysfs);
    if (gv_file_line(path, line, sizeof(line)))
        return false;
    if (sscanf(line, "cpu:type:x86,ven%4xfam%4xmod%4x", &vendor, &family, &model) == 3) {
        strcpy(kind->arch, "x86_64");
        const char *name = vendor < sizeof(vendors) / sizeof(*vendors) ? vendors[vendor] : NULL;
        snprintf(kind->vendor, sizeof(kind->vendor), "%s", name ? name : "unknown");
        kind->family = nccl_family((int)family);
        kind->model = (int)model;
        return true;
    }
    if (!strncmp(line, "cpu:type:aarch64", 16))
        strcpy(kind->arch, "arm64");
    else if (!strncmp(line, "cpu:type:ppc64", 14))
        strcpy(kind->arch, "ppc64");
    return kind->arch[0];
}

static void by_machine(struct gv_cpu_kind *kind)
{
#if defined(__x86_64__)
    unsigned a = 0, name[4] = {0}, unused;
    strcpy(kind->arch, "x86_64");
    __cpuid(0, unused, name[0], name[2], name[1]);
    memcpy(kind->vendor, name, 12);
    __cpuid(1, a, unused, unused, unused);
    (void)unused;
    kind->family = (int)((a >> 8 & 0xf) + ((a >> 20 & 0xff) << 4));
    kind->model = (int)((a >> 4 & 0xf) + ((a >> 16 & 0xf) << 4));
#elif defined(__aarch64__)
    strcpy(kind->arch, "arm64");
#elif defined(__PPC__)
    strcpy(kind->arch, "ppc64");
#endif
}

struct gv_cpu_kind gv_cpu_kind_of(const char *sysfs)
{
    struct gv_cpu_kind kind = {0};
    bool here = !strcmp(sysfs, "/sys") || !strcmp(sysfs, "/sys/");
    if (here || !by_modalias(sysfs, &kind))
        by_machine(&kind);
    return kind;
}

static int set_number(struct gv_elem *elem, const char *key, int value)
{
    char text[16];
    snprintf(text, sizeof(text), "%d", value);
    return gv_elem_set(elem, key, text);
}

/* The mask as sysfs prints it. Left out where NCCL's reader could not take it back. */
static int set_affinity(struct gv_elem *cpu, const char *numaid, const char *sysfs)
{
    char path[PATH_MAX], mask[GV_TREE_MAX_VALUE + 2];
    snprintf(path, sizeof(path), "%s/devices/system/node/node%s/cpumap", sysfs, numaid);
    if (gv_file_line(path, mask, sizeof(mask)) || !mask[0] || strlen(mask) > GV_TREE_MAX_VALUE)
        return 0;
    return gv_elem_set(cpu, "affinity", mask);
}

/* All in NCCL's order. They must be there: NCCL fills in only the CPU of a rank's own GPU, but
 * hangs NICs without a PCI device on the file's first cpu, and an element without arch fails the
 * communicator (2.22 to 2.30: every rank whose GPU is under another CPU). */
static int
describe(struct gv_elem *cpu, const char *numaid, const struct gv_cpu_kind *kind, const char *sysfs)
{
    if (gv_elem_set(cpu, "numaid", numaid) || set_affinity(cpu, numaid, sysfs))
        return -1;
    if (!kind->arch[0])
        return 0;
    if (gv_elem_set(cpu, "arch", kind->arch))
        return -1;
    if (!kind->vendor[0])
        return 0;
    return gv_elem_set(cpu, "vendor", kind->vendor) || set_number(cpu, "familyid", kind->family) ||
                   set_number(cpu, "modelid", kind->model)
               ? -1
               : 0;
}

struct gv_elem *gv_cpu_element(
    struct gv_tree *tree, const char *numaid, const struct gv_cpu_kind *kind, const char *sysfs)
{
    struct gv_elem *cpu = gv_tree_find_cpu(tree, numaid);
    if (cpu)
        return cpu;
    cpu = gv_elem_append(tree->root, "cpu");
    return cpu && !describe(cpu, numaid, kind, sysfs) ? cpu : NULL;
}
