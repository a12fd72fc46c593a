#include "plugin/core/gv_driver.h"

#include <ctype.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* CUDA driver API, as of CUDA 4.0 and unchanged since. */
typedef int (*cu_init)(unsigned flags);
typedef int (*cu_ctx_get_device)(int *device);
typedef int (*cu_device_get)(int *device, int ordinal);
typedef int (*cu_device_get_bus_id)(char *out, int len, int device);
typedef int (*cuda_get_device)(int *ordinal);

#define CU_NOT_INITIALIZED 3 /* CUDA_ERROR_NOT_INITIALIZED */

/* Filled once; all NULL where the process has no driver. */
static struct {
    cu_init init;
    cu_ctx_get_device ctx_get_device;
    cu_device_get device_get;
    cu_device_get_bus_id device_get_bus_id;
} cu;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void find_driver(void)
{
    void *lib = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (!lib)
        lib = dlopen("libcuda.so.1", RTLD_LAZY);
    if (!lib)
        return;
    cu.init = (cu_init)dlsym(lib, "cuInit");
    cu.ctx_get_device = (cu_ctx_get_device)dlsym(lib, "cuCtxGetDevice");
    cu.device_get = (cu_device_get)dlsym(lib, "cuDeviceGet");
    cu.device_get_bus_id = (cu_device_get_bus_id)dlsym(lib, "cuDeviceGetPCIBusId");
}

static bool bus_id(int device, char out[20])
{
    char raw[32] = "";
    if (!cu.device_get_bus_id || cu.device_get_bus_id(raw, sizeof(raw), device))
        return false;
    /* CUDA writes a domain of four or eight digits; sysfs has four. */
    const char *colon = strchr(raw, ':');
    const char *from = colon && colon - raw > 4 ? colon - 4 : raw;
    snprintf(out, 20, "%.19s", from);
    for (char *p = out; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    return true;
}

bool gv_driver_ordinal(int ordinal, char out[20])
{
    pthread_once(&once, find_driver);
    int device, rc = cu.device_get ? cu.device_get(&device, ordinal) : 1;
    /* A program may come to NCCL before anything else touched CUDA; NCCL would do this next. */
    if (rc == CU_NOT_INITIALIZED && cu.init && !cu.init(0))
        rc = cu.device_get(&device, ordinal);
    return !rc && bus_id(device, out);
}

bool gv_driver_current(void *object, char out[20])
{
    pthread_once(&once, find_driver);
    int device;
    if (cu.ctx_get_device && !cu.ctx_get_device(&device))
        return bus_id(device, out);
    cuda_get_device get = object ? (cuda_get_device)dlsym(object, "cudaGetDevice") : NULL;
    if (!get)
        get = (cuda_get_device)dlsym(RTLD_DEFAULT, "cudaGetDevice");
    int ordinal;
    return get && !get(&ordinal) && gv_driver_ordinal(ordinal, out);
}
