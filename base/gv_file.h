/* Files read within bounds and replaced whole. */
#ifndef GV_FILE_H
#define GV_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/gv_error.h"

enum gv_file_trust {
    GV_FILE_ANY,    /* any regular file, through links too */
    GV_FILE_TRUSTED /* no link, owned by root or this user, writable for its owner alone */
};

/* Reads a regular file of at most `most` bytes; never blocks on a pipe or device. Returns a
 * terminated text for free() and its length, or NULL with `err`. */
char *gv_file_read(
    const char *path, enum gv_file_trust trust, size_t most, size_t *len, struct gv_error *err);

/* Reads the first line of a small file of sysfs or proc into `out` (blanks at its end dropped).
 * Returns 0, or -1 and `out` empty: not there, no regular file, longer than `size`. */
int gv_file_line(const char *path, char *out, size_t size);

/* Writes `path` whole or not at all: a temporary file beside it, fsync, rename. Missing folders are
 * made (0755). What is there and no regular file (a device, /dev/stdout, a pipe, a folder) is
 * refused: the rename would put a file in its place. Returns 0, or -1 with `err` and the old file
 * as it was. */
int gv_file_replace(
    const char *path, const char *text, size_t len, unsigned mode, struct gv_error *err);

/* Whether gv_file_replace could write `path`, tried by a temporary file beside it: to ask before
 * what is to be written takes minutes. Missing folders are made. Returns 0, or -1 with `err`. */
int gv_file_try_replace(const char *path, struct gv_error *err);

#endif
