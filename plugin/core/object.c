#include "plugin/core/gv_object.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>

const void *gv_object_of(const void *address)
{
    Dl_info info;
    return address && dladdr(address, &info) ? info.dli_fbase : NULL;
}

const void *gv_nccl_of(const void *address)
{
    Dl_info info;
    if (!address || !dladdr(address, &info) || !info.dli_fname)
        return NULL;
    void *object = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (!object)
        return NULL;
    bool itself = gv_object_of(dlsym(object, "pncclGetVersion")) == info.dli_fbase;
    dlclose(object);
    return itself ? info.dli_fbase : NULL;
}
