/* What `gv100 doctor` looks at, one function a step. Nothing here changes the host, and nothing
 * needs a GPU or NCCL to be there: what cannot be read is said to be unknown. */
#ifndef GV_DOCTOR_H
#define GV_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>

#include "base/gv_error.h"
#include "base/gv_gpuset.h"
#include "config/gv_machine.h"

/* The answer of one step. Only NO keeps a host from being ready. */
enum gv_step_verdict {
    GV_VERDICT_OK,
    GV_VERDICT_NOTE,    /* worth knowing, changes nothing */
    GV_VERDICT_WARN,    /* something of ours is not used, or may go wrong */
    GV_VERDICT_NO,      /* a job here would keep NCCL's default, or fail */
    GV_VERDICT_UNKNOWN, /* could not be read */
    GV_VERDICTS
};

/* One line of the result. `step` is a constant. `file` and `line`: where the cause stands. */
struct gv_finding {
    const char *step;
    enum gv_step_verdict verdict;
    char file[GV_ERROR_FILE];
    unsigned line;
    char text[512];
    char next[320]; /* what to do, "" where nothing is to be done */
};

/* In the order in which they were found. All zero is empty; released with gv_findings_finish. */
struct gv_findings {
    struct gv_finding *list;
    int n;
    bool failed; /* memory ran out: the list is not whole */
};

/* Adds one; `next` may be NULL. The result may be given a place; it lives until the next add, and
 * is never NULL. */
struct gv_finding *gv_finding_add(
    struct gv_findings *all, const char *step, enum gv_step_verdict verdict, const char *next,
    const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* The same from an error, its place included. */
void gv_finding_error(
    struct gv_findings *all, const char *step, enum gv_step_verdict verdict, const char *next,
    const struct gv_error *err);
bool gv_findings_ready(const struct gv_findings *all);
void gv_findings_finish(struct gv_findings *all);
const char *gv_verdict_name(enum gv_step_verdict v); /* "ok", "note", "warn", "no", "unknown" */

/* The folder below which etc, proc, run and dev/shm are read: $GV100_ROOT, else "". */
const char *gv_root(void);

/* A variable that a job would have, and who sets it. */
struct gv_variable {
    char name[64], value[1024];
    char file[GV_ERROR_FILE]; /* "" for the environment */
    unsigned line;
};

struct gv_variables {
    struct gv_variable *list;
    int n;
    bool failed;
};

/* The NCCL_* and GV100_* variables of the environment, then what NCCL adds from its conf files
 * where the environment is silent: $NCCL_CONF_FILE (2.23.4 and later), else ~/.nccl.conf; then
 * /etc/nccl.conf (src/misc/param.cc of 2.28.9). Conf files that cannot be read are findings. */
void gv_variables_read(struct gv_variables *out, struct gv_findings *findings);
const struct gv_variable *gv_variable_of(const struct gv_variables *all, const char *name);
void gv_variables_finish(struct gv_variables *all);

/* What each variable does to the plugin; files that they name are opened as NCCL would. `machine`
 * tells which GPUs are there. */
void gv_doctor_variables(
    const struct gv_variables *all, const struct gv_machine *machine, struct gv_findings *findings);

/* NCCL_GRAPH_FILE: a file that names a GPU which is not there fails the job (2.28.9: SystemError).
 * Device numbers are hexadecimal from 2.22.3 on. 0, or -1 with `err` (file and line). */
int gv_graph_file_check(const char *path, int ngpus, struct gv_error *err);

/* /dev/shm: room, and whether the registry's folder can be made there; RemoveIPC of logind. */
void gv_doctor_shared_memory(struct gv_findings *findings);
/* IOMMU translation and ACS redirection above the GPUs, from sysfs. */
void gv_doctor_pci(
    const char *sysfs, const struct gv_machine *machine, struct gv_findings *findings);

/* Which of the plugin's slots a NCCL release asks for: the newest version that both know, 0 where
 * the release has none. */
struct gv_slots {
    int tuner, net, env;
};
void gv_slots_of(int nccl_version, struct gv_slots *out);

/* CUDA's own numbering and its P2P, in the environment as it is. */
struct gv_cuda_view {
    int n;
    char bus_id[GV_MAX_GPUS][20]; /* by CUDA's ordinal */
    gv_gpuset peers[GV_MAX_GPUS]; /* cuDeviceCanAccessPeer, by ordinal */
};

/* Run in a child of their own, since a broken driver or library may end or hang the process. Both
 * print lines that start with "gv100-probe " to standard output and return an exit status. */
/* Opens the libnccl.so.2 at `path` and calls ncclGetUniqueId: NCCL 2.28.7 and later then loads its
 * env plugin, without any GPU. Says whether `plugin` is in the process, and whether it answers
 * getenv. */
int gv_probe_nccl(const char *path, const char *plugin);
/* Opens the driver (libcuda.so.1) and lists its devices. */
int gv_probe_cuda(void);

/* What a probe printed: the text after "gv100-probe KEY ", or NULL. `out` is filled. */
const char *gv_probe_answer(const char *output, const char *key, char *out, size_t size);
/* Reads gv_probe_cuda's lines. */
void gv_probe_cuda_read(const char *output, struct gv_cuda_view *out);

#endif
