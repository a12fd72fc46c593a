/* The driver and its devices: versions, names of results, attributes, peers. */
#include <stdio.h>
#include <string.h>

#include "testbench/cuda/entry.h"

gv_cu_result gv_v_init(unsigned flags)
{
    (void)flags;
    ENTER(w)
    return leave(w->faults.init ? w->faults.init : w->nvisible ? 0 : GV_CU_NO_DEVICE);
}

gv_cu_result gv_v_driver_version(int *version)
{
    ENTER(w)
    *version = w->faults.cuda_version ? w->faults.cuda_version : 13000;
    return leave(0);
}

static const struct {
    gv_cu_result rc;
    const char *name, *text;
} results[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {INVALID, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {GV_CU_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {GV_CU_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {GV_CU_ECC_UNCORRECTABLE, "CUDA_ERROR_ECC_UNCORRECTABLE",
     "uncorrectable ECC error encountered"},
    {GV_CU_PEER_ACCESS_UNSUPPORTED, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED",
     "peer access is not supported between these two devices"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {GV_CU_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {GV_CU_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS",
     "an illegal memory access was encountered"},
    {GV_CU_PEER_ACCESS_ALREADY_ENABLED, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED",
     "peer access is already enabled"},
    {GV_CU_PEER_ACCESS_NOT_ENABLED, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED",
     "peer access has not been enabled"},
    {GV_CU_TOO_MANY_PEERS, "CUDA_ERROR_TOO_MANY_PEERS", "peer mapping resources exhausted"},
    {801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
    {907, "CUDA_ERROR_CAPTURED_EVENT",
     "operation not permitted on an event last recorded in a capturing stream"},
    {905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION",
     "dependency created on uncaptured work in another stream"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
};

gv_cu_result gv_v_error_name(gv_cu_result rc, const char **name)
{
    for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++)
        if (results[i].rc == rc) {
            *name = results[i].name;
            return 0;
        }
    return INVALID;
}

gv_cu_result gv_v_error_string(gv_cu_result rc, const char **text)
{
    for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++)
        if (results[i].rc == rc) {
            *text = results[i].text;
            return 0;
        }
    return INVALID;
}

gv_cu_result gv_v_device_count(int *count)
{
    ENTER(w)
    *count = w->nvisible;
    return leave(0);
}

/* A CUdevice is the GPU's number in the machine, whatever is visible. */
gv_cu_result gv_v_device_get(gv_cu_device *device, int ordinal)
{
    ENTER(w)
    if (ordinal < 0 || ordinal >= w->nvisible)
        return leave(101);
    *device = w->visible[ordinal];
    return leave(0);
}

gv_cu_result gv_v_device_name(char *name, int size, gv_cu_device device)
{
    ENTER(w)
    snprintf(name, (size_t)size, "%s", w->fabric.machine.gpus[device].model);
    return leave(0);
}

gv_cu_result gv_v_device_uuid(struct gv_cu_uuid *uuid, gv_cu_device device)
{
    ENTER(w)
    const char *text = w->fabric.machine.gpus[device].uuid;
    int at = 0;
    memset(uuid, 0, sizeof(*uuid));
    for (const char *p = strncmp(text, "GPU-", 4) ? text : text + 4; *p && at < 16;) {
        unsigned byte;
        if (*p == '-')
            p++;
        if (sscanf(p, "%2x", &byte) != 1)
            break;
        uuid->bytes[at++] = (unsigned char)byte;
        p += 2;
    }
    return leave(0);
}

gv_cu_result gv_v_device_memory(size_t *bytes, gv_cu_device device)
{
    ENTER(w)
    *bytes = (size_t)w->fabric.machine.gpus[device].memory_mib << 20;
    return leave(0);
}

gv_cu_result gv_v_device_attribute(int *value, int attribute, gv_cu_device device)
{
    ENTER(w)
    const struct gv_fabric_gpu *g = &w->fabric.gpu[device];
    int sm = w->fabric.machine.gpus[device].sm;
    switch (attribute) {
    case GV_CU_ATTR_CLOCK_KHZ:
        *value = g->max_core_mhz * 1000;
        break;
    case GV_CU_ATTR_MULTIPROCESSORS:
        *value = g->multiprocessors;
        break;
    case GV_CU_ATTR_MEMORY_CLOCK_KHZ:
        *value = g->memory_mhz * 1000;
        break;
    case GV_CU_ATTR_BUS_WIDTH_BITS:
        *value = g->bus_width_bits;
        break;
    case GV_CU_ATTR_L2_BYTES:
        *value = 6 << 20;
        break;
    case GV_CU_ATTR_MAJOR:
        *value = sm / 10;
        break;
    case GV_CU_ATTR_MINOR:
        *value = sm % 10;
        break;
    default:
        return leave(INVALID);
    }
    return leave(0);
}

gv_cu_result gv_v_device_bus_id(char *bus_id, int size, gv_cu_device device)
{
    ENTER(w)
    snprintf(bus_id, (size_t)size, "%s", w->fabric.machine.gpus[device].pci.bus_id);
    return leave(0);
}

gv_cu_result gv_v_can_access_peer(int *can, gv_cu_device device, gv_cu_device peer)
{
    ENTER(w)
    *can = device != peer && gv_fabric_p2p(&w->fabric, device, peer) &&
           !gv_fault_on(w, GV_FAULT_ONE_WAY, peer, device);
    return leave(0);
}

gv_cu_result gv_v_p2p_attribute(int *value, int attribute, gv_cu_device from, gv_cu_device to)
{
    ENTER(w)
    bool p2p = gv_fabric_p2p(&w->fabric, from, to);
    bool nvlink = w->fabric.nvlinks[from][to] > 0;
    *value = attribute == GV_CU_P2P_ACCESS ? p2p : attribute == GV_CU_P2P_ATOMICS ? nvlink : 0;
    return leave(0);
}
