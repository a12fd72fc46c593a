#include "plugin/abi/gv_release.h"

#include <dlfcn.h>
#include <stddef.h>

/* Written by the env slot's init, before that NCCL has any communicator. */
atomic_int gv_release_env, gv_release_envs;

int gv_release_of(const void *address)
{
    Dl_info info;
    if (!address || !dladdr(address, &info) || !info.dli_fname)
        return 0;
    void *object = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (!object)
        return 0;
    int (*get_version)(int *) = (int (*)(int *))dlsym(object, "ncclGetVersion");
    int version = 0;
    if (!get_version || get_version(&version))
        version = 0;
    dlclose(object);
    return version;
}
