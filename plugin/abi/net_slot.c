/* Net slot: not a network, an early hook. From v11 (NCCL 2.28.3) init is called for every
 * communicator, with its id, before its ranks exchange their facts: the rank registers there. Then
 * getProperties fails, and NCCL goes on to its own networks. Before v11 init comes once per process
 * and says nothing of use; those versions exist so that a job which names this library as its net
 * plugin goes on as well. */
#include <stdatomic.h>
#include <stdbool.h>

#include "plugin/abi/gv_nccl_abi.h"
#include "plugin/abi/gv_release.h"
#include "plugin/abi/gv_slots.h"
#include "plugin/core/gv_answer.h"
#include "plugin/core/gv_comm.h"
#include "plugin/core/gv_object.h"

static int unused(void)
{
    return GV_NCCL_INTERNAL_ERROR;
}

static int one_device(int *ndev)
{
    *ndev = 1;
    return GV_NCCL_SUCCESS;
}

/* Before v11 a plugin without devices is passed over for the whole process, which is what is wanted
 * there. */
static int no_device(int *ndev)
{
    *ndev = 0;
    return GV_NCCL_SUCCESS;
}

static int no_properties(int dev, void *props)
{
    (void)dev;
    (void)props;
    return GV_NCCL_INTERNAL_ERROR;
}

/* A rank without a usable profile registers too, as one on no GPU: else the others would take
 * themselves for the whole communicator and hand over a plan that this rank does not have. */
static void announce(uint64_t comm_id, const void *nccl)
{
    const struct gv_state *state = gv_state();
    /* an interposed init call may have announced it already */
    if (state->disabled || gv_comm_of_this_thread(gv_object_of(nccl)))
        return;
    int gpu = state->usable ? gv_state_current_gpu() : -1;
    /* The loader is asked only where there are several: its lock does not survive a fork. */
    bool several = atomic_load(&gv_release_envs) > 1;
    int release = several ? gv_release_of(nccl) : 0;
    struct gv_comm *comm = gv_comm_new(comm_id, gpu, 0, release ? release : gv_release_env);
    if (!comm)
        return;
    comm->library = several ? gv_nccl_of(nccl) : NULL;
    gv_comm_arm(comm);
    gv_comm_put(comm);
}

static int init_v11(void **ctx, uint64_t comm_id, void *config, gv_logger logger, void *profiler)
{
    (void)config;
    (void)profiler;
    *ctx = NULL; /* NCCL's own IB net frees what is left here when its init fails */
    gv_log_flush(logger);
    announce(comm_id, (const void *)logger);
    return GV_NCCL_SUCCESS;
}

static int init_v10(gv_logger logger, void *profiler)
{
    (void)logger;
    (void)profiler;
    return GV_NCCL_SUCCESS;
}

static int init_v6(gv_logger logger)
{
    (void)logger;
    return GV_NCCL_SUCCESS;
}

static int finalize(void *ctx)
{
    (void)ctx;
    return GV_NCCL_SUCCESS;
}

#define UNUSED_16                                                                                  \
    {                                                                                              \
        unused, unused, unused, unused, unused, unused, unused, unused, unused, unused, unused,    \
            unused, unused, unused, unused, unused                                                 \
    }
#define HEAD_V6                                                                                    \
    {                                                                                              \
        .name = "gv100", .init = init_v6, .devices = no_device, .get_properties = no_properties,   \
        .listen = unused, .connect = unused, .accept = unused, .reg_mr = unused,                   \
        .reg_mr_dma_buf = unused, .dereg_mr = unused, .isend = unused, .irecv = unused,            \
        .iflush = unused, .test = unused, .close_send = unused, .close_recv = unused,              \
        .close_listen = unused                                                                     \
    }
#define HEAD_V8                                                                                    \
    {                                                                                              \
        .head = HEAD_V6, .get_device_mr = unused, .irecv_consumed = unused                         \
    }

GV_EXPORT const struct gv_net_v6 ncclNetPlugin_v6 = HEAD_V6;
GV_EXPORT const struct gv_net_v8 ncclNetPlugin_v7 = HEAD_V8;
GV_EXPORT const struct gv_net_v8 ncclNetPlugin_v8 = HEAD_V8;
GV_EXPORT const struct gv_net_v9 ncclNetPlugin_v9 = {.head = HEAD_V8, .make_vdevice = unused};
GV_EXPORT const struct gv_net_v10 ncclNetPlugin_v10 = {
    .name = "gv100",
    .init = init_v10,
    .devices = no_device,
    .get_properties = no_properties,
    .slot = UNUSED_16};

/* Not const: NCCL_NET, where the user sets it, must find its name here, or NCCL would pass the hook
 * over. */
#define NET_V11                                                                                    \
    {                                                                                              \
        .name = "gv100", .init = init_v11, .devices = one_device, .get_properties = no_properties, \
        .slot = UNUSED_16, .finalize = finalize, .set_net_attr = unused                            \
    }
GV_EXPORT struct gv_net_v11 ncclNetPlugin_v11 = NET_V11;
GV_EXPORT struct gv_net_v11 ncclNetPlugin_v12 = NET_V11;

void gv_net_slot_name(const char *name)
{
    ncclNetPlugin_v11.name = name;
    ncclNetPlugin_v12.name = name;
}
