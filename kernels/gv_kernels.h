/* The kernels as the driver takes them. */
#ifndef GV_KERNELS_H
#define GV_KERNELS_H

#include "kernels/gv_kernel_args.h"

/* PTX of compute_70 with every kernel, terminated; the driver translates it for any later GPU. */
extern const char gv_kernels_ptx[];

/* The memory kernels with hints of compute_80 (variants "h"). A driver that refuses it loses
 * nothing else. */
extern const char gv_kernels80_ptx[];

/* "clang 14", "nvcc 12.4" or "kept in the repository": who made the PTX of this build. */
extern const char gv_kernels_compiler[];

/* Accesses of 16 bytes that a thread of gv_copy_u<U>p and its relatives keeps in flight. */
#define GV_UNROLLS                                                                                 \
    {                                                                                              \
        1, 2, 4, 8, 16                                                                             \
    }
#define GV_UNROLL_COUNT 5

#endif
