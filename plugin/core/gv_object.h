/* Which loaded object an address lies in: a process may hold several NCCLs. */
#ifndef GV_OBJECT_H
#define GV_OBJECT_H

/* The object that holds `address`, by its base; NULL where there is none. */
const void *gv_object_of(const void *address);

/* The same where that object is an NCCL itself (they all export pncclGetVersion), NULL where it is
 * something between the caller and NCCL, or cannot be told. */
const void *gv_nccl_of(const void *address);

#endif
