#include "plugin/core/gv_comm.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/core/gv_force.h"
#include "plugin/core/gv_locks.h"
#include "plugin/core/gv_proof.h"
#include "plugin/registry/gv_spare.h"

static void sweep_once(void)
{
    char folder[256];
    gv_registry_folder(folder, sizeof(folder));
    gv_registry_sweep(folder, 4096);
    gv_registry_second_folder(folder, sizeof(folder));
    gv_registry_sweep(folder, 4096);
}

/* One for each rank that finds no memory, so that the others hear of it. */
static struct gv_comm spare_room[GV_SPARES];
static struct gv_spares spares = {.room = spare_room, .size = sizeof(spare_room[0])};

struct gv_comm *gv_comm_new(uint64_t key, int gpu, int nranks, int nccl_version)
{
    static pthread_once_t swept = PTHREAD_ONCE_INIT;
    pthread_once(&swept, sweep_once);
    char folder[256];
    gv_registry_folder(folder, sizeof(folder));
    struct gv_comm *comm = calloc(1, sizeof(*comm));
    if (!comm)
        comm = gv_spare_take(&spares);
    if (!comm) {
        gv_registry_refuse(folder, key);
        return NULL;
    }
    comm->key = key;
    comm->gpu = gpu;
    comm->nranks = nranks;
    comm->nccl_version = nccl_version;
    atomic_init(&comm->holders, 1);
    if (gpu < 0)
        snprintf(
            comm->trouble, sizeof(comm->trouble),
            "cannot tell which GPU a rank drives (no CUDA context on its thread, or a GPU that %s "
            "does not show)",
            gv_sysfs_root());
    struct gv_error err = {0};
    comm->entry = gv_registry_join(folder, key, gpu, &err);
    if (!comm->entry) {
        gv_error_format(&err, comm->trouble, sizeof(comm->trouble));
        gv_registry_refuse(folder, key);
        comm->refused = true;
    }
    if (!gv_state()->usable)
        comm->trouble[0] = '\0'; /* why there is no plan was said when the profile was read */
    return comm;
}

void gv_comm_hold(struct gv_comm *comm)
{
    atomic_fetch_add(&comm->holders, 1);
}

static void take_back(uint64_t key)
{
    char folder[256];
    gv_registry_folder(folder, sizeof(folder));
    gv_registry_take_back(folder, key);
}

void gv_comm_put(struct gv_comm *comm)
{
    if (!comm || atomic_fetch_sub(&comm->holders, 1) != 1)
        return;
    gv_registry_leave(atomic_load(&comm->entry));
    gv_decision_put(comm->decision);
    if (comm->refused)
        take_back(comm->key);
    if (!gv_spare_give(&spares, comm))
        free(comm);
}

/* Rule 6. `*note` says what to do where nothing proves it. */
static bool one_node(const struct gv_comm *comm, int members, int nnodes, const char **note)
{
    if (nnodes)
        return nnodes == 1;
    if (atomic_load(&comm->proven))
        return true;
    if (comm->nranks)
        return members == comm->nranks;
    const char *who;
    enum gv_nodes nodes = gv_proof_environment(&who);
    if (nodes == GV_NODES_SEVERAL) {
        *note = "the job runs on several nodes";
        return false;
    }
    if (nodes == GV_NODES_ONE || members == gv_proof_world_size() ||
        atomic_load(&gv_learnt.one_node))
        return true;
    *note = "nothing proves that all ranks are on this node; GV100_SINGLE_NODE=1 says so";
    return false;
}

static void give_up(struct gv_comm *comm, enum gv_verdict why)
{
    atomic_store(&comm->decided, true);
    if (comm->entry)
        gv_registry_abort(comm->entry, why);
}

void gv_comm_confuse(struct gv_comm *comm)
{
    snprintf(
        comm->trouble, sizeof(comm->trouble), "no decision: %s",
        gv_verdict_text(GV_ABORT_CONFUSED));
    give_up(comm, GV_ABORT_CONFUSED);
}

static void agree(struct gv_comm *comm, int nranks)
{
    struct gv_decision *d = comm->decision;
    if (gv_decision_trivial(d)) {
        gv_registry_prepare(comm->entry, d->hash, nranks);
        comm->committed = true;
        return;
    }
    enum gv_verdict verdict = gv_registry_decide(comm->entry, d->hash, nranks, GV_DECIDE_WAIT_MS);
    comm->committed = verdict == GV_COMMITTED;
    if (verdict == GV_ABORT_CONFUSED)
        snprintf(comm->trouble, sizeof(comm->trouble), "no decision: %s", gv_verdict_text(verdict));
    else if (!comm->committed)
        snprintf(
            comm->trouble, sizeof(comm->trouble), "no common decision for GPUs %s: %s", d->gpus,
            gv_verdict_text(verdict));
}

static void log_decision(const struct gv_comm *comm)
{
    const struct gv_decision *d = comm->decision;
    bool act = comm->committed;
    gv_log_decision(
        comm->key, d->gpus, gv_transport_name(act ? d->plan.transport : GV_TRANSPORT_DEFAULT),
        gv_evidence_name(act ? d->plan.evidence : GV_EVIDENCE_NONE), d->plan.gain,
        act ? d->plan.reason : comm->trouble);
}

/* A rank that is not in the registry has said so. */
static bool is_refused(struct gv_comm *comm)
{
    char folder[256];
    gv_registry_folder(folder, sizeof(folder));
    if (!gv_registry_refused(folder, comm->key))
        return false;
    snprintf(
        comm->trouble, sizeof(comm->trouble), "no common decision: %s",
        gv_verdict_text(GV_ABORT_RANK));
    return true;
}

void gv_comm_decide(struct gv_comm *comm, int nranks, int nnodes, bool transport_in_reach)
{
    const struct gv_state *state = gv_state();
    if (atomic_load(&comm->decided))
        return;
    if (!comm->entry || !state->usable || atomic_load(&gv_learnt.wrong_guess)) {
        give_up(comm, GV_ABORT_RANK);
        return;
    }
    if (is_refused(comm)) {
        give_up(comm, GV_ABORT_RANK);
        return;
    }
    struct gv_registry_members members = gv_registry_members(comm->entry);
    struct gv_question question = {
        .gpus = members.gpus,
        .nranks = nranks ? nranks : members.count,
        .nnodes = nnodes,
        .nccl_version = comm->nccl_version,
        .transport_in_reach = transport_in_reach,
        .forced = gv_force_key(),
    };
    question.one_node = one_node(comm, members.count, nnodes, &comm->note);
    if (question.one_node && !comm->note)
        atomic_store(&comm->proven, true);
    struct gv_user_settings user;
    gv_user_settings_read(&user);
    comm->decision = gv_decision_get(&question, &user);
    if (!comm->decision) {
        give_up(comm, GV_ABORT_RANK);
        return;
    }
    if (comm->decision->trouble[0])
        snprintf(comm->trouble, sizeof(comm->trouble), "%s", comm->decision->trouble);
    agree(comm, question.nranks);
    log_decision(comm);
    atomic_store(&comm->decided, true);
}

void gv_comm_leave(struct gv_comm *comm)
{
    gv_lock(GV_LOCK_LISTED); /* who looks for candidates reads entries under it */
    struct gv_registry_entry *entry = atomic_exchange(&comm->entry, NULL);
    gv_unlock(GV_LOCK_LISTED);
    gv_registry_leave(entry);
}

void gv_comm_settle(struct gv_comm *comm)
{
    atomic_store(&comm->decided, true);
    comm->table = comm->committed && comm->decision ? comm->decision->table : NULL;
    gv_comm_leave(comm);
}

const char *gv_comm_file(const struct gv_comm *comm)
{
    const struct gv_decision *d = comm->decision;
    return comm->committed && d && d->file >= 0 ? d->answer : NULL;
}

void gv_comm_report(const struct gv_comm *comm)
{
    const struct gv_decision *d = comm->decision;
    if (comm->trouble[0])
        gv_log_once(GV_LOG_WARN, "%s; NCCL keeps its default", comm->trouble);
    if (!d)
        return;
    const struct gv_plan *plan = &d->plan;
    bool acts = comm->committed && !gv_decision_trivial(d);
    if (acts && plan->other_nccl)
        gv_log_once(
            GV_LOG_WARN,
            "the profile was measured with NCCL %s: its transports are used here, its algorithms "
            "and "
            "protocols are not; 'gv100 calibrate' with this NCCL brings both",
            gv_state()->profile->provenance.nccl);
    /* Ranks of one process say the same: once is enough. */
    gv_log_once(
        GV_LOG_INFO, "communicator %016llx, GPUs %s: %s (evidence: %s). %s",
        (unsigned long long)comm->key, d->gpus,
        gv_transport_name(comm->committed ? plan->transport : GV_TRANSPORT_DEFAULT),
        gv_evidence_name(plan->evidence), comm->note ? comm->note : plan->reason);
}
