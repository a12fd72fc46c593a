#include "profiler/gpu/gv_nvml.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

struct symbol {
    const char *name;
    size_t offset;
};

static const struct symbol symbols[] = {
#define GV_X(field, symbol, args) {symbol, offsetof(struct gv_nvml, field)},
    GV_NVML_FUNCTIONS(GV_X)
#undef GV_X
};

void gv_nvml_open(struct gv_nvml *out, const char *path, struct gv_error *why)
{
    struct gv_nvml nvml = {0};
    *out = nvml;
    nvml.library = dlopen(path ? path : "libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!nvml.library) {
        gv_error_set(why, "no NVML (%s)", dlerror());
        return;
    }
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        void *found = dlsym(nvml.library, symbols[i].name);
        memcpy((char *)&nvml + symbols[i].offset, &found, sizeof(found));
    }
    int rc = nvml.init ? nvml.init() : -1;
    if (rc) {
        gv_error_set(why, "NVML does not start (nvmlInit_v2 returned %d)", rc);
        dlclose(nvml.library);
        return;
    }
    *out = nvml;
}

void gv_nvml_close(struct gv_nvml *nvml)
{
    if (!nvml->library)
        return;
    GV_NVML_CALL(nvml, shutdown);
    *nvml = (struct gv_nvml){0};
}

const char *gv_nvml_throttle_text(unsigned long long reasons, char *out, unsigned long size)
{
    static const struct {
        unsigned long long bit;
        const char *name;
    } names[] = {
        {0x4, "power cap"},
        {0x8, "hardware slowdown"},
        {0x20, "software thermal slowdown"},
        {0x40, "hardware thermal slowdown"},
        {0x80, "power brake"},
    };
    snprintf(out, size, "%s", reasons & GV_NVML_THROTTLED ? "" : "none");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        size_t used = strlen(out);
        if (reasons & names[i].bit)
            snprintf(out + used, size - used, "%s%s", used ? ", " : "", names[i].name);
    }
    return out;
}
