/* Further names that a real NCCL asks on its way, by the step at which it does: those of 2.23.4,
 * 2.27.7, 2.28.9 and 2.30.7, as seen under a recording plugin with four GPUs of one node. Their
 * values change nothing here, but an env plugin is asked for each of them. */
#include "testbench/host/engine.h"

struct lookup {
    int from, to; /* releases, `to` exclusive */
    bool once;    /* kept for the process */
    const char *name;
};

#define FROM(release) release, 99999999
#define EVER FROM(0)

static const struct lookup at_setup[] = {
    {EVER, true, "NCCL_GDRCOPY_ENABLE"},
    {EVER, true, "NCCL_SOCKET_FAMILY"},
    {EVER, true, "NCCL_SOCKET_IFNAME"},
    {EVER, true, "NCCL_SET_THREAD_NAME"},
    {EVER, true, "NCCL_CHECK_POINTERS"},
    {EVER, true, "NCCL_GRAPH_MIXING_SUPPORT"},
    {0, 23003, true, "NCCL_CREATE_THREAD_CONTEXT"},
    {EVER, true, "NCCL_PROXY_DUMP_SIGNAL"},
    {FROM(22703), true, "NCCL_SOCKET_RCVBUF"},
    {FROM(22703), true, "NCCL_SOCKET_SNDBUF"},
    {FROM(22807), true, "NCCL_NVTX_DISABLE"},
    {FROM(22807), true, "CUDA_LAUNCH_BLOCKING"},
    {FROM(22807), true, "NCCL_SET_CPU_STACK_SIZE"},
    {FROM(22807), true, "NCCL_PROXY_CPUSET"},
    {FROM(23003), true, "NCCL_NO_CACHE"},
    {FROM(23003), true, "NCCL_SOCKET_MAGIC"},
    {FROM(23003), true, "NCCL_SOCKET_POLL_TIMEOUT_MSEC"},
    {0}};

static const struct lookup at_config[] = {
    {EVER, true, "NCCL_COMM_BLOCKING"},
    {EVER, true, "NCCL_CGA_CLUSTER_SIZE"},
    {EVER, true, "NCCL_MIN_CTAS"},
    {EVER, true, "NCCL_MAX_CTAS"},
    {EVER, true, "NCCL_L1_SHARED_MEMORY_CARVEOUT"},
    {FROM(22703), true, "NCCL_COMM_SHRINK_SHARE_RESOURCES"},
    {FROM(22703), false, "NCCL_COLLNET_ENABLE"},
    {FROM(22703), true, "NCCL_CTA_POLICY"},
    {FROM(22703), true, "NCCL_NVLS_NCHANNELS"},
    {FROM(22807), true, "NCCL_NCHANNELS_PER_NET_PEER"},
    {FROM(22807), true, "NCCL_NVLINK_UTIL_CENTRIC_SCHED_ENABLE"},
    {FROM(23003), true, "NCCL_MULTI_RANK_GPU_ENABLE"},
    {FROM(23003), true, "NCCL_NUM_RMA_CTX"},
    {FROM(23003), true, "NCCL_P2P_MAX_PEERS"},
    {FROM(23003), true, "NCCL_GRAPH_STREAM_ORDERING"},
    {FROM(23003), false, "NCCL_CHECK_MODE"},
    {0}};

static const struct lookup at_peers[] = {
    {EVER, true, "NCCL_IB_DISABLE"},
    {EVER, true, "NCCL_DMABUF_ENABLE"},
    {EVER, true, "NCCL_OOB_NET_ENABLE"},
    {EVER, true, "NCCL_UID_STAGGER_THRESHOLD"},
    {EVER, true, "NCCL_CUMEM_ENABLE"},
    {0, 22703, true, "NCCL_MNNVL_CLIQUE_ID"},
    {EVER, true, "NCCL_P2P_DISABLE"},
    {EVER, true, "NCCL_HOSTID"},
    {FROM(22703), true, "NCCL_RAS_ENABLE"},
    {FROM(22703), true, "NCCL_RAS_ADDR"},
    {FROM(22703), true, "NCCL_MNNVL_ENABLE"},
    {FROM(22807), true, "NCCL_GIN_TYPE"},
    {FROM(22807), true, "NCCL_SINGLE_PROC_MEM_REG_ENABLE"},
    {FROM(23003), true, "NCCL_RMA_PLUGIN"},
    {FROM(23003), true, "NCCL_RMA_PLUGIN_REF_COUNT"},
    {FROM(23003), true, "NCCL_GIN_PLUGIN"},
    {FROM(23003), true, "NCCL_GIN_PLUGIN_REF_COUNT"},
    {FROM(23003), true, "NCCL_DISABLE_MEM_MANAGER"},
    {FROM(23003), true, "NCCL_CROSS_NIC"},
    {FROM(23003), true, "NCCL_IPC_USE_ABSTRACT_SOCKET"},
    {0}};

static const struct lookup at_topology[] = {
    {EVER, true, "NCCL_NVB_DISABLE"},
    {EVER, true, "NCCL_IGNORE_DISABLED_P2P"},
    {EVER, true, "NCCL_P2P_USE_CUDA_MEMCPY"},
    {EVER, true, "NCCL_NET_DISABLE_INTRA"},
    {EVER, true, "NCCL_PXN_DISABLE"},
    {EVER, true, "NCCL_IGNORE_CPU_AFFINITY"},
    {EVER, true, "NCCL_NVLS_ENABLE"},
    {FROM(22703), true, "NCCL_PXN_C2C"},
    {FROM(22807), false, "NCCL_NET_FORCE_MERGE"},
    {FROM(22807), false, "NCCL_NET_MERGE_LEVEL"},
    {FROM(22807), true, "NCCL_NETDEVS_POLICY"},
    {FROM(23003), false, "NCCL_NET_MERGE_POLICY"},
    {0}};

static const struct lookup at_connect[] = {
    {EVER, true, "NCCL_PROFILER_PLUGIN"},
    {EVER, true, "NCCL_GRAPH_DUMP_FILE"},
    {EVER, true, "NCCL_ALLOC_P2P_NET_LL_BUFFERS"},
    {EVER, true, "NCCL_GRAPH_DUMP_FILE_RANK"},
    {EVER, true, "NCCL_REPORT_CONNECT_PROGRESS"},
    {EVER, true, "NCCL_MAX_NRINGS"},
    {EVER, true, "NCCL_MAX_NCHANNELS"},
    {EVER, true, "NCCL_WORK_ARGS_BYTES"},
    {EVER, true, "NCCL_MIN_NRINGS"},
    {EVER, true, "NCCL_MIN_NCHANNELS"},
    {EVER, true, "NCCL_LL_BUFFSIZE"},
    {EVER, true, "NCCL_LL128_BUFFSIZE"},
    {EVER, true, "NCCL_BUFFSIZE"},
    {EVER, true, "NCCL_P2P_PCI_CHUNKSIZE"},
    {EVER, true, "NCCL_MAX_P2P_NCHANNELS"},
    {EVER, true, "NCCL_MIN_P2P_NCHANNELS"},
    {EVER, true, "NCCL_CONNECT_ROUND_MAX_PEERS"},
    {EVER, true, "NCCL_P2P_READ_ENABLE"},
    {EVER, true, "NCCL_P2P_DIRECT_DISABLE"},
    {EVER, true, "NCCL_NVB_PRECONNECT"},
    {0}};

static const struct lookup at_model[] = {
    {EVER, false, "NCCL_THREAD_THRESHOLDS"}, {EVER, true, "NCCL_NTHREADS"},
    {EVER, true, "NCCL_LL128_NTHREADS"},     {EVER, true, "NCCL_PAT_ENABLE"},
    {FROM(22703), true, "NCCL_LL128_C2C"},   {0}};

static const struct lookup at_ready[] = {
    {EVER, true, "NCCL_LOCAL_REGISTER"},
    {EVER, true, "NCCL_LAUNCH_MODE"},
    {EVER, true, "NCCL_WORK_FIFO_BYTES"},
    {FROM(22703), true, "NCCL_LAUNCH_ORDER_IMPLICIT"},
    {FROM(22703), true, "NCCL_WIN_ENABLE"},
    {FROM(23003), true, "NCCL_LSA_TEAM_SIZE"},
    {0}};

static const struct lookup *const steps[] = {
    [GVH_AT_SETUP] = at_setup,       [GVH_AT_CONFIG] = at_config,   [GVH_AT_PEERS] = at_peers,
    [GVH_AT_TOPOLOGY] = at_topology, [GVH_AT_CONNECT] = at_connect, [GVH_AT_MODEL] = at_model,
    [GVH_AT_READY] = at_ready,
};

void gvh_lookups(enum gvh_at at)
{
    int version = gvh_release()->version;
    for (const struct lookup *l = steps[at]; l->name; l++) {
        if (version < l->from || version >= l->to)
            continue;
        if (l->once)
            gvh_getenv_once(l->name);
        else
            gvh_getenv(l->name);
    }
}
