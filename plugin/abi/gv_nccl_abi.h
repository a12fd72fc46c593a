/* NCCL's plugin interfaces, declared by hand from their documented layouts. Each version names the
 * release that brought it. Sizes and offsets are pinned for 64-bit Linux at the end of each block.
 */
#ifndef GV_NCCL_ABI_H
#define GV_NCCL_ABI_H

#include <stddef.h>
#include <stdint.h>

#include "plugin/core/gv_log.h"

/* What a slot of NCCL's finds must be visible; everything else is hidden. */
#define GV_EXPORT __attribute__((visibility("default")))

/* ncclResult_t. An error return from a plugin fails the job's communicator or collective
 * (nccl-tests of every release agree), so the slots return SUCCESS; INTERNAL_ERROR is used only
 * where NCCL takes it as "next, please". */
enum { GV_NCCL_SUCCESS = 0, GV_NCCL_INTERNAL_ERROR = 3, GV_NCCL_IN_PROGRESS = 7 };

/* --- env: v1 (2.28.7), v2 (2.30.7: init also gets the logger) --- */
struct gv_env_v1 {
    const char *name;
    int (*init)(uint8_t major, uint8_t minor, uint8_t patch, const char *suffix);
    int (*finalize)(void);
    const char *(*get_env)(const char *name);
};
struct gv_env_v2 {
    const char *name;
    int (*init)(uint8_t major, uint8_t minor, uint8_t patch, const char *suffix, gv_logger logger);
    int (*finalize)(void);
    const char *(*get_env)(const char *name);
};
_Static_assert(sizeof(struct gv_env_v1) == 32 && sizeof(struct gv_env_v2) == 32, "env plugin");
_Static_assert(offsetof(struct gv_env_v1, get_env) == 24, "env plugin");

/* --- net: only what is called before NCCL gives up on a plugin is typed; the rest are slots that
 * are never reached, since getProperties fails for every device --- */
typedef int (*gv_unused)(void);

/* v6 (2.18 line and later) to v9: init(logger). */
struct gv_net_v6 {
    const char *name;
    int (*init)(gv_logger logger);
    int (*devices)(int *ndev);
    int (*get_properties)(int dev, void *props);
    gv_unused listen, connect, accept, reg_mr, reg_mr_dma_buf, dereg_mr, isend, irecv, iflush, test,
        close_send, close_recv, close_listen;
};
/* v7 (2.19.3), v8 (2.20): two slots more. */
struct gv_net_v8 {
    struct gv_net_v6 head;
    gv_unused get_device_mr, irecv_consumed;
};
/* v9 (2.24.3). */
struct gv_net_v9 {
    struct gv_net_v8 head;
    gv_unused make_vdevice;
};
/* v10 (2.26.2): init also gets a profiler callback. */
struct gv_net_v10 {
    const char *name;
    int (*init)(gv_logger logger, void *profiler);
    int (*devices)(int *ndev);
    int (*get_properties)(int dev, void *props);
    gv_unused slot[16];
};
/* v11 (2.28.3), v12 (2.30): init for every communicator, with its id. */
struct gv_net_v11 {
    const char *name;
    int (*init)(void **ctx, uint64_t comm_id, void *config, gv_logger logger, void *profiler);
    int (*devices)(int *ndev);
    int (*get_properties)(int dev, void *props);
    gv_unused slot[16];
    int (*finalize)(void *ctx);
    gv_unused set_net_attr;
};
_Static_assert(sizeof(struct gv_net_v6) == 17 * 8, "net v6 ends at closeListen");
_Static_assert(sizeof(struct gv_net_v8) == 19 * 8, "net v7, v8 end at irecvConsumed");
_Static_assert(sizeof(struct gv_net_v9) == 20 * 8, "net v9 ends at makeVDevice");
_Static_assert(sizeof(struct gv_net_v10) == 20 * 8, "net v10 ends at makeVDevice");
_Static_assert(sizeof(struct gv_net_v11) == 22 * 8, "net v11, v12 end at setNetAttr");
_Static_assert(offsetof(struct gv_net_v11, finalize) == 20 * 8, "net v11");

/* --- tuner --- */
/* v1 (2.19, 2.20): no context. */
struct gv_tuner_v1 {
    const char *name;
    int (*init)(size_t nranks, size_t nnodes, gv_logger logger);
    int (*get_coll_info)(
        int func, size_t bytes, int collnet, int nvls, int pipe_ops, int *algorithm, int *protocol,
        int *channels);
    int (*destroy)(void);
};
/* v2 (2.21). */
struct gv_tuner_v2 {
    const char *name;
    int (*init)(size_t nranks, size_t nnodes, gv_logger logger, void **ctx);
    int (*get_coll_info)(
        void *ctx, int func, size_t bytes, int collnet, int nvls, int pipe_ops, int *algorithm,
        int *protocol, int *channels);
    int (*destroy)(void *ctx);
};
/* v3 (2.22): a table of costs instead of one choice. `costs` is really float[nalgo][nproto], one
 * block. */
struct gv_tuner_v3 {
    const char *name;
    int (*init)(size_t nranks, size_t nnodes, gv_logger logger, void **ctx);
    int (*get_coll_info)(
        void *ctx, int func, size_t bytes, int pipe_ops, float **costs, int nalgo, int nproto,
        int *channels);
    int (*destroy)(void *ctx);
};
/* v4 (2.24): whether buffers are registered. */
struct gv_tuner_v4 {
    const char *name;
    int (*init)(size_t nranks, size_t nnodes, gv_logger logger, void **ctx);
    int (*get_coll_info)(
        void *ctx, int func, size_t bytes, int pipe_ops, float **costs, int nalgo, int nproto,
        int reg_buff, int *channels);
    int (*destroy)(void *ctx);
};
/* v5 (2.28.3): commId; NVLink domains and the model's constants are NCCL's and left alone. */
struct gv_tuner_v5 {
    const char *name;
    int (*init)(
        void **ctx, uint64_t comm_id, size_t nranks, size_t nnodes, gv_logger logger, void *domains,
        void *constants);
    int (*get_coll_info)(
        void *ctx, int func, size_t bytes, int pipe_ops, float **costs, int nalgo, int nproto,
        int reg_buff, int *channels);
    int (*finalize)(void *ctx);
};
/* v6 (2.30.3): a chunk size may be chosen; NULL leaves NCCL's. */
struct gv_tuner_v6 {
    struct gv_tuner_v5 head;
    int (*get_chunk_size)(
        void *ctx, int func, size_t bytes, int algo, int proto, int channels, size_t *chunk);
};
_Static_assert(
    sizeof(struct gv_tuner_v1) == 32 && sizeof(struct gv_tuner_v2) == 32, "tuner v1, v2");
_Static_assert(
    sizeof(struct gv_tuner_v3) == 32 && sizeof(struct gv_tuner_v4) == 32, "tuner v3, v4");
_Static_assert(
    sizeof(struct gv_tuner_v5) == 32 && sizeof(struct gv_tuner_v6) == 40, "tuner v5, v6");

/* --- nccl.h: what the interposed calls pass on --- */
struct gv_nccl_unique_id {
    char internal[128];
};
/* The head of ncclConfig_t, same in 2.18 to 2.32; `size` says how much there is. */
struct gv_nccl_config {
    size_t size;
    unsigned magic, version;
    int blocking, cga_cluster_size, min_ctas, max_ctas;
    const char *net_name;
    int split_share;
    /* 2.27 and later */
    int traffic_class;
    const char *comm_name;
    int collnet_enable, cta_policy, shrink_share;
};
_Static_assert(sizeof(struct gv_nccl_unique_id) == 128, "ncclUniqueId");
_Static_assert(offsetof(struct gv_nccl_config, split_share) == 40, "ncclConfig_t 2.18");
_Static_assert(offsetof(struct gv_nccl_config, shrink_share) == 64, "ncclConfig_t 2.27");

#endif
