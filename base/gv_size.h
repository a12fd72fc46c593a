/* Sizes as nccl-tests reads and writes them: K, M, G, T are powers of 1024. */
#ifndef GV_SIZE_H
#define GV_SIZE_H

#include <stddef.h>
#include <stdint.h>

#include "base/gv_error.h"

/* Reads "1M", "320M", "8", "1.5G" (suffix in either case, an optional trailing B or iB). Returns 0,
 * or -1 with `err` set. */
int gv_size_parse(const char *text, uint64_t *out_bytes, struct gv_error *err);

/* Writes the shortest exact form ("1G", "512K", "1000"). Returns `out`. */
const char *gv_size_format(uint64_t bytes, char *out, size_t out_size);

#endif
