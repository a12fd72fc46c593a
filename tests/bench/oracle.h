/* The best that the plugin could make of a communicator on a modelled machine: every kind of edit
 * that it can apply, carried out. */
#ifndef GV_BENCH_ORACLE_H
#define GV_BENCH_ORACLE_H

#include "tests/bench/model.h"

/* Plans carried out at most for one communicator. */
#define GV_ORACLE_MOST 400

struct gv_oracle {
    double default_gbs; /* busbw of an AllReduce of many bytes under NCCL's default; NAN where it
                           uses a pair that is not sound */
    double best_gbs;    /* the best plan that the rules let be used, the default included */
    double free_gbs;    /* the same without rule 2 */
    double bound_gbs;   /* gv_model_bound_gbs */
    bool exhausted;     /* every plan was tried, or one reached the bound */
    int plans;          /* carried out */
};

/* `any_operation`: a plan under which AllReduce at another size, or AllToAll, loses more than
 * `max_loss` does not count (rule 2). Plans that join a pair that is not sound, give a GPU a ninth
 * peer, allow LL128 over PCIe or P2P through a third GPU never do. */
struct gv_oracle gv_oracle_ask(
    const struct gv_model *model, gv_gpuset gpus, bool any_operation, double max_loss, int most);

#endif
