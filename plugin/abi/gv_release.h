/* Which NCCL is calling. */
#ifndef GV_RELEASE_H
#define GV_RELEASE_H

/* Number as ncclGetVersion has it (22809), asked of the object that holds `address`; 0 where it
 * does not say. */
int gv_release_of(const void *address);

/* What the env slot was told at its init; 0 where it was not used. */
extern int gv_release_env;

#endif
