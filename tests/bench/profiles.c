#include "tests/bench/profiles.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_BYTES 1024.0
#define OCTAVES 23      /* up to 8 GiB */
#define MAX_GROUPS 4096 /* in one profile */

static void *grow(void *list, int n, size_t size)
{
    list = realloc(list, ((size_t)n + 1) * size);
    if (!list)
        abort();
    return memset((char *)list + (size_t)n * size, 0, size), list;
}

static struct gv_profile_group *
add_group(struct gv_profile *p, gv_gpuset gpus, enum gv_op op, uint64_t bytes)
{
    p->groups = grow(p->groups, p->ngroups, sizeof(*p->groups));
    struct gv_profile_group *group = &p->groups[p->ngroups++];
    group->gpus = gpus;
    group->op = op;
    group->bytes = bytes;
    return group;
}

static struct gv_profile_variant *add_variant(struct gv_profile_group *group)
{
    group->variants = grow(group->variants, group->nvariants, sizeof(*group->variants));
    struct gv_profile_variant *variant = &group->variants[group->nvariants++];
    variant->algorithm = GV_ALGO_ANY;
    variant->protocol = GV_PROTO_ANY;
    return variant;
}

static void add_run(struct gv_profile_variant *variant, double busbw_gbs, int count)
{
    variant->runs = grow(variant->runs, variant->nruns, sizeof(*variant->runs));
    struct gv_profile_run *run = &variant->runs[variant->nruns++];
    snprintf(run->name, sizeof(run->name), "generated");
    run->algbw_gbs = NAN;
    run->count = count;
    run->busbw_gbs = calloc((size_t)count, sizeof(double));
    if (!run->busbw_gbs)
        abort();
    for (int i = 0; i < count; i++)
        run->busbw_gbs[i] = busbw_gbs + 0.01 * (i % 3);
}

static struct gv_profile *shipped(void)
{
    struct gv_error err = {0};
    char text[GV_ERROR_TEXT + GV_ERROR_FILE + 32];
    struct gv_profile *p = gv_profile_read(GV_PROFILES "/4028.yaml", &err);
    if (!p) {
        fprintf(stderr, "bench: %s\n", gv_error_format(&err, text, sizeof(text)));
        exit(3);
    }
    snprintf(p->provenance.nccl, sizeof(p->provenance.nccl), "2.28.9");
    return p;
}

/* Every bound is at least one above the one before. */
static uint64_t bound(int i, int nrows, uint64_t before)
{
    uint64_t bytes = (uint64_t)(FIRST_BYTES * exp2((double)OCTAVES * i / nrows));
    return bytes > before ? bytes : before + 1;
}

/* Neighbours differ, so that no two rows become one. */
static struct gv_bench_row choice(int i)
{
    static const struct gv_bench_row choices[] = {
        {.algorithm = GV_ALGO_RING, .protocol = GV_PROTO_SIMPLE},
        {.algorithm = GV_ALGO_TREE, .protocol = GV_PROTO_LL, .channels = 4},
        {.algorithm = GV_ALGO_RING, .protocol = GV_PROTO_LL, .channels = 2},
        {.algorithm = GV_ALGO_TREE, .protocol = GV_PROTO_SIMPLE},
    };
    return choices[i % 4];
}

static void drop_groups(struct gv_profile *p)
{
    for (int g = 0; g < p->ngroups; g++) {
        for (int v = 0; v < p->groups[g].nvariants; v++) {
            struct gv_profile_variant *variant = &p->groups[g].variants[v];
            for (int r = 0; r < variant->nruns; r++) {
                free(variant->runs[r].busbw_gbs);
                free(variant->runs[r].throttled);
            }
            free(variant->runs);
        }
        free(p->groups[g].variants);
    }
    free(p->groups);
    p->groups = NULL;
    p->ngroups = 0;
}

struct gv_profile *gv_bench_profile_rows(int nrows, struct gv_bench_row *rows)
{
    struct gv_profile *p = shipped();
    uint64_t bytes = 0, before = 0;
    drop_groups(p);
    for (int i = 0; i <= nrows && i < MAX_GROUPS; i++) {
        struct gv_bench_row row = choice(i < nrows ? i : nrows - 1);
        bytes = bound(i, nrows, before);
        struct gv_profile_group *group = add_group(p, 3, GV_OP_ALL_REDUCE, bytes);
        add_run(add_variant(group), 10.0, 3);
        struct gv_profile_variant *variant = add_variant(group);
        variant->algorithm = row.algorithm;
        variant->protocol = row.protocol;
        variant->channels = row.channels;
        add_run(variant, 12.0, 3);
        if (rows && i < nrows)
            rows[i] = row, rows[i].min_bytes = rows[i].max_bytes = bytes;
        if (rows && i)
            rows[i - 1].max_bytes = bytes - (i < nrows);
        before = bytes;
    }
    return p;
}

static void add_gpu(struct gv_profile *p)
{
    p->gpus = grow(p->gpus, p->ngpus, sizeof(*p->gpus));
    struct gv_profile_gpu *gpu = &p->gpus[p->ngpus];
    gpu->index = p->ngpus++;
    snprintf(gpu->model, sizeof(gpu->model), "Tesla V100-PCIE-32GB");
    snprintf(gpu->island, sizeof(gpu->island), "S%d", gpu->index / 4);
    gpu->pci_vendor = 0x10de;
    gpu->pci_device = 0x1db6;
    gpu->sm = 70;
    gpu->memory_mib = 32768;
    gpu->link_gen = gpu->link_width = gpu->link_gen_max = gpu->link_width_max = -1;
    gpu->power_limit_w = gpu->app_core_mhz = gpu->max_core_mhz = gpu->memory_mhz = -1;
}

static void add_path(struct gv_profile *p, gv_gpuset from, gv_gpuset to, enum gv_path_class near)
{
    const struct gv_figure unknown = {NAN, NAN, NAN, 0};
    p->paths = grow(p->paths, p->npaths, sizeof(*p->paths));
    struct gv_profile_path *path = &p->paths[p->npaths++];
    path->from = from;
    path->to = to;
    path->both_directions = from != to;
    path->nccl_class = near;
    path->p2p = GV_P2P_VERIFIED;
    path->write_gbs = path->read_gbs = path->both_ways_gbs = path->latency_us =
        path->loaded_write_gbs = path->host_path_gbs = unknown;
}

struct gv_profile *gv_bench_profile_64(void)
{
    struct gv_profile *p = gv_profile_new();
    if (!p)
        abort();
    snprintf(p->name, sizeof(p->name), "64");
    snprintf(p->provenance.nccl, sizeof(p->provenance.nccl), "2.28.9");
    snprintf(p->cpu_vendor, sizeof(p->cpu_vendor), "intel");
    p->match = GV_MATCH_SHAPE;
    p->provenance.kind = GV_PUBLISHED;
    p->policy.operations = GV_OP_BIT(GV_OP_ALL_REDUCE);
    for (int i = 0; i < 64; i++)
        add_gpu(p);
    for (int i = 0; i < 16; i++) {
        gv_gpuset own = 15ull << 4 * i;
        add_path(p, own, own, GV_PATH_PIX);
        if (i < 15)
            add_path(p, own, ~0ull << 4 * (i + 1), GV_PATH_PHB);
    }
    struct gv_profile_group *group = add_group(p, ~0ull, GV_OP_ALL_REDUCE, 1ull << 30);
    for (int i = 0; i < 64; i++)
        group->ring[group->nring++] = i;
    add_run(add_variant(group), 7.0, 3);
    struct gv_profile_variant *tuned = add_variant(group);
    tuned->edit = GV_EDIT_P2P_LEVEL;
    add_run(tuned, 8.0, 3);
    return p;
}

struct gv_profile *gv_bench_profile_samples(int nsamples)
{
    enum { IN_RUN = 20 };
    struct gv_profile *p = shipped();
    for (int i = 0; i < nsamples / IN_RUN; i++) {
        struct gv_profile_group *group =
            add_group(p, i % 2 ? 0x1f : 0x3ff, GV_OP_ALL_REDUCE, 1024 + 1024 * (uint64_t)(i / 2));
        add_run(add_variant(group), 7.0, IN_RUN);
    }
    return p;
}
