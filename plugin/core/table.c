#include "plugin/core/gv_table.h"

#include <stdlib.h>
#include <string.h>

/* Above every time NCCL's model gives and below its upper bound (3.6e9, NCCL up to 2.28.9):
 * available, never chosen. -1 would be chosen from 2.31 on. */
#define VETO_COST 1e9f

const struct gv_advice *gv_table_find(const struct gv_op_table *op, uint64_t bytes)
{
    unsigned bucket = gv_table_bucket(bytes);
    unsigned low = op->first[bucket], high = op->first[bucket + 1];
    /* The row wanted ends at or after `bytes`: in low..high. Usually there is one candidate or two.
     */
    while (high - low > 8) {
        unsigned middle = low + (high - low) / 2;
        if (op->rows[middle].max_bytes < bytes)
            low = middle + 1;
        else
            high = middle;
    }
    while (low < (unsigned)op->nrows && op->rows[low].max_bytes < bytes)
        low++;
    if (low < (unsigned)op->nrows && op->rows[low].min_bytes <= bytes)
        return &op->rows[low];
    return NULL;
}

static void veto_ll128(float *costs, int nalgo, int nproto)
{
    if (nproto <= GV_PROTO_LL128)
        return;
    for (int algo = 0; algo < nalgo; algo++) {
        float *cell = &costs[algo * nproto + GV_PROTO_LL128];
        if (*cell >= 0)
            *cell = VETO_COST;
    }
}

void gv_table_apply(
    const struct gv_table *table, int func, size_t bytes, float *costs, int nalgo, int nproto,
    int *channels)
{
    if (table->veto_ll128)
        veto_ll128(costs, nalgo, nproto);
    if ((unsigned)func >= GV_OP_COUNT || !table->ops[func])
        return;
    const struct gv_advice *advice = gv_table_find(table->ops[func], bytes);
    if (!advice)
        return;
    if (advice->algorithm >= 0) {
        if (advice->algorithm >= nalgo || advice->protocol >= nproto)
            return;
        float *cell = &costs[advice->algorithm * nproto + advice->protocol];
        if (*cell < 0)
            return;
        *cell = 0;
    }
    if (advice->channels)
        *channels = advice->channels;
}

static bool always_available(int func, const struct gv_advice *advice)
{
    bool tree = advice->algorithm == GV_ALGO_TREE && func == GV_OP_ALL_REDUCE;
    return (advice->algorithm == GV_ALGO_RING || tree) && advice->protocol != GV_PROTO_LL128;
}

void gv_table_apply_pair(
    const struct gv_table *table, int func, size_t bytes, int *algorithm, int *protocol,
    int *channels)
{
    if ((unsigned)func >= GV_OP_COUNT || !table->ops[func])
        return;
    const struct gv_advice *advice = gv_table_find(table->ops[func], bytes);
    if (!advice)
        return;
    if (advice->algorithm >= 0) {
        if (!always_available(func, advice))
            return;
        *algorithm = advice->algorithm;
        *protocol = advice->protocol;
    }
    if (advice->channels)
        *channels = advice->channels;
}

/* Rows the hot path can use: a pair of algorithm and protocol or neither, a size range, something
 * to say. */
static bool usable(const struct gv_tuner_row *row, bool veto)
{
    bool algorithm = row->algorithm >= 0 && row->protocol >= 0;
    if ((row->algorithm >= 0) != (row->protocol >= 0))
        return false;
    if (veto && row->protocol == GV_PROTO_LL128)
        return false;
    return row->min_bytes <= row->max_bytes && (algorithm || row->channels > 0) &&
           row->channels < 256;
}

static void index_rows(struct gv_op_table *op)
{
    int row = 0;
    for (unsigned bucket = 0; bucket <= GV_TABLE_BUCKETS; bucket++) {
        while (row < op->nrows && gv_table_bucket(op->rows[row].max_bytes) < bucket)
            row++;
        op->first[bucket] = (uint16_t)row;
    }
}

static struct gv_op_table *op_new(const struct gv_plan *plan, enum gv_op op)
{
    int n = 0;
    for (int i = 0; i < plan->nrows; i++)
        n += plan->rows[i].op == op;
    if (!n)
        return NULL;
    if (n > GV_MAX_ROWS)
        n = GV_MAX_ROWS;
    struct gv_op_table *table = calloc(1, sizeof(*table) + (size_t)n * sizeof(struct gv_advice));
    if (!table)
        return NULL;
    struct gv_advice *rows = (struct gv_advice *)(table + 1);
    uint64_t behind = 0; /* the smallest size that no row so far covers */
    for (int i = 0; i < plan->nrows && table->nrows < n; i++) {
        const struct gv_tuner_row *row = &plan->rows[i];
        if (row->op != op || !usable(row, plan->veto_ll128))
            continue;
        if (table->nrows && row->min_bytes < behind)
            continue;
        rows[table->nrows++] = (struct gv_advice){
            .min_bytes = row->min_bytes,
            .max_bytes = row->max_bytes,
            .algorithm = (int8_t)row->algorithm,
            .protocol = (int8_t)row->protocol,
            .channels = (uint8_t)row->channels,
        };
        behind = row->max_bytes + 1;
        if (!behind)
            break;
    }
    table->rows = rows;
    index_rows(table);
    return table;
}

struct gv_table *gv_table_new(const struct gv_plan *plan)
{
    struct gv_table *table = calloc(1, sizeof(*table));
    if (!table)
        return NULL;
    table->veto_ll128 = plan->veto_ll128;
    for (int op = 0; op < GV_OP_COUNT; op++)
        table->ops[op] = op_new(plan, (enum gv_op)op);
    return table;
}

void gv_table_free(struct gv_table *table)
{
    if (!table)
        return;
    for (int op = 0; op < GV_OP_COUNT; op++)
        free(table->ops[op]);
    free(table);
}
