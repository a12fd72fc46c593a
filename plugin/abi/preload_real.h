/* Private to the preload: NCCL's own functions behind the interposed ones. */
#ifndef GV_PRELOAD_REAL_H
#define GV_PRELOAD_REAL_H

/* The function `name` of the NCCL that `caller` (an address inside the calling object) is linked
 * with: looked for in the caller's own object and what it needs, then behind this library, then in
 * a libnccl.so.2 that is loaded. NULL where there is none. */
void *gv_real(const char *name, const void *caller);

#endif
