#include "plugin/abi/preload_real.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "plugin/abi/gv_nccl_abi.h"
#include "plugin/abi/gv_slots.h"
#include "plugin/core/gv_object.h"

/* Whether `function` is an interposed one: this library's, or that of a second copy of it which is
 * preloaded as well. Only we export an env plugin of this name beside NCCL's calls. */
static bool is_ours(const void *function)
{
    Dl_info info, theirs;
    if (!dladdr(function, &info) || !info.dli_fname)
        return false;
    void *object = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (!object)
        return false;
    const struct gv_env_v1 *env = dlsym(object, "ncclEnvPlugin_v1");
    bool ours = env && dladdr(env, &theirs) && theirs.dli_fbase == info.dli_fbase &&
                !strcmp(env->name, ncclEnvPlugin_v1.name);
    dlclose(object);
    return ours;
}

/* dlsym in the scope of one loaded object. For the program itself that scope is the global one,
 * where this library comes first: then it is not what we look for. */
static void *in_scope_of(const char *file, const char *name)
{
    void *object = dlopen(file, RTLD_LAZY | RTLD_NOLOAD);
    if (!object)
        return NULL;
    void *function = dlsym(object, name);
    dlclose(object);
    return function && !is_ours(function) ? function : NULL;
}

/* The same in the scope of the object that holds `caller`. */
static void *in_own_scope(const void *caller, const char *name)
{
    Dl_info info;
    if (!dladdr(caller, &info) || !info.dli_fname)
        return NULL;
    return in_scope_of(info.dli_fname, name);
}

void *gv_real(const char *name, const void *caller)
{
    void *next = dlsym(RTLD_NEXT, name); /* may be a second copy of this library, which goes on */
    void *own = in_own_scope(caller, name);
    if (own && next && own != next && (is_ours(next) || gv_bound_to(caller, gv_object_of(own))))
        return own;
    if (next || own)
        return next ? next : own;
    return in_scope_of("libnccl.so.2", name);
}
