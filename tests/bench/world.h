/* The world in which the benchmarks run the real plugin: a machine that is not here, a profile for
 * it, a registry folder of its own, and an environment without the caller's NCCL_* and GV100_*. */
#ifndef GV_BENCH_WORLD_H
#define GV_BENCH_WORLD_H

#include "config/gv_profile.h"
#include "plugin/abi/gv_nccl_abi.h"

/* What ncclGetVersion says of the NCCL that the benchmarks play. */
#define GV_WORLD_NCCL 22809

enum gv_world_machine {
    GV_WORLD_4028, /* the reference machine of the testbench: 11 GPUs */
    GV_WORLD_64    /* a generated one: 16 switches of 4 GPUs under one CPU node */
};

struct gv_world {
    char dir[128]; /* in /dev/shm where that can be written, as the plugin's own registry */
};

/* One at a time. Makes the machine's sysfs tree and sets the environment: GV100_SYSFS,
 * GV100_SHM_DIR, GV100_ASSUME_VERIFIED, GV100_SINGLE_NODE, the GPUs of the testbench's libcuda.
 * Exits with a message where that fails: nothing can be measured then. Call it before the plugin is
 * opened. */
void gv_world_open(struct gv_world *world, enum gv_world_machine machine);

/* Writes the profile, names it in GV100_PROFILE, and frees it. Exits on failure. */
void gv_world_profile(const struct gv_world *world, struct gv_profile *profile);

/* Names a shipped profile in GV100_PROFILE. */
void gv_world_shipped(const char *name);

/* Removes the folder; the end of the process does so as well. */
void gv_world_close(struct gv_world *world);

/* The registry's folder. */
const char *gv_world_registry(void);

/* Opens a library of the build's (the plugin: "libnccl-tuner-gv100.so") and finds `symbol`; exits
 * on failure. Libraries are never closed. */
const void *gv_world_symbol(const char *library, const char *symbol);
#define GV_WORLD_PLUGIN "libnccl-tuner-gv100.so"

/* NCCL's logger. It lies in a library that also exports ncclGetVersion, as NCCL's does. Counts
 * warnings; with GV_BENCH_VERBOSE set all lines go to standard error. */
void gv_world_logger(
    int level, unsigned long flags, const char *file, int line, const char *fmt, ...);
int gv_world_warnings(void);

#endif
