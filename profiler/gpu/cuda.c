#include "profiler/gpu/gv_cuda.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/gpu/gv_device_files.h"

struct symbol {
    const char *name;
    size_t offset;
};

static const struct symbol symbols[] = {
#define GV_X(field, symbol, args) {symbol, offsetof(struct gv_cuda, field)},
    GV_CUDA_FUNCTIONS(GV_X)
#undef GV_X
};

static int fill(struct gv_cuda *cuda, const char *path, struct gv_error *err)
{
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        void *found = dlsym(cuda->library, symbols[i].name);
        if (!found)
            return gv_error_set(
                err, "%s has no %s: this driver is too old; install one with CUDA 11.0 or newer",
                path, symbols[i].name);
        memcpy((char *)cuda + symbols[i].offset, &found, sizeof(found));
    }
    return 0;
}

int gv_cuda_fail(
    const struct gv_cuda *cuda, gv_cu_result rc, struct gv_error *err, const char *what)
{
    const char *name = NULL, *text = NULL;
    if (cuda->error_name(rc, &name) || !name)
        name = "unknown error";
    if (cuda->error_string(rc, &text) || !text)
        text = "no text";
    return gv_error_set(err, "%s: %s (%d, %s)", what, name, rc, text);
}

int gv_cuda_is_fatal(gv_cu_result rc)
{
    return rc == GV_CU_ECC_UNCORRECTABLE || rc == 46 /* device unavailable */ || rc == 700 ||
           rc == 702 || rc == 709 || rc == 710 || rc == 999 || (rc >= 714 && rc <= 719);
}

static int no_device(gv_cu_result rc, const struct gv_cuda *cuda, struct gv_error *err)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    char closed[400];
    if (gv_device_file_closed(closed, sizeof(closed)))
        return gv_error_set(
            err, "%s. Run as a user who may use the GPUs; in a container give it them (--gpus all)",
            closed);
    if (visible)
        return gv_error_set(
            err,
            "no GPU is visible with CUDA_VISIBLE_DEVICES=\"%s\": unset it, or list GPUs that "
            "exist (nvidia-smi -L)",
            visible);
    if (rc && rc != GV_CU_NO_DEVICE)
        return gv_cuda_fail(cuda, rc, err, "the CUDA driver does not start (cuInit)");
    return gv_error_set(err, "the CUDA driver finds no GPU: see nvidia-smi -L");
}

int gv_cuda_open(struct gv_cuda *out, const char *path, struct gv_error *err)
{
    setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
    /* Ranks of one ring on one device wait for each other: no two streams may share a queue. */
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    /* Loading a kernel at its first launch can wait for the kernels that run, such as our gates. */
    setenv("CUDA_MODULE_LOADING", "EAGER", 1);
    return gv_cuda_load(out, path, err);
}

int gv_cuda_load(struct gv_cuda *out, const char *path, struct gv_error *err)
{
    struct gv_cuda cuda = {0};
    const char *name = path ? path : "libcuda.so.1";
    int count = 0;

    cuda.library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!cuda.library)
        return gv_error_set(
            err,
            "no CUDA driver (%s): install the NVIDIA driver, in a container mount it "
            "(--gpus all)",
            dlerror());
    if (fill(&cuda, name, err))
        return -1;
    gv_cu_result rc = cuda.driver_version(&cuda.version);
    if (!rc && cuda.version < GV_CUDA_OLDEST)
        return gv_error_set(
            err, "the driver knows CUDA %d.%d only: install one with CUDA %d.%d or newer",
            cuda.version / 1000, cuda.version % 1000 / 10, GV_CUDA_OLDEST / 1000,
            GV_CUDA_OLDEST % 1000 / 10);
    rc = cuda.init(0);
    if (!rc)
        rc = cuda.device_count(&count);
    if (rc || !count)
        return no_device(rc, &cuda, err);
    *out = cuda;
    return 0;
}
