/* The plugin interfaces as NCCL's releases declare them, written down a second time and on purpose:
 * this host judges the plugin's own declarations, so it must not share them. Layouts hold for
 * x86-64 Linux. */
#ifndef GV_HOST_ABI_H
#define GV_HOST_ABI_H

#include <stddef.h>
#include <stdint.h>

enum {
    GVH_SUCCESS,
    GVH_CUDA_ERROR,
    GVH_SYSTEM_ERROR,
    GVH_INTERNAL_ERROR,
    GVH_INVALID_ARGUMENT,
    GVH_INVALID_USAGE,
    GVH_REMOTE_ERROR,
    GVH_IN_PROGRESS,
};

enum { GVH_LOG_VERSION = 1, GVH_LOG_WARN, GVH_LOG_INFO, GVH_LOG_ABORT, GVH_LOG_TRACE };
enum {
    GVH_INIT = 1,
    GVH_COLL = 2,
    GVH_NET = 0x10,
    GVH_GRAPH = 0x20,
    GVH_TUNING = 0x40,
    GVH_ENV = 0x80
};

typedef void (*gvh_logger)(
    int level, unsigned long flags, const char *file, int line, const char *fmt, ...);

/* Env: v1 from 2.28.7, v2 from 2.30.7. */
struct gvh_env_v1 {
    const char *name;
    int (*init)(uint8_t major, uint8_t minor, uint8_t patch, const char *suffix);
    int (*finalize)(void);
    const char *(*get_env)(const char *name);
};

struct gvh_env_v2 {
    const char *name;
    int (*init)(uint8_t major, uint8_t minor, uint8_t patch, const char *suffix, gvh_logger log);
    int (*finalize)(void);
    const char *(*get_env)(const char *name);
};

/* Tuner: v1 2.19.1, v2 2.21.5, v3 2.22.3, v4 2.24.3, v5 2.28.3, v6 2.30.3. */
struct gvh_tuner_v1 {
    const char *name;
    int (*init)(size_t nranks, size_t nnodes, gvh_logger log);
    int (*get_coll_info)(
        int func, size_t bytes, int collnet, int nvls, int ops, int *algo, int *proto,
        int *channels);
    int (*destroy)(void);
};

struct gvh_tuner_v2 {
    const char *name;
    int (*init)(size_t nranks, size_t nnodes, gvh_logger log, void **ctx);
    int (*get_coll_info)(
        void *ctx, int func, size_t bytes, int collnet, int nvls, int ops, int *algo, int *proto,
        int *channels);
    int (*destroy)(void *ctx);
};

struct gvh_tuner_v3 {
    const char *name;
    int (*init)(size_t nranks, size_t nnodes, gvh_logger log, void **ctx);
    int (*get_coll_info)(
        void *ctx, int func, size_t bytes, int ops, float **table, int nalgo, int nproto,
        int *channels);
    int (*destroy)(void *ctx);
};

struct gvh_tuner_v4 {
    const char *name;
    int (*init)(size_t nranks, size_t nnodes, gvh_logger log, void **ctx);
    int (*get_coll_info)(
        void *ctx, int func, size_t bytes, int ops, float **table, int nalgo, int nproto,
        int reg_buff, int *channels);
    int (*destroy)(void *ctx);
};

struct gvh_nvl_domain {
    int count, min_ranks, max_ranks;
};

struct gvh_tuner_constants {
    double base_latencies[7][3];
    double hw_latencies[3][7][3];
    double ll_max_bws[4][3];
    double per_ch_max_ring_ll128_bws[4][3];
    double per_ch_max_tree_ll128_bws[4][3];
    double per_ch_max_tree_bws[4][3];
    double per_ch_max_nvls_tree_bws[4][3];
};

struct gvh_tuner_v5 {
    const char *name;
    int (*init)(
        void **ctx, uint64_t comm_id, size_t nranks, size_t nnodes, gvh_logger log,
        struct gvh_nvl_domain *domain, struct gvh_tuner_constants *constants);
    int (*get_coll_info)(
        void *ctx, int func, size_t bytes, int ops, float **table, int nalgo, int nproto,
        int reg_buff, int *channels);
    int (*finalize)(void *ctx);
};

struct gvh_tuner_v6 {
    const char *name;
    int (*init)(
        void **ctx, uint64_t comm_id, size_t nranks, size_t nnodes, gvh_logger log,
        struct gvh_nvl_domain *domain, struct gvh_tuner_constants *constants);
    int (*get_coll_info)(
        void *ctx, int func, size_t bytes, int ops, float **table, int nalgo, int nproto,
        int reg_buff, int *channels);
    int (*finalize)(void *ctx);
    int (*get_chunk_size)(
        void *ctx, int func, size_t bytes, int algo, int proto, int channels, size_t *chunk);
};

/* Net: v6 2.13 to 2.29, v7 2.18, v8 2.19, v9 2.24, v10 2.26, v11 2.28, v12 2.30. Only what the host
 * calls has a type; the other slots keep their place. */
typedef int (*gvh_profiler_callback)(void **, int, void *, int64_t, void *);
typedef void (*gvh_slot)(void);

struct gvh_net_config {
    int traffic_class;
};

struct gvh_net_head { /* alike in all versions, but for init's arguments */
    const char *name;
    gvh_slot init;
    int (*devices)(int *ndev);
    int (*get_properties)(int dev, void *properties);
};

struct gvh_net_v8 { /* v7 and v8; v6 ends at close_listen */
    struct gvh_net_head head;
    gvh_slot listen, connect, accept, reg_mr, reg_mr_dmabuf, dereg_mr, isend, irecv, iflush, test,
        close_send, close_recv, close_listen;
    gvh_slot get_device_mr, irecv_consumed;
};

struct gvh_net_v10 { /* v9 and v10 */
    struct gvh_net_v8 base;
    gvh_slot make_vdevice;
};

struct gvh_net_v11 { /* v11 and v12 */
    struct gvh_net_v10 base;
    int (*finalize)(void *ctx);
    gvh_slot set_net_attr;
};

typedef int (*gvh_net_init_v6)(gvh_logger log);
typedef int (*gvh_net_init_v10)(gvh_logger log, gvh_profiler_callback callback);
typedef int (*gvh_net_init_v11)(
    void **ctx, uint64_t comm_id, struct gvh_net_config *config, gvh_logger log,
    gvh_profiler_callback callback);

/* ncclNetProperties_vN_t; a plugin writes into it, so it must be as large as the version asks. */
struct gvh_net_vprops_v9 {
    int ndevs, devs[4];
};
struct gvh_net_vprops_v12 {
    int ndevs, devs[8];
};
struct gvh_net_props_v7 {
    char *name, *pci_path;
    uint64_t guid;
    int ptr_support, speed, port;
    float latency;
    int max_comms, max_recvs, device_type, device_version;
};
struct gvh_net_props_v8 {
    char *name, *pci_path;
    uint64_t guid;
    int ptr_support, reg_is_global, speed, port;
    float latency;
    int max_comms, max_recvs, device_type, device_version;
};
struct gvh_net_props_v9 { /* and v10 */
    char *name, *pci_path;
    uint64_t guid;
    int ptr_support, reg_is_global, force_flush, speed, port;
    float latency;
    int max_comms, max_recvs, device_type, device_version;
    struct gvh_net_vprops_v9 vprops;
    size_t max_p2p_bytes, max_coll_bytes;
};
struct gvh_net_props_v11 {
    struct gvh_net_props_v9 base;
    int max_multi_request_size;
};
struct gvh_net_props_v12 {
    char *name, *pci_path;
    uint64_t guid;
    int ptr_support, reg_is_global, force_flush, speed, port;
    float latency;
    int max_comms, max_recvs, device_type, device_version;
    struct gvh_net_vprops_v12 vprops;
    size_t max_p2p_bytes, max_coll_bytes;
    int max_multi_request_size;
    int16_t rail_id, plane_id;
};

#define GVH_AT(type, field, at) _Static_assert(offsetof(type, field) == (at), #type "." #field)
#define GVH_SIZE(type, size) _Static_assert(sizeof(type) == (size), #type)
GVH_SIZE(struct gvh_env_v1, 32);
GVH_SIZE(struct gvh_env_v2, 32);
GVH_AT(struct gvh_env_v1, get_env, 24);
GVH_SIZE(struct gvh_tuner_v1, 32);
GVH_SIZE(struct gvh_tuner_v5, 32);
GVH_SIZE(struct gvh_tuner_v6, 40);
GVH_AT(struct gvh_tuner_v6, get_chunk_size, 32);
GVH_SIZE(struct gvh_nvl_domain, 12);
GVH_SIZE(struct gvh_tuner_constants, 8 * (21 + 63 + 5 * 12));
GVH_AT(struct gvh_tuner_constants, hw_latencies, 8 * 21);
GVH_AT(struct gvh_tuner_constants, ll_max_bws, 8 * 84);
GVH_AT(struct gvh_tuner_constants, per_ch_max_nvls_tree_bws, 8 * 132);
GVH_SIZE(struct gvh_net_head, 32);
GVH_SIZE(struct gvh_net_v8, 19 * 8);
GVH_SIZE(struct gvh_net_v10, 20 * 8);
GVH_SIZE(struct gvh_net_v11, 22 * 8);
GVH_AT(struct gvh_net_v8, close_listen, 16 * 8);
GVH_AT(struct gvh_net_v11, finalize, 20 * 8);
GVH_SIZE(struct gvh_net_props_v7, 56);
GVH_SIZE(struct gvh_net_props_v8, 64);
GVH_SIZE(struct gvh_net_props_v9, 104);
GVH_AT(struct gvh_net_props_v9, vprops, 64);
GVH_SIZE(struct gvh_net_props_v12, 128);

#endif
