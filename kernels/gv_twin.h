/* C twins of the kernels, for a driver that has no GPU: the same arguments, the same result in
 * memory, one block after the other. A twin is told how much of a large buffer to really move. */
#ifndef GV_TWIN_H
#define GV_TWIN_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/gv_kernel_args.h"

/* What a twin may do to the world. `wait` gives other kernels a turn until the word at `at` is at
 * least `value`; false after the timeout. */
struct gv_twin_env {
    unsigned grid, block;
    gv_u64 cap16; /* units of 16 bytes of a buffer that are really moved, from its beginning */
    void *world;
    void (*load)(struct gv_twin_env *env, gv_u64 at, void *to, size_t bytes);
    void (*store)(struct gv_twin_env *env, gv_u64 at, const void *from, size_t bytes);
    bool (*wait)(struct gv_twin_env *env, gv_u64 at, gv_u32 value, gv_u64 timeout_ns);
};

/* What a launch moves, for a clock. Launches with the same `couple` (not 0) are one piece of work
 * that begins when `couple_count` of them run. */
struct gv_twin_traffic {
    struct gv_twin_part {
        gv_u64 at;
        double bytes;
        bool write;
    } part[3];
    int nparts;
    gv_u64 couple;
    int couple_count;
    double hops; /* writes to part[0] that wait for each other */
    bool ring;
};

struct gv_twin {
    const char *name; /* of the kernel; the memory kernels' without "_u<U><c>" */
    size_t args_size;
    bool waits; /* for other kernels: it needs a stack of its own */
    void (*run)(struct gv_twin_env *env, const void *args);
    void (*traffic)(const void *args, struct gv_twin_traffic *out);
};

/* The twin of a kernel ("gv_copy_u4s"), or NULL. */
const struct gv_twin *gv_twin_find(const char *kernel);

/* Word w of unit i of the pattern, as in gv_device.h. */
gv_u32 gv_twin_pattern_word(gv_u64 i, gv_u32 w, gv_u32 seed);

#endif
