#include "plugin/policy/rows.h"

#include <math.h>
#include <stdlib.h>

/* Rows that ask for what a look-up does not know (the pipeline, registered buffers) are not used:
 * the table is looked up by operation and size alone. */
static bool fits(const struct gv_facts *facts, const struct gv_profile_tuner *row)
{
    int ranks = gv_gpuset_count(facts->in->gpus);
    return (row->nodes == -1 || row->nodes == 1) && (row->ranks == -1 || row->ranks == ranks) &&
           row->pipe_ops == -1 && row->registered == -1;
}

/* Whether a choice of algorithm, protocol or channels was measured for these GPUs: then the
 * measurement decides, also where it says that NCCL's own choice is as good. */
static bool choice_measured(const struct gv_facts *facts, enum gv_op op)
{
    int end;
    for (int i = gv_facts_groups(facts, facts->in->gpus, op, &end); i < end; i++)
        for (int v = 0; v < facts->group[i]->nvariants; v++)
            if (!gv_variant_plain(&facts->group[i]->variants[v]))
                return true;
    return false;
}

/* Adds what the plan's rows from `from` on leave of this row: at most the part before the first
 * that overlaps, and what is left of the part behind it. */
static void append_rest(struct gv_plan *plan, int from, struct gv_tuner_row row)
{
    for (int i = from; i < plan->nrows; i++) {
        const struct gv_tuner_row old = plan->rows[i];
        if (old.max_bytes < row.min_bytes || old.min_bytes > row.max_bytes)
            continue;
        struct gv_tuner_row behind = row;
        behind.min_bytes = old.max_bytes + 1;
        if (row.max_bytes > old.max_bytes)
            append_rest(plan, i, behind);
        if (row.min_bytes >= old.min_bytes)
            return;
        row.max_bytes = old.min_bytes - 1;
    }
    gv_rows_append(plan, &row);
}

static struct gv_tuner_row row_of(const struct gv_profile_tuner *row)
{
    return (struct gv_tuner_row){
        .op = row->op,
        .min_bytes = row->min_bytes,
        .max_bytes = row->max_bytes ? row->max_bytes : UINT64_MAX,
        .algorithm = row->algorithm,
        .protocol = row->protocol,
        .channels = row->channels,
        .gain = NAN,
    };
}

static int by_operation_and_size(const void *a, const void *b)
{
    const struct gv_tuner_row *x = a, *y = b;
    if (x->op != y->op)
        return (int)x->op - (int)y->op;
    return (x->min_bytes > y->min_bytes) - (x->min_bytes < y->min_bytes);
}

void gv_rows_advise(const struct gv_facts *facts, bool no_ll128, struct gv_plan *plan)
{
    const struct gv_profile *profile = facts->profile;
    for (enum gv_op op = GV_OP_BROADCAST; op < GV_OP_SEND_RECV; op++) {
        int from = plan->nrows;
        if (choice_measured(facts, op))
            continue;
        for (int i = 0; i < profile->ntuner; i++) {
            const struct gv_profile_tuner *row = &profile->tuner[i];
            bool vetoed = no_ll128 && row->protocol == GV_PROTO_LL128;
            if (row->op == op && fits(facts, row) && !vetoed)
                append_rest(plan, from, row_of(row));
        }
    }
    if (plan->nrows)
        qsort(plan->rows, (size_t)plan->nrows, sizeof(*plan->rows), by_operation_and_size);
}
