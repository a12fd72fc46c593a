#include "plugin/policy/samples.h"

#include <math.h>
#include <stdlib.h>

/* Figures are decimal fractions in a file: 7.21 over 7 is a gain of 3 %, though not in binary. */
#define ROUNDING 1e-9

static bool same_pair(const int *a, const int *b)
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

/* Of two entries for one group the one with more samples counts; of as many the lower, so that the
 * order in the file does not matter. */
static bool counts_before(const struct gv_side *a, const struct gv_side *b)
{
    const double parts[][2] = {
        {b->count, a->count}, {a->median, b->median}, {a->low, b->low}, {a->high, b->high}};
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
        if (parts[i][0] != parts[i][1])
            return parts[i][0] < parts[i][1];
    return false;
}

/* The samples of the group with these GPUs, operation, size and load. A profile should hold it
 * once. */
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
        if (counts_before(&side, &best))
            best = side;
    }
    return best;
}

static struct gv_comparison measured_in(
    const struct gv_facts *facts, gv_gpuset gpus, enum gv_op op, uint64_t bytes, bool loaded,
    const struct gv_variant_key *base, const struct gv_variant_key *other)
{
    struct gv_comparison result = gv_compare(
        facts, side_in(facts, gpus, op, bytes, loaded, base),
        side_in(facts, gpus, op, bytes, loaded, other));
    result.op = op;
    result.bytes = bytes;
    result.loaded = loaded;
    return result;
}

struct gv_comparison gv_measured(
    const struct gv_facts *facts, gv_gpuset gpus, enum gv_op op, uint64_t bytes,
    const struct gv_variant_key *base, const struct gv_variant_key *other)
{
    struct gv_comparison beside = measured_in(facts, gpus, op, bytes, true, base, other);
    bool both = beside.base.count && beside.other.count;
    return both ? beside : measured_in(facts, gpus, op, bytes, false, base, other);
}
