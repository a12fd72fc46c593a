/* Which NCCL a program would load, found without running any of it. */
#ifndef GV_CLI_NCCL_H
#define GV_CLI_NCCL_H

#include <limits.h>
#include <stdbool.h>

#include "base/gv_error.h"

/* One libnccl.so.2. `version` is numbered as NCCL does (22809 for 2.28.9), 0 where the file does
 * not tell. */
struct gv_nccl {
    char path[PATH_MAX];
    int version;
    char how[48]; /* how it was found: "named", "the program", "python3", "the loader" */
};

#define GV_NCCL_MAX 8

/* Reads the release out of the library's constants ("NCCL version 2.28.9+cuda13.0"), else out of
 * its file name (libnccl.so.2.28.9); nothing of it is executed. 0, or -1 with `err` where the file
 * is no NCCL of this machine's kind. `out->how` is left alone. */
int gv_nccl_read(const char *path, struct gv_nccl *out, struct gv_error *err);

/* The NCCLs that could be meant, the likeliest first, each file once: what `command` itself is
 * linked with or, where it is a Python program, that Python's own; then python3's; then the
 * loader's (LD_LIBRARY_PATH, ld.so.cache, system folders). `command` may be NULL. `*certain` says
 * that the first is the one which `command` uses. Returns their number (0: none). */
int gv_nccl_find(const char *command, struct gv_nccl out[GV_NCCL_MAX], bool *certain);

#endif
