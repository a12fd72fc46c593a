/* Pairs and single GPUs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/import/merge.h"

/* Entries that cover several pairs become one for each pair, so that each can have its own figures
 * and its own source. */
static int expand(struct gv_profile *p)
{
    int n = p->ngpus;
    struct gv_profile_path *all = calloc((size_t)(n * n) + 1, sizeof(*all));
    int count = 0;
    if (!all)
        return -1;
    for (int a = 0; a < n; a++)
        for (int b = 0; b < n; b++) {
            if (a == b)
                continue;
            const struct gv_profile_path *old = gv_profile_path_of(p, a, b);
            struct gv_profile_path *path = &all[count];
            if (!old)
                continue;
            *path = *old;
            path->from = GV_GPU_BIT(a);
            path->to = GV_GPU_BIT(b);
            path->both_directions = false;
            count++;
        }
    free(p->paths);
    p->paths = all;
    p->npaths = count;
    return 0;
}

static struct gv_profile_path *path_of(struct gv_merge *m, int from, int to)
{
    struct gv_profile_path *path = (struct gv_profile_path *)gv_profile_path_of(m->p, from, to);
    if (path || m->p->npaths >= m->p->ngpus * m->p->ngpus)
        return path;
    path = &m->p->paths[m->p->npaths++];
    struct gv_figure none = {NAN, NAN, NAN, 0};
    *path = (struct gv_profile_path){
        .from = GV_GPU_BIT(from),
        .to = GV_GPU_BIT(to),
        .write_gbs = none,
        .read_gbs = none,
        .both_ways_gbs = none,
        .latency_us = none,
        .loaded_write_gbs = none,
        .host_path_gbs = none};
    return path;
}

static int take_class(
    struct gv_merge *m, const struct gv_import_source *s, const struct gv_import_pair *pair,
    struct gv_profile_path *path)
{
    if (*pair->smi_class) {
        if (*path->smi_class && strcmp(path->smi_class, pair->smi_class))
            return gv_merge_fail(
                m, s, pair->line, "the pair is %s here, %s elsewhere", pair->smi_class,
                path->smi_class);
        memcpy(path->smi_class, pair->smi_class, sizeof(path->smi_class));
    }
    if (pair->nvlinks)
        path->nvlinks = pair->nvlinks;
    if (pair->nccl_class != GV_PATH_UNKNOWN &&
        (path->nccl_class == GV_PATH_UNKNOWN || pair->nccl_class == GV_PATH_NVL))
        path->nccl_class = pair->nccl_class;
    return 0;
}

static int take_pair(
    struct gv_merge *m, const struct gv_import_source *s, const int *map,
    const struct gv_import_pair *pair)
{
    int from = map[pair->from], to = map[pair->to];
    if (from >= m->p->ngpus || to >= m->p->ngpus || from < 0 || to < 0)
        return gv_merge_fail(
            m, s, pair->line, "there is no such GPU, the profile has %d", m->p->ngpus);
    struct gv_profile_path *path = path_of(m, from, to);
    if (!path)
        return gv_import_no_memory(m->err);
    char *field = path->source;
    if (pair->refused && path->p2p != GV_P2P_REFUSED) {
        if (path->p2p != GV_P2P_UNVERIFIED)
            return gv_merge_fail(
                m, s, pair->line,
                "P2P from %d to %d is said to be unsupported, the profile has it as %s", from, to,
                gv_p2p_name(path->p2p));
        path->p2p = GV_P2P_REFUSED;
    }
    bool wrong =
        take_class(m, s, pair, path) ||
        gv_merge_figure(m, s, pair->line, "write_gbs", pair->write_gbs, &path->write_gbs, field) ||
        gv_merge_figure(m, s, pair->line, "read_gbs", pair->read_gbs, &path->read_gbs, field) ||
        gv_merge_figure(
            m, s, pair->line, "both_ways_gbs", pair->both_ways_gbs, &path->both_ways_gbs, field) ||
        gv_merge_figure(
            m, s, pair->line, "latency_us", pair->latency_us, &path->latency_us, field) ||
        gv_merge_figure(
            m, s, pair->line, "host_path_gbs", pair->host_path_gbs, &path->host_path_gbs, field);
    if (!wrong)
        gv_merge_source(field, s, pair->line);
    return wrong ? -1 : 0;
}

int gv_merge_paths(struct gv_merge *m)
{
    int pairs = 0;
    for (int k = 0; k < m->im->nsources; k++)
        pairs += m->im->sources[k].npairs;
    if (!pairs)
        return 0;
    if (expand(m->p))
        return gv_import_no_memory(m->err);
    for (int k = 0; k < m->im->nsources; k++)
        for (int i = 0; i < m->im->sources[k].npairs; i++)
            if (take_pair(m, &m->im->sources[k], m->map[k], &m->im->sources[k].pairs[i]))
                return -1;
    return 0;
}

static struct gv_profile_memory *memory_of(struct gv_profile *p, int gpu)
{
    for (int i = 0; i < p->nmemory; i++)
        if (p->memory[i].gpus == GV_GPU_BIT(gpu))
            return &p->memory[i];
    void *list = p->memory;
    struct gv_profile_memory *e = gv_merge_grow(&list, &p->nmemory, sizeof(*e));
    p->memory = list;
    struct gv_figure none = {NAN, NAN, NAN, 0};
    if (e)
        *e = (struct gv_profile_memory){
            .gpus = GV_GPU_BIT(gpu),
            .theoretical_gbs = NAN,
            .copy_gbs = none,
            .read_gbs = none,
            .write_gbs = none,
            .triad_gbs = none};
    return e;
}

static struct gv_profile_host_link *link_of(struct gv_profile *p, int gpu)
{
    for (int i = 0; i < p->nhost_links; i++)
        if (p->host_links[i].gpus == GV_GPU_BIT(gpu) && !p->host_links[i].together)
            return &p->host_links[i];
    void *list = p->host_links;
    struct gv_profile_host_link *e = gv_merge_grow(&list, &p->nhost_links, sizeof(*e));
    p->host_links = list;
    struct gv_figure none = {NAN, NAN, NAN, 0};
    if (e)
        *e = (struct gv_profile_host_link){
            .gpus = GV_GPU_BIT(gpu), .to_device_gbs = none, .to_host_gbs = none};
    return e;
}

static int take_single(
    struct gv_merge *m, const struct gv_import_source *s, int gpu,
    const struct gv_import_single *one)
{
    if (gpu >= m->p->ngpus || gpu < 0)
        return gv_merge_fail(
            m, s, one->line, "there is no GPU %d, the profile has %d", gpu, m->p->ngpus);
    if (!isnan(one->copy_gbs)) {
        struct gv_profile_memory *memory = memory_of(m->p, gpu);
        if (!memory)
            return gv_import_no_memory(m->err);
        if (gv_merge_figure(
                m, s, one->line, "copy_gbs", one->copy_gbs, &memory->copy_gbs, memory->source))
            return -1;
    }
    if (isnan(one->to_device_gbs) && isnan(one->to_host_gbs))
        return 0;
    struct gv_profile_host_link *link = link_of(m->p, gpu);
    if (!link)
        return gv_import_no_memory(m->err);
    return gv_merge_figure(
               m, s, one->line, "to_device_gbs", one->to_device_gbs, &link->to_device_gbs,
               link->source) ||
                   gv_merge_figure(
                       m, s, one->line, "to_host_gbs", one->to_host_gbs, &link->to_host_gbs,
                       link->source)
               ? -1
               : 0;
}

int gv_merge_singles(struct gv_merge *m)
{
    for (int k = 0; k < m->im->nsources; k++) {
        const struct gv_import_source *s = &m->im->sources[k];
        for (int i = 0; i < s->nsingles; i++)
            if (take_single(m, s, m->map[k][s->singles[i].gpu], &s->singles[i]))
                return -1;
    }
    return 0;
}
