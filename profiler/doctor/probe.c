/* The parts of the doctor that open other people's libraries: run in children. */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/doctor/gv_doctor.h"

#define MARK "gv100-probe "

static bool same_file(const char *a, const char *b)
{
    char x[PATH_MAX], y[PATH_MAX];
    return realpath(a, x) && realpath(b, y) && !strcmp(x, y);
}

/* Whether getenv, as any library here would find it, is the plugin's. */
static bool answers_getenv(const char *plugin)
{
    Dl_info info;
    void *function = dlsym(RTLD_DEFAULT, "getenv");
    return function && dladdr(function, &info) && info.dli_fname &&
           same_file(info.dli_fname, plugin);
}

static bool is_loaded(const char *plugin)
{
    void *there = dlopen(plugin, RTLD_LAZY | RTLD_NOLOAD);
    if (there)
        dlclose(there);
    return there != NULL;
}

int gv_probe_nccl(const char *path, const char *plugin)
{
    void *nccl = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!nccl) {
        printf(MARK "error %s\n", dlerror());
        return 1;
    }
    int (*version)(int *) = (int (*)(int *))dlsym(nccl, "ncclGetVersion");
    int (*unique)(char *) = (int (*)(char *))dlsym(nccl, "ncclGetUniqueId");
    int number = 0;
    char id[128];
    if (!version || !unique || version(&number)) {
        printf(MARK "error it is no NCCL: ncclGetVersion or ncclGetUniqueId is missing\n");
        return 1;
    }
    printf(MARK "version %d\n", number);
    printf(MARK "result %d\n", unique(id));
    printf(MARK "loaded %d\n", is_loaded(plugin));
    printf(MARK "getenv %d\n", answers_getenv(plugin));
    return 0;
}

/* The driver's functions by name, so that only what is used must be there. */
struct driver {
    int (*init)(unsigned);
    int (*count)(int *);
    int (*get)(int *, int);
    int (*bus_id)(char *, int, int);
    int (*peer)(int *, int, int);
};

static int open_driver(struct driver *d)
{
    void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!lib) {
        printf(MARK "error %s\n", dlerror());
        return -1;
    }
    d->init = (int (*)(unsigned))dlsym(lib, "cuInit");
    d->count = (int (*)(int *))dlsym(lib, "cuDeviceGetCount");
    d->get = (int (*)(int *, int))dlsym(lib, "cuDeviceGet");
    d->bus_id = (int (*)(char *, int, int))dlsym(lib, "cuDeviceGetPCIBusId");
    d->peer = (int (*)(int *, int, int))dlsym(lib, "cuDeviceCanAccessPeer");
    if (d->init && d->count && d->get && d->bus_id && d->peer)
        return 0;
    puts(MARK "error libcuda.so.1 is no CUDA driver");
    return -1;
}

int gv_probe_cuda(void)
{
    struct driver d;
    int n = 0, device[GV_MAX_GPUS], can;
    char bus_id[32];
    if (open_driver(&d))
        return 1;
    int rc = d.init(0);
    if (rc || (rc = d.count(&n))) {
        printf(MARK "error the driver does not start: CUDA error %d\n", rc);
        return 1;
    }
    n = n < GV_MAX_GPUS ? n : GV_MAX_GPUS;
    for (int i = 0; i < n; i++)
        if (!d.get(&device[i], i) && !d.bus_id(bus_id, sizeof(bus_id), device[i]))
            printf(MARK "gpu %d %s\n", i, bus_id);
    for (int a = 0; a < n; a++)
        for (int b = 0; b < n; b++)
            if (a != b && !d.peer(&can, device[a], device[b]) && can)
                printf(MARK "peer %d %d\n", a, b);
    return 0;
}

const char *gv_probe_answer(const char *output, const char *key, char *out, size_t size)
{
    char mark[64];
    snprintf(mark, sizeof(mark), MARK "%s ", key);
    const char *hit = output ? strstr(output, mark) : NULL;
    if (!hit)
        return NULL;
    hit += strlen(mark);
    snprintf(out, size, "%.*s", (int)strcspn(hit, "\n"), hit);
    return out;
}

static void read_line(const char *line, struct gv_cuda_view *out)
{
    int a, b;
    unsigned domain, bus, device, function;
    if (sscanf(line, MARK "gpu %d %x:%x:%x.%x", &a, &domain, &bus, &device, &function) == 5 &&
        a >= 0 && a < GV_MAX_GPUS) {
        snprintf(
            out->bus_id[a], sizeof(out->bus_id[a]), "%04x:%02x:%02x.%x", domain & 0xffffff,
            bus & 0xff, device & 0x1f, function & 7);
        out->n = a + 1;
    }
    if (sscanf(line, MARK "peer %d %d", &a, &b) == 2 && a >= 0 && a < GV_MAX_GPUS && b >= 0 &&
        b < GV_MAX_GPUS)
        out->peers[a] |= GV_GPU_BIT(b);
}

void gv_probe_cuda_read(const char *output, struct gv_cuda_view *out)
{
    memset(out, 0, sizeof(*out));
    for (const char *p = output; p && *p;) {
        read_line(p, out);
        p += strcspn(p, "\n");
        p += *p == '\n';
    }
}
