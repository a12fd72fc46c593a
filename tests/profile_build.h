/* Profiles made in C, for tests that state their facts as tables. Everything belongs to the build
 * and goes with gv_build_free; the profile inside is complete after every call. */
#ifndef GV_PROFILE_BUILD_H
#define GV_PROFILE_BUILD_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/gv_size.h"
#include "config/gv_profile.h"

struct gv_build {
    struct gv_profile profile;
};

static inline void *gv_build_grow(void *list, int n, size_t size)
{
    list = realloc(list, ((size_t)n + 1) * size);
    if (!list)
        abort();
    memset((char *)list + (size_t)n * size, 0, size);
    return list;
}

static inline struct gv_figure gv_build_figure(double value)
{
    return (struct gv_figure){value, value, value, isnan(value) ? 0 : 1};
}

/* An empty profile: intel, thresholds of 3 and 5 %, every operation in use. */
static inline struct gv_build *gv_build_new(enum gv_provenance_kind kind)
{
    struct gv_build *build = calloc(1, sizeof(*build));
    if (!build)
        abort();
    build->profile.provenance.kind = kind;
    strcpy(build->profile.cpu_vendor, "intel");
    strcpy(build->profile.provenance.nccl, "2.28.9");
    build->profile.policy.min_gain = 0.03;
    build->profile.policy.max_loss = 0.05;
    return build;
}

static inline void gv_build_free(struct gv_build *build)
{
    struct gv_profile *p = &build->profile;
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
    free(p->tuner);
    free(p->paths);
    free(p->gpus);
    free(build);
}

/* Adds `n` GPUs of one island. */
static inline void
gv_build_gpus(struct gv_build *build, int n, const char *island, int numa_node, int sm)
{
    struct gv_profile *p = &build->profile;
    for (int i = 0; i < n; i++) {
        p->gpus = gv_build_grow(p->gpus, p->ngpus, sizeof(*p->gpus));
        struct gv_profile_gpu *gpu = &p->gpus[p->ngpus];
        gpu->index = p->ngpus++;
        gpu->numa_node = numa_node;
        gpu->sm = sm;
        snprintf(gpu->island, sizeof(gpu->island), "%s", island);
    }
}

/* Adds an entry for all pairs between two lists, in both directions. */
static inline struct gv_profile_path *gv_build_path_sets(
    struct gv_build *build, gv_gpuset from, gv_gpuset to, enum gv_path_class nccl_class,
    int nvlinks, enum gv_p2p p2p, double gbs)
{
    struct gv_profile *p = &build->profile;
    p->paths = gv_build_grow(p->paths, p->npaths, sizeof(*p->paths));
    struct gv_profile_path *path = &p->paths[p->npaths++];
    path->from = from;
    path->to = to;
    path->both_directions = true;
    path->nccl_class = nccl_class;
    path->nvlinks = nvlinks;
    path->p2p = p2p;
    path->write_gbs = gv_build_figure(gbs);
    path->host_path_gbs = gv_build_figure(NAN);
    return path;
}

static inline gv_gpuset gv_build_set(const char *list)
{
    gv_gpuset set = 0;
    struct gv_error err = {0};
    if (gv_gpuset_parse(list, &set, &err)) {
        fprintf(stderr, "%s: %s\n", list, err.text);
        abort();
    }
    return set;
}

static inline struct gv_profile_path *gv_build_path(
    struct gv_build *build, const char *from, const char *to, enum gv_path_class nccl_class,
    int nvlinks, enum gv_p2p p2p, double gbs)
{
    return gv_build_path_sets(
        build, gv_build_set(from), gv_build_set(to), nccl_class, nvlinks, p2p, gbs);
}

/* The group of these GPUs, operation and size, made where it is not there yet. */
static inline struct gv_profile_group *gv_build_group_set(
    struct gv_build *build, gv_gpuset gpus, enum gv_op op, uint64_t bytes, bool loaded)
{
    struct gv_profile *p = &build->profile;
    for (int i = 0; i < p->ngroups; i++)
        if (p->groups[i].gpus == gpus && p->groups[i].op == op && p->groups[i].bytes == bytes &&
            p->groups[i].loaded == loaded)
            return &p->groups[i];
    p->groups = gv_build_grow(p->groups, p->ngroups, sizeof(*p->groups));
    struct gv_profile_group *group = &p->groups[p->ngroups++];
    group->gpus = gpus;
    group->op = op;
    group->bytes = bytes;
    group->loaded = loaded;
    return group;
}

static inline struct gv_profile_variant *
gv_build_variant(struct gv_profile_group *group, enum gv_edit_kind edit)
{
    group->variants = gv_build_grow(group->variants, group->nvariants, sizeof(*group->variants));
    struct gv_profile_variant *variant = &group->variants[group->nvariants++];
    variant->edit = edit;
    variant->algorithm = GV_ALGO_ANY;
    variant->protocol = GV_PROTO_ANY;
    return variant;
}

/* Adds a run; `samples` reads "7.91 6.75 6.89", a sample with a trailing ! was throttled. */
static inline void gv_build_run(struct gv_profile_variant *variant, const char *samples)
{
    variant->runs = gv_build_grow(variant->runs, variant->nruns, sizeof(*variant->runs));
    struct gv_profile_run *run = &variant->runs[variant->nruns++];
    run->algbw_gbs = NAN;
    for (char *end; *samples; samples = end) {
        double value = strtod(samples, &end);
        if (end == samples)
            break;
        run->busbw_gbs = gv_build_grow(run->busbw_gbs, run->count, sizeof(*run->busbw_gbs));
        run->throttled = gv_build_grow(run->throttled, run->count, sizeof(*run->throttled));
        run->busbw_gbs[run->count] = value;
        run->throttled[run->count++] = *end == '!';
        end += *end == '!';
    }
}

/* Samples of the default and of an edit (NULL: not measured) for a group. */
static inline struct gv_profile_group *gv_build_measured(
    struct gv_build *build, const char *gpus, enum gv_op op, const char *size, const char *base,
    enum gv_edit_kind edit, const char *tuned)
{
    uint64_t bytes = 0;
    if (gv_size_parse(size, &bytes, NULL))
        abort();
    struct gv_profile_group *group =
        gv_build_group_set(build, gv_build_set(gpus), op, bytes, false);
    if (base)
        gv_build_run(gv_build_variant(group, GV_EDIT_NONE), base);
    if (tuned)
        gv_build_run(gv_build_variant(group, edit), tuned);
    return group;
}

/* The group's default ring in order, and which of its edges are on SHM: pairs, ended by -1. */
static inline void
gv_build_ring(struct gv_profile_group *group, const char *ring, const int *shm_edges)
{
    group->nring = gv_gpulist_parse(ring, group->ring, NULL);
    group->shm_edges_known = true;
    for (; *shm_edges >= 0; shm_edges += 2) {
        group->shm_edges[group->nshm_edges][0] = shm_edges[0];
        group->shm_edges[group->nshm_edges++][1] = shm_edges[1];
    }
}

/* The reference machine, from its published measurement. */
static inline struct gv_build *gv_build_4028(void)
{
    static const struct {
        const char *gpus, *base, *tuned, *ring;
        int shm[8];
    } groups[] = {
        {"0,1", "11.40", NULL, "0,1", {-1}},
        {"0,5", "6.99", "7.78", "0,5", {0, 5, 5, 0, -1}},
        {"7,9", "73.31", NULL, "7,9", {-1}},
        {"0,10", "6.90", NULL, "0,10", {0, 10, 10, 0, -1}},
        {"0-4", "11.17", NULL, NULL, {-1}},
        {"0-5", "7.91 6.75 6.89", "7.94", "0-5", {4, 5, 5, 0, -1}},
        {"0-9", "6.88 6.63 6.87", "7.87", "0-7,9,8", {4, 5, 8, 0, -1}},
        {"0-10", "7.60 7.61 7.66", "7.54", "0-7,9,8,10", {4, 5, 8, 10, 10, 0, -1}},
    };
    struct gv_build *build = gv_build_new(GV_PUBLISHED);
    strcpy(build->profile.provenance.nccl, "2.23.4");
    build->profile.policy.operations = GV_OP_BIT(GV_OP_ALL_REDUCE);
    gv_build_gpus(build, 5, "A", 0, 70);
    gv_build_gpus(build, 5, "B", 0, 70);
    gv_build_gpus(build, 1, "C", 1, 70);
    gv_build_path(build, "0-4", "0-4", GV_PATH_PIX, 0, GV_P2P_VERIFIED, 13.20);
    gv_build_path(build, "5-6,8", "5-9", GV_PATH_PIX, 0, GV_P2P_VERIFIED, 13.20);
    gv_build_path(build, "7", "9", GV_PATH_NVL, 4, GV_P2P_VERIFIED, 96.845);
    gv_build_path(build, "0-4", "5-9", GV_PATH_PHB, 0, GV_P2P_VERIFIED, 10.28);
    gv_build_path(build, "0-9", "10", GV_PATH_SYS, 0, GV_P2P_REFUSED, NAN);
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        struct gv_profile_group *group = gv_build_measured(
            build, groups[i].gpus, GV_OP_ALL_REDUCE, "1G", groups[i].base, GV_EDIT_P2P_LEVEL,
            groups[i].tuned);
        if (groups[i].ring)
            gv_build_ring(group, groups[i].ring, groups[i].shm);
    }
    return build;
}

#endif
