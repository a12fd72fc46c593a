/* Max-min fair sharing by progressive filling. */
#include <math.h>
#include <stdlib.h>

#include "testbench/fabric/gv_fabric.h"

/* Arrays are by resource; only those of `used` are looked at, which are few. */
struct filling {
    double *left; /* what is free of each resource */
    double *load; /* weights of the flows that still rise */
    int *used, nused;
};

static void
add_load(struct filling *s, const struct gv_flow *const *flows, int n, const bool *fixed)
{
    for (int k = 0; k < s->nused; k++)
        s->load[s->used[k]] = 0;
    for (int i = 0; i < n; i++)
        for (int u = 0; u < flows[i]->nuse && !fixed[i]; u++)
            s->load[flows[i]->use[u].resource] += flows[i]->use[u].weight;
}

/* How far all rising flows can rise together. */
static double room(
    const struct filling *s, const struct gv_flow *const *flows, int n, const bool *fixed,
    const double *rates)
{
    double least = INFINITY;
    for (int k = 0; k < s->nused; k++) {
        int r = s->used[k];
        if (s->load[r] > 0 && s->left[r] / s->load[r] < least)
            least = s->left[r] / s->load[r];
    }
    for (int i = 0; i < n; i++)
        if (!fixed[i] && flows[i]->cap_gbs - rates[i] < least)
            least = flows[i]->cap_gbs - rates[i];
    return least < 0 ? 0 : least;
}

static bool is_full(const struct filling *s, const struct gv_flow *flow, double rate)
{
    if (rate >= flow->cap_gbs * (1 - 1e-9))
        return true;
    for (int u = 0; u < flow->nuse; u++)
        if (s->left[flow->use[u].resource] <= 1e-9)
            return true;
    return false;
}

static int
fill_once(struct filling *s, const struct gv_flow *const *flows, int n, bool *fixed, double *rates)
{
    int rising = 0;
    add_load(s, flows, n, fixed);
    double rise = room(s, flows, n, fixed, rates);
    for (int i = 0; i < n; i++)
        for (int u = 0; u < flows[i]->nuse && !fixed[i]; u++)
            s->left[flows[i]->use[u].resource] -= rise * flows[i]->use[u].weight;
    for (int i = 0; i < n; i++) {
        if (fixed[i])
            continue;
        rates[i] += rise;
        fixed[i] = isinf(rise) || is_full(s, flows[i], rates[i]);
        rising += !fixed[i];
    }
    return rising;
}

/* The resources of these flows, each with all of its capacity. */
static void
find_used(struct filling *s, const struct gv_fabric *f, const struct gv_flow *const *flows, int n)
{
    bool *seen = calloc((size_t)gv_fabric_resources(f), sizeof(*seen));
    if (!seen)
        abort();
    for (int i = 0; i < n; i++)
        for (int u = 0; u < flows[i]->nuse; u++) {
            int r = flows[i]->use[u].resource;
            if (seen[r])
                continue;
            seen[r] = true;
            s->used[s->nused++] = r;
            s->left[r] = gv_fabric_capacity(f, r);
        }
    free(seen);
}

void gv_fabric_share(
    const struct gv_fabric *fabric, const struct gv_flow *const *flows, int n, double *rates)
{
    size_t nresources = (size_t)gv_fabric_resources(fabric);
    struct filling s = {
        .left = malloc(sizeof(double) * nresources),
        .load = malloc(sizeof(double) * nresources),
        .used = malloc(sizeof(int) * nresources)};
    bool *fixed = calloc((size_t)n + 1, sizeof(*fixed));
    if (!fixed || !s.left || !s.load || !s.used)
        abort();
    find_used(&s, fabric, flows, n);
    for (int i = 0; i < n; i++)
        rates[i] = 0;
    for (int i = 0; i <= n && fill_once(&s, flows, n, fixed, rates) > 0; i++)
        ;
    free(fixed);
    free(s.left);
    free(s.load);
    free(s.used);
}
