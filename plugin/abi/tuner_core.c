/* What all tuner versions share: from a communicator's init to its table. */
#include "plugin/abi/tuner_core.h"

#include <stdio.h>

#include "base/gv_hash.h"
#include "plugin/abi/gv_release.h"
#include "plugin/core/gv_answer.h"
#include "plugin/core/gv_object.h"
#include "plugin/core/gv_state.h"

/* A plan was made and now NCCL says how the communicator really is. */
static void compare_with_truth(struct gv_comm *comm, const struct gv_init *init)
{
    const struct gv_decision *d = comm->decision;
    if (!d || !comm->committed)
        return;
    if (init->nnodes == 1 && (int)init->nranks == d->question.nranks) {
        atomic_store(&gv_learnt.one_node, true);
        return;
    }
    if (d->question.nnodes || gv_decision_trivial(d))
        return;
    comm->committed = false;
    atomic_store(&gv_learnt.wrong_guess, true);
    snprintf(
        comm->trouble, sizeof(comm->trouble),
        "a plan was made for %d ranks on one node, but the communicator has %zu ranks on %zu "
        "nodes; no more plans in this process (set GV100_DISABLE=1 for jobs over several nodes)",
        d->question.nranks, init->nranks, init->nnodes);
}

/* A rank without a usable profile has a plan that no other has. It says so at once, and stays until
 * the communicator ends, as the others may come later. */
static struct gv_comm *refuse(const struct gv_init *init)
{
    struct gv_comm *comm = gv_comm_new(init->comm_id, -1, (int)init->nranks, init->nccl_version);
    struct gv_registry_entry *entry = comm ? atomic_load(&comm->entry) : NULL;
    if (entry)
        gv_registry_prepare(entry, 0, (int)init->nranks);
    return comm;
}

/* The tuner slot alone: no transport, and rows only where membership is certain: by commId from v5
 * on, before that only where all GPUs of the machine take part. Everybody is in tuner init now, so
 * the registry can wait for all; two such communicators at one time without an id get the default.
 */
static struct gv_comm *alone(const struct gv_init *init)
{
    const struct gv_state *state = gv_state();
    if (!state->usable || init->nnodes != 1)
        return NULL;
    if (gv_answer_preloaded())
        gv_log_once(
            GV_LOG_INFO,
            "a communicator shares its parent's resources, or its init did not pass through the "
            "preloaded library (NCCL linked statically, or reached by dlsym): its transports are "
            "not under control");
    else
        gv_log_once(
            GV_LOG_INFO, "only the tuner slot is in use, so transports are not under control; set "
                         "what 'gv100 env' prints instead");
    bool all = (int)init->nranks == state->profile->ngpus;
    if (!init->has_id && !all)
        return NULL;
    int gpu = gv_state_current_gpu();
    uint64_t key = init->has_id ? init->comm_id : gv_hash_u64(GV_HASH_START, init->nranks);
    struct gv_comm *comm = gv_comm_new(key, gpu, (int)init->nranks, init->nccl_version);
    if (!comm || !comm->entry)
        return comm;
    if (gv_registry_await(comm->entry, (int)init->nranks, GV_DECIDE_WAIT_MS))
        gv_registry_abort(comm->entry, GV_ABORT_TIMEOUT);
    gv_comm_decide(comm, (int)init->nranks, 1, false);
    return comm;
}

struct gv_comm *gv_tuner_init(struct gv_init *init, gv_logger logger)
{
    gv_log_flush(logger);
    if (gv_state()->disabled)
        return NULL;
    const void *nccl = (const void *)logger;
    struct gv_comm *comm = gv_comm_take(gv_object_of(nccl));
    if (!comm && !init->nccl_version)
        init->nccl_version = gv_release_of(nccl);
    if (!init->nccl_version)
        init->nccl_version = gv_release_env;
    if (!comm && !gv_state()->usable && init->has_id && init->nnodes == 1)
        return refuse(init);
    if (comm)
        compare_with_truth(comm, init);
    else
        comm = alone(init);
    if (comm) {
        gv_comm_report(comm);
        gv_comm_settle(comm);
    }
    gv_log_flush(logger);
    return comm;
}
