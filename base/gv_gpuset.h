/* Sets of GPUs by index. A machine has 64 GPUs at most here, so a set is one word. */
#ifndef GV_GPUSET_H
#define GV_GPUSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/gv_error.h"

#define GV_MAX_GPUS 64

/* Bit i is GPU i. */
typedef uint64_t gv_gpuset;

#define GV_GPU_BIT(i) ((gv_gpuset)1 << (i))

static inline bool gv_gpuset_has(gv_gpuset set, int gpu)
{
    return gpu >= 0 && gpu < GV_MAX_GPUS && (set >> gpu & 1);
}

static inline int gv_gpuset_count(gv_gpuset set)
{
    return __builtin_popcountll(set);
}

/* The lowest GPU of the set, or -1 of the empty set. `set &= set - 1` drops it: the usual loop is
 * for (gv_gpuset rest = set; rest; rest &= rest - 1) { int gpu = gv_gpuset_first(rest); ... } */
static inline int gv_gpuset_first(gv_gpuset set)
{
    return set ? __builtin_ctzll(set) : -1;
}

/* Reads a list such as "0-5,7" in `text`; blanks around numbers are allowed. A GPU over 63, one
 * named twice, a range that runs backwards and an empty list are errors (column = where). Returns
 * 0, or -1 with `err` set and `*out` untouched. */
int gv_gpuset_parse(const char *text, gv_gpuset *out, struct gv_error *err);

/* The same, but the order in which the list names the GPUs is kept: `out` has room for GV_MAX_GPUS.
 * Returns their number, or -1 with `err` set. */
int gv_gpulist_parse(const char *text, int *out, struct gv_error *err);

/* Writes the set as "0-5,7" into `out` (256 bytes always suffice). Returns `out`. */
const char *gv_gpuset_format(gv_gpuset set, char *out, size_t out_size);

#endif
