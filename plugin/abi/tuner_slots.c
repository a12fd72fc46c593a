/* Tuner slots v2 to v6: the context is the rank's communicator, the table is all that the hot path
 * reads. */
#include "plugin/abi/gv_nccl_abi.h"
#include "plugin/abi/tuner_core.h"

static int init_canonical(struct gv_init init, gv_logger logger, void **ctx)
{
    *ctx = gv_tuner_init(&init, logger);
    return GV_NCCL_SUCCESS;
}

static int finalize(void *ctx)
{
    gv_comm_put(ctx);
    return GV_NCCL_SUCCESS;
}

static int init_v2(size_t nranks, size_t nnodes, gv_logger logger, void **ctx)
{
    return init_canonical((struct gv_init){.nranks = nranks, .nnodes = nnodes}, logger, ctx);
}

static int init_v5(
    void **ctx, uint64_t comm_id, size_t nranks, size_t nnodes, gv_logger logger, void *domains,
    void *constants)
{
    (void)domains;
    (void)constants;
    struct gv_init init = {.has_id = true, .comm_id = comm_id, .nranks = nranks, .nnodes = nnodes};
    return init_canonical(init, logger, ctx);
}

static const struct gv_table *table_of(void *ctx)
{
    return ctx ? gv_comm_table(ctx) : NULL;
}

static int costs_v3(
    void *ctx, int func, size_t bytes, int pipe_ops, float **costs, int nalgo, int nproto,
    int *channels)
{
    (void)pipe_ops;
    const struct gv_table *table = table_of(ctx);
    if (table)
        gv_table_apply(table, func, bytes, (float *)costs, nalgo, nproto, channels);
    return GV_NCCL_SUCCESS;
}

static int costs_v4(
    void *ctx, int func, size_t bytes, int pipe_ops, float **costs, int nalgo, int nproto,
    int reg_buff, int *channels)
{
    (void)reg_buff;
    return costs_v3(ctx, func, bytes, pipe_ops, costs, nalgo, nproto, channels);
}

static int pair_v2(
    void *ctx, int func, size_t bytes, int collnet, int nvls, int pipe_ops, int *algorithm,
    int *protocol, int *channels)
{
    (void)collnet;
    (void)nvls;
    (void)pipe_ops;
    const struct gv_table *table = table_of(ctx);
    if (table)
        gv_table_apply_pair(table, func, bytes, algorithm, protocol, channels);
    return GV_NCCL_SUCCESS;
}

#define V5                                                                                         \
    {                                                                                              \
        .name = "gv100", .init = init_v5, .get_coll_info = costs_v4, .finalize = finalize          \
    }

GV_EXPORT const struct gv_tuner_v2 ncclTunerPlugin_v2 = {
    .name = "gv100", .init = init_v2, .get_coll_info = pair_v2, .destroy = finalize};
GV_EXPORT const struct gv_tuner_v3 ncclTunerPlugin_v3 = {
    .name = "gv100", .init = init_v2, .get_coll_info = costs_v3, .destroy = finalize};
GV_EXPORT const struct gv_tuner_v4 ncclTunerPlugin_v4 = {
    .name = "gv100", .init = init_v2, .get_coll_info = costs_v4, .destroy = finalize};
GV_EXPORT const struct gv_tuner_v5 ncclTunerPlugin_v5 = V5;
GV_EXPORT const struct gv_tuner_v6 ncclTunerPlugin_v6 = {.head = V5, .get_chunk_size = NULL};
