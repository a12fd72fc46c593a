/* The life of one rank of one communicator: registered, decided, tuned, gone.
 *
 *   net init (2.28+) or an interposed init call -> gv_comm_new, gv_comm_arm
 *   NCCL's all-gather                           (every rank of this node has registered)
 *   look-up of NCCL_TOPO_FILE                   -> gv_comm_decide, the plan's file is the answer
 *   look-up of NCCL_GRAPH_FILE                  -> gv_comm_disarm
 *   tuner init                                  -> gv_comm_take, gv_comm_settle; its table serves
 *                                                  getCollInfo
 *   tuner finalize                              -> gv_comm_put
 */
#ifndef GV_COMM_H
#define GV_COMM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plugin/core/gv_decision.h"
#include "plugin/core/gv_log.h"
#include "plugin/registry/gv_registry.h"

/* How long a rank waits for the others' word. They have all just left the same all-gather; only a
 * dead or a stuck rank needs longer. */
#define GV_DECIDE_WAIT_MS 3000

struct gv_comm {
    uint64_t key; /* commId, or a hash of how it was made */
    int gpu;      /* machine index, -1 not known */
    int nranks;   /* 0: not known */
    int nccl_version;
    const void *library;                       /* NCCL's own object (gv_nccl_of), NULL not known */
    _Atomic(struct gv_registry_entry *) entry; /* NULL: could not register, or settled */
    struct gv_decision *decision;              /* NULL until decided */
    bool committed;                            /* all ranks agreed: the decision may act */
    atomic_bool decided;
    atomic_bool proven; /* made from a communicator that was proven to be on one node */
    char trouble[400];  /* a WARN of this rank's own, "" none */
    const char *note;   /* an INFO about rule 6, NULL none */
    bool refused;       /* a sign lies in the registry's stead */
    atomic_int holders;
    const struct gv_table *table; /* what the tuner serves from gv_comm_settle on; NULL nothing */
    struct gv_comm *next;         /* list of those that wait for their init thread; comm.c */
};

/* Registers this rank. One holder: the caller. NULL only when out of memory. A rank that could not
 * register has left a sign for the others, and keeps the reason in `trouble`. */
struct gv_comm *gv_comm_new(uint64_t key, int gpu, int nranks, int nccl_version);
void gv_comm_hold(struct gv_comm *comm);
void gv_comm_put(struct gv_comm *comm); /* NULL is fine; the last holder leaves the registry */

/* Makes `comm` the one that this thread's next look-up belongs to. The thread holds it until it is
 * armed anew, takes it, or ends. */
void gv_comm_arm(struct gv_comm *comm);
/* The thread's next look-ups belong to nobody; the communicator may still be taken. */
void gv_comm_disarm(void);
/* Forgets the thread's communicator altogether. */
void gv_comm_drop(void);

/* Puts the communicator on the list of those whose init thread is not known: it will be the thread
 * that drives its GPU. Holds it until gv_comm_unlist. */
void gv_comm_list(struct gv_comm *comm);
void gv_comm_unlist(struct gv_comm *comm);

/* The communicator whose look-up this is: the armed one, else the listed, undecided one whose GPU
 * this thread drives, which is armed for this thread by that. `asker` is the object that looks up
 * (gv_object_of), NULL not known: two NCCLs of one process are never taken for each other. Of
 * several candidates only those count whose ranks have all registered; if these are alike (the same
 * ranks on the same GPUs, so the same plan) any will do, else they get the default, and NULL. Valid
 * until the thread arms, drops or takes. */
struct gv_comm *gv_comm_of_this_thread(const void *asker);

/* The communicator whose tuner init this is, armed or not; the thread forgets it, the caller holds
 * it from now on. NULL where nobody announced one. */
struct gv_comm *gv_comm_take(const void *asker);

/* Ends an undecided communicator that cannot be told from another: default for all of its ranks. */
void gv_comm_confuse(struct gv_comm *comm);

/* Decides once, together with the other ranks; later calls keep the first answer. `nranks`,
 * `nnodes`: 0 where not known. */
void gv_comm_decide(struct gv_comm *comm, int nranks, int nnodes, bool transport_in_reach);

/* Leaves the registry: nobody needs this rank's entry any more. Not while the communicator may
 * still be deciding. Any thread. */
void gv_comm_leave(struct gv_comm *comm);
/* The same, and the decision is what the tuner serves from now on. In tuner init. */
void gv_comm_settle(struct gv_comm *comm);

/* The file to hand over, or NULL for none. Valid until the communicator ends, and a while longer.
 */
const char *gv_comm_file(const struct gv_comm *comm);
/* The tuner's table once the communicator is settled, or NULL. In the hot path, hence here. */
static inline const struct gv_table *gv_comm_table(const struct gv_comm *comm)
{
    return comm->table;
}

/* Queues what was decided for NCCL's log. */
void gv_comm_report(const struct gv_comm *comm);

#endif
