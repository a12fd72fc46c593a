#include "tests/bench/hot.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "testbench/host/gv_fakecuda.h"

struct rank {
    struct gv_hot *rows;
    int index;
};

static void *init(void *arg)
{
    struct rank *rank = arg;
    gv_fakecuda_set_device(rank->index);
    rank->rows->tuner->init(
        &rank->rows->context[rank->index], 0x5ea1ull, 2, 1, gv_world_logger, NULL, NULL);
    return NULL;
}

static void make_communicator(struct gv_hot *rows)
{
    pthread_t thread[2];
    struct rank rank[2] = {{rows, 0}, {rows, 1}};
    for (int i = 0; i < 2; i++)
        if (pthread_create(&thread[i], NULL, init, &rank[i]))
            abort();
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
}

void gv_hot_costs(float costs[GV_HOT_ALGORITHMS * GV_HOT_PROTOCOLS])
{
    for (int i = 0; i < GV_HOT_ALGORITHMS * GV_HOT_PROTOCOLS; i++)
        costs[i] = 100.0f + (float)i;
}

static int cell_of(const struct gv_bench_row *row)
{
    return (int)row->algorithm * GV_HOT_PROTOCOLS + (int)row->protocol;
}

/* Both ends of the row and the size before it. */
static void check_row(const struct gv_hot *rows, int i)
{
    const struct gv_bench_row *row = &rows->rows[i];
    const uint64_t sizes[] = {row->min_bytes, row->max_bytes};
    for (int k = 0; k < 4; k++) {
        float costs[GV_HOT_ALGORITHMS * GV_HOT_PROTOCOLS];
        int channels = 0;
        gv_hot_costs(costs);
        rows->tuner->get_coll_info(
            rows->context[k / 2], GV_OP_ALL_REDUCE, sizes[k % 2], 1, (float **)costs,
            GV_HOT_ALGORITHMS, GV_HOT_PROTOCOLS, 0, &channels);
        if (costs[cell_of(row)] == 0 && channels == row->channels)
            continue;
        fprintf(
            stderr, "bench: row %d of %d is not in the plugin's table (size %llu)\n", i,
            rows->nrows, (unsigned long long)sizes[k % 2]);
        exit(3);
    }
}

void gv_hot_open(struct gv_hot *rows, int nrows)
{
    *rows = (struct gv_hot){.nrows = nrows};
    rows->rows = calloc((size_t)nrows, sizeof(*rows->rows));
    if (!rows->rows)
        abort();
    gv_world_open(&rows->world, GV_WORLD_4028);
    gv_world_profile(&rows->world, gv_bench_profile_rows(nrows, rows->rows));
    rows->tuner = gv_world_symbol(GV_WORLD_PLUGIN, "ncclTunerPlugin_v5");
    make_communicator(rows);
    for (int i = 0; i < nrows; i++)
        check_row(rows, i);
}

void gv_hot_close(struct gv_hot *rows)
{
    for (int i = 0; i < 2; i++)
        rows->tuner->finalize(rows->context[i]);
    free(rows->rows);
    gv_world_close(&rows->world);
}

static uint64_t next(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

void gv_hot_sizes(size_t *sizes, size_t n)
{
    uint64_t seed = 88172645463325252ull;
    for (size_t i = 0; i < n; i++) {
        uint64_t kind = next(&seed) % 4, r = next(&seed) >> 11;
        double octave = 7.0 + 27.0 * (double)r / 9007199254740992.0; /* 128 B to 16 GiB */
        sizes[i] = (size_t)exp2(octave);
        if (kind == 0)
            sizes[i] = (size_t)1 << (int)octave;
        else if (kind == 1)
            sizes[i] = (sizes[i] + 4095) / 4096 * 4096;
    }
}
