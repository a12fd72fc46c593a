#include "plugin/core/gv_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Above every time NCCL's model gives and below its upper bound (3.6e9, NCCL up to 2.28.9):
 * available, never chosen. -1 would be chosen from 2.31 on. */
#define VETO_COST 1e9f

unsigned gv_table_bisect(const struct gv_advice *rows, unsigned low, unsigned high, uint64_t bytes)
{
    while (high - low > 8) {
        unsigned middle = low + (high - low) / 2;
        if (rows[middle].max_bytes < bytes)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* LL128 of every algorithm, where NCCL offers it. */
void gv_table_veto(float *costs, int nalgo, int nproto)
{
    if (nproto <= GV_PROTO_LL128)
        return;
    for (int algo = 0; algo < nalgo; algo++) {
        float *cell = &costs[algo * nproto + GV_PROTO_LL128];
        if (*cell >= 0)
            *cell = VETO_COST;
    }
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
    if (!advice->no_choice) {
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
    unsigned row = 0;
    for (unsigned bucket = 0; bucket <= GV_TABLE_BUCKETS; bucket++) {
        while (op->rows[row].max_bytes != UINT64_MAX &&
               gv_table_bucket(op->rows[row].max_bytes) < bucket)
            row++;
        op->first[bucket] = (uint16_t)row;
    }
}

static struct gv_advice silence(uint64_t max_bytes)
{
    return (struct gv_advice){.max_bytes = max_bytes, .cost = INFINITY, .no_choice = 1};
}

static struct gv_advice advice_of(const struct gv_tuner_row *row)
{
    struct gv_advice advice = silence(row->max_bytes);
    advice.channels = (uint8_t)row->channels;
    if (row->algorithm < 0)
        return advice;
    advice.cost = 0;
    advice.no_choice = 0;
    advice.algorithm = (uint8_t)row->algorithm;
    advice.protocol = (uint8_t)row->protocol;
    return advice;
}

/* Fills op->rows[2 * n + 1] with the plan's usable rows of this operation, at most `n`, and the
 * silence between them. */
static void fill_rows(
    struct gv_op_table *op, struct gv_advice *rows, const struct gv_plan *plan, enum gv_op which)
{
    struct gv_advice *at = rows;
    uint64_t behind = 0; /* the smallest size that no row so far covers; 0 again: all are covered */
    for (int i = 0; i < plan->nrows && op->nrows < GV_MAX_ROWS; i++) {
        const struct gv_tuner_row *row = &plan->rows[i];
        bool covered = op->nrows && (!behind || row->min_bytes < behind);
        if (row->op != which || covered || !usable(row, plan->veto_ll128))
            continue;
        if (row->min_bytes > behind)
            *at++ = silence(row->min_bytes - 1);
        *at++ = advice_of(row);
        op->nrows++;
        behind = row->max_bytes + 1;
    }
    if (!op->nrows || behind)
        *at = silence(UINT64_MAX);
    op->rows = rows;
}

/* 0 also where the plan has nothing for this operation; -1: out of memory. */
static int add_op(struct gv_table *out, const struct gv_plan *plan, enum gv_op op)
{
    size_t n = 0;
    for (int i = 0; i < plan->nrows; i++)
        n += plan->rows[i].op == op;
    if (!n)
        return 0;
    if (n > GV_MAX_ROWS)
        n = GV_MAX_ROWS;
    size_t bytes = (2 * n + 1) * sizeof(struct gv_advice);
    struct gv_op_table *table = calloc(1, sizeof(*table) + bytes);
    if (!table)
        return -1;
    fill_rows(table, (struct gv_advice *)(table + 1), plan, op);
    index_rows(table);
    out->ops[op] = table;
    return 0;
}

struct gv_table *gv_table_new(const struct gv_plan *plan)
{
    struct gv_table *table = calloc(1, sizeof(*table));
    if (!table)
        return NULL;
    table->veto_ll128 = plan->veto_ll128;
    for (int op = 0; op < GV_OP_COUNT; op++) {
        if (add_op(table, plan, (enum gv_op)op)) {
            gv_table_free(table);
            return NULL;
        }
    }
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
