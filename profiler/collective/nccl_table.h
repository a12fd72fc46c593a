/* The part of NCCL's public interface that is measured, as a table opened at run time. Types are
 * those of nccl.h, alike from 2.19 to 2.32. */
#ifndef GV_NCCL_TABLE_H
#define GV_NCCL_TABLE_H

#include <stddef.h>

#include "base/gv_error.h"

typedef struct gv_nccl_comm *gv_nccl_comm;
typedef int gv_nccl_result; /* 0 is success */

struct gv_nccl_id {
    char bytes[128];
};
_Static_assert(sizeof(struct gv_nccl_id) == 128, "ncclUniqueId");

/* X(field, symbol, arguments) */
#define GV_NCCL_FUNCTIONS(X)                                                                       \
    X(get_version, "ncclGetVersion", (int *version))                                               \
    X(get_id, "ncclGetUniqueId", (struct gv_nccl_id *))                                            \
    X(init_rank, "ncclCommInitRank", (gv_nccl_comm *, int nranks, struct gv_nccl_id id, int rank)) \
    X(destroy, "ncclCommDestroy", (gv_nccl_comm))                                                  \
    X(all_reduce, "ncclAllReduce",                                                                 \
      (const void *, void *, size_t count, int type, int op, gv_nccl_comm, void *stream))          \
    X(reduce, "ncclReduce",                                                                        \
      (const void *, void *, size_t count, int type, int op, int root, gv_nccl_comm,               \
       void *stream))                                                                              \
    X(broadcast, "ncclBroadcast",                                                                  \
      (const void *, void *, size_t count, int type, int root, gv_nccl_comm, void *stream))        \
    X(all_gather, "ncclAllGather",                                                                 \
      (const void *, void *, size_t count, int type, gv_nccl_comm, void *stream))                  \
    X(reduce_scatter, "ncclReduceScatter",                                                         \
      (const void *, void *, size_t count, int type, int op, gv_nccl_comm, void *stream))          \
    X(send, "ncclSend",                                                                            \
      (const void *, size_t count, int type, int peer, gv_nccl_comm, void *stream))                \
    X(recv, "ncclRecv", (void *, size_t count, int type, int peer, gv_nccl_comm, void *stream))    \
    X(group_start, "ncclGroupStart", (void))                                                       \
    X(group_end, "ncclGroupEnd", (void))

struct gv_nccl_table {
    int version;
    const char *(*error_string)(gv_nccl_result);
    const char *(*last_error)(gv_nccl_comm);
#define GV_X(field, symbol, args) gv_nccl_result(*field) args;
    GV_NCCL_FUNCTIONS(GV_X)
#undef GV_X
};

/* The oldest release with a tuner, and so with anything to be steered. */
#define GV_NCCL_OLDEST 21900

/* Opens `path` (NULL or "": what the loader finds as libnccl.so.2) for the whole process and looks
 * its functions up as a linked program would, so that interposed ones (LD_PRELOAD) come first. 0,
 * or -1 with `err`: not found, a symbol that is missing, a release before 2.19. */
int gv_nccl_open(struct gv_nccl_table *out, const char *path, struct gv_error *err);

/* Sets `err` to "what: NCCL's text (its last error)". Returns -1. */
int gv_nccl_fail(
    const struct gv_nccl_table *nccl, gv_nccl_result rc, const char *what, struct gv_error *err);

#endif
