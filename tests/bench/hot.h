/* The hot path made ready: a tuner context of the real plugin whose table has a wanted number of
 * rows. */
#ifndef GV_BENCH_HOT_H
#define GV_BENCH_HOT_H

#include "plugin/abi/gv_nccl_abi.h"
#include "tests/bench/profiles.h"
#include "tests/bench/world.h"

#define GV_HOT_ALGORITHMS 7
#define GV_HOT_PROTOCOLS 3

struct gv_hot {
    struct gv_world world;
    struct gv_bench_row *rows; /* [nrows] as the table must be */
    int nrows;
    const struct gv_tuner_v5 *tuner;
    void *context[2]; /* of both ranks */
};

/* Opens the world with a profile of `nrows` rows and makes a communicator of two ranks (threads, on
 * GPUs 0 and 1) in the tuner slot alone. Exits where that fails, or where the table does not answer
 * as the rows say. */
void gv_hot_open(struct gv_hot *rows, int nrows);
void gv_hot_close(struct gv_hot *rows);

/* NCCL's cost table with everything on offer at a cost that nobody would choose. */
void gv_hot_costs(float costs[GV_HOT_ALGORITHMS * GV_HOT_PROTOCOLS]);

/* Sizes as a job asks them: half of any size, a quarter powers of two, a quarter multiples of 4 KiB
 * (parameters of layers), in an order that cannot be foreseen. */
void gv_hot_sizes(size_t *sizes, size_t n);

#endif
