/* Tuner slot v1 (NCCL 2.19, 2.20). Its calls carry no context: nothing says which communicator
 * asks. So advice is given only while all communicators of the process share one table. */
#include <stdatomic.h>
#include <stdlib.h>

#include "plugin/abi/gv_nccl_abi.h"
#include "plugin/abi/tuner_core.h"
#include "plugin/core/gv_locks.h"

/* Communicators alive, and the table they share; NULL while they differ. `keeper` holds a
 * communicator that has this table, since destroy does not say which one it ends. All but `shared`
 * is guarded by `lock`. */
static int live;
static struct gv_comm *keeper;
static _Atomic(const struct gv_table *) shared;

static int init(size_t nranks, size_t nnodes, gv_logger logger)
{
    struct gv_init canonical = {.nranks = nranks, .nnodes = nnodes};
    struct gv_comm *comm = gv_tuner_init(&canonical, logger);
    const struct gv_table *table = comm ? gv_comm_table(comm) : NULL;
    gv_lock(GV_LOCK_TUNER_V1);
    if (!live++ && table) {
        keeper = comm;
        comm = NULL;
        atomic_store(&shared, table);
    } else if (atomic_load(&shared) != table) {
        atomic_store(&shared, NULL);
    }
    gv_unlock(GV_LOCK_TUNER_V1);
    gv_comm_put(comm);
    return GV_NCCL_SUCCESS;
}

static int destroy(void)
{
    struct gv_comm *last = NULL;
    gv_lock(GV_LOCK_TUNER_V1);
    if (live && !--live) {
        last = keeper;
        keeper = NULL;
        atomic_store(&shared, NULL);
    }
    gv_unlock(GV_LOCK_TUNER_V1);
    gv_comm_put(last);
    return GV_NCCL_SUCCESS;
}

static int get_coll_info(
    int func, size_t bytes, int collnet, int nvls, int pipe_ops, int *algorithm, int *protocol,
    int *channels)
{
    (void)collnet;
    (void)nvls;
    (void)pipe_ops;
    const struct gv_table *table = atomic_load_explicit(&shared, memory_order_acquire);
    if (table)
        gv_table_apply_pair(table, func, bytes, algorithm, protocol, channels);
    return GV_NCCL_SUCCESS;
}

GV_EXPORT const struct gv_tuner_v1 ncclTunerPlugin_v1 = {
    .name = "gv100", .init = init, .get_coll_info = get_coll_info, .destroy = destroy};
