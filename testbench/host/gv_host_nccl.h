/* What the stand-in libnccl.so.2 exports: the part of NCCL's public interface that a job needs
 * here, and beside it what the testbench asks (gv_host_*), which no plugin knows.
 *
 * The release that the library plays, and where it finds the machine, come from the environment:
 *   GV_HOST_RELEASE   "2.28.9"
 *   GV_HOST_DIR       folder for what ranks exchange; one job, one folder
 *   GV_HOST_XML       what NCCL would detect on the machine (a complete topology file)
 *   GV_HOST_BUS_IDS   bus ids in PCI order, comma list; the stand-in libcuda.so.1 reads it too
 *   GV_HOST_NOP2P, GV_HOST_SM, GV_HOST_NODES, GV_HOST_TIMEOUT_MS  (optional) */
#ifndef GV_HOST_NCCL_H
#define GV_HOST_NCCL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "testbench/nccl/gv_nccl_eval.h"

#define GV_HOST_API __attribute__((visibility("default")))

typedef struct gvh_comm *ncclComm_t;
typedef struct {
    char internal[128];
} ncclUniqueId;

/* As 2.28 declares it; older releases read the first `size` bytes. */
typedef struct {
    size_t size;
    unsigned magic, version;
    int blocking, cga_cluster_size, min_ctas, max_ctas;
    const char *net_name;
    int split_share, traffic_class;
    const char *comm_name;
    int collnet_enable, cta_policy, shrink_share, nvls_ctas, nchannels_per_net_peer,
        nvlink_centric_sched;
} ncclConfig_t;
#define GV_HOST_CONFIG_MAGIC 0xcafebeefu
#define GV_HOST_UNDEF ((int)0x80000000)

GV_HOST_API int ncclGetVersion(int *version);
GV_HOST_API int pncclGetVersion(int *version); /* every call of NCCL's has such a second name */
GV_HOST_API int ncclGetUniqueId(ncclUniqueId *id);
GV_HOST_API int ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank);
GV_HOST_API int ncclCommInitRankConfig(
    ncclComm_t *comm, int nranks, ncclUniqueId id, int rank, ncclConfig_t *config);
GV_HOST_API int ncclCommInitRankScalable(
    ncclComm_t *comm, int nranks, int rank, int nids, ncclUniqueId *ids, ncclConfig_t *config);
GV_HOST_API int ncclCommInitAll(ncclComm_t *comms, int ndev, const int *devices);
GV_HOST_API int
ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *child, ncclConfig_t *config);
GV_HOST_API int ncclCommShrink(
    ncclComm_t comm, int *excluded, int nexcluded, ncclComm_t *child, ncclConfig_t *config,
    int flags);
GV_HOST_API int ncclCommFinalize(ncclComm_t comm);
GV_HOST_API int ncclCommDestroy(ncclComm_t comm);
GV_HOST_API int ncclCommAbort(ncclComm_t comm);
GV_HOST_API int ncclCommGetAsyncError(ncclComm_t comm, int *error);
GV_HOST_API int ncclCommCount(ncclComm_t comm, int *count);
GV_HOST_API int ncclCommUserRank(ncclComm_t comm, int *rank);
GV_HOST_API int ncclCommCuDevice(ncclComm_t comm, int *device);
GV_HOST_API const char *ncclGetErrorString(int result);
GV_HOST_API const char *ncclGetLastError(ncclComm_t comm);
GV_HOST_API int ncclGroupStart(void);
GV_HOST_API int ncclGroupEnd(void);
/* Types and reductions by NCCL's numbers (7 = float32). In the host nothing is moved; choices and
 * connections are made as for a real call. */
GV_HOST_API int ncclAllReduce(
    const void *send, void *recv, size_t count, int type, int op, ncclComm_t comm, void *stream);
GV_HOST_API int ncclReduce(
    const void *send, void *recv, size_t count, int type, int op, int root, ncclComm_t comm,
    void *stream);
GV_HOST_API int ncclBroadcast(
    const void *send, void *recv, size_t count, int type, int root, ncclComm_t comm, void *stream);
GV_HOST_API int
ncclAllGather(const void *send, void *recv, size_t count, int type, ncclComm_t comm, void *stream);
GV_HOST_API int ncclReduceScatter(
    const void *send, void *recv, size_t count, int type, int op, ncclComm_t comm, void *stream);
GV_HOST_API int
ncclSend(const void *send, size_t count, int type, int peer, ncclComm_t comm, void *stream);
GV_HOST_API int
ncclRecv(void *recv, size_t count, int type, int peer, ncclComm_t comm, void *stream);

/* What became of one rank's communicator. Pointers live as long as the communicator. */
struct gv_host_result {
    int rank, nranks, device;
    uint64_t comm_id;
    const struct gv_nccl_eval_out *eval; /* NULL before the topology was evaluated */
    bool topology_file;                  /* a readable file was handed over */
    const char *topology_path;           /* the answer to NCCL_TOPO_FILE, or NULL */
    int algorithm, protocol, channels;   /* of the last AllReduce; -1, -1, 0 before it */
    const char *error;                   /* "" or what went wrong last */
};
GV_HOST_API void gv_host_result(ncclComm_t comm, struct gv_host_result *out);

/* Communicators that this thread makes from now on, and what it logs, belong to number `tag`. */
GV_HOST_API void gv_host_tag(int tag);

/* One line that reached the logger, or that the host notes. `rank` is -1 outside a communicator. */
typedef void (*gv_host_log_fn)(void *user, int tag, int rank, int level, const char *text);
GV_HOST_API void gv_host_log_each(gv_host_log_fn each, void *user);

/* Everything the library asked or called, in order, one line each ("getenv NCCL_TOPO_FILE",
 * "dlopen libnccl-env.so", "net.init"). Off until the first call of gv_host_trace(true). */
GV_HOST_API void gv_host_trace(bool on);
typedef void (*gv_host_trace_fn)(void *user, int tag, int rank, long thread, const char *what);
GV_HOST_API void gv_host_trace_each(gv_host_trace_fn each, void *user);

/* Called in the middle of init, before the named step ("net", "register", "topology", "tuner",
 * "ready"): lets the testbench delay, end the thread or the process there. */
typedef void (*gv_host_step_fn)(const char *step, int tag, int rank);
GV_HOST_API void gv_host_on_step(gv_host_step_fn fn);

#endif
