/* The doctor's steps that follow a job: its NCCLs, the plugin in them, the profile, the proof. */
#ifndef GV_CLI_DOCTOR_JOB_H
#define GV_CLI_DOCTOR_JOB_H

#include "profiler/cli/nccl.h"
#include "profiler/cli/setting.h"
#include "profiler/cli/source.h"
#include "profiler/doctor/gv_doctor.h"

/* What was found in one libnccl.so.2. */
struct gv_job_nccl {
    struct gv_nccl nccl;
    struct gv_slots slots;
    unsigned settings; /* bits of gv_settings */
    int loaded;        /* 1: seen in the process, 0: not, -1: could not be tried */
};

struct gv_job {
    struct gv_job_nccl list[GV_NCCL_MAX]; /* the likeliest first */
    int n;
    char plugin[PATH_MAX];     /* "" where there is none */
    struct gv_source *source;  /* NULL where no profile fits */
    struct gv_machine machine; /* no GPU where sysfs could not be read */
    struct gv_findings findings;
    struct gv_variables variables;
};

/* Goes through all of it. `command` (what the job starts) and `nccl` (a release or a path) may be
 * NULL. `self_name` is "doctor": how this program starts its children. */
void gv_job_look(struct gv_job *job, const char *command, const char *nccl, const char *self_name);
void gv_job_finish(struct gv_job *job);

#endif
