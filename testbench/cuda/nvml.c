/* The entry points of libnvidia-ml.so.1 that gv100 uses. A world of its own: the two libraries
 * share the machine's files, as the real ones share the machine. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "profiler/gpu/gv_nvml.h"
#include "testbench/cuda/gv_virtual.h"

#define EXPORT __attribute__((visibility("default")))
#define NOT_SUPPORTED 3
#define NOT_FOUND 6

#define NVML_X(field, symbol, args) int gv_n_##field args __asm__(symbol) EXPORT;
GV_NVML_FUNCTIONS(NVML_X)
#undef NVML_X

/* A handle is the GPU's number plus one. */
static int number(gv_nvml_device device)
{
    return (int)(uintptr_t)device - 1;
}

static int known(int value, unsigned *out)
{
    if (value < 0)
        return NOT_SUPPORTED;
    *out = (unsigned)value;
    return 0;
}

int gv_n_init(void)
{
    return gv_world() ? 0 : 9 /* driver not loaded */;
}

int gv_n_shutdown(void)
{
    return 0;
}

int gv_n_driver(char *text, unsigned size)
{
    snprintf(text, size, "%s", gv_world()->fabric.machine.driver);
    return 0;
}

int gv_n_by_bus_id(const char *bus_id, gv_nvml_device *out)
{
    const struct gv_bench_machine *m = &gv_world()->fabric.machine;
    for (int i = 0; i < m->ngpus; i++)
        if (!strcasecmp(m->gpus[i].pci.bus_id, bus_id)) {
            *out = (gv_nvml_device)(uintptr_t)(i + 1);
            return 0;
        }
    return NOT_FOUND;
}

int gv_n_pci_info(gv_nvml_device device, struct gv_nvml_pci *pci)
{
    const char *bus_id = gv_world()->fabric.machine.gpus[number(device)].pci.bus_id;
    memset(pci, 0, sizeof(*pci));
    snprintf(pci->bus_id_legacy, sizeof(pci->bus_id_legacy), "%.15s", bus_id);
    snprintf(pci->bus_id, sizeof(pci->bus_id), "0000%s", bus_id);
    return 0;
}

int gv_n_power_limit(gv_nvml_device device, unsigned *mw)
{
    int watts = gv_world()->fabric.gpu[number(device)].power_limit_w;
    return known(watts < 0 ? -1 : watts * 1000, mw);
}

int gv_n_power(gv_nvml_device device, unsigned *mw)
{
    return gv_n_power_limit(device, mw);
}

int gv_n_temperature(gv_nvml_device device, int sensor, unsigned *celsius)
{
    (void)sensor;
    *celsius = gv_world()->faults.gpu[number(device)].throttle > 0 ? 92 : 45;
    return 0;
}

int gv_n_clock(gv_nvml_device device, int type, unsigned *mhz)
{
    const struct gv_fabric_gpu *g = &gv_world()->fabric.gpu[number(device)];
    return known(type == 2 ? g->memory_mhz : g->app_core_mhz, mhz);
}

int gv_n_max_clock(gv_nvml_device device, int type, unsigned *mhz)
{
    const struct gv_fabric_gpu *g = &gv_world()->fabric.gpu[number(device)];
    return known(type == 2 ? g->memory_mhz : g->max_core_mhz, mhz);
}

int gv_n_app_clock(gv_nvml_device device, int type, unsigned *mhz)
{
    return gv_n_clock(device, type, mhz);
}

int gv_n_throttle(gv_nvml_device device, unsigned long long *reasons)
{
    *reasons = gv_world()->faults.gpu[number(device)].throttle > 0 ? 0x40 : 0;
    return 0;
}

/* "8.0 GT/s PCIe" is generation 3. */
int gv_n_link_gen(gv_nvml_device device, unsigned *gen)
{
    static const struct {
        const char *speed;
        int gen;
    } gens[] = {{"2.5", 1}, {"5", 2}, {"8", 3}, {"16", 4}, {"32", 5}, {"64", 6}};
    const char *speed = gv_world()->fabric.machine.gpus[number(device)].pci.speed;
    int found = -1;
    for (size_t i = 0; i < sizeof(gens) / sizeof(gens[0]); i++)
        if (!strncmp(speed, gens[i].speed, strlen(gens[i].speed)))
            found = gens[i].gen;
    return known(found, gen);
}

int gv_n_link_gen_max(gv_nvml_device device, unsigned *gen)
{
    return gv_n_link_gen(device, gen);
}

int gv_n_link_width(gv_nvml_device device, unsigned *width)
{
    return known(gv_world()->fabric.gpu[number(device)].link_width, width);
}

int gv_n_link_width_max(gv_nvml_device device, unsigned *width)
{
    return known(gv_world()->fabric.machine.gpus[number(device)].pci.width, width);
}

int gv_n_mig_mode(gv_nvml_device device, unsigned *now, unsigned *pending)
{
    *now = *pending = gv_world()->faults.gpu[number(device)].mig;
    return *now ? 0 : NOT_SUPPORTED;
}

int gv_n_processes(gv_nvml_device device, unsigned *count, struct gv_nvml_process *list)
{
    unsigned pid = gv_world()->faults.gpu[number(device)].user_pid;
    if (pid && *count)
        list[0] = (struct gv_nvml_process){.pid = pid, .used_bytes = 1 << 30};
    *count = pid ? 1 : 0;
    return 0;
}

/* Link `link` of the GPU leads to the peer returned, or -1. */
static int peer_of(gv_nvml_device device, unsigned link)
{
    const struct gv_fabric *f = &gv_world()->fabric;
    unsigned at = 0;
    for (int peer = 0; peer < f->machine.ngpus; peer++) {
        at += (unsigned)f->nvlinks[number(device)][peer];
        if (link < at)
            return peer;
    }
    return -1;
}

int gv_n_nvlink_state(gv_nvml_device device, unsigned link, int *active)
{
    if (peer_of(device, link) < 0)
        return NOT_SUPPORTED;
    *active = 1;
    return 0;
}

int gv_n_nvlink_remote(gv_nvml_device device, unsigned link, struct gv_nvml_pci *pci)
{
    int peer = peer_of(device, link);
    return peer < 0 ? NOT_SUPPORTED : gv_n_pci_info((gv_nvml_device)(uintptr_t)(peer + 1), pci);
}

int gv_n_ecc_errors(gv_nvml_device device, int type, int counter, unsigned long long *count)
{
    (void)device, (void)type, (void)counter;
    *count = 0;
    return 0;
}

int gv_n_persistence(gv_nvml_device device, int *on)
{
    (void)device;
    *on = 1;
    return 0;
}
