/* The launch that a device's memory kernels are fastest with. */
#ifndef GV_GEOMETRY_H
#define GV_GEOMETRY_H

#include <stdio.h>

#include "profiler/probe/gv_meter.h"

struct gv_geometry {
    char kernel[32]; /* "gv_copy_u4s" */
    unsigned block, grid;
    bool chunked;    /* each block has one run of tiles */
    unsigned per_sm; /* blocks per multiprocessor; 0: one tile a block */
    double gbs;      /* at which it was chosen */
};

/* Finds the geometry for `what` ("copy", "read", "write", "triad"): every combination of unroll,
 * cache operator, block size, blocks per multiprocessor and order of tiles twice over `args` (the
 * buffers; several times the L2), then the best eight with all samples, the fastest median wins.
 * `bytes` is what one launch moves. `trace` (may be NULL) receives one line for each try. Returns
 * 0, or -1 with `err`.
 */
int gv_geometry_find(
    struct gv_meter *meter, int gpu, const char *what, const struct gv_memory_args *args,
    double bytes, struct gv_geometry *out, FILE *trace, struct gv_error *err);

/* The same kernel over other buffers. `grid` follows `n16` where it is one tile a block. */
int gv_geometry_work(
    struct gv_meter *meter, int gpu, int stream, const struct gv_geometry *geometry,
    const struct gv_memory_args *args, double bytes, struct gv_work *out, struct gv_error *err);

#endif
