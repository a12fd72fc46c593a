#include "plugin/policy/samples.h"

#include <math.h>
#include <stdlib.h>

/* Figures are decimal fractions in a file: 7.21 over 7 is a gain of 3 %, though not in binary. */
#define ROUNDING 1e-9

static bool same_pair(const int a[2], const int b[2])
{
    return (a[0] == b[0] && a[1] == b[1]) || (a[0] == b[1] && a[1] == b[0]);
}

static bool same_lent(const struct gv_profile_variant *variant, const struct gv_variant_key *key)
{
    if (variant->lend_count != key->lend_count || variant->nlend != key->nlend)
        return false;
    for (int i = 0; i < key->nlend; i++) {
        bool found = false;
        for (int j = 0; j < variant->nlend; j++)
            found |= same_pair(key->lend[i], variant->lend[j]);
        if (!found)
            return false;
    }
    return true;
}

bool gv_variant_is(const struct gv_profile_variant *variant, const struct gv_variant_key *key)
{
    if (variant->edit != key->edit || variant->algorithm != key->algorithm ||
        variant->protocol != key->protocol || variant->channels != key->channels)
        return false;
    bool has_pairs = key->edit == GV_EDIT_LEND || key->edit == GV_EDIT_SEPARATE;
    return !has_pairs || same_lent(variant, key);
}

static bool usable(const struct gv_profile_run *run, int i)
{
    return !(run->throttled && run->throttled[i]) && isfinite(run->busbw_gbs[i]) &&
           run->busbw_gbs[i] > 0;
}

/* Writes the usable samples to `out` unless it is NULL. Returns their number. */
static int
collect(const struct gv_profile_group *group, const struct gv_variant_key *key, double *out)
{
    int n = 0;
    for (int v = 0; v < group->nvariants; v++) {
        if (!gv_variant_is(&group->variants[v], key))
            continue;
        for (int r = 0; r < group->variants[v].nruns; r++) {
            const struct gv_profile_run *run = &group->variants[v].runs[r];
            for (int i = 0; i < run->count; i++)
                if (usable(run, i)) {
                    if (out)
                        out[n] = run->busbw_gbs[i];
                    n++;
                }
        }
    }
    return n;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static struct gv_side side_of_sorted(const double *sorted, int n)
{
    int skip = n >= 4 ? 1 : 0;
    return (struct gv_side){
        .count = n,
        .median = n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2,
        .low = sorted[skip],
        .high = sorted[n - 1 - skip],
    };
}

struct gv_side gv_side_of(const struct gv_profile_group *group, const struct gv_variant_key *key)
{
    struct gv_side none = {.count = 0, .median = NAN, .low = NAN, .high = NAN};
    int n = collect(group, key, NULL);
    double *samples = n ? malloc((size_t)n * sizeof(*samples)) : NULL;
    if (!samples)
        return none; /* out of memory reads as not measured: the default stays */
    collect(group, key, samples);
    qsort(samples, (size_t)n, sizeof(*samples), ascending);
    struct gv_side side = side_of_sorted(samples, n);
    free(samples);
    return side;
}

static enum gv_verdict
verdict_of(const struct gv_facts *facts, const struct gv_comparison *comparison)
{
    const struct gv_side *base = &comparison->base, *other = &comparison->other;
    if (!base->count || !other->count)
        return GV_NOT_MEASURED;
    if (comparison->thin && facts->profile->provenance.kind == GV_CUDA)
        return GV_NOT_MEASURED;
    double step = facts->min_gain - ROUNDING;
    if (comparison->gain >= step && other->low > base->high)
        return GV_GAIN;
    if (base->median / other->median - 1 >= step && base->low > other->high)
        return GV_LOSS;
    return GV_SAME;
}

struct gv_comparison
gv_compare(const struct gv_facts *facts, struct gv_side base, struct gv_side other)
{
    struct gv_comparison comparison = {.base = base, .other = other};
    comparison.gain = other.median / base.median - 1; /* NAN where a side is missing */
    comparison.thin = base.count < 3 || other.count < 3;
    comparison.verdict = verdict_of(facts, &comparison);
    return comparison;
}

bool gv_loses(const struct gv_facts *facts, const struct gv_comparison *comparison)
{
    return comparison->gain < -(facts->max_loss + ROUNDING); /* false for NAN */
}

/* The samples of the group with these GPUs, operation, size and load. A profile should hold it
 * once; where it is there twice the entry with more samples counts, whatever their order. */
static struct gv_side side_in(
    const struct gv_facts *facts, gv_gpuset gpus, enum gv_op op, uint64_t bytes, bool loaded,
    const struct gv_variant_key *key)
{
    struct gv_side best = {.count = 0, .median = NAN, .low = NAN, .high = NAN};
    for (int i = gv_facts_group(facts, gpus, op, bytes); i < facts->ngroups; i++) {
        const struct gv_profile_group *group = facts->group[i];
        if (group->gpus != gpus || group->op != op || group->bytes != bytes)
            break;
        if (group->loaded != loaded)
            continue;
        struct gv_side side = gv_side_of(group, key);
        if (side.count > best.count || (side.count == best.count && side.median < best.median))
            best = side;
    }
    return best;
}

struct gv_comparison gv_measured(
    const struct gv_facts *facts, gv_gpuset gpus, enum gv_op op, uint64_t bytes,
    const struct gv_variant_key *base, const struct gv_variant_key *other)
{
    struct gv_comparison result = {.verdict = GV_NOT_MEASURED};
    for (int loaded = 1; loaded >= 0; loaded--) {
        result = gv_compare(
            facts, side_in(facts, gpus, op, bytes, loaded, base),
            side_in(facts, gpus, op, bytes, loaded, other));
        result.loaded = loaded;
        if (result.base.count && result.other.count)
            break;
    }
    result.op = op;
    result.bytes = bytes;
    return result;
}
