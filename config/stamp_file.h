/* The stamp as it stands in its file: sets of pairs instead of a matrix. */
#ifndef GV_CONFIG_STAMP_FILE_H
#define GV_CONFIG_STAMP_FILE_H

#include "config/gv_stamp.h"
#include "config/schema.h"

struct gv_stamp_gpu {
    int index;
    char bus_id[20];
};

/* The state of every ordered pair of one of `from` and one of `to`. */
struct gv_stamp_pairs {
    gv_gpuset from, to;
    enum gv_p2p p2p;
};

struct gv_stamp_file {
    char host[65], boot_id[40], driver[32], date[32], tool[64];
    struct gv_stamp_gpu *gpus;
    int ngpus;
    struct gv_stamp_pairs *pairs;
    int npairs;
};

#endif
