/* The CUDA driver API as one const table of functions, opened at run time: nothing here needs CUDA
 * to build, or to be installed for commands that measure nothing. Types and numbers are those of
 * the driver's ABI (stable since CUDA 4; the newest symbol used came with CUDA 11.0). */
#ifndef GV_CUDA_H
#define GV_CUDA_H

#include <stddef.h>
#include <stdint.h>

#include "base/gv_error.h"

typedef int gv_cu_result; /* 0 is success */
typedef int gv_cu_device;
typedef uint64_t gv_cu_ptr;
typedef struct gv_cu_ctx_st *gv_cu_ctx;
typedef struct gv_cu_stream_st *gv_cu_stream;
typedef struct gv_cu_event_st *gv_cu_event;
typedef struct gv_cu_module_st *gv_cu_module;
typedef struct gv_cu_function_st *gv_cu_function;

struct gv_cu_uuid {
    unsigned char bytes[16];
};
_Static_assert(sizeof(struct gv_cu_uuid) == 16, "CUuuid");

/* Results that are told apart. */
enum {
    GV_CU_OUT_OF_MEMORY = 2,
    GV_CU_NO_DEVICE = 100,
    GV_CU_ECC_UNCORRECTABLE = 214,
    GV_CU_PEER_ACCESS_UNSUPPORTED = 217,
    GV_CU_UNSUPPORTED_PTX_VERSION = 222,
    GV_CU_NOT_READY = 600,
    GV_CU_ILLEGAL_ADDRESS = 700,
    GV_CU_PEER_ACCESS_ALREADY_ENABLED = 704,
    GV_CU_PEER_ACCESS_NOT_ENABLED = 705,
    GV_CU_TOO_MANY_PEERS = 711,
};

/* CUdevice_attribute and CUdevice_P2PAttribute. */
enum {
    GV_CU_ATTR_CLOCK_KHZ = 13,
    GV_CU_ATTR_MULTIPROCESSORS = 16,
    GV_CU_ATTR_MEMORY_CLOCK_KHZ = 36,
    GV_CU_ATTR_BUS_WIDTH_BITS = 37,
    GV_CU_ATTR_L2_BYTES = 38,
    GV_CU_ATTR_MAJOR = 75,
    GV_CU_ATTR_MINOR = 76,
    GV_CU_P2P_PERFORMANCE_RANK = 1,
    GV_CU_P2P_ACCESS = 2,
    GV_CU_P2P_ATOMICS = 3,
};

#define GV_CU_STREAM_NON_BLOCKING 1
#define GV_CU_HOST_PORTABLE 1
#define GV_CU_HOST_DEVICEMAP 2

/* X(field, symbol of libcuda.so.1, arguments). */
#define GV_CUDA_FUNCTIONS(X)                                                                       \
    X(init, "cuInit", (unsigned flags))                                                            \
    X(driver_version, "cuDriverGetVersion", (int *version))                                        \
    X(error_name, "cuGetErrorName", (gv_cu_result, const char **name))                             \
    X(error_string, "cuGetErrorString", (gv_cu_result, const char **text))                         \
    X(device_count, "cuDeviceGetCount", (int *count))                                              \
    X(device_get, "cuDeviceGet", (gv_cu_device *, int ordinal))                                    \
    X(device_name, "cuDeviceGetName", (char *name, int size, gv_cu_device))                        \
    X(device_uuid, "cuDeviceGetUuid", (struct gv_cu_uuid *, gv_cu_device))                         \
    X(device_memory, "cuDeviceTotalMem_v2", (size_t * bytes, gv_cu_device))                        \
    X(device_attribute, "cuDeviceGetAttribute", (int *value, int attribute, gv_cu_device))         \
    X(device_bus_id, "cuDeviceGetPCIBusId", (char *bus_id, int size, gv_cu_device))                \
    X(can_access_peer, "cuDeviceCanAccessPeer", (int *can, gv_cu_device, gv_cu_device peer))       \
    X(p2p_attribute, "cuDeviceGetP2PAttribute",                                                    \
      (int *value, int attribute, gv_cu_device from, gv_cu_device to))                             \
    X(ctx_retain, "cuDevicePrimaryCtxRetain", (gv_cu_ctx *, gv_cu_device))                         \
    X(ctx_release, "cuDevicePrimaryCtxRelease_v2", (gv_cu_device))                                 \
    X(ctx_set, "cuCtxSetCurrent", (gv_cu_ctx))                                                     \
    X(ctx_sync, "cuCtxSynchronize", (void))                                                        \
    X(peer_enable, "cuCtxEnablePeerAccess", (gv_cu_ctx peer, unsigned flags))                      \
    X(peer_disable, "cuCtxDisablePeerAccess", (gv_cu_ctx peer))                                    \
    X(mem_info, "cuMemGetInfo_v2", (size_t * free, size_t * total))                                \
    X(mem_alloc, "cuMemAlloc_v2", (gv_cu_ptr *, size_t bytes))                                     \
    X(mem_free, "cuMemFree_v2", (gv_cu_ptr))                                                       \
    X(host_alloc, "cuMemHostAlloc", (void **, size_t bytes, unsigned flags))                       \
    X(host_free, "cuMemFreeHost", (void *))                                                        \
    X(host_pointer, "cuMemHostGetDevicePointer_v2", (gv_cu_ptr *, void *, unsigned flags))         \
    X(copy_async, "cuMemcpyAsync", (gv_cu_ptr to, gv_cu_ptr from, size_t bytes, gv_cu_stream))     \
    X(copy_dtod, "cuMemcpyDtoDAsync_v2", (gv_cu_ptr, gv_cu_ptr, size_t bytes, gv_cu_stream))       \
    X(copy_htod, "cuMemcpyHtoDAsync_v2", (gv_cu_ptr, const void *, size_t bytes, gv_cu_stream))    \
    X(copy_dtoh, "cuMemcpyDtoHAsync_v2", (void *, gv_cu_ptr, size_t bytes, gv_cu_stream))          \
    X(copy_peer, "cuMemcpyPeerAsync",                                                              \
      (gv_cu_ptr to, gv_cu_ctx, gv_cu_ptr from, gv_cu_ctx, size_t bytes, gv_cu_stream))            \
    X(set_words, "cuMemsetD32Async", (gv_cu_ptr, unsigned value, size_t count, gv_cu_stream))      \
    X(stream_create, "cuStreamCreate", (gv_cu_stream *, unsigned flags))                           \
    X(stream_destroy, "cuStreamDestroy_v2", (gv_cu_stream))                                        \
    X(stream_sync, "cuStreamSynchronize", (gv_cu_stream))                                          \
    X(stream_query, "cuStreamQuery", (gv_cu_stream))                                               \
    X(event_create, "cuEventCreate", (gv_cu_event *, unsigned flags))                              \
    X(event_destroy, "cuEventDestroy_v2", (gv_cu_event))                                           \
    X(event_record, "cuEventRecord", (gv_cu_event, gv_cu_stream))                                  \
    X(event_elapsed, "cuEventElapsedTime", (float *ms, gv_cu_event begin, gv_cu_event end))        \
    X(module_load, "cuModuleLoadData", (gv_cu_module *, const void *image))                        \
    X(module_unload, "cuModuleUnload", (gv_cu_module))                                             \
    X(module_function, "cuModuleGetFunction", (gv_cu_function *, gv_cu_module, const char *name))  \
    X(launch, "cuLaunchKernel",                                                                    \
      (gv_cu_function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,        \
       unsigned block_y, unsigned block_z, unsigned shared_bytes, gv_cu_stream, void **params,     \
       void **extra))

struct gv_cuda {
    void *library;
    int version; /* 12040 is CUDA 12.4 */
#define GV_X(field, symbol, args) gv_cu_result(*field) args;
    GV_CUDA_FUNCTIONS(GV_X)
#undef GV_X
};

/* The oldest driver that is taken: CUDA 11.0 (450.36), which has every function above. */
#define GV_CUDA_OLDEST 11000

/* Opens libcuda.so.1 (`path` NULL) or `path`, fills the table, sets CUDA_DEVICE_ORDER=PCI_BUS_ID
 * for this process and calls cuInit. Call it before threads start. Returns 0, or -1 with `err`: no
 * driver, a symbol that is missing (by name), a driver too old, no device, no permission; each with
 * what to do. The library stays open for the life of the process. */
int gv_cuda_open(struct gv_cuda *out, const char *path, struct gv_error *err);

/* The same for a library in someone else's program: the environment, and so the order of devices,
 * stays as it is. */
int gv_cuda_load(struct gv_cuda *out, const char *path, struct gv_error *err);

/* Sets `err` to "what: NAME (text)" for a failed call; returns -1. */
int gv_cuda_fail(
    const struct gv_cuda *cuda, gv_cu_result rc, struct gv_error *err, const char *what);

/* After these nothing more can be asked of this process's contexts. */
int gv_cuda_is_fatal(gv_cu_result rc);

#endif
