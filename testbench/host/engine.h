/* Inside the stand-in libnccl.so.2: one communicator of one rank, and what the modules ask of each
 * other. Order of use: log, env, open, boot, net, tuner, topo, init, group, api. */
#ifndef GV_HOST_ENGINE_H
#define GV_HOST_ENGINE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "testbench/host/abi.h"
#include "testbench/host/boot.h"
#include "testbench/host/gv_host_nccl.h"
#include "testbench/host/release.h"

#define GVH_MAX_RANKS (GV_NCCL_MAX_GPUS * 8)

struct gvh_net; /* a loaded or built-in network */

/* Algorithms and protocols that NCCL_ALGO and NCCL_PROTO leave, one bit each. */
struct gvh_choice {
    unsigned algos, protos;
};

struct gvh_comm {
    int tag, rank, nranks, device, nnodes, blocking;
    bool share; /* splitShare or shrinkShare of this communicator's own configuration */
    char *net_name;
    uint64_t id;
    struct gvh_boot boot;
    int result; /* of init, atomically read while in progress */
    int *abort; /* shared with a group while it is launched */
    int abort_flag;
    char error[256];

    /* family */
    struct gvh_comm *parent;
    bool inherits; /* shares its parent's resources */
    int splits;    /* as NCCL counts them */
    int children;  /* all of them, for the key of their files */
    int color, order;
    int *excluded, nexcluded;  /* shrink */
    uint64_t key;              /* names the file over which the ranks meet; unlike `id` it never
                                  repeats */
    struct gvh_comm **handle;  /* where the caller wants the communicator */
    struct gvh_clique *clique; /* ranks of this communicator in this process */

    /* network */
    struct gvh_net *net;
    void *net_ctx;

    /* topology */
    char *topo_path, *topo_text;
    size_t topo_len;
    bool topo_file;
    struct gv_nccl_eval_out *eval;
    int devices[GVH_MAX_RANKS];

    /* tuner */
    const struct gvh_tuner *tuner;
    void *tuner_ctx;
    bool tuner_loader; /* this communicator's init opened the library */
    struct gvh_tuner_constants constants;
    struct gvh_choice choice;
    int algorithm, protocol, channels;

    void *
        moved; /* what moves bytes keeps here what it knows of the communicator; NULL in the host */
};

/* log.c */
void gvh_logger_fn(int level, unsigned long flags, const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
#define GVH_INFO(...) gvh_logger_fn(GVH_LOG_INFO, GVH_INIT, __FILE__, __LINE__, __VA_ARGS__)
#define GVH_WARN(...) gvh_logger_fn(GVH_LOG_WARN, GVH_INIT, __FILE__, __LINE__, __VA_ARGS__)
void gvh_trace(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* What this thread works for; NULL: nothing. Returns the former. */
struct gvh_comm *gvh_current(struct gvh_comm *comm);
int gvh_tag(void);
/* Sets comm->error (NULL comm: nothing), warns, returns `result`. */
int gvh_fail(struct gvh_comm *comm, int result, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
const char *gvh_result_name(int result);
/* Calls the testbench's hook. */
void gvh_step(const char *step);

/* env.c */
int gvh_env_init(void); /* once per process: conf files, env plugin; its result ever after */
const char *gvh_getenv(const char *name);
/* Whether every string that the env plugin answered still says what it said; fails `comm` if not.
 */
int gvh_check_answers(struct gvh_comm *comm);
int64_t gvh_param(const char *name, int64_t otherwise); /* read once per process */
/* A variable that is read once per process as text (P2P_LEVEL): the same copy ever after. */
const char *gvh_getenv_once(const char *name);

/* lookups.c */
enum gvh_at {
    GVH_AT_SETUP,
    GVH_AT_CONFIG,
    GVH_AT_PEERS,
    GVH_AT_TOPOLOGY,
    GVH_AT_CONNECT,
    GVH_AT_MODEL,
    GVH_AT_READY
};
void gvh_lookups(enum gvh_at at);

/* open.c */
enum gvh_slot_kind { GVH_LIB_NET, GVH_LIB_TUNER, GVH_LIB_PROFILER, GVH_LIB_ENV, GVH_LIBS };
/* Opens a plugin library by the release's rules; `value` is the variable's or NULL. */
void *gvh_open(enum gvh_slot_kind kind, const char *value, enum gvh_naming naming);
void *gvh_open_name(enum gvh_slot_kind kind, const char *name); /* exactly this name */
const char *gvh_open_path(enum gvh_slot_kind kind); /* of the library now open there, or NULL */
void *gvh_reopen_net(void); /* the net plugin's library once more, for the tuner; or NULL */
void gvh_close(enum gvh_slot_kind kind, void *handle);
void *gvh_symbol(void *handle, const char *name);

/* net.c */
int gvh_net_init(struct gvh_comm *comm);
int gvh_net_inherit(struct gvh_comm *comm);
int gvh_net_finalize(struct gvh_comm *comm);
const char *gvh_net_name(const struct gvh_comm *comm);

/* tuner.c, choose.c */
int gvh_tuner_load(struct gvh_comm *comm);
int gvh_tuner_finalize(struct gvh_comm *comm);
int gvh_choose(struct gvh_comm *comm, int func, uint64_t bytes);
void gvh_read_choice(struct gvh_choice *out); /* setting.c */

struct gvh_tuner {
    int version;
    union {
        const void *any;
        const struct gvh_tuner_v1 *v1;
        const struct gvh_tuner_v2 *v2;
        const struct gvh_tuner_v3 *v3;
        const struct gvh_tuner_v4 *v4;
        const struct gvh_tuner_v5 *v5;
        const struct gvh_tuner_v6 *v6;
    };
};

/* topo.c */
int gvh_topo(struct gvh_comm *comm);
int gvh_graph_files(struct gvh_comm *comm); /* graphfile.c */

/* peers.c: what this rank's GPU maps, counted over all communicators of the process. A GPU can map
 * 8 others; the ninth fails with CUDA's 711. */
int gvh_peers_ring(struct gvh_comm *comm);
int gvh_peers_all(struct gvh_comm *comm);

/* init.c */
int gvh_init_rank(struct gvh_comm *comm); /* the init job, in the thread that runs it */
uint64_t gvh_hash(const void *data, size_t size, uint64_t seed);

/* clique.c: the communicator's ranks in this process; the last one to be destroyed frees all. */
int gvh_clique_join(struct gvh_comm *comm, int members);
int gvh_clique_leave(struct gvh_comm *comm);

/* group.c: jobs and tasks between GroupStart and GroupEnd of one thread. */
int gvh_group_start(void);
int gvh_group_end(void);
int gvh_launch(struct gvh_comm *comm); /* now, or at GroupEnd */

/* calls.c: one call of an operation, as the public function was given it. */
enum gvh_call_kind {
    GVH_CALL_BROADCAST, /* the first five as ncclFunc_t numbers them */
    GVH_CALL_REDUCE,
    GVH_CALL_ALLGATHER,
    GVH_CALL_REDUCESCATTER,
    GVH_CALL_ALLREDUCE,
    GVH_CALL_SEND,
    GVH_CALL_RECV,
};
struct gvh_call {
    enum gvh_call_kind kind;
    const void *send;
    void *recv;
    size_t count;          /* elements, as the caller said */
    int type, redop, root; /* root: the peer of a send or receive */
    void *stream;
};
struct gvh_task {
    struct gvh_comm *comm;
    struct gvh_call call;
};
int gvh_task(struct gvh_comm *comm, const struct gvh_call *call);
/* Bytes as NCCL tells the tuner: the larger of what a rank sends and receives. */
uint64_t gvh_call_bytes(const struct gvh_comm *comm, const struct gvh_call *call);

/* tasks.c, and in the virtual NCCL move.c: carries out what a group collected, connections for send
 * and receive first, in the thread that ends the group. The host moves nothing. */
int gvh_perform(const struct gvh_task *tasks, int n);

/* report.c, and in the virtual NCCL print.c: rings and transports of a new communicator for the
 * log, and each line that is logged. */
void gvh_report(const struct gvh_comm *comm);
void gvh_print(int level, const char *text);

/* device.c: the driver library's current device of this thread, and the GPU (PCI order) behind it
 */
void gvh_set_device(int device);
int gvh_get_device(void);
int gvh_gpu(int device);

#endif
