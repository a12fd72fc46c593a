#include "profiler/collective/nccl_table.h"

#include <dlfcn.h>
#include <string.h>

static int
find(const char *symbol, void *function, size_t size, const char *path, struct gv_error *err)
{
    void *found = dlsym(RTLD_DEFAULT, symbol);
    if (!found)
        return gv_error_set(
            err, "%.300s has no %s: this is no NCCL of 2.19 or later", path, symbol);
    memcpy(function, &found, size);
    return 0;
}

int gv_nccl_open(struct gv_nccl_table *out, const char *path, struct gv_error *err)
{
    const char *name = path && *path ? path : "libnccl.so.2";
    memset(out, 0, sizeof(*out));
    if (!dlopen(name, RTLD_NOW | RTLD_GLOBAL))
        return gv_error_set(
            err, "NCCL cannot be opened: %.300s; name it with --nccl PATH", dlerror());
#define GV_X(field, symbol, args)                                                                  \
    if (find(symbol, &out->field, sizeof(out->field), name, err))                                  \
        return -1;
    GV_NCCL_FUNCTIONS(GV_X)
#undef GV_X
    if (find("ncclGetErrorString", &out->error_string, sizeof(void *), name, err) ||
        find("ncclGetLastError", &out->last_error, sizeof(void *), name, err))
        return -1;
    gv_nccl_result rc = out->get_version(&out->version);
    if (rc)
        return gv_nccl_fail(out, rc, "ncclGetVersion", err);
    if (out->version < GV_NCCL_OLDEST)
        return gv_error_set(
            err, "%.300s is NCCL %d.%d; 2.19 or later is needed", name, out->version / 10000,
            out->version / 100 % 100);
    return 0;
}

int gv_nccl_fail(
    const struct gv_nccl_table *nccl, gv_nccl_result rc, const char *what, struct gv_error *err)
{
    const char *last = nccl->last_error(NULL);
    const char *text = nccl->error_string(rc);
    if (!last || !*last)
        return gv_error_set(err, "%s: %s", what, text);
    return gv_error_set(err, "%s: %s (%.*s)", what, text, (int)strcspn(last, "\n"), last);
}
