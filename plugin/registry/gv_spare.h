/* A few things of one size that are there when memory is not: what a rank needs to tell the others
 * that it has none. */
#ifndef GV_SPARE_H
#define GV_SPARE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define GV_SPARES 8

/* `room` is an array of GV_SPARES things of `size` bytes, all zero. */
struct gv_spares {
    void *room;
    size_t size;
    atomic_bool taken[GV_SPARES];
};

/* All zero; NULL where all are taken. Any thread. */
void *gv_spare_take(struct gv_spares *spares);

/* True if `thing` was one of them; else it is the caller's to free. */
bool gv_spare_give(struct gv_spares *spares, void *thing);

#endif
