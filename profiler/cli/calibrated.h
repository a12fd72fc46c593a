/* What a calibration leaves: the profile's file and its partial one, and the reports. */
#ifndef GV_CLI_CALIBRATED_H
#define GV_CLI_CALIBRATED_H

#include <limits.h>

#include "profiler/cli/cli.h"
#include "profiler/probe/gv_calibration.h"

struct gv_files {
    char path[PATH_MAX], partial[PATH_MAX];
    double saved_s; /* when the partial file was last written */
    bool has_partial;
};

/* `out` may be NULL: HOST.yaml in this folder. Fails at once where the folder cannot be written to,
 * so that no machine is measured for nothing. */
int gv_files_init(struct gv_files *files, const char *out, const char *host, struct gv_error *err);
int gv_files_resume(struct gv_files *files, struct gv_calibration *cal, struct gv_error *err);
/* For gv_calibration_run: writes the partial file, at most every few seconds. Never fails. */
int gv_files_save(void *files, struct gv_calibration *cal);
/* Writes the profile and removes the partial file. */
int gv_files_done(struct gv_files *files, struct gv_calibration *cal, struct gv_error *err);
/* After a failure: writes the partial file and says on stderr how to go on. */
void gv_files_kept(struct gv_files *files, struct gv_calibration *cal);

/* The plan with its times. Returns the exit status. */
int gv_plan_print(const struct gv_command *cmd, const struct gv_calibration *cal, bool json);
/* What was measured, in short; `gv100 show` has all of it. Returns the exit status. */
int gv_calibrated_print(
    const struct gv_command *cmd, const struct gv_calibration *cal, const char *path,
    double seconds, bool json);

#endif
