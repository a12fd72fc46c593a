/* Max-min fair sharing by progressive filling. */
#include <math.h>
#include <stdlib.h>

#include "testbench/fabric/gv_fabric.h"

struct filling {
    double *left; /* what is free of each resource */
    double *load; /* weights of the flows that still rise */
    int nresources;
};

static void
add_load(struct filling *s, const struct gv_flow *const *flows, int n, const bool *fixed)
{
    for (int r = 0; r < s->nresources; r++)
        s->load[r] = 0;
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
    for (int r = 0; r < s->nresources; r++)
        if (s->load[r] > 0 && s->left[r] / s->load[r] < least)
            least = s->left[r] / s->load[r];
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

void gv_fabric_share(
    const struct gv_fabric *fabric, const struct gv_flow *const *flows, int n, double *rates)
{
    struct filling s = {.nresources = gv_fabric_resources(fabric)};
    bool *fixed = calloc((size_t)n + 1, sizeof(*fixed));
    s.left = malloc(sizeof(double) * (size_t)s.nresources);
    s.load = malloc(sizeof(double) * (size_t)s.nresources);
    if (!fixed || !s.left || !s.load)
        abort();
    for (int r = 0; r < s.nresources; r++)
        s.left[r] = gv_fabric_capacity(fabric, r);
    for (int i = 0; i < n; i++)
        rates[i] = 0;
    for (int i = 0; i <= n && fill_once(&s, flows, n, fixed, rates) > 0; i++)
        ;
    free(fixed);
    free(s.left);
    free(s.load);
}
