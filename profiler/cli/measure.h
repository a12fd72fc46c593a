/* What `calibrate` and `verify` share: opening a calibration, Ctrl-C, the progress bar. */
#ifndef GV_CLI_MEASURE_H
#define GV_CLI_MEASURE_H

#include "profiler/cli/cli.h"
#include "profiler/cli/virtual.h"
#include "profiler/probe/gv_calibration.h"

struct gv_measuring {
    struct gv_calibration_options options;
    struct gv_virtual virtual_files;
    char self[PATH_MAX];
    double started_s;
};

/* Fills the options that are the same for both: the program itself, the stand-ins of `machine` (may
 * be NULL), Ctrl-C, the progress bar on a terminal. 0, or -1 with `err`. */
int gv_measuring_init(struct gv_measuring *m, const char *machine, struct gv_error *err);
void gv_measuring_finish(struct gv_measuring *m);

/* Whether Ctrl-C was pressed. */
bool gv_measuring_stopped(void);
double gv_seconds(void);
/* "1m10s". Returns `out`. */
const char *gv_duration(double seconds, char out[24]);
/* Prints the calibration's warnings to stderr, each after "gv100 NAME: ". */
void gv_print_warnings(const struct gv_command *cmd, const struct gv_calibration *cal);
/* The warnings as a list. New reference. */
json_t *gv_json_warnings(const struct gv_calibration *cal);

#endif
