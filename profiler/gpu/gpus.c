#include "profiler/gpu/gv_gpus.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kernels/gv_kernels.h"

#define CALL(call, what)                                                                           \
    do {                                                                                           \
        gv_cu_result rc_ = gpus->cuda.call;                                                        \
        if (rc_)                                                                                   \
            return gv_cuda_fail(&gpus->cuda, rc_, err, what);                                      \
    } while (0)

/* Bus ids come with a domain of 4 or 8 digits and in either case. */
static void tidy_bus_id(const char *text, char *out, size_t size)
{
    unsigned domain = 0, bus = 0, device = 0, function = 0;
    out[0] = 0;
    if (sscanf(text, "%x:%x:%x.%x", &domain, &bus, &device, &function) >= 3)
        snprintf(out, size, "%04x:%02x:%02x.%x", domain, bus, device, function);
}

static int attribute(const struct gv_gpus *gpus, gv_cu_device device, int which)
{
    int value = -1;
    return gpus->cuda.device_attribute(&value, which, device) ? -1 : value;
}

static void format_uuid(const struct gv_cu_uuid *uuid, char *out, size_t size)
{
    const unsigned char *b = uuid->bytes;
    snprintf(
        out, size, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
        b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14],
        b[15]);
}

static int read_cuda(struct gv_gpus *gpus, int index, struct gv_error *err)
{
    struct gv_device *d = &gpus->device[index];
    char bus_id[32] = "";
    struct gv_cu_uuid uuid;

    d->index = index;
    CALL(device_get(&d->device, index), "a GPU cannot be opened");
    CALL(device_name(d->model, sizeof(d->model), d->device), "a GPU's name cannot be read");
    CALL(device_bus_id(bus_id, sizeof(bus_id), d->device), "a GPU's bus id cannot be read");
    CALL(device_memory(&d->memory_bytes, d->device), "a GPU's memory size cannot be read");
    tidy_bus_id(bus_id, d->bus_id, sizeof(d->bus_id));
    if (!gpus->cuda.device_uuid(&uuid, d->device))
        format_uuid(&uuid, d->uuid, sizeof(d->uuid));
    int major = attribute(gpus, d->device, GV_CU_ATTR_MAJOR);
    int minor = attribute(gpus, d->device, GV_CU_ATTR_MINOR);
    d->sm = major < 0 ? -1 : major * 10 + minor;
    d->multiprocessors = attribute(gpus, d->device, GV_CU_ATTR_MULTIPROCESSORS);
    d->bus_width_bits = attribute(gpus, d->device, GV_CU_ATTR_BUS_WIDTH_BITS);
    d->l2_bytes = attribute(gpus, d->device, GV_CU_ATTR_L2_BYTES);
    int khz = attribute(gpus, d->device, GV_CU_ATTR_MEMORY_CLOCK_KHZ);
    d->memory_mhz = khz > 0 ? khz / 1000 : -1;
    khz = attribute(gpus, d->device, GV_CU_ATTR_CLOCK_KHZ);
    d->max_core_mhz = khz > 0 ? khz / 1000 : -1;
    return 0;
}

/* A number that NVML tells with `ask`, -1 where it does not. */
static int ask(int (*function)(gv_nvml_device, unsigned *), gv_nvml_device device)
{
    unsigned value = 0;
    return !function || function(device, &value) ? -1 : (int)value;
}

static int
ask_clock(int (*function)(gv_nvml_device, int type, unsigned *), gv_nvml_device device, int type)
{
    unsigned mhz = 0;
    return !function || function(device, type, &mhz) ? -1 : (int)mhz;
}

void gv_device_read_link(const struct gv_gpus *gpus, struct gv_device *d)
{
    const struct gv_nvml *nvml = &gpus->nvml;
    d->link_gen = d->link_width = d->link_gen_max = d->link_width_max = -1;
    if (!d->nvml)
        return;
    d->link_gen = ask(nvml->link_gen, d->nvml);
    d->link_width = ask(nvml->link_width, d->nvml);
    d->link_gen_max = ask(nvml->link_gen_max, d->nvml);
    d->link_width_max = ask(nvml->link_width_max, d->nvml);
}

static void read_nvml(struct gv_gpus *gpus, struct gv_device *d)
{
    const struct gv_nvml *nvml = &gpus->nvml;
    unsigned mode = 0, pending = 0;
    d->app_core_mhz = d->power_limit_w = -1;
    if (GV_NVML_CALL(nvml, by_bus_id, d->bus_id, &d->nvml))
        d->nvml = NULL;
    gv_device_read_link(gpus, d);
    if (!d->nvml)
        return;
    d->app_core_mhz = ask_clock(nvml->app_clock, d->nvml, 0);
    int mhz = ask_clock(nvml->max_clock, d->nvml, 2);
    d->memory_mhz = mhz > 0 ? mhz : d->memory_mhz;
    mhz = ask_clock(nvml->max_clock, d->nvml, 1);
    d->max_core_mhz = mhz > 0 ? mhz : d->max_core_mhz;
    int mw = ask(nvml->power_limit, d->nvml);
    d->power_limit_w = mw > 0 ? mw / 1000 : -1;
    d->mig = !GV_NVML_CALL(nvml, mig_mode, d->nvml, &mode, &pending) && mode == 1;
}

int gv_gpus_open(
    struct gv_gpus *gpus, const char *cuda_path, const char *nvml_path, struct gv_error *err)
{
    memset(gpus, 0, sizeof(*gpus));
    if (gv_cuda_open(&gpus->cuda, cuda_path, err))
        return -1;
    gv_nvml_open(&gpus->nvml, nvml_path, NULL);
    if (GV_NVML_CALL(&gpus->nvml, driver, gpus->driver, sizeof(gpus->driver)))
        gpus->driver[0] = 0;
    CALL(device_count(&gpus->n), "the GPUs cannot be counted");
    if (gpus->n > GV_MAX_GPUS)
        return gv_error_set(err, "%d GPUs: more than %d are not supported", gpus->n, GV_MAX_GPUS);
    for (int i = 0; i < gpus->n; i++) {
        if (read_cuda(gpus, i, err))
            return -1;
        read_nvml(gpus, &gpus->device[i]);
        if (gpus->device[i].mig)
            return gv_error_set(
                err,
                "GPU %d (%s) is in MIG mode: a slice's figures say nothing of the machine; "
                "turn MIG off to calibrate",
                i, gpus->device[i].bus_id);
    }
    return 0;
}

int gv_device_start(struct gv_gpus *gpus, int index, struct gv_error *err)
{
    struct gv_device *d = &gpus->device[index];
    char what[96];
    if (d->ctx)
        return 0;
    snprintf(what, sizeof(what), "GPU %d (%s) cannot be used", index, d->bus_id);
    CALL(ctx_retain(&d->ctx, d->device), what);
    CALL(ctx_set(d->ctx), what);
    gv_cu_result rc = gpus->cuda.module_load(&d->module, gv_kernels_ptx);
    if (rc == GV_CU_UNSUPPORTED_PTX_VERSION)
        return gv_error_set(
            err, "GPU %d: the driver is too old for this build's kernels (PTX by %s)", index,
            gv_kernels_compiler);
    if (rc)
        return gv_cuda_fail(&gpus->cuda, rc, err, "the kernels do not load");
    if (d->sm < 80 || gpus->cuda.module_load(&d->hinted, gv_kernels80_ptx))
        d->hinted = NULL;
    for (int i = 0; i < GV_DEVICE_STREAMS; i++)
        CALL(stream_create(&d->stream[i], GV_CU_STREAM_NON_BLOCKING), what);
    return 0;
}

void gv_gpus_close(struct gv_gpus *gpus)
{
    for (int i = 0; i < gpus->n; i++)
        if (gpus->device[i].ctx)
            gpus->cuda.ctx_release(gpus->device[i].device);
    gv_nvml_close(&gpus->nvml);
    memset(gpus, 0, sizeof(*gpus));
}

int gv_device_function(
    struct gv_gpus *gpus, int index, const char *name, gv_cu_function *out, struct gv_error *err)
{
    const struct gv_device *d = &gpus->device[index];
    bool is_hinted = strstr(name, "_u") && name[strlen(name) - 1] == 'h';
    CALL(ctx_set(d->ctx), "the context is gone");
    CALL(module_function(out, is_hinted ? d->hinted : d->module, name), name);
    return 0;
}

unsigned long long gv_device_throttle(const struct gv_gpus *gpus, int index)
{
    unsigned long long reasons = 0;
    const struct gv_device *d = &gpus->device[index];
    if (!d->nvml || GV_NVML_CALL(&gpus->nvml, throttle, d->nvml, &reasons))
        return 0;
    return reasons & GV_NVML_THROTTLED;
}

int gv_device_nvlinks(const struct gv_gpus *gpus, int from, int to)
{
    const struct gv_device *d = &gpus->device[from];
    int count = 0;
    for (unsigned link = 0; d->nvml && link < 18; link++) {
        struct gv_nvml_pci remote = {0};
        char bus_id[20];
        int active = 0;
        if (GV_NVML_CALL(&gpus->nvml, nvlink_state, d->nvml, link, &active) || !active)
            continue;
        if (GV_NVML_CALL(&gpus->nvml, nvlink_remote, d->nvml, link, &remote))
            continue;
        tidy_bus_id(remote.bus_id, bus_id, sizeof(bus_id));
        bool gpu = false;
        for (int i = 0; i < gpus->n; i++)
            gpu |= !strcmp(gpus->device[i].bus_id, bus_id);
        count += gpu ? !strcmp(bus_id, gpus->device[to].bus_id) : 1;
    }
    return count;
}

static void process_name(unsigned pid, char *out, size_t size)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%u/comm", pid);
    FILE *file = fopen(path, "r");
    snprintf(out, size, "another container or user");
    if (!file)
        return;
    if (fgets(out, (int)size, file))
        out[strcspn(out, "\n")] = 0;
    fclose(file);
}

int gv_device_users(const struct gv_gpus *gpus, int index, char *out, size_t size)
{
    const struct gv_device *d = &gpus->device[index];
    struct gv_nvml_process list[32];
    unsigned n = 32;
    int users = 0;
    out[0] = 0;
    if (!d->nvml || GV_NVML_CALL(&gpus->nvml, processes, d->nvml, &n, list))
        return 0;
    for (unsigned i = 0; i < n && i < 32; i++) {
        char name[64];
        size_t used = strlen(out);
        if (list[i].pid == (unsigned)getpid())
            continue;
        process_name(list[i].pid, name, sizeof(name));
        snprintf(out + used, size - used, "%spid %u (%s)", users ? ", " : "", list[i].pid, name);
        users++;
    }
    return users;
}
