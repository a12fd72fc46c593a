/* Whether a profile was made for this machine. */
#include <string.h>

#include "config/gv_machine.h"

static int match_shape(
    const struct gv_profile *p, const struct gv_machine *m, int map[GV_MAX_GPUS],
    struct gv_error *err)
{
    if (p->ngpus != m->ngpus)
        return gv_error_set(err, "%d GPUs here, %d in the profile", m->ngpus, p->ngpus);
    for (int i = 0; i < p->ngpus; i++) {
        if (!p->gpus[i].pci_device || !*p->gpus[i].island)
            return gv_error_set(
                err, "GPU %d: the profile has no %s, which match: shape needs", i,
                p->gpus[i].pci_device ? "island" : "pci_device");
        map[i] = i;
    }
    return 0;
}

static int find_bus_id(const struct gv_profile *p, const char *bus_id)
{
    for (int i = 0; i < p->ngpus; i++)
        if (*bus_id && !strcasecmp(p->gpus[i].bus_id, bus_id))
            return i;
    return -1;
}

static int find_uuid(const struct gv_profile *p, const char *uuid)
{
    for (int i = 0; i < p->ngpus; i++)
        if (*uuid && !strcasecmp(p->gpus[i].uuid, uuid))
            return i;
    return -1;
}

/* Every GPU of the profile must be here; `what` is the first that is not. */
static int all_found(
    const struct gv_profile *p, const struct gv_machine *m, const int map[GV_MAX_GPUS],
    struct gv_error *err)
{
    gv_gpuset found = 0;
    for (int i = 0; i < m->ngpus; i++)
        if (map[i] >= 0)
            found |= GV_GPU_BIT(map[i]);
    for (int i = 0; i < p->ngpus; i++) {
        bool uuid = p->match == GV_MATCH_UUID;
        if (!gv_gpuset_has(found, i))
            return gv_error_set(
                err, "GPU %d of the profile (%s %s) is not in this machine", i,
                uuid ? "UUID" : "bus id", uuid ? p->gpus[i].uuid : p->gpus[i].bus_id);
    }
    return 0;
}

static int match_bus_id(
    const struct gv_profile *p, const struct gv_machine *m, int map[GV_MAX_GPUS],
    struct gv_error *err)
{
    for (int i = 0; i < m->ngpus; i++)
        map[i] = find_bus_id(p, m->gpus[i].bus_id);
    return all_found(p, m, map, err);
}

/* At least one UUID must be seen; a GPU whose UUID is hidden is taken by its bus id. */
static int match_uuid(
    const struct gv_profile *p, const struct gv_machine *m, int map[GV_MAX_GPUS],
    struct gv_error *err)
{
    int readable = 0;
    for (int i = 0; i < m->ngpus; i++) {
        bool known = m->gpus[i].uuid[0];
        readable += known;
        map[i] = known ? find_uuid(p, m->gpus[i].uuid) : find_bus_id(p, m->gpus[i].bus_id);
    }
    if (!readable)
        return gv_error_set(
            err, "the profile matches by UUID, and no GPU's UUID can be read here (is "
                 "/proc/driver/nvidia there?)");
    return all_found(p, m, map, err);
}

static int compare_gpu(
    const struct gv_profile_gpu *p, const struct gv_machine_gpu *m, int index, struct gv_error *err)
{
    if (p->pci_vendor && p->pci_vendor != m->pci_vendor)
        return gv_error_set(
            err, "GPU %d: PCI vendor %04x here, %04x in the profile", index, m->pci_vendor,
            p->pci_vendor);
    if (p->pci_device && p->pci_device != m->pci_device)
        return gv_error_set(
            err, "GPU %d: PCI device %04x here, %04x in the profile", index, m->pci_device,
            p->pci_device);
    if (p->numa_node >= 0 && p->numa_node != m->numa_node)
        return gv_error_set(
            err, "GPU %d: NUMA node %d here, %d in the profile", index, m->numa_node, p->numa_node);
    return 0;
}

static int compare_islands(
    const struct gv_profile *p, const struct gv_machine *m, const int map[GV_MAX_GPUS],
    struct gv_error *err)
{
    for (int b = 0; b < m->ngpus; b++) {
        for (int a = 0; a < b; a++) {
            if (map[a] < 0 || map[b] < 0)
                continue;
            const char *ia = p->gpus[map[a]].island, *ib = p->gpus[map[b]].island;
            bool profile = !strcmp(ia, ib);
            bool here =
                *m->gpus[a].root_port && !strcmp(m->gpus[a].root_port, m->gpus[b].root_port);
            if (*ia && *ib && profile != here)
                return gv_error_set(
                    err, "GPU %d and %d: %s here, %s in the profile", a, b,
                    here ? "one PCIe island" : "two PCIe islands",
                    profile ? "one PCIe island" : "two PCIe islands");
        }
    }
    return 0;
}

int gv_profile_matches(
    const struct gv_profile *p, const struct gv_machine *m, int map[GV_MAX_GPUS],
    struct gv_error *err)
{
    int rc;
    for (int i = 0; i < GV_MAX_GPUS; i++)
        map[i] = -1;
    if (p->match == GV_MATCH_UUID)
        rc = match_uuid(p, m, map, err);
    else if (p->match == GV_MATCH_BUS_ID)
        rc = match_bus_id(p, m, map, err);
    else
        rc = match_shape(p, m, map, err);
    for (int i = 0; !rc && i < m->ngpus; i++)
        if (map[i] >= 0)
            rc = compare_gpu(&p->gpus[map[i]], &m->gpus[i], i, err);
    return rc ? rc : compare_islands(p, m, map, err);
}
