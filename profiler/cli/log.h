/* What `gv100 log` prints. */
#ifndef GV_CLI_LOG_H
#define GV_CLI_LOG_H

#include <jansson.h>

#include "config/gv_profile.h"
#include "profiler/log/gv_nccl_log.h"

struct gv_log_view {
    const char *path, *against_path; /* against_path NULL: one log alone */
    const struct gv_nlog *log, *against;
    const struct gv_profile *profile; /* NULL: no figures */
};

/* The profile's GPU of a rank: by PCI address, else by NVML index (PCI order); -1 where neither is
 * known or the profile has none. */
int gv_log_gpu(const struct gv_profile *profile, const struct gv_nlog_rank *rank);

/* One-way figure of an edge on its transport from the profile, NAN where there is none. */
double gv_log_edge_gbs(
    const struct gv_profile *profile, const struct gv_nlog_comm *comm,
    const struct gv_nlog_edge *edge);

/* The ring edge (any edge where no ring is known) with the lowest figure. One through host memory
 * that has none (*gbs NAN) counts as slower than those that have, as in `gv100 explain`. NULL where
 * nothing is known. */
const struct gv_nlog_edge *
gv_log_slowest(const struct gv_profile *profile, const struct gv_nlog_comm *comm, double *gbs);

/* "P2P", "SHM", "mixed", "unknown": over the ring's edges. */
const char *gv_log_transport(const struct gv_nlog_comm *comm);

/* "4 of 4 edges went from P2P to SHM"; "" where nothing moved. `out` holds 200 bytes. */
const char *gv_log_moved(const struct gv_nlog_change *change, char out[200]);

/* One sentence about the tuner. `out` holds 400 bytes. */
const char *gv_log_tuner(const struct gv_nlog *log, char out[400]);

void gv_log_text(const struct gv_log_view *view);
json_t *gv_log_json(const struct gv_log_view *view);

#endif
