/* Reading files that may be anything, without ever waiting. */
#ifndef GV_TOPOLOGY_FILE_H
#define GV_TOPOLOGY_FILE_H

#include <stddef.h>

#include "base/gv_error.h"
#include "base/gv_str.h"

/* The whole of a regular file of at most `most` bytes. 0, or -1 with `err`. */
int gv_tree_read_file(const char *path, size_t most, struct gv_str *out, struct gv_error *err);

/* The first line of a small file (sysfs), without its end; as much of it as fits. Length, or -1
 * with out[0] = 0 where it cannot be read. */
int gv_tree_read_line(const char *path, char *out, size_t out_size);

#endif
