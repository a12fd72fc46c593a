/* The memory kernels with hints that compute_70 does not know: nothing stays in L1, and a miss brings
 * 256 bytes into L2. A module of its own, tried on GPUs that can. */
#define GV_HINTS
#include "kernels/memory.cu"
