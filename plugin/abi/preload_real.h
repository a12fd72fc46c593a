/* Private to the preload: NCCL's own functions behind the interposed ones. */
#ifndef GV_PRELOAD_REAL_H
#define GV_PRELOAD_REAL_H

#include <stdbool.h>

/* The function `name` of the NCCL that the other calls of `caller` (an address inside the calling
 * object) go to: as the loader would have bound it without this library, that is the global scope
 * behind us, then the object and what it needs; where both have one, the NCCL that the loader has
 * bound calls of this object to. Last, a libnccl.so.2 that is loaded. NULL where there is none. */
void *gv_real(const char *name, const void *caller);

/* Whether a reference of the object that holds `caller` to a function of NCCL is bound into the
 * object at `base`. */
bool gv_bound_to(const void *caller, const void *base);

#endif
