/* The GPUs that this process may use, in PCI order, with what CUDA and NVML say of them. */
#ifndef GV_GPUS_H
#define GV_GPUS_H

#include <stdbool.h>

#include "base/gv_gpuset.h"
#include "profiler/gpu/gv_cuda.h"
#include "profiler/gpu/gv_nvml.h"

#define GV_DEVICE_STREAMS 8

/* One GPU. Numbers that are not known are -1, texts "". The handles at the end are made by
 * gv_device_start and live until gv_gpus_close. */
struct gv_device {
    int index;       /* CUDA's ordinal in PCI order, among the visible GPUs */
    char bus_id[20]; /* "0000:1a:00.0", lower case */
    char uuid[48];   /* "GPU-..." */
    char model[64];
    size_t memory_bytes;
    int sm; /* compute capability, 70 */
    int multiprocessors, bus_width_bits, l2_bytes;
    int memory_mhz, max_core_mhz, app_core_mhz, power_limit_w;
    int link_gen, link_width, link_gen_max, link_width_max; /* as NVML says at the call */
    bool mig;
    gv_cu_device device;
    gv_nvml_device nvml; /* NULL without NVML */

    gv_cu_ctx ctx;
    gv_cu_module module, hinted; /* `hinted`: the kernels of compute_80; NULL: none */
    gv_cu_stream stream[GV_DEVICE_STREAMS];
};

struct gv_gpus {
    struct gv_cuda cuda;
    struct gv_nvml nvml;
    struct gv_device device[GV_MAX_GPUS];
    int n;
    char driver[32]; /* "580.173.02"; "" not known */
};

/* Opens both libraries (NULL paths: the system's) and lists the devices. No context is made.
 * Returns 0, or -1 with `err`. */
int gv_gpus_open(
    struct gv_gpus *out, const char *cuda_path, const char *nvml_path, struct gv_error *err);

/* Makes the context, loads the kernels and creates the streams of one device, once. */
int gv_device_start(struct gv_gpus *gpus, int index, struct gv_error *err);

/* Frees all contexts, in which everything else of this process's GPU memory goes. */
void gv_gpus_close(struct gv_gpus *gpus);

/* A kernel of the device's modules. The name must exist; variants "h" do where `hinted` is there.
 */
int gv_device_function(
    struct gv_gpus *gpus, int index, const char *name, gv_cu_function *out, struct gv_error *err);

/* Reads link generation and width again: links idle down, so ask under load. */
void gv_device_read_link(const struct gv_gpus *gpus, struct gv_device *device);

/* Throttle reasons now (GV_NVML_THROTTLED bits), 0 where not known. */
unsigned long long gv_device_throttle(const struct gv_gpus *gpus, int index);

/* NVLinks from one GPU to another that are active, by NVML's count of remote bus ids; links to a
 * switch count where both GPUs have them. 0 none or not known. */
int gv_device_nvlinks(const struct gv_gpus *gpus, int from, int to);

/* Names foreign compute processes ("pid 4711 (python3)") on the device into `out`. Returns their
 * number. */
int gv_device_users(const struct gv_gpus *gpus, int index, char *out, size_t size);

#endif
