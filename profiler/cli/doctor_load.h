/* The doctor's steps that open other people's libraries, each in a child with a bound on its time.
 */
#ifndef GV_CLI_DOCTOR_LOAD_H
#define GV_CLI_DOCTOR_LOAD_H

#include "profiler/cli/doctor_job.h"

/* Loads each NCCL that was found as a job would under `gv100 run`, and looks whether the plugin is
 * in that process. */
void gv_job_load(struct gv_job *job, const char *self_name);

/* CUDA's numbering of the GPUs against the machine's, and the P2P that the driver offers. */
void gv_job_cuda(struct gv_job *job, const char *self_name);

/* The child's side. Returns its exit status. `settings`: bits to set before the program starts
 * itself anew; -1: they are set. */
int gv_job_child_nccl(const char *path, int settings, const char *self_name);

#endif
