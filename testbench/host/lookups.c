/* Further names that a real NCCL asks on its way, by the step at which it does. Their values change
 * nothing here, but an env plugin is asked for each of them. */
#include "testbench/host/engine.h"

struct lookup {
    int from, to; /* releases, to exclusive */
    bool once;    /* cached for the process */
    const char *name;
};

#define EVER 0, 99999999

static const struct lookup at_setup[] = {
    {EVER, true, "NCCL_SET_STACK_SIZE"}, {22809, 99999999, true, "NCCL_SET_CPU_STACK_SIZE"},
    {EVER, true, "NCCL_GDRCOPY_ENABLE"}, {EVER, false, "NCCL_SOCKET_FAMILY"},
    {EVER, false, "NCCL_SOCKET_IFNAME"}, {0}};
static const struct lookup at_config[] = {
    {EVER, true, "NCCL_COMM_BLOCKING"},
    {EVER, true, "NCCL_CGA_CLUSTER_SIZE"},
    {EVER, true, "NCCL_MIN_CTAS"},
    {EVER, true, "NCCL_MAX_CTAS"},
    {22703, 99999999, false, "NCCL_COLLNET_ENABLE"},
    {22703, 99999999, true, "NCCL_CTA_POLICY"},
    {0}};
static const struct lookup at_peers[] = {
    {EVER, true, "NCCL_HOSTID"},
    {EVER, true, "NCCL_CUMEM_ENABLE"},
    {EVER, true, "NCCL_DMABUF_ENABLE"},
    {22304, 99999999, true, "NCCL_CUMEM_HOST_ENABLE"},
    {22106, 99999999, true, "NCCL_MNNVL_ENABLE"},
    {0}};
static const struct lookup at_topology[] = {
    {EVER, true, "NCCL_TOPO_DUMP_FILE_RANK"}, {EVER, true, "NCCL_IGNORE_CPU_AFFINITY"},
    {EVER, true, "NCCL_NVB_DISABLE"},         {EVER, true, "NCCL_P2P_DISABLE"},
    {EVER, true, "NCCL_IGNORE_DISABLED_P2P"}, {EVER, true, "NCCL_PXN_DISABLE"},
    {EVER, true, "NCCL_CROSS_NIC"},           {0, 22703, false, "NCCL_COLLNET_ENABLE"},
    {EVER, true, "NCCL_NVLS_ENABLE"},         {0}};
static const struct lookup at_connect[] = {
    {EVER, true, "NCCL_MIN_NCHANNELS"},
    {EVER, true, "NCCL_MAX_NCHANNELS"},
    {EVER, true, "NCCL_BUFFSIZE"},
    {EVER, true, "NCCL_P2P_DIRECT_DISABLE"},
    {EVER, true, "NCCL_P2P_READ_ENABLE"},
    {EVER, true, "NCCL_SHM_DISABLE"},
    {22703, 99999999, false, "NCCL_PROFILER_PLUGIN"},
    {EVER, true, "NCCL_RUNTIME_CONNECT"},
    {0}};
static const struct lookup at_ready[] = {
    {EVER, false, "NCCL_THREAD_THRESHOLDS"}, {EVER, false, "NCCL_LAUNCH_MODE"}, {0}};

static const struct lookup *const steps[] = {
    [GVH_AT_SETUP] = at_setup,       [GVH_AT_CONFIG] = at_config,   [GVH_AT_PEERS] = at_peers,
    [GVH_AT_TOPOLOGY] = at_topology, [GVH_AT_CONNECT] = at_connect, [GVH_AT_READY] = at_ready,
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
