/* A measurement as groups of a profile. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/collective/gv_busbw.h"
#include "profiler/collective/gv_collective.h"

/* Whether a figure of this case can stand in a profile: it holds one kind of sample for an
 * operation and size, and that is the one that training uses. */
static bool in_profile(const struct gv_case *what)
{
    return what->type == GV_TYPE_FLOAT && what->redop == GV_REDOP_SUM && !what->in_place;
}

static void take_word(struct gv_profile_variant *v, const char *word)
{
    int a, b;
    if (!strcmp(word, "lend"))
        v->edit = GV_EDIT_LEND;
    else if (!strcmp(word, "bridge"))
        v->edit = GV_EDIT_BRIDGE;
    else if (!strcmp(word, "separate"))
        v->edit = GV_EDIT_SEPARATE;
    else if (!strncmp(word, "count=", 6))
        v->lend_count = atoi(word + 6);
    else if (!strncmp(word, "channels=", 9))
        v->channels = atoi(word + 9);
    else if (!strncmp(word, "algorithm=", 10))
        v->algorithm = (enum gv_algo)gv_algo_from_name(word + 10);
    else if (!strncmp(word, "protocol=", 9))
        v->protocol = (enum gv_proto)gv_proto_from_name(word + 9);
    else if (v->nlend < 16 && sscanf(word, "%d-%d", &a, &b) == 2) {
        v->lend[v->nlend][0] = a;
        v->lend[v->nlend++][1] = b;
    }
}

/* The variant that GV100_FORCE describes (plugin/core/gv_force.h has its grammar). */
static struct gv_profile_variant variant_of(const char *force)
{
    struct gv_profile_variant v = {.algorithm = GV_ALGO_ANY, .protocol = GV_PROTO_ANY};
    char word[64];
    int used;
    for (; sscanf(force, " %63s%n", word, &used) == 1; force += used)
        take_word(&v, word);
    return v;
}

static int fill_run(
    struct gv_profile_run *run, const struct gv_collective *c, const struct gv_case *what,
    const struct gv_cell *cell)
{
    run->busbw_gbs = malloc(sizeof(double) * (size_t)cell->count);
    run->throttled = malloc(sizeof(bool) * (size_t)cell->count);
    if (!run->busbw_gbs || !run->throttled)
        return -1;
    bool any = false;
    for (int i = 0; i < cell->count; i++) {
        run->busbw_gbs[i] = gv_busbw_gbs(what->op, c->nranks, what->bytes, cell->time_us[i]);
        run->throttled[i] = cell->throttled[i];
        any |= cell->throttled[i];
    }
    if (!any) {
        free(run->throttled);
        run->throttled = NULL;
    }
    snprintf(run->name, sizeof(run->name), "NCCL");
    run->count = cell->count;
    run->algbw_gbs = NAN;
    return 0;
}

static bool same_variant(const struct gv_profile_variant *a, const struct gv_profile_variant *b)
{
    return a->edit == b->edit && a->lend_count == b->lend_count && a->nlend == b->nlend &&
           !memcmp(a->lend, b->lend, sizeof(a->lend[0]) * (size_t)a->nlend) &&
           a->algorithm == b->algorithm && a->protocol == b->protocol && a->channels == b->channels;
}

/* The variant in the group, added without runs where it is not there. NULL: out of memory. */
static struct gv_profile_variant *
variant_in(struct gv_profile_group *g, const struct gv_profile_variant *like)
{
    for (int v = 0; v < g->nvariants; v++)
        if (same_variant(&g->variants[v], like))
            return &g->variants[v];
    struct gv_profile_variant *grown =
        realloc(g->variants, sizeof(*grown) * (size_t)(g->nvariants + 1));
    if (!grown)
        return NULL;
    g->variants = grown;
    g->variants[g->nvariants] = *like;
    return &g->variants[g->nvariants++];
}

static int add_variant(struct gv_profile_group *g, const struct gv_collective *c, int s, int k)
{
    const struct gv_cell *cell = gv_cell_of(c, s, k);
    /* the plugin's own choice is one of the others; a wrong result is no figure */
    if (!c->steer[s].force[0] || !cell->count || cell->wrong)
        return 0;
    struct gv_profile_variant like = variant_of(c->steer[s].force);
    struct gv_profile_variant *v = variant_in(g, &like);
    struct gv_profile_run *grown =
        v ? realloc(v->runs, sizeof(*grown) * (size_t)(v->nruns + 1)) : NULL;
    if (!grown)
        return -1;
    v->runs = grown;
    v->runs[v->nruns] = (struct gv_profile_run){.count = 0};
    return fill_run(&v->runs[v->nruns++], c, &c->cases[k], cell);
}

/* Ring and SHM edges of the default. */
static void add_ring(struct gv_profile_group *g, const struct gv_collective *c)
{
    const struct gv_wiring *w = NULL;
    for (int s = 0; s < c->nsteers && !w; s++)
        if (!strcmp(c->steer[s].force, "default") && c->wiring[s].nring)
            w = &c->wiring[s];
    if (!w)
        return;
    g->nring = w->nring;
    memcpy(g->ring, w->ring, sizeof(int) * (size_t)w->nring);
    g->shm_edges_known = true;
    for (int i = 0; i < w->nring; i++) {
        if (!w->edge[i].transport[0])
            g->shm_edges_known = false;
        if (!gv_transport_is_shm(w->edge[i].transport))
            continue;
        g->shm_edges[g->nshm_edges][0] = w->edge[i].from;
        g->shm_edges[g->nshm_edges++][1] = w->edge[i].to;
    }
    if (!g->shm_edges_known)
        g->nshm_edges = 0;
}

static struct gv_profile_group *
group_in(const struct gv_profile_group *like, struct gv_profile_group **groups, int *ngroups)
{
    for (int i = 0; i < *ngroups; i++) {
        struct gv_profile_group *g = &(*groups)[i];
        if (g->gpus == like->gpus && g->op == like->op && g->bytes == like->bytes && !g->loaded)
            return g;
    }
    struct gv_profile_group *grown = realloc(*groups, sizeof(*grown) * (size_t)(*ngroups + 1));
    if (!grown)
        return NULL;
    *groups = grown;
    (*groups)[*ngroups] = *like;
    return &(*groups)[(*ngroups)++];
}

static bool any_sample(const struct gv_collective *c, int k)
{
    for (int s = 0; s < c->nsteers; s++) {
        const struct gv_cell *cell = gv_cell_of(c, s, k);
        if (c->steer[s].force[0] && cell->count && !cell->wrong)
            return true;
    }
    return false;
}

static int
add_group(const struct gv_collective *c, int k, struct gv_profile_group **groups, int *ngroups)
{
    struct gv_profile_group like = {.op = c->cases[k].op, .bytes = c->cases[k].bytes};
    for (int i = 0; i < c->nranks; i++)
        like.gpus |= GV_GPU_BIT(c->gpu[i]);
    struct gv_profile_group *g = group_in(&like, groups, ngroups);
    if (!g)
        return -1;
    for (int s = 0; s < c->nsteers; s++)
        if (add_variant(g, c, s, k))
            return -1;
    if (!g->nring)
        add_ring(g, c);
    return 0;
}

int gv_collective_groups(
    const struct gv_collective *c, struct gv_profile_group **groups, int *ngroups)
{
    for (int k = 0; k < c->ncases; k++)
        if (in_profile(&c->cases[k]) && any_sample(c, k) && add_group(c, k, groups, ngroups))
            return -1;
    return 0;
}
