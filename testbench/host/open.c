/* Which libraries NCCL opens for a plugin, in which order and how. */
#include <dlfcn.h>
#include <link.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testbench/host/engine.h"

static const char *const prefix[GVH_LIBS] = {
    "libnccl-net", "libnccl-tuner", "libnccl-profiler", "libnccl-env"};
static const char *const title[GVH_LIBS] = {"NET", "TUNER", "PROFILER", "ENV"};

static struct {
    char *name, *path;
    void *handle;
} libs[GVH_LIBS];

static char *path_of(void *handle)
{
    struct link_map *map;
    return dlinfo(handle, RTLD_DI_LINKMAP, &map) ? NULL : strdup(map->l_name);
}

void *gvh_open_name(enum gvh_slot_kind kind, const char *name)
{
    char cut[255];
    int flags = gvh_release()->now || kind == GVH_LIB_NET ? RTLD_NOW : RTLD_LAZY;

    if (!name || !*name)
        return NULL;
    snprintf(cut, sizeof(cut), "%s", name);
    gvh_trace("dlopen %s %s", cut, flags == RTLD_NOW ? "NOW" : "LAZY");
    void *handle = dlopen(cut, flags | RTLD_LOCAL);
    if (!handle) {
        const char *why = dlerror();
        bool absent = strstr(why, "No such file or directory");
        GVH_INFO(
            "%s/Plugin: %s%s", title[kind], absent ? "Could not find: " : "", absent ? cut : why);
        return NULL;
    }
    free(libs[kind].name);
    free(libs[kind].path);
    libs[kind].name = strdup(cut);
    libs[kind].path = path_of(handle);
    libs[kind].handle = handle;
    return handle;
}

static bool is_lib(const char *name)
{
    size_t n = strlen(name);
    return !strncmp(name, "lib", 3) && n >= 3 && !strcmp(name + n - 3, ".so");
}

void *gvh_open(enum gvh_slot_kind kind, const char *value, enum gvh_naming naming)
{
    char prefixed[PATH_MAX];
    bool set = value && *value;
    void *handle = NULL;

    if (!set && naming == GVH_NAME_LITERAL)
        return NULL;
    if (!set) {
        snprintf(prefixed, sizeof(prefixed), "%s.so", prefix[kind]);
        return gvh_open_name(kind, prefixed);
    }
    snprintf(prefixed, sizeof(prefixed), "%s-%s.so", prefix[kind], value);
    switch (naming) {
    case GVH_NAME_LITERAL:
        return gvh_open_name(kind, value);
    case GVH_NAME_PREFIX:
        return gvh_open_name(kind, prefixed);
    case GVH_NAME_LIB:
        return gvh_open_name(kind, is_lib(value) ? value : prefixed);
    case GVH_NAME_BOTH:
        handle = gvh_open_name(kind, value);
        return handle ? handle : gvh_open_name(kind, prefixed);
    case GVH_NAME_PATHS:
        handle = gvh_open_name(kind, value);
        if (!handle && !strchr(value, '/') && !is_lib(value))
            handle = gvh_open_name(kind, prefixed);
    }
    return handle;
}

const char *gvh_open_path(enum gvh_slot_kind kind)
{
    return libs[kind].path ? libs[kind].path : libs[kind].name;
}

void *gvh_reopen_net(void)
{
    return libs[GVH_LIB_NET].name ? gvh_open_name(GVH_LIB_TUNER, libs[GVH_LIB_NET].name) : NULL;
}

void gvh_close(enum gvh_slot_kind kind, void *handle)
{
    if (!handle || libs[kind].handle != handle)
        return;
    gvh_trace("dlclose %s", libs[kind].name);
    dlclose(handle);
    free(libs[kind].name);
    free(libs[kind].path);
    libs[kind].name = libs[kind].path = NULL;
    libs[kind].handle = NULL;
}

void *gvh_symbol(void *handle, const char *name)
{
    void *symbol = dlsym(handle, name);
    gvh_trace("dlsym %s %s", name, symbol ? "yes" : "no");
    return symbol;
}
