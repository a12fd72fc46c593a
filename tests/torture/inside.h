/* What the torture programs share that have the real plugin in them. */
#ifndef GV_TORTURE_INSIDE_H
#define GV_TORTURE_INSIDE_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/bench/drive.h"
#include "tests/bench/world.h"

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition);         \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static inline void *gv_inside_open(const char *path)
{
    void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!lib)
        fprintf(stderr, "%s\n", dlerror());
    MUST(lib);
    return lib;
}

static inline struct gv_drive_plugin gv_inside_slots(void *lib)
{
    struct gv_drive_plugin plugin = {
        dlsym(lib, "ncclEnvPlugin_v2"), dlsym(lib, "ncclNetPlugin_v11"),
        dlsym(lib, "ncclTunerPlugin_v5")};
    MUST(plugin.env && plugin.net && plugin.tuner);
    return plugin;
}

/* The build's plugin, in the world of the reference machine. */
static inline struct gv_drive_plugin gv_inside_begin(struct gv_world *world)
{
    char path[4096];
    gv_world_open(world, GV_WORLD_4028);
    gv_world_shipped("4028");
    setenv("NCCL_ENV_PLUGIN", "gv100", 1);
    snprintf(path, sizeof(path), "%s/%s", getenv("GV_LIB_DIR"), GV_WORLD_PLUGIN);
    struct gv_drive_plugin plugin = gv_inside_slots(gv_inside_open(path));
    MUST(!plugin.env->init(2, 28, 9, "", gv_world_logger));
    return plugin;
}

#endif
