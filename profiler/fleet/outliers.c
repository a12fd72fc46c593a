/* Names what is off, and finds what one fault explains: a GPU's slow link shows in every pair and
 * group that the GPU is in. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/gv_size.h"
#include "profiler/fleet/fleet.h"

struct gv_fleet_outlier *gv_fleet_new_outlier(struct gv_fleet *fleet, int host)
{
    struct gv_fleet_outlier *o = gv_fleet_grow(&fleet->outliers, &fleet->noutliers, sizeof(*o));
    if (!o) {
        fleet->failed = true;
        return NULL;
    }
    *o = (struct gv_fleet_outlier){.host = host, .item = -1, .value = -1, .gpu = -1, .cause = -1};
    return o;
}

static void say_variant(const struct gv_profile_variant *v, char *out, size_t size)
{
    char number[16];
    snprintf(number, sizeof(number), "%d channels", v->channels);
    snprintf(
        out, size, "%s%s%s%s%s%s%s", v->edit == GV_EDIT_NONE ? "default" : gv_edit_name(v->edit),
        v->algorithm == GV_ALGO_ANY ? "" : " ",
        v->algorithm == GV_ALGO_ANY ? "" : gv_algo_name(v->algorithm),
        v->protocol == GV_PROTO_ANY ? "" : "/",
        v->protocol == GV_PROTO_ANY ? "" : gv_proto_name(v->protocol), v->channels ? " " : "",
        v->channels ? number : "");
}

const char *
gv_fleet_where(const struct gv_fleet *fleet, const struct gv_fleet_key *key, char *out, size_t size)
{
    char set[256], bytes[32], variant[64];
    if (gv_fleet_figures[key->figure].scope == GV_SCOPE_GPU)
        snprintf(out, size, "GPU %d", key->a);
    else if (gv_fleet_figures[key->figure].scope == GV_SCOPE_PAIR)
        snprintf(out, size, "GPU %d to %d", key->a, key->b);
    else if (key->variant < 0)
        snprintf(out, size, "GPUs %s", gv_gpuset_format(key->gpus, set, sizeof(set)));
    else {
        say_variant(&fleet->variants[key->variant], variant, sizeof(variant));
        snprintf(
            out, size, "GPUs %.40s %s %s%s, %s", gv_gpuset_format(key->gpus, set, sizeof(set)),
            gv_op_name(key->op), gv_size_format(key->bytes, bytes, sizeof(bytes)),
            key->loaded ? " beside others" : "", variant);
    }
    return out;
}

const char *gv_fleet_say(const struct gv_fleet_key *key, double value, char *out, size_t size)
{
    const struct gv_fleet_figure *f = &gv_fleet_figures[key->figure];
    if (!isfinite(value))
        snprintf(out, size, "-");
    else if (!strcmp(f->name, "p2p"))
        snprintf(out, size, "%s", gv_p2p_name((enum gv_p2p)value));
    else if (!strcmp(f->name, "nccl_class"))
        snprintf(out, size, "%s", gv_path_class_name((enum gv_path_class)value));
    else if (!strcmp(f->unit, "lanes"))
        snprintf(out, size, "x%d", (int)value);
    else if (f->counted)
        snprintf(out, size, "%d%s%s", (int)value, *f->unit ? " " : "", f->unit);
    else
        snprintf(out, size, "%.2f %s", value, f->unit);
    return out;
}

static void say(struct gv_fleet *fleet, struct gv_fleet_outlier *o)
{
    const struct gv_fleet_item *item = &fleet->items[o->item];
    const struct gv_fleet_figure *f = &gv_fleet_figures[item->key.figure];
    double value = fleet->values[o->value].value;
    char here[48], there[48], off[32] = "";
    const char *bus_id = "";
    if (!f->counted && item->median > 0)
        snprintf(off, sizeof(off), " (%+.0f %%)", 100 * (value / item->median - 1));
    gv_fleet_where(fleet, &item->key, o->where, sizeof(o->where));
    if (f->scope == GV_SCOPE_GPU)
        bus_id = fleet->hosts[o->host].profile->gpus[item->key.a].bus_id;
    size_t n = strlen(o->where);
    if (*bus_id)
        snprintf(o->where + n, sizeof(o->where) - n, " (%s)", bus_id);
    snprintf(
        o->text, sizeof(o->text), "%s is %s, %s elsewhere%s", f->label,
        gv_fleet_say(&item->key, value, here, sizeof(here)),
        gv_fleet_say(&item->key, item->median, there, sizeof(there)), off);
}

static gv_gpuset touched(const struct gv_fleet_key *key)
{
    if (key->a < 0)
        return key->gpus;
    return GV_GPU_BIT(key->a) | (key->b >= 0 ? GV_GPU_BIT(key->b) : 0);
}

/* Measured while other pairs are at work: what is off there may be one of those. */
static bool beside_others(const struct gv_fleet_key *key)
{
    return key->loaded || !strcmp(gv_fleet_figures[key->figure].name, "loaded_write_gbs");
}

static enum gv_fleet_scope scope_of(const struct gv_fleet *fleet, const struct gv_fleet_outlier *o)
{
    return gv_fleet_figures[fleet->items[o->item].key.figure].scope;
}

static bool is_state(const struct gv_fleet *fleet, const struct gv_fleet_outlier *o)
{
    return !strcmp(gv_fleet_figures[fleet->items[o->item].key.figure].name, "p2p");
}

/* What of a GPU is off in itself explains pairs and groups; a pair whose P2P is not as elsewhere
 * explains its own figures, the way back, and groups with both ends. */
static int explains(
    const struct gv_fleet *fleet, const struct gv_fleet_outlier *cause,
    const struct gv_fleet_outlier *o)
{
    if (cause == o || o->item < 0 || cause->host != o->host)
        return 0;
    if (cause->gpu >= 0)
        return gv_gpuset_has(touched(&fleet->items[o->item].key), cause->gpu) ? 2 : 0;
    if (cause->item < 0)
        return 0;
    const struct gv_fleet_key *c = &fleet->items[cause->item].key, *k = &fleet->items[o->item].key;
    gv_gpuset whole = touched(k), part = touched(c);
    if (scope_of(fleet, cause) == GV_SCOPE_GPU && scope_of(fleet, o) != GV_SCOPE_GPU)
        return whole & part ? 2 : beside_others(k);
    if (scope_of(fleet, cause) == GV_SCOPE_GPU)
        return 0;
    if (!is_state(fleet, cause) || (whole & part) != part)
        return 0;
    /* of a pair's two states the one from the lower GPU is the first */
    return scope_of(fleet, o) == GV_SCOPE_GROUP || !is_state(fleet, o) || c->a < k->a ? 1 : 0;
}

static void find_causes(struct gv_fleet *fleet, int first, int end)
{
    for (int i = first; i < end; i++) {
        int best = 0;
        for (int c = first; c < end; c++) {
            int score = explains(fleet, &fleet->outliers[c], &fleet->outliers[i]);
            if (score > best) {
                best = score;
                fleet->outliers[i].cause = c;
            }
        }
    }
    /* one step only: the cause of a cause is told by that one */
    for (int i = first; i < end; i++) {
        int c = fleet->outliers[i].cause;
        if (c >= 0 && fleet->outliers[c].cause >= 0 && fleet->outliers[c].cause != i)
            fleet->outliers[i].cause = fleet->outliers[c].cause;
    }
}

/* Settings first, then what follows from them, then the pairs. */
static int by_host(const void *a, const void *b)
{
    const struct gv_fleet_outlier *x = a, *y = b;
    return x->host != y->host ? x->host - y->host : x->item - y->item;
}

static void name_item(struct gv_fleet *fleet, int i)
{
    const struct gv_fleet_item *item = &fleet->items[i];
    for (int v = item->first; item->off && v < item->first + item->n; v++) {
        struct gv_fleet_outlier *o =
            fleet->values[v].off ? gv_fleet_new_outlier(fleet, fleet->values[v].host) : NULL;
        if (!o)
            continue;
        o->item = i;
        o->value = v;
        say(fleet, o);
    }
}

/* A GPU that is well by itself, but off with most of the others. */
static void name_gpus(struct gv_fleet *fleet, int host, int end)
{
    const struct gv_profile *p = fleet->hosts[host].profile;
    gv_gpuset partners[GV_MAX_GPUS] = {0}, known = 0;
    for (int i = 0; i < end; i++) {
        const struct gv_fleet_outlier *o = &fleet->outliers[i];
        if (o->host != host || o->item < 0)
            continue;
        const struct gv_fleet_key *k = &fleet->items[o->item].key;
        if (scope_of(fleet, o) == GV_SCOPE_GPU)
            known |= GV_GPU_BIT(k->a);
        if (scope_of(fleet, o) == GV_SCOPE_PAIR && !beside_others(k)) {
            partners[k->a] |= GV_GPU_BIT(k->b);
            partners[k->b] |= GV_GPU_BIT(k->a);
        }
    }
    for (int g = 0; g < p->ngpus && p->ngpus > 2; g++) {
        int n = gv_gpuset_count(partners[g] & ~known);
        struct gv_fleet_outlier *o = 2 * n > p->ngpus - 1 && !gv_gpuset_has(known, g)
                                         ? gv_fleet_new_outlier(fleet, host)
                                         : NULL;
        if (!o)
            continue;
        o->gpu = g;
        snprintf(o->where, sizeof(o->where), "GPU %d (%s)", g, p->gpus[g].bus_id);
        snprintf(o->text, sizeof(o->text), "is off with %d of the %d others", n, p->ngpus - 1);
    }
}

int gv_fleet_name_outliers(struct gv_fleet *fleet)
{
    for (int i = 0; i < fleet->nitems; i++)
        name_item(fleet, i);
    for (int i = 0, end = fleet->noutliers; i < fleet->nhosts; i++)
        name_gpus(fleet, i, end);
    if (fleet->failed)
        return -1;
    if (fleet->noutliers)
        qsort(fleet->outliers, (size_t)fleet->noutliers, sizeof(*fleet->outliers), by_host);
    for (int i = 0, end; i < fleet->noutliers; i = end) {
        for (end = i;
             end < fleet->noutliers && fleet->outliers[end].host == fleet->outliers[i].host;)
            end++;
        fleet->hosts[fleet->outliers[i].host].outliers = end - i;
        find_causes(fleet, i, end);
    }
    return 0;
}
