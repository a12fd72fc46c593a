/* A plain tuner as a peer: it keeps the lines of a CSV file ($GV_BENCH_CSV) in a list and, for each
 * collective, goes through them from the first until one fits operation, size, ranks and nodes.
 *
 * A line: operation,min_bytes,max_bytes,algorithm,protocol,channels,nranks,nnodes; the first three
 * names as NCCL numbers them, -1 for "any" in the last three. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "plugin/abi/gv_nccl_abi.h"

struct line {
    int operation;
    uint64_t min_bytes, max_bytes;
    int algorithm, protocol, channels, nranks, nnodes;
};

struct csv {
    struct line *lines;
    size_t nlines, nranks, nnodes;
};

static int read_line(FILE *file, struct line *line)
{
    return fscanf(
               file, "%d,%" SCNu64 ",%" SCNu64 ",%d,%d,%d,%d,%d", &line->operation,
               &line->min_bytes, &line->max_bytes, &line->algorithm, &line->protocol,
               &line->channels, &line->nranks, &line->nnodes) == 8;
}

static void read_lines(struct csv *csv, const char *path)
{
    FILE *file = path ? fopen(path, "r") : NULL;
    struct line line;
    while (file && read_line(file, &line)) {
        struct line *lines = realloc(csv->lines, (csv->nlines + 1) * sizeof(line));
        if (!lines)
            break;
        csv->lines = lines;
        csv->lines[csv->nlines++] = line;
    }
    if (file)
        fclose(file);
}

static int init(
    void **ctx, uint64_t comm_id, size_t nranks, size_t nnodes, gv_logger logger, void *domains,
    void *constants)
{
    (void)comm_id, (void)logger, (void)domains, (void)constants;
    struct csv *csv = calloc(1, sizeof(*csv));
    *ctx = csv;
    if (!csv)
        return GV_NCCL_SUCCESS;
    csv->nranks = nranks;
    csv->nnodes = nnodes;
    read_lines(csv, getenv("GV_BENCH_CSV"));
    return GV_NCCL_SUCCESS;
}

static int fits(const struct csv *csv, const struct line *line, int func, size_t bytes)
{
    return line->operation == func && bytes >= line->min_bytes && bytes <= line->max_bytes &&
           (line->nranks < 0 || (size_t)line->nranks == csv->nranks) &&
           (line->nnodes < 0 || (size_t)line->nnodes == csv->nnodes);
}

static int get_coll_info(
    void *ctx, int func, size_t bytes, int pipe_ops, float **costs, int nalgo, int nproto,
    int reg_buff, int *channels)
{
    (void)pipe_ops, (void)reg_buff;
    const struct csv *csv = ctx;
    float *cells = (float *)costs;
    for (size_t i = 0; csv && i < csv->nlines; i++) {
        const struct line *line = &csv->lines[i];
        if (!fits(csv, line, func, bytes))
            continue;
        if (line->algorithm < nalgo && line->protocol < nproto) {
            float *cell = &cells[line->algorithm * nproto + line->protocol];
            if (*cell >= 0) {
                *cell = 0;
                if (line->channels > 0)
                    *channels = line->channels;
            }
        }
        break;
    }
    return GV_NCCL_SUCCESS;
}

static int finalize(void *ctx)
{
    struct csv *csv = ctx;
    if (csv)
        free(csv->lines);
    free(csv);
    return GV_NCCL_SUCCESS;
}

GV_EXPORT const struct gv_tuner_v5 ncclTunerPlugin_v5 = {
    .name = "csv", .init = init, .get_coll_info = get_coll_info, .finalize = finalize};
