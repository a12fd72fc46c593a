/* A plan made ready for NCCL: the topology file that carries it and the tuner's table. Shared by
 * all ranks of this process that ask for the same thing; constant once made. */
#ifndef GV_DECISION_H
#define GV_DECISION_H

#include <stdbool.h>
#include <stdint.h>

#include "plugin/core/gv_state.h"
#include "plugin/core/gv_table.h"
#include "plugin/policy/gv_policy.h"

/* What the user has set in NCCL's own variables, as far as plans must respect it. */
struct gv_user_settings {
    const char *transport; /* name of a variable that settles the transport (NCCL_P2P_LEVEL, ...),
                              NULL none */
    const char *algorithm; /* name of a variable that settles algorithm or protocol, NULL none */
    const char *topology;  /* value of NCCL_TOPO_FILE, NULL none */
    bool nvb;              /* NCCL_NVB_DISABLE is set by the user to something else than 1 */
};

void gv_user_settings_read(struct gv_user_settings *out);

/* Everything a decision depends on beside the state. All zero where not known. */
struct gv_question {
    gv_gpuset gpus; /* machine indexes */
    int nranks, nnodes;
    bool one_node;
    int nccl_version;
    bool transport_in_reach; /* false: nobody will ask us for a topology file (tuner slot alone) */
    uint64_t forced;         /* gv_force_key; set by gv_decision_get's caller or 0 */
};

struct gv_decision {
    struct gv_question question;
    struct gv_plan plan;
    struct gv_table *table; /* NULL: nothing for the tuner to do */
    int file;               /* memfd, -1 where no file is handed over */
    char answer[32];        /* "/proc/self/fd/N"; "" where none */
    char gpus[256];         /* profile indexes as text */
    char trouble[400];      /* why a plan could not be made ready (then it is the default), "" none:
                               worth a WARN */
    uint64_t hash;          /* equal on ranks that will do the same */
    int users;              /* guarded by the cache's lock */
    uint64_t last_used;
};

/* Decides and makes ready, or finds the same question answered before. Never NULL except when out
 * of memory. Give it back with gv_decision_put; it stays valid for a while after that (the last 64
 * are kept), since NCCL may look at an answer again. */
struct gv_decision *
gv_decision_get(const struct gv_question *question, const struct gv_user_settings *user);
void gv_decision_put(struct gv_decision *decision); /* NULL is fine */

/* True if the ranks need not wait for each other: whatever the others say, this rank does what NCCL
 * would. */
static inline bool gv_decision_trivial(const struct gv_decision *d)
{
    return d->file < 0 && !d->table;
}

#endif
