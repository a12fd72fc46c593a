/* The least that a tuner can be: what any tuner costs. */
#include "plugin/abi/gv_nccl_abi.h"

static int init(
    void **ctx, uint64_t comm_id, size_t nranks, size_t nnodes, gv_logger logger, void *domains,
    void *constants)
{
    (void)comm_id, (void)nranks, (void)nnodes, (void)logger, (void)domains, (void)constants;
    *ctx = NULL;
    return GV_NCCL_SUCCESS;
}

static int get_coll_info(
    void *ctx, int func, size_t bytes, int pipe_ops, float **costs, int nalgo, int nproto,
    int reg_buff, int *channels)
{
    (void)ctx, (void)func, (void)bytes, (void)pipe_ops, (void)costs;
    (void)nalgo, (void)nproto, (void)reg_buff, (void)channels;
    return GV_NCCL_SUCCESS;
}

static int finalize(void *ctx)
{
    (void)ctx;
    return GV_NCCL_SUCCESS;
}

GV_EXPORT const struct gv_tuner_v5 ncclTunerPlugin_v5 = {
    .name = "empty", .init = init, .get_coll_info = get_coll_info, .finalize = finalize};
