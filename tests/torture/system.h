/* What the parts of gv-torture-system share: one world with the plugin in it, and communicators. */
#ifndef GV_TORTURE_SYSTEM_H
#define GV_TORTURE_SYSTEM_H

#include <stdint.h>

#include "tests/torture/inside.h"

enum { GV_SYSTEM_RANKS = 2, GV_SYSTEM_SKIPPED = 77, GV_SYSTEM_LATE_S = 4 };

/* Two GPUs of the world's machine: a pair with a plan. */
extern const int gv_system_gpus[GV_SYSTEM_RANKS];
/* The world and the plugin that gv_system_begin put into this process, one for all of it. */
extern struct gv_world gv_system_world;
extern struct gv_drive_plugin gv_system_plugin;

/* Opens the world; once, before anything else. main closes it. */
void gv_system_begin(void);
/* Seconds of the kernel's own clock, which nobody turns. */
double gv_system_now_s(void);
/* Makes `n` communicators of the pair, ids from `id` on: each has its plan's files, or it exits. */
void gv_system_commit(int n, uint64_t id);

/* Tried on the registry's folder: 0, or GV_SYSTEM_SKIPPED where the system does not let it. */
int gv_system_full(void);
int gv_system_stale(int n);
int gv_system_pids(void);

#endif
