/* The machine behind this NCCL, told to the host's engine by its environment, and the driver. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "testbench/vnccl/vnccl.h"

static struct gv_fabric fabric;
static bool known;

const struct gv_fabric *gvv_fabric(void)
{
    return known ? &fabric : NULL;
}

/* NCCL's own detection as a file that lives as long as the process. */
static void give_topology(void)
{
    struct gv_str xml = {0};
    char path[64];
    int fd = memfd_create("detected", MFD_CLOEXEC);
    gv_bench_machine_topology(&fabric.machine, &xml);
    if (fd >= 0 && !xml.failed && write(fd, xml.data, xml.len) == (ssize_t)xml.len) {
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        setenv("GV_HOST_XML", path, 1);
    }
    gv_str_free(&xml);
}

/* "libnccl.so.2.23.4" plays 2.23.4, so that two releases can be compared. */
static void take_release(void)
{
    Dl_info info;
    static const char here;
    const char *name = dladdr(&here, &info) && info.dli_fname ? strrchr(info.dli_fname, '/') : NULL;
    int major, minor, patch;
    if (name && sscanf(name, "/libnccl.so.%d.%d.%d", &major, &minor, &patch) == 3)
        setenv("GV_HOST_RELEASE", name + strlen("/libnccl.so."), 1);
}

/* Before the engine looks at its environment. */
__attribute__((constructor(101))) static void start(void)
{
    const char *machine = getenv("GV_VIRTUAL_MACHINE"), *work = getenv("GV100_WORK_DIR");
    struct gv_error err = {0};
    char text[64];
    if (!machine || gv_fabric_read(machine, &fabric, &err)) {
        fprintf(stderr, "virtual NCCL: %s\n", machine ? err.text : "GV_VIRTUAL_MACHINE is not set");
        return;
    }
    known = true;
    take_release();
    give_topology();
    snprintf(text, sizeof(text), "0x%lx", (unsigned long)gv_bench_machine_nop2p(&fabric.machine));
    setenv("GV_HOST_NOP2P", text, 1);
    if (work)
        setenv("GV_HOST_DIR", work, 0);
}

static struct {
    int (*get_device)(int *device);
    int (*retain)(void **ctx, int device);
    int (*set_ctx)(void *ctx);
    int (*pass)(void *stream, double us);
    double (*noise)(void);
    int (*corrupt)(int from, int to);
} driver;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void find(void *library, const char *symbol, void *out)
{
    void *found = dlsym(library, symbol);
    if (!found) {
        fprintf(stderr, "virtual NCCL: the driver has no %s: it is not the virtual one\n", symbol);
        abort();
    }
    memcpy(out, &found, sizeof(found));
}

static void find_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (!library)
        library = dlopen("libcuda.so.1", RTLD_LAZY);
    if (!library) {
        fprintf(stderr, "virtual NCCL: %s\n", dlerror());
        abort();
    }
    find(library, "cuCtxGetDevice", &driver.get_device);
    find(library, "cuDevicePrimaryCtxRetain", &driver.retain);
    find(library, "cuCtxSetCurrent", &driver.set_ctx);
    find(library, "gv_virtual_pass", &driver.pass);
    find(library, "gv_virtual_factor", &driver.noise);
    find(library, "gv_virtual_nccl_corrupt", &driver.corrupt);
}

/* A CUdevice of the virtual driver is the GPU's number in PCI order, whatever is visible; so is a
 * device here. */
void gvh_set_device(int device)
{
    void *ctx;
    pthread_once(&once, find_driver);
    if (!driver.retain(&ctx, device))
        driver.set_ctx(ctx);
}

int gvh_get_device(void)
{
    int device = 0;
    pthread_once(&once, find_driver);
    return driver.get_device(&device) ? 0 : device;
}

int gvh_gpu(int device)
{
    return device;
}

int gvv_pass(void *stream, double us)
{
    pthread_once(&once, find_driver);
    return driver.pass(stream, us);
}

double gvv_noise(void)
{
    pthread_once(&once, find_driver);
    return driver.noise();
}

bool gvv_corrupt(int from, int to)
{
    pthread_once(&once, find_driver);
    return driver.corrupt(from, to);
}
