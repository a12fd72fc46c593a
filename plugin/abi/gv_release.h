/* Which NCCL is calling. */
#ifndef GV_RELEASE_H
#define GV_RELEASE_H

#include <stdatomic.h>

/* Number as ncclGetVersion has it (22809), asked of the object that holds `address`; 0 where it
 * does not say. */
int gv_release_of(const void *address);

/* What the env slot was told at its last init (each NCCL of the process has one); 0 where it was not
 * used. */
extern atomic_int gv_release_env;

/* How many NCCLs have initialised the env slot. */
extern atomic_int gv_release_envs;

#endif
