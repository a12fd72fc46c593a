/* Plays the ranks of a communicator as threads: the plugin's calls in the order in which NCCL 2.28
 * makes them, a barrier where NCCL gathers, and none of NCCL's own work. */
#ifndef GV_BENCH_DRIVE_H
#define GV_BENCH_DRIVE_H

#include "base/gv_gpuset.h"
#include "plugin/abi/gv_nccl_abi.h"

enum gv_drive_phase {
    GV_DRIVE_NET,      /* net init, devices, getProperties, finalize */
    GV_DRIVE_LOOKUP,   /* NCCL_TOPO_FILE, NCCL_GRAPH_FILE and what is asked around them */
    GV_DRIVE_TUNER,    /* tuner init */
    GV_DRIVE_FINALIZE, /* tuner finalize */
    GV_DRIVE_PHASES
};

/* The slots that are called. */
struct gv_drive_plugin {
    const struct gv_env_v2 *env;
    const struct gv_net_v11 *net;
    const struct gv_tuner_v5 *tuner;
};

/* Slots that do nothing: what is measured with them is the barriers' cost. */
struct gv_drive_plugin gv_drive_nothing(void);
/* The real library's. */
struct gv_drive_plugin gv_drive_real(void);

struct gv_drive_result {
    double wall_us[GV_DRIVE_PHASES]; /* first rank's begin to the last one's end, added up */
    double cpu_us, cpu_max_us; /* processor time of a rank inside the calls: median, largest */
    int files;                 /* ranks that were answered with a topology file */
    int contexts;              /* ranks whose tuner holds a context */
};

struct gv_drive; /* threads that wait for the next communicator */

/* Exits where threads cannot be had. */
struct gv_drive *gv_drive_new(int nranks);
void gv_drive_free(struct gv_drive *drive);

/* One communicator from net init to finalize. `gpus[nranks]` are CUDA ordinals. `first` adds the
 * look-ups that NCCL makes once for a process. */
struct gv_drive_result gv_drive_communicator(
    struct gv_drive *drive, const struct gv_drive_plugin *plugin, uint64_t id, const int *gpus,
    bool first);

#endif
