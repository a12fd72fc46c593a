/* What `gv100 place` was asked, and its results in the forms that it prints. */
#ifndef GV_CLI_PLACE_H
#define GV_CLI_PLACE_H

#include "profiler/cli/source.h"
#include "profiler/place/gv_place.h"

enum gv_place_form { GV_FORM_TEXT, GV_FORM_JSON, GV_FORM_ENV, GV_FORM_UUID, GV_FORM_GRES };

/* A list of jobs, one a line: NAME, then gpus=N, kind=KIND, memory=SIZE in any order ("--gpus N"
 * and
 * "--gpus=N" are taken, too); '#' begins a comment. Returns their number, or -1 with `err`. */
int gv_jobs_read(const char *path, struct gv_request out[GV_PLACE_JOBS], struct gv_error *err);

/* "24G" to MiB. 0 or -1 with `err`. */
int gv_memory_parse(const char *text, int *out_mib, struct gv_error *err);

/* The present allocation. */
struct gv_allocation {
    gv_gpuset gpus;          /* in the command's numbers */
    int number[GV_MAX_GPUS]; /* how CUDA_VISIBLE_DEVICES is to name each of them here */
    bool renumbered;         /* not as the machine does: a container, or devices kept apart */
};

/* From SLURM_STEP_GPUS, SLURM_JOB_GPUS (the machine's numbers) or NVIDIA_VISIBLE_DEVICES (a
 * container's; numbers or UUIDs), narrowed by CUDA_VISIBLE_DEVICES; all GPUs where nothing is set
 * or no machine is looked at. 0 or -1 with `err`. */
int gv_allocation_read(
    const struct gv_source *source, struct gv_allocation *out, struct gv_error *err);

/* Results. GPUs within `groups` are profile indexes; `free_gpus` is what they were taken from. */
void gv_place_print(
    const struct gv_source *source, const struct gv_place *place, const struct gv_request *request,
    const struct gv_group_place *groups, int n, gv_gpuset free_gpus);
void gv_place_print_jobs(
    const struct gv_source *source, const struct gv_place *place, const struct gv_request *jobs,
    const struct gv_group_place *groups, int n, gv_gpuset free_gpus);
json_t *gv_place_json(
    const struct gv_source *source, const struct gv_place *place, const struct gv_request *request,
    const struct gv_allocation *allocation, const struct gv_group_place *group,
    gv_gpuset free_gpus);
/* Lines for a shell. 0, or -1 with `err` where a UUID is not known. */
int gv_place_env(
    const struct gv_source *source, const struct gv_allocation *allocation, gv_gpuset gpus,
    bool by_uuid, const char *name, struct gv_error *err);
/* Lines for Slurm's gres.conf: every GPU with its type, and Links by NVLink and switch. */
void gv_place_gres(const struct gv_source *source, const struct gv_place *place);

#endif
