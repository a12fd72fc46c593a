/* Each figure over the hosts of a kind, and how far from the others a host may be.
 *
 * A host is off where it is further from the median than every one of
 * - 3.5 times 1.4826 times the median absolute deviation (the modified z-score of Iglewicz and
 *   Hoaglin, How to Detect and Handle Outliers, 1993),
 * - the range of one host's own samples (median over hosts): the noise of the measurement,
 * - the loss that the hosts' profiles tolerate (`max_loss`, 5 % where they are silent).
 * Settings and states are counted: the usual one is what over half of the hosts have. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/fleet/fleet.h"

#define Z 3.5
#define MAD_TO_SIGMA 1.4826

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void gv_fleet_sort(double *values, int n)
{
    qsort(values, (size_t)n, sizeof(*values), by_value);
}

double gv_fleet_middle(const double *sorted, int n)
{
    if (!n)
        return NAN;
    return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

#define COMPARE(x, y)                                                                              \
    if ((x) != (y))                                                                                \
    return (x) < (y) ? -1 : 1

int gv_fleet_compare_keys(const struct gv_fleet_key *a, const struct gv_fleet_key *b)
{
    COMPARE(a->figure, b->figure);
    COMPARE(a->a, b->a);
    COMPARE(a->b, b->b);
    COMPARE(a->gpus, b->gpus);
    COMPARE(a->op, b->op);
    COMPARE(a->bytes, b->bytes);
    COMPARE(a->loaded, b->loaded);
    COMPARE(a->variant, b->variant);
    return 0;
}

static int by_key(const void *a, const void *b)
{
    const struct gv_fleet_value *x = a, *y = b;
    int rc = gv_fleet_compare_keys(&x->key, &y->key);
    return rc ? rc : x->host - y->host;
}

/* Strictest of the hosts' profiles. */
static double tolerated(const struct gv_fleet *fleet, const struct gv_fleet_kind *kind)
{
    double least = INFINITY;
    for (int i = 0; i < kind->n; i++)
        least = fmin(least, fleet->hosts[kind->hosts[i]].profile->policy.max_loss);
    return least;
}

static void extremes(struct gv_fleet_item *item, const struct gv_fleet_value *v)
{
    item->min = INFINITY;
    item->max = -INFINITY;
    for (int i = 0; i < item->n; i++) {
        if (v[i].value < item->min) {
            item->min = v[i].value;
            item->min_host = v[i].host;
        }
        if (v[i].value > item->max) {
            item->max = v[i].value;
            item->max_host = v[i].host;
        }
    }
}

/* Only the value that over half of the kind's hosts have is usual. */
static void count(struct gv_fleet_item *item, struct gv_fleet_value *v, int hosts)
{
    item->median = NAN;
    item->bound = NAN;
    for (int i = 0; i < item->n; i++) {
        int same = 0;
        for (int k = 0; k < item->n; k++)
            same += v[k].value == v[i].value;
        if (2 * same > hosts && (same == item->n || hosts >= GV_FLEET_FEWEST))
            item->median = v[i].value;
    }
    for (int i = 0; i < item->n && isfinite(item->median); i++) {
        v[i].off = v[i].value != item->median;
        item->off += v[i].off;
    }
}

static int average(struct gv_fleet_item *item, struct gv_fleet_value *v, double loss)
{
    int n = item->n;
    double *values = malloc(sizeof(double) * 3 * (size_t)(n + 1));
    if (!values)
        return -1;
    double *away = values + n, *noise = values + 2 * n;
    for (int i = 0; i < n; i++) {
        values[i] = v[i].value;
        noise[i] = v[i].range;
    }
    gv_fleet_sort(values, n);
    gv_fleet_sort(noise, n);
    item->median = gv_fleet_middle(values, n);
    for (int i = 0; i < n; i++)
        away[i] = fabs(v[i].value - item->median);
    gv_fleet_sort(away, n);
    item->bound =
        n < GV_FLEET_FEWEST
            ? NAN
            : fmax(
                  fmax(Z * MAD_TO_SIGMA * gv_fleet_middle(away, n), gv_fleet_middle(noise, n)),
                  loss * fabs(item->median));
    for (int i = 0; i < n; i++) {
        v[i].off = fabs(v[i].value - item->median) > item->bound; /* false where the bound is NAN */
        item->off += v[i].off;
    }
    free(values);
    return 0;
}

static int settle(
    struct gv_fleet *fleet, const struct gv_fleet_kind *kind, struct gv_fleet_item *item,
    double loss)
{
    struct gv_fleet_value *v = &fleet->values[item->first];
    extremes(item, v);
    if (!gv_fleet_figures[item->key.figure].counted)
        return average(item, v, loss);
    count(item, v, kind->n);
    return 0;
}

int gv_fleet_items(struct gv_fleet *fleet, struct gv_fleet_kind *kind, int first)
{
    double loss = tolerated(fleet, kind);
    if (fleet->nvalues > first)
        qsort(
            fleet->values + first, (size_t)(fleet->nvalues - first), sizeof(*fleet->values),
            by_key);
    kind->first_item = fleet->nitems;
    for (int i = first; i < fleet->nvalues;) {
        struct gv_fleet_item *item = gv_fleet_grow(&fleet->items, &fleet->nitems, sizeof(*item));
        if (!item)
            return -1;
        item->key = fleet->values[i].key;
        item->first = i;
        while (i < fleet->nvalues && !gv_fleet_compare_keys(&fleet->values[i].key, &item->key))
            i++;
        item->n = i - item->first;
        if (settle(fleet, kind, item, loss))
            return -1;
    }
    kind->nitems = fleet->nitems - kind->first_item;
    return 0;
}

const struct gv_fleet_item *gv_fleet_find(
    const struct gv_fleet *fleet, const struct gv_fleet_kind *kind, const struct gv_fleet_key *key)
{
    int low = kind->first_item, high = low + kind->nitems;
    while (low < high) {
        int middle = low + (high - low) / 2;
        int rc = gv_fleet_compare_keys(&fleet->items[middle].key, key);
        if (!rc)
            return &fleet->items[middle];
        if (rc < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}
