/* The table of probes, in the order in which they run. */
#include "profiler/probe/gv_calibration.h"

const struct gv_probe *const gv_probes[] = {
    &gv_probe_memory, &gv_probe_host,   &gv_probe_check,
    &gv_probe_paths,  &gv_probe_loaded, &gv_probe_ring,
    &gv_probe_beside, &gv_probe_groups, NULL,
};
