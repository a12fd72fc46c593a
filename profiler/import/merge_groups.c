/* Collectives: samples into runs, orders into rings. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/import/merge.h"

static struct gv_profile_group *
group_of(struct gv_profile *p, gv_gpuset gpus, const struct gv_import_sample *s)
{
    for (int i = 0; i < p->ngroups; i++)
        if (p->groups[i].gpus == gpus && p->groups[i].op == s->op &&
            p->groups[i].bytes == s->bytes && !p->groups[i].loaded)
            return &p->groups[i];
    void *list = p->groups;
    struct gv_profile_group *g = gv_merge_grow(&list, &p->ngroups, sizeof(*g));
    p->groups = list;
    if (g)
        *g = (struct gv_profile_group){.gpus = gpus, .op = s->op, .bytes = s->bytes};
    return g;
}

static struct gv_profile_variant *
variant_of(struct gv_profile_group *g, const struct gv_import_sample *s)
{
    for (int i = 0; i < g->nvariants; i++) {
        const struct gv_profile_variant *v = &g->variants[i];
        if (v->edit == s->edit && v->algorithm == s->algorithm && v->protocol == s->protocol &&
            v->channels == s->channels && !v->nlend && !v->lend_count)
            return &g->variants[i];
    }
    void *list = g->variants;
    struct gv_profile_variant *v = gv_merge_grow(&list, &g->nvariants, sizeof(*v));
    g->variants = list;
    if (v)
        *v = (struct gv_profile_variant){
            .edit = s->edit,
            .algorithm = s->algorithm,
            .protocol = s->protocol,
            .channels = s->channels};
    return v;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

/* The run of this table; samples of one size in one table (-N) belong together. */
static struct gv_profile_run *run_of(struct gv_merge *m, struct gv_profile_variant *v, int source)
{
    char name[32];
    const char *path = m->im->sources[source].path;
    snprintf(name, sizeof(name), "%.24s", base_name(path));
    int same = 0; /* earlier tables of the same file */
    for (int k = 0; k < source; k++)
        same += !strcmp(m->im->sources[k].path, path);
    if (same)
        snprintf(name + strlen(name), sizeof(name) - strlen(name), " %d", same + 1);
    for (int i = 0; i < v->nruns; i++)
        if (!strcmp(v->runs[i].name, name))
            return &v->runs[i];
    void *list = v->runs;
    struct gv_profile_run *run = gv_merge_grow(&list, &v->nruns, sizeof(*run));
    v->runs = list;
    if (run) {
        *run = (struct gv_profile_run){.algbw_gbs = NAN};
        memcpy(run->name, name, sizeof(name));
    }
    return run;
}

/* A second import of the same file would make one measurement look like two. */
static bool
known_place(const struct gv_profile_run *run, const struct gv_import_source *s, unsigned line)
{
    char place[300];
    snprintf(place, sizeof(place), "%s:%u", base_name(s->path), line);
    const char *at = strstr(run->source, place);
    return at && (!at[strlen(place)] || at[strlen(place)] == ',');
}

static int add_sample(
    struct gv_merge *m, const struct gv_import_source *s, struct gv_profile_run *run,
    const struct gv_import_sample *sample)
{
    if (known_place(run, s, sample->line))
        return gv_merge_fail(
            m, s, sample->line,
            "this line is in the profile already: one measurement must not count twice");
    double *more = reallocarray(run->busbw_gbs, (size_t)run->count + 1, sizeof(double));
    if (!more || run->count >= 100000)
        return gv_import_no_memory(m->err);
    run->busbw_gbs = more;
    run->busbw_gbs[run->count++] = sample->busbw_gbs;
    if (run->throttled) { /* as many flags as samples */
        free(run->throttled);
        run->throttled = NULL;
    }
    if (run->count == 1)
        run->algbw_gbs = sample->algbw_gbs;
    gv_merge_source(run->source, s, sample->line);
    return 0;
}

static gv_gpuset
members(const struct gv_merge *m, int source, const struct gv_import_sample *sample)
{
    const struct gv_import_source *s = &m->im->sources[source];
    gv_gpuset set = sample->gpus;
    int n = s->ngpus ? s->ngpus : m->im->options.ngpus;
    for (int i = 0; i < n && !sample->gpus; i++) {
        int gpu = s->ngpus ? m->map[source][i] : m->im->options.gpus[i];
        set |= GV_GPU_BIT(gpu);
    }
    return set;
}

static int take_sample(struct gv_merge *m, int source, const struct gv_import_sample *sample)
{
    const struct gv_import_source *s = &m->im->sources[source];
    gv_gpuset gpus = members(m, source, sample);
    if (m->p->ngpus < GV_MAX_GPUS && gpus >> m->p->ngpus)
        return gv_merge_fail(
            m, s, sample->line, "there is no such GPU, the profile has %d", m->p->ngpus);
    if (gv_gpuset_count(gpus) < 2)
        return gv_merge_fail(
            m, s, sample->line, "which GPUs were measured is not said: name them with --gpus");
    struct gv_profile_group *g = group_of(m->p, gpus, sample);
    struct gv_profile_variant *v = g ? variant_of(g, sample) : NULL;
    struct gv_profile_run *run = v ? run_of(m, v, source) : NULL;
    return run ? add_sample(m, s, run, sample) : gv_import_no_memory(m->err);
}

/* NCCL's default ring of the groups of exactly these GPUs. */
static void take_ring(struct gv_merge *m, int source, struct gv_import_ring *ring)
{
    struct gv_import_source *s = &m->im->sources[source];
    gv_gpuset set = 0;
    int taken = 0;
    for (int i = 0; i < ring->n; i++)
        set |= GV_GPU_BIT(ring->order[i]);
    for (int i = 0; i < m->p->ngroups; i++) {
        struct gv_profile_group *g = &m->p->groups[i];
        if (g->gpus != set || g->nring)
            continue;
        memcpy(g->ring, ring->order, sizeof(g->ring));
        g->nring = ring->n;
        taken++;
    }
    if (!taken)
        gv_import_note(
            s, ring->line,
            "the profile has no measured group of these GPUs without a ring: the order is not "
            "taken");
}

int gv_merge_groups(struct gv_merge *m)
{
    for (int k = 0; k < m->im->nsources; k++)
        for (int i = 0; i < m->im->sources[k].nsamples; i++)
            if (take_sample(m, k, &m->im->sources[k].samples[i]))
                return -1;
    for (int k = 0; k < m->im->nsources; k++)
        if (m->im->sources[k].nrings) /* the first channel; others go other ways round */
            take_ring(m, k, &m->im->sources[k].rings[0]);
    return 0;
}
