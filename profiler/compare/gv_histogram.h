/* Which collectives a job calls, how often and how large. */
#ifndef GV_HISTOGRAM_H
#define GV_HISTOGRAM_H

#include "base/gv_error.h"
#include "config/gv_profile.h"

struct gv_histogram_row {
    enum gv_op op;
    uint64_t bytes; /* as nccl-tests counts them */
    double calls;
};

struct gv_histogram {
    struct gv_histogram_row *rows; /* by operation, then size; each once */
    int n;
    bool from_log;
};

/* Reads either a table, one "SIZE OPERATION CALLS" a line (blanks, commas or tabs; sizes as 64M;
 * '#' begins a comment), or an NCCL log with the calls in it (NCCL_DEBUG=INFO,
 * NCCL_DEBUG_SUBSYS=COLL; lines such as "AllReduce: opCount 5 sendbuff 0x.. count 1024 datatype 7",
 * releases 2.3 to 2.32), of which the first process is counted, since every rank logs the same.
 * Sends and receives are not counted. 0, or -1 with `err`. Release with gv_histogram_finish. */
int gv_histogram_read(const char *path, struct gv_histogram *out, struct gv_error *err);
void gv_histogram_finish(struct gv_histogram *h);

#endif
