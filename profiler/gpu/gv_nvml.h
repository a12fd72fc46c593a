/* NVML, opened at run time. Every function is optional: what it cannot tell is unknown. */
#ifndef GV_NVML_H
#define GV_NVML_H

#include <stdbool.h>

#include "base/gv_error.h"

typedef struct gv_nvml_device_st *gv_nvml_device;

struct gv_nvml_utilization {
    unsigned gpu, memory;
};

struct gv_nvml_memory {
    unsigned long long total, free, used; /* bytes */
};

/* nvmlProcessInfo_t as of nvmlDeviceGetComputeRunningProcesses_v3 (driver 510). */
struct gv_nvml_process {
    unsigned pid;
    unsigned long long used_bytes;
    unsigned gpu_instance, compute_instance;
};
_Static_assert(sizeof(struct gv_nvml_process) == 24, "nvmlProcessInfo_v2_t");

/* nvmlPciInfo_t of the _v3 functions. */
struct gv_nvml_pci {
    char bus_id_legacy[16];
    unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
    char bus_id[32];
};
_Static_assert(sizeof(struct gv_nvml_pci) == 68, "nvmlPciInfo_t");

/* Clocks: 0 graphics, 1 SM, 2 memory. */
#define GV_NVML_FUNCTIONS(X)                                                                       \
    X(init, "nvmlInit_v2", (void))                                                                 \
    X(shutdown, "nvmlShutdown", (void))                                                            \
    X(driver, "nvmlSystemGetDriverVersion", (char *text, unsigned size))                           \
    X(by_bus_id, "nvmlDeviceGetHandleByPciBusId_v2", (const char *bus_id, gv_nvml_device *))       \
    X(pci_info, "nvmlDeviceGetPciInfo_v3", (gv_nvml_device, struct gv_nvml_pci *))                 \
    X(power_limit, "nvmlDeviceGetEnforcedPowerLimit", (gv_nvml_device, unsigned *mw))              \
    X(power, "nvmlDeviceGetPowerUsage", (gv_nvml_device, unsigned *mw))                            \
    X(temperature, "nvmlDeviceGetTemperature", (gv_nvml_device, int sensor, unsigned *celsius))    \
    X(clock, "nvmlDeviceGetClockInfo", (gv_nvml_device, int type, unsigned *mhz))                  \
    X(max_clock, "nvmlDeviceGetMaxClockInfo", (gv_nvml_device, int type, unsigned *mhz))           \
    X(app_clock, "nvmlDeviceGetApplicationsClock", (gv_nvml_device, int type, unsigned *mhz))      \
    X(throttle, "nvmlDeviceGetCurrentClocksThrottleReasons",                                       \
      (gv_nvml_device, unsigned long long *reasons))                                               \
    X(link_gen, "nvmlDeviceGetCurrPcieLinkGeneration", (gv_nvml_device, unsigned *))               \
    X(link_width, "nvmlDeviceGetCurrPcieLinkWidth", (gv_nvml_device, unsigned *))                  \
    X(link_gen_max, "nvmlDeviceGetMaxPcieLinkGeneration", (gv_nvml_device, unsigned *))            \
    X(link_width_max, "nvmlDeviceGetMaxPcieLinkWidth", (gv_nvml_device, unsigned *))               \
    X(mig_mode, "nvmlDeviceGetMigMode", (gv_nvml_device, unsigned *now, unsigned *pending))        \
    X(processes, "nvmlDeviceGetComputeRunningProcesses_v3",                                        \
      (gv_nvml_device, unsigned *count, struct gv_nvml_process *))                                 \
    X(nvlink_state, "nvmlDeviceGetNvLinkState", (gv_nvml_device, unsigned link, int *active))      \
    X(nvlink_remote, "nvmlDeviceGetNvLinkRemotePciInfo_v2",                                        \
      (gv_nvml_device, unsigned link, struct gv_nvml_pci *))                                       \
    X(ecc_errors, "nvmlDeviceGetTotalEccErrors",                                                   \
      (gv_nvml_device, int type, int counter, unsigned long long *count))                          \
    X(persistence, "nvmlDeviceGetPersistenceMode", (gv_nvml_device, int *on))

struct gv_nvml {
    void *library; /* NULL: not there, all functions are NULL */
#define GV_X(field, symbol, args) int(*field) args;
    GV_NVML_FUNCTIONS(GV_X)
#undef GV_X
};

/* Calls a function of the table where there is one; -1 where not. */
#define GV_NVML_CALL(nvml, field, ...) ((nvml)->field ? (nvml)->field(__VA_ARGS__) : -1)

/* Throttle reasons that make a sample unfit: software and hardware power caps, thermal slowdowns,
 * the power brake. Idle and settings of the application are none. */
#define GV_NVML_THROTTLED                                                                          \
    (0x4ull /* power cap */ | 0x8ull /* slowdown */ | 0x20ull /* software thermal */ |             \
     0x40ull /* hardware thermal */ | 0x80ull /* power brake */)

/* Opens libnvidia-ml.so.1 (`path` NULL) or `path`. Always succeeds: without NVML the table is empty
 * and `why` (may be NULL) says why. */
void gv_nvml_open(struct gv_nvml *out, const char *path, struct gv_error *why);
/* Ends NVML; the library stays open. */
void gv_nvml_close(struct gv_nvml *nvml);

/* "power cap, thermal slowdown" of the reasons above, or "none". Returns `out`. */
const char *gv_nvml_throttle_text(unsigned long long reasons, char *out, unsigned long size);

#endif
