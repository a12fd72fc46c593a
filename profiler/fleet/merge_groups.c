/* Groups of a merged profile: samples of many hosts to those of one. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/fleet/merge.h"

static const struct gv_profile_variant *variant_in(
    const struct gv_profile *p, const struct gv_profile_group *like,
    const struct gv_profile_variant *variant)
{
    for (int g = 0; g < p->ngroups; g++) {
        const struct gv_profile_group *x = &p->groups[g];
        if (x->gpus != like->gpus || x->op != like->op || x->bytes != like->bytes ||
            x->loaded != like->loaded)
            continue;
        for (int v = 0; v < x->nvariants; v++)
            if (gv_fleet_same_variant(&x->variants[v], variant))
                return &x->variants[v];
    }
    return NULL;
}

/* A host's samples, sorted, those of a throttled GPU aside; `out` has room for all. */
static int samples(const struct gv_profile_variant *v, double *out)
{
    int n = 0;
    for (int r = 0; r < v->nruns; r++)
        for (int i = 0; i < v->runs[r].count; i++)
            if (!v->runs[r].throttled || !v->runs[r].throttled[i])
                out[n++] = v->runs[r].busbw_gbs[i];
    gv_fleet_sort(out, n);
    return n;
}

static int room(const struct gv_profile_variant *v)
{
    int n = 1;
    for (int r = 0; r < v->nruns; r++)
        n += v->runs[r].count;
    return n;
}

/* The k-th of `count` order statistics, interpolated where a host has more samples than that. */
static double rank_value(const double *sorted, int n, int k, int count)
{
    double at = count > 1 ? (double)k * (n - 1) / (count - 1) : (n - 1) / 2.0;
    int low = (int)at;
    double rest = at - low;
    return low + 1 < n ? sorted[low] * (1 - rest) + sorted[low + 1] * rest : sorted[n - 1];
}

/* Everything measured of one variant: a row of sorted samples for each host that is not off. */
struct rows {
    double **row;
    int *length, n, least;
};

static void rows_free(struct rows *r)
{
    for (int i = 0; i < r->n; i++)
        free(r->row[i]);
    free(r->row);
    free(r->length);
}

static bool is_off(const struct merge *m, const struct gv_fleet_item *item, int host)
{
    for (int i = item->first; i < item->first + item->n; i++)
        if (m->fleet->values[i].host == host)
            return m->fleet->values[i].off;
    return false;
}

static int collect(
    const struct merge *m, const struct gv_profile_group *group,
    const struct gv_profile_variant *variant, const struct gv_fleet_item *item, struct rows *out)
{
    *out = (struct rows){
        calloc((size_t)m->kind->n, sizeof(double *)), calloc((size_t)m->kind->n, sizeof(int)), 0,
        0};
    if (!out->row || !out->length)
        return -1;
    for (int h = 0; h < m->kind->n; h++) {
        const struct gv_profile_variant *v = variant_in(gv_merge_profile(m, h), group, variant);
        if (!v || is_off(m, item, m->kind->hosts[h]))
            continue;
        double *one = malloc(sizeof(double) * (size_t)room(v));
        if (!one)
            return -1;
        int n = samples(v, one);
        if (!n) {
            free(one);
            continue;
        }
        out->row[out->n] = one;
        out->length[out->n++] = n;
        out->least = !out->least || n < out->least ? n : out->least;
    }
    return 0;
}

/* The k-th sample is the median over hosts of each one's k-th: the middle is the kind's, the spread
 * is that of one host. Across hosts the spread would hide every gain that each of them has. */
static int fill_run(const struct rows *rows, struct gv_profile_variant *to)
{
    double *column = malloc(sizeof(double) * (size_t)(rows->n + 1));
    struct gv_profile_run *run = calloc(1, sizeof(*run));
    double *out = malloc(sizeof(double) * (size_t)(rows->least + 1));
    if (!column || !run || !out) {
        free(column);
        free(run);
        free(out);
        return -1;
    }
    for (int k = 0; k < rows->least; k++) {
        for (int i = 0; i < rows->n; i++)
            column[i] = rank_value(rows->row[i], rows->length[i], k, rows->least);
        gv_fleet_sort(column, rows->n);
        out[k] = gv_merge_digits(gv_fleet_middle(column, rows->n));
    }
    free(column);
    *run = (struct gv_profile_run){.busbw_gbs = out, .count = rows->least, .algbw_gbs = NAN};
    snprintf(run->name, sizeof(run->name), "median of %d", rows->n);
    to->runs = run;
    to->nruns = 1;
    return 0;
}

static const struct gv_fleet_item *
item_of(const struct merge *m, const struct gv_profile_group *g, const struct gv_profile_variant *v)
{
    struct gv_fleet_key key = {
        .figure = gv_fleet_figure_of("busbw_gbs"),
        .a = -1,
        .b = -1,
        .gpus = g->gpus,
        .op = g->op,
        .bytes = g->bytes,
        .loaded = g->loaded,
        .variant = gv_fleet_variant(m->fleet, v)};
    return gv_fleet_find(m->fleet, m->kind, &key);
}

static double value_on(const struct merge *m, const struct gv_fleet_item *item, int host)
{
    for (int i = item->first; i < item->first + item->n; i++)
        if (m->fleet->values[i].host == host && !m->fleet->values[i].off)
            return m->fleet->values[i].value;
    return NAN;
}

/* Whether a variant that gains on the whole loses on a host: then the kind has no word on it. Notes
 * which. */
static bool
disagrees(struct merge *m, const struct gv_profile_group *g, const struct gv_fleet_item *item)
{
    const struct gv_fleet_item *base = NULL;
    char where[160];
    for (int i = 0; i < g->nvariants && !base; i++)
        if (g->variants[i].edit == GV_EDIT_NONE && g->variants[i].algorithm == GV_ALGO_ANY &&
            g->variants[i].protocol == GV_PROTO_ANY && !g->variants[i].channels)
            base = item_of(m, g, &g->variants[i]);
    if (!base || base == item || item->median < base->median)
        return false;
    for (int h = 0; h < m->kind->n; h++) {
        int host = m->kind->hosts[h];
        double with = value_on(m, item, host), without = value_on(m, base, host);
        if (!(with < without))
            continue;
        gv_str_addf(
            &m->kind->left_out, "%s: it gains on the whole, but loses on %s\n",
            gv_fleet_where(m->fleet, &item->key, where, sizeof(where)), m->fleet->hosts[host].name);
        return true;
    }
    return false;
}

static int take_variant(
    struct merge *m, const struct gv_profile_group *g, const struct gv_profile_variant *v,
    struct gv_profile_group *to)
{
    const struct gv_fleet_item *item = item_of(m, g, v);
    struct rows rows;
    if (!item || item->n < m->kind->n) {
        m->left_out++;
        return 0;
    }
    if (disagrees(m, g, item))
        return 0;
    struct gv_profile_variant *out = &to->variants[to->nvariants];
    int rc = collect(m, g, v, item, &rows);
    if (!rc && rows.n) {
        *out = *v;
        out->runs = NULL;
        out->nruns = 0;
        rc = fill_run(&rows, out);
        to->nvariants += !rc;
    }
    rows_free(&rows);
    return rc;
}

static const struct gv_profile_group *
group_in(const struct gv_profile *p, const struct gv_profile_group *like)
{
    for (int i = 0; i < p->ngroups; i++)
        if (p->groups[i].gpus == like->gpus && p->groups[i].op == like->op &&
            p->groups[i].bytes == like->bytes && p->groups[i].loaded == like->loaded)
            return &p->groups[i];
    return NULL;
}

/* Ring and edges are kept where all hosts have them alike. */
static void same_ring(const struct merge *m, struct gv_profile_group *g)
{
    for (int h = 1; h < m->kind->n; h++) {
        const struct gv_profile_group *x = group_in(gv_merge_profile(m, h), g);
        bool ring =
            x && x->nring == g->nring && !memcmp(x->ring, g->ring, sizeof(int) * (size_t)g->nring);
        bool edges =
            x && x->shm_edges_known == g->shm_edges_known && x->nshm_edges == g->nshm_edges &&
            !memcmp(x->shm_edges, g->shm_edges, sizeof(g->shm_edges[0]) * (size_t)g->nshm_edges);
        if (ring && edges)
            continue;
        g->nring = g->nshm_edges = 0;
        g->shm_edges_known = false;
    }
}

int gv_merge_fleet_groups(struct merge *m)
{
    for (int i = 0; i < m->first->ngroups; i++) {
        const struct gv_profile_group *g = &m->first->groups[i];
        struct gv_profile_group *to = &m->out->groups[m->out->ngroups];
        *to = *g;
        to->nvariants = 0;
        to->variants = calloc((size_t)g->nvariants + 1, sizeof(*to->variants));
        if (!to->variants)
            return -1;
        m->out->ngroups++;
        for (int v = 0; v < g->nvariants; v++)
            if (take_variant(m, g, &g->variants[v], to))
                return -1;
        if (!to->nvariants) {
            free(to->variants);
            m->out->ngroups--;
        } else
            same_ring(m, to);
    }
    return 0;
}
