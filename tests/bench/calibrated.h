/* The profile that `gv100 calibrate` would have made of a modelled machine: its own code chooses
 * the groups and variants and keeps the samples; only the figures come from the fabric. */
#ifndef GV_BENCH_CALIBRATED_H
#define GV_BENCH_CALIBRATED_H

#include "profiler/probe/gv_calibration.h"
#include "tests/bench/model.h"

/* NCCL itself is measured (AllReduce and AllToAll, plans as they would be applied), or, where there
 * is no NCCL, calibrate's own ring kernels (AllReduce alone). */
enum gv_measured_with { GV_WITH_NCCL, GV_WITH_OWN_RING };

/* Samples are off by up to that part, evenly. */
#define GV_MODEL_NOISE 0.005

struct gv_calibration *gv_calibrated_new(struct gv_model *model, enum gv_measured_with with);
/* Measures one more group. */
void gv_calibrated_add(
    struct gv_calibration *cal, const struct gv_model *model, gv_gpuset gpus,
    enum gv_measured_with with);
bool gv_calibrated_has(const struct gv_calibration *cal, gv_gpuset gpus);
/* Forgets the groups from number `ngroups` on. */
void gv_calibrated_cut(struct gv_calibration *cal, int ngroups);
void gv_calibrated_free(struct gv_calibration *cal);

#endif
