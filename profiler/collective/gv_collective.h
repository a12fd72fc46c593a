/* NCCL itself, measured: one process (or thread) a GPU, libnccl opened at run time, the default and
 * forced variants in turn, each time in a new communicator, every result checked.
 *
 * A variant goes through the plugin's own mechanism (GV100_FORCE, plugin/core/gv_force.h), so what
 * is measured is what will be applied. */
#ifndef GV_COLLECTIVE_H
#define GV_COLLECTIVE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/gv_error.h"
#include "base/gv_gpuset.h"
#include "config/gv_profile.h"

/* Types and reductions by NCCL's own numbers (ncclDataType_t, ncclRedOp_t; 2.19 to 2.32). */
enum gv_type {
    GV_TYPE_INT8,
    GV_TYPE_UINT8,
    GV_TYPE_INT32,
    GV_TYPE_UINT32,
    GV_TYPE_INT64,
    GV_TYPE_UINT64,
    GV_TYPE_HALF,
    GV_TYPE_FLOAT,
    GV_TYPE_DOUBLE,
    GV_TYPE_BFLOAT16,
    GV_TYPE_COUNT
};
enum gv_redop {
    GV_REDOP_SUM,
    GV_REDOP_PROD,
    GV_REDOP_MAX,
    GV_REDOP_MIN,
    GV_REDOP_AVG,
    GV_REDOP_COUNT
};

/* Names as nccl-tests prints them ("int32", "half", "bfloat16"; "sum", "avg"); -1 for unknown. */
const char *gv_type_name(enum gv_type type);
int gv_type_from_name(const char *name);
int gv_type_bytes(enum gv_type type);
const char *gv_redop_name(enum gv_redop op);
int gv_redop_from_name(const char *name);
/* Whether the operation reduces (else nccl-tests prints "none"). */
bool gv_op_reduces(enum gv_op op);

/* How NCCL is steered. */
struct gv_steer {
    char name[272];  /* "default", "tuned", a plan whole, ...; for reports */
    char force[256]; /* GV100_FORCE ("default", "lend 4-5 8-0 algorithm=RING"); "": the plugin
                        decides by the profile, as in a job */
};

/* One thing to be measured. `bytes` as nccl-tests counts them (gv_busbw.h). */
struct gv_case {
    enum gv_op op;
    uint64_t bytes;
    enum gv_type type;
    enum gv_redop redop;
    bool in_place;
};

#define GV_MAX_REPEATS 64
#define GV_MAX_STEERS 16
#define GV_MAX_CASES 256

struct gv_collective_options {
    const char *self;    /* the program that is the worker: SELF compare --worker */
    const char *nccl;    /* libnccl.so.2 (a path); NULL: the loader's */
    int nccl_version;    /* 22809; 0: not known (then the plugin is handed over both ways) */
    const char *plugin;  /* libnccl-tuner-gv100.so */
    const char *profile; /* the file that the plugin reads, GV100_PROFILE; NULL: its own search */
    const char *cuda, *nvml; /* NULL: the system's */
    bool threads;            /* one process, a thread for each GPU */
    bool unlike_hosts;       /* every worker a NCCL_HOSTID of its own: several ranks on one GPU */
    int repeats;             /* communicators for each variant; at least 5 (3 for a quick look) */
    int iterations;          /* timed calls for a sample; 0: by size, 3 to 50 */
    double timeout_s;        /* for one step of the workers; 0: 60 s and what the size may need */
    size_t check_bytes;      /* of each buffer, at both its ends; 0: every byte */
    bool virtual_driver;     /* the virtual driver's clock: few iterations are enough */
    const volatile sig_atomic_t *stop;
    struct gv_collective_session *session; /* workers that are there; NULL: own ones */
    /* Before each communicator; `done` of `all`. May be NULL. */
    void (*progress)(void *data, const char *what, int done, int all);
    void *progress_data;
};

/* The samples of one case under one variant, one a communicator, in the order they were taken. */
struct gv_cell {
    int count;
    double time_us[GV_MAX_REPEATS]; /* warm: mean of a sample's calls, averaged over ranks */
    double
        first_us[GV_MAX_REPEATS]; /* cold: the communicator's first call of this case, host time */
    bool throttled[GV_MAX_REPEATS];
    uint64_t wrong;  /* elements, over all samples and ranks */
    double bound;    /* the largest error that was allowed, relative; 0: to the bit */
    char error[320]; /* why there are no (more) samples; "" */
};

/* What NCCL said of a communicator, in GPU numbers of the caller. */
struct gv_wiring {
    int ring[GV_MAX_GPUS], nring; /* of channel 0; 0: not said */
    int channels;
    int nccl_version; /* of the NCCL that was measured, 22809 */
    struct gv_wire {
        int from, to;
        char transport[32]; /* as NCCL prints it: "P2P/IPC", "SHM/direct/direct", "NET/Socket/0" */
    } edge[GV_MAX_GPUS];    /* [nring], edge[i] from ring[i] */
    char decided[400];      /* what the plugin decided, its own sentence; "" */
    char plugin_transport[16];
};

/* Whether a transport's text means host memory ("SHM/direct/direct"; to NCCL 2.11 "direct shared
 * memory"). */
bool gv_transport_is_shm(const char *text);

struct gv_collective {
    int gpu[GV_MAX_GPUS], nranks; /* in rank order */
    int nccl_version;
    char nccl_path[512];
    struct gv_steer steer[GV_MAX_STEERS];
    int nsteers;
    struct gv_case cases[GV_MAX_CASES];
    int ncases;
    struct gv_wiring wiring[GV_MAX_STEERS];
    struct gv_cell *cell; /* [nsteers][ncases] */
};

static inline struct gv_cell *gv_cell_of(const struct gv_collective *c, int steer, int k)
{
    return &c->cell[steer * c->ncases + k];
}

/* Measures every case under every variant, variants in turn within each repeat. `gpus` are CUDA's
 * ordinals in PCI order (one may come twice with `unlike_hosts`), rank by rank. What fails for one
 * variant (a ninth peer, no memory) is told in its cells and the rest goes on. A rank that hangs or
 * dies ends that variant: its processes are killed, what they left in /dev/shm is removed, and the
 * cell's error names rank, GPU and last step. Returns 0; -1 with `err` where nothing can be
 * measured at all. Release with gv_collective_finish in both cases. */
int gv_collective_measure(
    const struct gv_collective_options *options, const int *gpus, int nranks,
    const struct gv_steer *steers, int nsteers, const struct gv_case *cases, int ncases,
    struct gv_collective *out, struct gv_error *err);
void gv_collective_finish(struct gv_collective *c);

/* Workers for several measurements over the same GPUs, so that they start once: `options` (copied)
 * as each of the measurements has them, buffers of `bytes` for the largest case. Put it into
 * gv_collective_options.session, close it after the last (NULL is fine). NULL with `err`. */
struct gv_collective_session *gv_collective_open(
    const struct gv_collective_options *options, const int *gpus, int nranks, uint64_t bytes,
    struct gv_error *err);
void gv_collective_close(struct gv_collective_session *session);

/* About how long a measurement takes on real GPUs, if NCCL reached that busbw; without the start of
 * its workers, which gv_collective_start_s has. For plans; no figure. */
double gv_collective_seconds(
    const struct gv_collective_options *options, int nranks, int nsteers,
    const struct gv_case *cases, int ncases, double busbw_gbs);
double gv_collective_start_s(void);

/* The environment of a program that is to run NCCL as our workers do, under `force` (GV100_FORCE):
 * the plugin brought in, its logs below `dir`, nothing of another steering. It counts only for a
 * direct child of this process. Malloc'ed with its texts, for gv_collective_environment_free; NULL:
 * out of memory. */
char **gv_collective_environment(
    const struct gv_collective_options *options, const char *dir, const char *force);
void gv_collective_environment_free(char **environment);

/* The worker's side of it: what `SELF compare --worker` calls. Returns an exit status. */
int gv_collective_worker(void);

/* For a profile -------------------------------------------------------------------------------- */

/* The variants worth measuring for these GPUs, by what `profile` knows of its pairs and by the
 * default ring in `base` (a measurement that holds "default" as its first variant; NULL: only the
 * default is returned, to be measured first): lent links on the ring edges that NCCL keeps on SHM
 * though P2P is verified; a bridge where at most 9 GPUs of one CPU node cross. Returns their
 * number, the default first. GPUs are profile indexes. */
int gv_collective_variants(
    const struct gv_profile *profile, const struct gv_collective *base, gv_gpuset gpus,
    struct gv_steer out[GV_MAX_STEERS]);

/* The cases of a group: AllReduce at three sizes with `quick`, else six; AllToAll at those up to
 * 128 MiB, which shows a loss as well; `most` bytes at most. Returns their number. */
int gv_collective_cases(bool quick, uint64_t most, struct gv_case out[GV_MAX_CASES]);

/* The plan that `edit` forces ("lend 4-5 5-0"; "": NCCL's default), by itself and with the
 * algorithms and protocols that a ring or a tree offers inside a host, and the sizes of AllReduce
 * at which the choice matters. What the release does not offer for a communicator stays its own
 * choice (a tuner cannot add it), and so measures as the default does. Each returns the number. */
int gv_collective_tunings(const char *edit, struct gv_steer out[GV_MAX_STEERS]);
int gv_collective_tuning_cases(struct gv_case out[GV_MAX_CASES]);

/* The measurement as groups of a profile (one for each operation and size, variants with their
 * samples, the default's ring and SHM edges), in malloc'ed memory as gv_profile_free frees it;
 * cells without samples are left out. Merged into `*groups`: a group that is there already gets
 * what is new as further variants and runs. 0, or -1: out of memory. */
int gv_collective_groups(
    const struct gv_collective *c, struct gv_profile_group **groups, int *ngroups);

#endif
