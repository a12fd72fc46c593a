/* What this process knows: profile, machine, verification. Loaded once, at the first call, then
 * constant. */
#ifndef GV_STATE_H
#define GV_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "config/gv_machine.h"
#include "config/gv_profile.h"
#include "plugin/topology/gv_topology.h"

/* The name under which the loader knows this library, wherever the file lies. NCCL is answered with
 * it (2.27.3 refuses paths). */
#define GV_SONAME "libnccl-tuner-gv100.so"

struct gv_state {
    bool usable;   /* a profile that matches this machine is loaded */
    bool disabled; /* GV100_DISABLE=1: nothing is answered, nothing is said */
    struct gv_profile *profile;
    struct gv_machine machine;
    struct gv_tree
        *tree; /* base tree from NCCL's virtual file or sysfs; NULL: no plan can be handed over */
    int to_profile[GV_MAX_GPUS]; /* machine index -> profile index, -1 none */
    int to_machine[GV_MAX_GPUS]; /* profile index -> machine index, -1 none */
    bool own_word; /* the profile's own verification holds here (measured on this host, or assumed)
                    */
    gv_gpuset verified[GV_MAX_GPUS], bad[GV_MAX_GPUS]; /* from the stamp, profile indexes */
    unsigned operations;                               /* GV100_OPERATIONS, 0: the profile's */
    bool answer_nvb; /* NCCL_NVB_DISABLE=1 changes nothing by itself here: no real NVLink chains */
    uint64_t hash;   /* over all of the above that decisions depend on */
};

/* The process's state. Never NULL. */
const struct gv_state *gv_state(void);

/* What was learnt while running. Set by any thread, only ever raised. */
struct gv_learnt {
    atomic_bool one_node;    /* a tuner init said one node */
    atomic_bool wrong_guess; /* a plan was made for a communicator that turned out otherwise: no
                                more plans in this process */
};
extern struct gv_learnt gv_learnt;

/* Index of the GPU with this bus id on this machine, -1 none. */
int gv_state_gpu(const struct gv_state *state, const char *bus_id);

/* Index of the GPU that the calling thread drives, or of a CUDA ordinal of this process; -1 not
 * known. */
int gv_state_current_gpu(void);
int gv_state_ordinal_gpu(int ordinal);

#endif
