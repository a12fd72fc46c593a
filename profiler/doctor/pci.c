/* What stands between two GPUs besides wires: address translation and redirection. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/gv_file.h"
#include "profiler/doctor/gv_doctor.h"

/* PCI Express base specification: extended capabilities begin at 0x100, ACS is number 0x000d, its
 * control register stands 6 bytes in; bits 2 and 3 redirect requests and completions between peers
 * upstream. */
#define EXTENDED 0x100
#define ACS_ID 0x000d
#define ACS_REDIRECT 0x000c

static bool has_iommus(const char *sysfs, bool *known)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/class/iommu", sysfs);
    DIR *dir = opendir(path);
    *known = dir != NULL;
    bool any = false;
    for (struct dirent *e; dir && (e = readdir(dir));)
        any |= e->d_name[0] != '.';
    if (dir)
        closedir(dir);
    return any;
}

/* The domain type of the first GPU that is translated; "" where none is. */
static int
translated(const char *sysfs, const struct gv_machine *machine, char type[32], bool *any_known)
{
    char path[PATH_MAX];
    *any_known = false;
    for (int i = 0; i < machine->ngpus; i++) {
        snprintf(
            path, sizeof(path), "%s/bus/pci/devices/%s/iommu_group/type", sysfs,
            machine->gpus[i].bus_id);
        if (gv_file_line(path, type, 32))
            continue;
        *any_known = true;
        if (strcmp(type, "identity") != 0)
            return i;
    }
    return -1;
}

static void iommu(const char *sysfs, const struct gv_machine *machine, struct gv_findings *findings)
{
    bool class_known, group_known;
    char type[32];
    bool any = has_iommus(sysfs, &class_known);
    int gpu = translated(sysfs, machine, type, &group_known);
    if (gpu >= 0)
        gv_finding_add(
            findings, "iommu", GV_VERDICT_WARN,
            "iommu=pt on the kernel's command line; then `gv100 verify`",
            "the IOMMU translates GPU %d (%s, domain %s): P2P may be slow, refused or wrong", gpu,
            machine->gpus[gpu].bus_id, type);
    else if (group_known)
        gv_finding_add(
            findings, "iommu", GV_VERDICT_OK, NULL, "the IOMMU lets the GPUs' addresses through");
    else if (class_known && !any)
        gv_finding_add(findings, "iommu", GV_VERDICT_OK, NULL, "no IOMMU is on");
    else
        gv_finding_add(
            findings, "iommu", GV_VERDICT_UNKNOWN, NULL,
            "whether an IOMMU translates the GPUs' addresses cannot be read here");
}

/* ACS's control register of the device in folder `dir`; -1 not readable (only root may read that
 * far), 0 where the device has no ACS. */
static int acs_control(const char *dir)
{
    char path[PATH_MAX];
    uint8_t data[4096];
    if (snprintf(path, sizeof(path), "%s/config", dir) >= (int)sizeof(path))
        return -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t n = pread(fd, data, sizeof(data), 0);
    close(fd);
    if (n < EXTENDED + 4)
        return -1;
    for (unsigned at = EXTENDED, steps = 0; at >= EXTENDED && at + 8 <= (size_t)n && steps < 64;
         steps++) {
        uint32_t head =
            data[at] | data[at + 1] << 8 | data[at + 2] << 16 | (uint32_t)data[at + 3] << 24;
        if ((head & 0xffff) == ACS_ID)
            return data[at + 6] | data[at + 7] << 8;
        at = head >> 20 & 0xffc;
    }
    return 0;
}

struct acs {
    char bridge[64]; /* one that redirects */
    int redirecting, read, unread;
};

static bool is_address(const char *name)
{
    unsigned d, b, v, f;
    int end = 0;
    return sscanf(name, "%x:%2x:%2x.%1x%n", &d, &b, &v, &f, &end) == 4 && !name[end];
}

static void look_at(const char *dir, const char *name, struct acs *out)
{
    int control = acs_control(dir);
    out->unread += control < 0;
    out->read += control >= 0;
    if (control > 0 && control & ACS_REDIRECT) {
        if (!out->redirecting)
            snprintf(out->bridge, sizeof(out->bridge), "%s", name);
        out->redirecting++;
    }
}

/* Every bridge above the GPU. */
static void above(const char *sysfs, const char *bus_id, struct acs *out)
{
    char link[PATH_MAX], path[PATH_MAX];
    snprintf(link, sizeof(link), "%s/bus/pci/devices/%s", sysfs, bus_id);
    if (!realpath(link, path))
        return;
    for (char *slash; (slash = strrchr(path, '/'));) {
        *slash = '\0';
        char *name = strrchr(path, '/');
        if (!name || !is_address(name + 1))
            break;
        look_at(path, name + 1, out);
    }
}

static void acs(const char *sysfs, const struct gv_machine *machine, struct gv_findings *findings)
{
    struct acs found = {0};
    char next[192];
    for (int i = 0; i < machine->ngpus; i++)
        above(sysfs, machine->gpus[i].bus_id, &found);
    snprintf(
        next, sizeof(next), "setpci -s %s ECAP_ACS+6.w=0000 as root, for each; then `gv100 verify`",
        found.bridge);
    if (found.redirecting)
        gv_finding_add(
            findings, "acs", GV_VERDICT_WARN, next,
            "ACS sends P2P up to the root complex at bridge %s%s: it is slower, and may be refused "
            "or wrong",
            found.bridge, found.redirecting > 1 ? " and others" : "");
    else if (found.unread || !found.read)
        gv_finding_add(
            findings, "acs", GV_VERDICT_UNKNOWN, geteuid() ? "run it as root to see" : NULL,
            "whether ACS redirects P2P cannot be read here");
    else
        gv_finding_add(findings, "acs", GV_VERDICT_OK, NULL, "no bridge above a GPU redirects P2P");
}

void gv_doctor_pci(
    const char *sysfs, const struct gv_machine *machine, struct gv_findings *findings)
{
    if (!machine->ngpus)
        return;
    iommu(sysfs, machine, findings);
    acs(sysfs, machine, findings);
}
