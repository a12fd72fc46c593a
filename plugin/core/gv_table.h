/* The tuner's table as the hot path reads it: built once, never changed, shared by any number of
 * communicators and threads. A look-up allocates nothing, takes no lock and makes no system call;
 * its time does not depend on the number of rows. */
#ifndef GV_TABLE_H
#define GV_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plugin/policy/gv_policy.h"

/* What to do for the sizes from the end of the row before (exclusive) to max_bytes. Rows leave no
 * gap: where nothing is advised a row says so. Four to a cache line, and no case to tell apart: a
 * row without a choice names the first cell and leaves it as it is. */
struct gv_advice {
    uint64_t max_bytes;
    float
        cost; /* the most that the named cell may cost from now on: 0, or INFINITY for no choice */
    uint8_t algorithm, protocol;
    uint8_t no_choice; /* 1: NCCL's own algorithm and protocol */
    uint8_t channels;  /* 0: NCCL's own number */
};

/* Buckets a power of two is cut into, and buckets in all: sizes under GV_TABLE_STEPS have one each.
 * With 4096 rows over 23 powers of two at most two or three rows end in a bucket. */
#define GV_TABLE_STEPS_LOG2 7
#define GV_TABLE_STEPS (1u << GV_TABLE_STEPS_LOG2)
#define GV_TABLE_BUCKETS (GV_TABLE_STEPS * (65 - GV_TABLE_STEPS_LOG2))

struct gv_op_table {
    const struct gv_advice *rows;         /* ordered by size; the last one ends at UINT64_MAX */
    int nrows;                            /* rows that advise something */
    uint16_t first[GV_TABLE_BUCKETS + 1]; /* first row that ends in bucket i or later */
};

struct gv_table {
    bool veto_ll128;
    struct gv_op_table *ops[GV_OP_COUNT]; /* NULL: no rows */
};

/* Builds the table of a plan. Rows that overlap an earlier one, or that would use LL128 where it is
 * vetoed, are left out. Returns NULL when out of memory. */
struct gv_table *gv_table_new(const struct gv_plan *plan);
void gv_table_free(struct gv_table *table); /* NULL is fine */

static inline unsigned gv_table_bucket(uint64_t bytes)
{
    if (bytes < GV_TABLE_STEPS)
        return (unsigned)bytes;
    unsigned shift = 63u - GV_TABLE_STEPS_LOG2 - (unsigned)__builtin_clzll(bytes);
    return shift * GV_TABLE_STEPS + (unsigned)(bytes >> shift);
}

/* For rows crowded into one bucket: where to go on from, at most eight rows before the one wanted.
 */
unsigned gv_table_bisect(const struct gv_advice *rows, unsigned low, unsigned high, uint64_t bytes);

/* The row that holds this size. Sizes come in no order that a processor could foresee, so the usual
 * steps are taken without a branch: a wrong guess costs more than the whole look-up. */
static inline const struct gv_advice *gv_table_find(const struct gv_op_table *op, uint64_t bytes)
{
    const struct gv_advice *rows = op->rows;
    unsigned bucket = gv_table_bucket(bytes);
    unsigned at = op->first[bucket], end = op->first[bucket + 1];
    if (__builtin_expect(end - at > 8, 0))
        at = gv_table_bisect(rows, at, end, bytes);
    at += rows[at].max_bytes < bytes;
    at += rows[at].max_bytes < bytes;
    while (__builtin_expect(rows[at].max_bytes < bytes, 0))
        at++;
    return &rows[at];
}

void gv_table_veto(float *costs, int nalgo, int nproto);

/* Applies the table to NCCL's cost table (tuner v3 and later): costs is float[nalgo][nproto] in us,
 * -1 where NCCL offers nothing, and such a cell stays -1. `*channels` is changed only where a row
 * says so. Without a branch on what the row says, for the same reason as above. */
static inline void gv_table_apply(
    const struct gv_table *table, int func, size_t bytes, float *costs, int nalgo, int nproto,
    int *channels)
{
    if (table->veto_ll128)
        gv_table_veto(costs, nalgo, nproto);
    if ((unsigned)func >= GV_OP_COUNT || !table->ops[func])
        return;
    const struct gv_advice *advice = gv_table_find(table->ops[func], bytes);
    if (advice->algorithm >= nalgo || advice->protocol >= nproto)
        return;
    float *cell = &costs[advice->algorithm * nproto + advice->protocol];
    unsigned follow = advice->no_choice | (*cell >= 0);
    *cell = *cell < advice->cost ? *cell : advice->cost;
    unsigned advised = advice->channels & -follow;
    unsigned own = (unsigned)*channels & -(unsigned)!advised;
    *channels = (int)(advised | own);
}

/* The same for tuner v1 and v2, which take one pair instead of costs. NCCL before 2.22 does not
 * check that a pair is available, so only pairs that always are will be named: ring with LL or
 * Simple, and for AllReduce tree as well. */
void gv_table_apply_pair(
    const struct gv_table *table, int func, size_t bytes, int *algorithm, int *protocol,
    int *channels);

#endif
