/* gv-bench-hot: what getCollInfo costs, beside an empty tuner and a plain CSV tuner, in one process
 * and interleaved. One JSON object. */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/bench/hot.h"
#include "tests/bench/statistics.h"

#define SIZES 65536 /* more than any branch predictor remembers */
#define BATCH 32    /* calls between two looks at the clock */
#define CSV_EVERY 32

enum { PLUGIN, EMPTY, CSV, SUBJECTS };
static const char *const names[] = {"plugin", "empty", "csv"};

struct subject {
    const struct gv_tuner_v5 *tuner;
    void *context;
    double *ns; /* [n] a call's time, mean of each batch */
    size_t n;
};

struct bench {
    struct subject subject[SUBJECTS];
    size_t sizes[SIZES];
    size_t at;
    double clock_ns; /* what two looks at the clock cost in themselves */
};

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static __attribute__((noinline, noclone)) void
call_batch(const struct subject *subject, const size_t *sizes, size_t n)
{
    float costs[GV_HOT_ALGORITHMS * GV_HOT_PROTOCOLS];
    int channels = 0;
    gv_hot_costs(costs);
    for (size_t i = 0; i < n; i++)
        subject->tuner->get_coll_info(
            subject->context, GV_OP_ALL_REDUCE, sizes[i], 1, (float **)costs, GV_HOT_ALGORITHMS,
            GV_HOT_PROTOCOLS, 0, &channels);
}

static double clock_cost_ns(void)
{
    double ns[1001];
    for (int i = 0; i < 1001; i++) {
        double begin = now_ns();
        ns[i] = now_ns() - begin;
    }
    gv_sort(ns, 1001);
    return gv_quantile(ns, 1001, 0.5);
}

static void measure_one(struct bench *b, struct subject *subject, const size_t *sizes)
{
    double begin = now_ns();
    call_batch(subject, sizes, BATCH);
    subject->ns[subject->n++] = (now_ns() - begin - b->clock_ns) / BATCH;
}

static const size_t *next_sizes(struct bench *b)
{
    const size_t *sizes = &b->sizes[b->at];
    b->at = (b->at + BATCH) % SIZES;
    return sizes;
}

/* Plugin and empty tuner in turn. Now and then the CSV tuner: its walk over its rows drives the
 * others out of the caches, so they go over their data once, untimed, before they are timed again.
 */
static void measure(struct bench *b, size_t batches)
{
    b->clock_ns = clock_cost_ns();
    for (size_t i = 0; i < batches; i++) {
        if (i % CSV_EVERY == 0) {
            measure_one(b, &b->subject[CSV], next_sizes(b));
            for (int s = PLUGIN; s <= EMPTY; s++)
                call_batch(&b->subject[s], b->sizes, SIZES / 8);
        }
        const size_t *sizes = next_sizes(b);
        measure_one(b, &b->subject[i % 2 ? PLUGIN : EMPTY], sizes);
        measure_one(b, &b->subject[i % 2 ? EMPTY : PLUGIN], sizes);
    }
}

static void write_csv(const struct gv_hot *rows)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/rows.csv", rows->world.dir);
    FILE *file = fopen(path, "w");
    for (int i = 0; file && i < rows->nrows; i++)
        fprintf(
            file, "%d,%" PRIu64 ",%" PRIu64 ",%d,%d,%d,2,1\n", GV_OP_ALL_REDUCE,
            rows->rows[i].min_bytes, rows->rows[i].max_bytes, (int)rows->rows[i].algorithm,
            (int)rows->rows[i].protocol, rows->rows[i].channels);
    if (!file || fclose(file))
        abort();
    setenv("GV_BENCH_CSV", path, 1);
}

static void open_subjects(struct bench *b, const struct gv_hot *rows, size_t rounds)
{
    write_csv(rows);
    b->subject[PLUGIN].tuner = rows->tuner;
    b->subject[PLUGIN].context = rows->context[0];
    b->subject[EMPTY].tuner = gv_world_symbol("bench/libgv-tuner-empty.so", "ncclTunerPlugin_v5");
    b->subject[CSV].tuner = gv_world_symbol("bench/libgv-tuner-csv.so", "ncclTunerPlugin_v5");
    for (int s = EMPTY; s < SUBJECTS; s++)
        b->subject[s].tuner->init(
            &b->subject[s].context, 0x5ea1, 2, 1, gv_world_logger, NULL, NULL);
    for (int s = 0; s < SUBJECTS; s++)
        if (!(b->subject[s].ns = calloc(rounds, sizeof(double))))
            abort();
}

/* The peers do the same work: same cell, same channels, for every size. */
static void compare(const struct bench *b)
{
    for (size_t i = 0; i < SIZES; i++) {
        float costs[SUBJECTS][GV_HOT_ALGORITHMS * GV_HOT_PROTOCOLS];
        int channels[SUBJECTS] = {0};
        for (int s = 0; s < SUBJECTS; s++) {
            gv_hot_costs(costs[s]);
            b->subject[s].tuner->get_coll_info(
                b->subject[s].context, GV_OP_ALL_REDUCE, b->sizes[i], 1, (float **)costs[s],
                GV_HOT_ALGORITHMS, GV_HOT_PROTOCOLS, 0, &channels[s]);
        }
        if (!memcmp(costs[PLUGIN], costs[CSV], sizeof(costs[0])) &&
            channels[PLUGIN] == channels[CSV])
            continue;
        fprintf(stderr, "bench: plugin and CSV tuner differ at %zu bytes\n", b->sizes[i]);
        exit(3);
    }
}

static void print(struct bench *b, int nrows)
{
    printf("{\"rows\":%d,\"batch\":%d", nrows, BATCH);
    for (int s = 0; s < SUBJECTS; s++) {
        const struct subject *subject = &b->subject[s];
        gv_sort(subject->ns, subject->n);
        printf(
            ",\"%s\":{\"batches\":%zu,\"median_ns\":%.2f,\"p99_ns\":%.2f}", names[s], subject->n,
            gv_quantile(subject->ns, subject->n, 0.5), gv_quantile(subject->ns, subject->n, 0.99));
    }
    puts("}");
}

/* For callgrind: calls of one subject and nothing else that depends on their number. */
static int only_call(struct bench *b, const char *name, size_t calls)
{
    for (int s = 0; s < SUBJECTS; s++) {
        if (strcmp(name, names[s]))
            continue;
        for (size_t i = 0; i < calls; i += BATCH)
            call_batch(&b->subject[s], &b->sizes[i % SIZES], BATCH);
        return 0;
    }
    fprintf(stderr, "bench: no subject %s\n", name);
    return 2;
}

int main(int argc, char **argv)
{
    static const struct option known[] = {
        {"rows", required_argument, NULL, 'r'},
        {"batches", required_argument, NULL, 'b'},
        {"only", required_argument, NULL, 'o'},
        {"calls", required_argument, NULL, 'c'},
        {0}};
    static struct bench b;
    struct gv_hot rows;
    size_t nrows = 16, batches = 20000, calls = SIZES;
    const char *only = NULL;
    for (int c; (c = getopt_long(argc, argv, "", known, NULL)) >= 0;) {
        if (c == '?')
            return 2;
        if (c == 'o')
            only = optarg;
        else
            *(c == 'r' ? &nrows : c == 'b' ? &batches : &calls) = strtoul(optarg, NULL, 10);
    }
    if (!nrows || nrows > 4096 || !batches) {
        fputs("bench: --rows 1 to 4096, --batches 1 or more\n", stderr);
        return 2;
    }
    gv_hot_open(&rows, (int)nrows);
    gv_hot_sizes(b.sizes, SIZES);
    open_subjects(&b, &rows, batches);
    int rc = 0;
    if (only) {
        rc = only_call(&b, only, calls);
    } else {
        compare(&b);
        measure(&b, batches);
        print(&b, (int)nrows);
    }
    for (int s = 0; s < SUBJECTS; s++)
        free(b.subject[s].ns);
    b.subject[CSV].tuner->finalize(b.subject[CSV].context);
    gv_hot_close(&rows);
    return rc;
}
