#include "testbench/host/gv_fakecuda.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUCCESS 0
#define INVALID_VALUE 1
#define NOT_INITIALIZED 3
#define INVALID_DEVICE 101
#define INVALID_CONTEXT 201

#define API GV_FAKECUDA_API

static __thread int current = -1;
/* Set by cuInit, or by the runtime's first call, which is what setting a device stands for. */
static atomic_bool initialized;

void gv_fakecuda_set_device(int ordinal)
{
    current = ordinal;
    atomic_store(&initialized, true);
}

int gv_fakecuda_device(void)
{
    return current < 0 ? 0 : current;
}

/* The n-th item of a comma list in an environment variable; false beyond its end. */
static int item(const char *variable, int n, char *out, size_t size)
{
    const char *at = getenv(variable);
    for (; at && n > 0; n--) {
        at = strchr(at, ',');
        at = at ? at + 1 : NULL;
    }
    if (!at || !*at)
        return 0;
    snprintf(out, size, "%.*s", (int)strcspn(at, ","), at);
    return 1;
}

int gv_fakecuda_gpu(int ordinal)
{
    char text[64];
    if (ordinal < 0)
        return -1;
    if (getenv("CUDA_VISIBLE_DEVICES"))
        return item("CUDA_VISIBLE_DEVICES", ordinal, text, sizeof(text)) ? atoi(text) : -1;
    return item("GV_HOST_BUS_IDS", ordinal, text, sizeof(text)) ? ordinal : -1;
}

API int cuInit(unsigned flags);
int cuInit(unsigned flags)
{
    if (flags)
        return INVALID_VALUE;
    atomic_store(&initialized, true);
    return SUCCESS;
}

API int cuDriverGetVersion(int *version);
int cuDriverGetVersion(int *version)
{
    *version = 13000;
    return SUCCESS;
}

API int cuDeviceGetCount(int *count);
int cuDeviceGetCount(int *count)
{
    int n = 0;
    while (gv_fakecuda_gpu(n) >= 0)
        n++;
    *count = n;
    return SUCCESS;
}

API int cuDeviceGet(int *device, int ordinal);
int cuDeviceGet(int *device, int ordinal)
{
    if (!atomic_load(&initialized))
        return NOT_INITIALIZED;
    if (gv_fakecuda_gpu(ordinal) < 0)
        return INVALID_DEVICE;
    *device = ordinal;
    return SUCCESS;
}

API int cuCtxGetDevice(int *device);
int cuCtxGetDevice(int *device)
{
    if (current < 0)
        return INVALID_CONTEXT;
    *device = current;
    return SUCCESS;
}

API int cuCtxGetCurrent(void **context);
int cuCtxGetCurrent(void **context)
{
    *context = current < 0 ? NULL : (void *)(size_t)(current + 1);
    return SUCCESS;
}

API int cuDeviceGetPCIBusId(char *id, int size, int device);
int cuDeviceGetPCIBusId(char *id, int size, int device)
{
    char text[32];
    int gpu = gv_fakecuda_gpu(device);
    if (gpu < 0 || !item("GV_HOST_BUS_IDS", gpu, text, sizeof(text)))
        return INVALID_DEVICE;
    snprintf(id, (size_t)size, "%s", text);
    return SUCCESS;
}

API int cuDeviceGetUuid(unsigned char *uuid, int device);
int cuDeviceGetUuid(unsigned char *uuid, int device)
{
    char text[64];
    int gpu = gv_fakecuda_gpu(device);
    if (gpu < 0 || !item("GV_HOST_UUIDS", gpu, text, sizeof(text)))
        return INVALID_DEVICE;
    int n = 0;
    for (const char *p = text + 4; *p && n < 16; p++) /* past "GPU-" */
        if (*p != '-' && p[1] && sscanf(p, "%2hhx", &uuid[n]) == 1)
            n++, p++;
    return n == 16 ? SUCCESS : INVALID_DEVICE;
}

API int cuDeviceGetUuid_v2(unsigned char *uuid, int device);
int cuDeviceGetUuid_v2(unsigned char *uuid, int device)
{
    return cuDeviceGetUuid(uuid, device);
}
