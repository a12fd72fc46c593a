#include "plugin/policy/evaluate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/policy/rows.h"

struct gv_variant_key gv_plain_key(enum gv_edit_kind edit)
{
    return (struct gv_variant_key){
        .edit = edit, .algorithm = GV_ALGO_ANY, .protocol = GV_PROTO_ANY};
}

bool gv_variant_plain(const struct gv_profile_variant *variant)
{
    return variant->algorithm == GV_ALGO_ANY && variant->protocol == GV_PROTO_ANY &&
           variant->channels == 0;
}

/* Order of candidates: by edit, lent count, then the pairs themselves, whose numbers fit in a byte.
 * No two have all that in common: add(). */
static int by_key(const void *a, const void *b)
{
    const struct gv_candidate *x = a, *y = b;
    const int parts[][2] = {
        {(int)x->applied, (int)y->applied},
        {(int)x->key.edit, (int)y->key.edit},
        {x->key.lend_count, y->key.lend_count},
        {x->key.nlend, y->key.nlend},
    };
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
        if (parts[i][0] != parts[i][1])
            return parts[i][0] - parts[i][1];
    return memcmp(x->key.lend, y->key.lend, (size_t)x->key.nlend * sizeof(*x->key.lend));
}

static int
add(struct gv_candidate *out, int n, struct gv_candidate candidate,
    const struct gv_profile_variant *variant)
{
    for (int i = 0; i < n; i++)
        if (out[i].applied == candidate.applied && gv_variant_is(variant, &out[i].key))
            return n;
    if (n < GV_MAX_CANDIDATES)
        out[n++] = candidate;
    return n;
}

static int add_variant(struct gv_candidate *out, int n, const struct gv_profile_variant *variant)
{
    struct gv_candidate candidate = {.applied = variant->edit, .key = gv_plain_key(variant->edit)};
    if (variant->edit == GV_EDIT_LEND || variant->edit == GV_EDIT_SEPARATE) {
        candidate.key.lend_count = variant->lend_count;
        candidate.key.lend = variant->lend;
        candidate.key.nlend = variant->nlend;
    }
    if (variant->edit != GV_EDIT_P2P_LEVEL && variant->edit != GV_EDIT_BRIDGE)
        return add(out, n, candidate, variant);
    candidate.applied = GV_EDIT_LEND;
    n = add(out, n, candidate, variant);
    candidate.applied = GV_EDIT_BRIDGE;
    return add(out, n, candidate, variant);
}

/* What was measured as it is applied leaves nothing to a stand-in to say about that edit. */
static int drop_stand_ins(struct gv_candidate *out, int n)
{
    bool direct[GV_EDIT_KINDS] = {false};
    int kept = 0;
    for (int i = 0; i < n; i++)
        direct[out[i].applied] |= out[i].key.edit == out[i].applied;
    for (int i = 0; i < n; i++)
        if (out[i].key.edit == out[i].applied || !direct[out[i].applied])
            out[kept++] = out[i];
    return kept;
}

int gv_candidates(
    const struct gv_facts *facts, gv_gpuset gpus, struct gv_candidate out[GV_MAX_CANDIDATES])
{
    int n = 0, end;
    for (int i = gv_facts_groups(facts, gpus, gv_deciding_op(facts), &end); i < end; i++) {
        const struct gv_profile_group *group = facts->group[i];
        for (int v = 0; v < group->nvariants; v++)
            if (gv_variant_plain(&group->variants[v]) && group->variants[v].edit != GV_EDIT_NONE)
                n = add_variant(out, n, &group->variants[v]);
    }
    n = drop_stand_ins(out, n);
    qsort(out, (size_t)n, sizeof(*out), by_key);
    return n;
}

enum gv_op gv_deciding_op(const struct gv_facts *facts)
{
    if (gv_facts_uses(facts, GV_OP_ALL_REDUCE))
        return GV_OP_ALL_REDUCE;
    return (enum gv_op)__builtin_ctz(facts->operations);
}

int gv_sizes(const struct gv_facts *facts, gv_gpuset gpus, enum gv_op op, uint64_t **out)
{
    int n = 0, end, first = gv_facts_groups(facts, gpus, op, &end);
    *out = end > first ? malloc((size_t)(end - first) * sizeof(**out)) : NULL;
    for (int i = first; *out && i < end; i++)
        if (!n || facts->group[i]->bytes != (*out)[n - 1])
            (*out)[n++] = facts->group[i]->bytes;
    return n;
}

static bool all_pairs_op(enum gv_op op)
{
    return op == GV_OP_SEND_RECV || op == GV_OP_ALL_TO_ALL;
}

/* The default against the candidate. Where it was not measured as applied, NCCL_P2P_LEVEL or a
 * bridge (for lent links) stands in, but neither says anything about all-to-all over lent links:
 * there, all pairs were P2P. */
static struct gv_comparison compare_at(
    const struct gv_facts *facts, gv_gpuset gpus, const struct gv_candidate *candidate,
    enum gv_op op, uint64_t bytes)
{
    struct gv_variant_key base = gv_plain_key(GV_EDIT_NONE);
    struct gv_variant_key level = gv_plain_key(GV_EDIT_P2P_LEVEL);
    bool stand_in = candidate->applied == GV_EDIT_BRIDGE ||
                    (candidate->applied == GV_EDIT_LEND && !all_pairs_op(op));
    struct gv_comparison result = {.verdict = GV_NOT_MEASURED, .gain = NAN};
    if (candidate->key.edit == candidate->applied || stand_in)
        result = gv_measured(facts, gpus, op, bytes, &base, &candidate->key);
    if (!result.other.count && stand_in)
        result = gv_measured(facts, gpus, op, bytes, &base, &level);
    return result;
}

/* Rule 1: the largest size at which the two differ decides; where they differ nowhere, the largest
 * at which both were measured. */
static void decide_by_size(
    const struct gv_facts *facts, gv_gpuset gpus, const struct gv_candidate *candidate,
    struct gv_evaluation *out)
{
    enum gv_op op = gv_deciding_op(facts);
    uint64_t *sizes;
    int n = gv_sizes(facts, gpus, op, &sizes);
    for (int i = n - 1; i >= 0; i--) {
        struct gv_comparison now = compare_at(facts, gpus, candidate, op, sizes[i]);
        bool first = out->verdict == GV_NOT_MEASURED &&
                     (now.verdict != GV_NOT_MEASURED || !out->deciding.other.count);
        if (first || now.verdict == GV_GAIN || now.verdict == GV_LOSS) {
            out->deciding = now;
            out->verdict = now.verdict;
        }
        if (out->verdict == GV_GAIN || out->verdict == GV_LOSS)
            break;
    }
    free(sizes);
}

/* True where an algorithm and protocol that the tuner's rows will have at this size (rows.h) make
 * up for what NCCL's own choice loses under the candidate. */
static bool made_up(
    const struct gv_facts *facts, gv_gpuset gpus, const struct gv_candidate *candidate,
    enum gv_op op, uint64_t bytes)
{
    const struct gv_policy_in *in = facts->in;
    struct gv_variant_key base = gv_plain_key(GV_EDIT_NONE), key = candidate->key;
    if (op >= GV_OP_SEND_RECV || gpus != in->gpus ||
        (in->nccl_version && !gv_same_nccl(in->profile->provenance.nccl, in->nccl_version)))
        return false; /* no rows there */
    for (int choice = 0; choice < GV_ALGO_COUNT * GV_PROTO_COUNT; choice++) {
        key.algorithm = (enum gv_algo)(choice / GV_PROTO_COUNT);
        key.protocol = (enum gv_proto)(choice % GV_PROTO_COUNT);
        if (candidate->applied == GV_EDIT_LEND && key.protocol == GV_PROTO_LL128)
            continue; /* vetoed */
        struct gv_comparison now = gv_measured(facts, gpus, op, bytes, &base, &key);
        if (now.other.count && !gv_loses(facts, &now) &&
            gv_measured(facts, gpus, op, bytes, &candidate->key, &key).verdict == GV_GAIN)
            return true;
    }
    return false;
}

/* Rule 2: the worst loss among the operations that the job uses. */
static void find_loss(
    const struct gv_facts *facts, gv_gpuset gpus, const struct gv_candidate *candidate,
    enum gv_op op, struct gv_evaluation *out)
{
    uint64_t *sizes;
    int n = gv_sizes(facts, gpus, op, &sizes);
    for (int i = 0; i < n; i++) {
        struct gv_comparison now = compare_at(facts, gpus, candidate, op, sizes[i]);
        if (!gv_loses(facts, &now) || (out->refused && now.gain >= out->loss.gain) ||
            made_up(facts, gpus, candidate, op, sizes[i]))
            continue;
        out->refused = true;
        out->loss = now;
    }
    free(sizes);
}

struct gv_evaluation
gv_evaluate(const struct gv_facts *facts, gv_gpuset gpus, const struct gv_candidate *candidate)
{
    struct gv_evaluation out = {.verdict = GV_NOT_MEASURED, .deciding.gain = NAN};
    decide_by_size(facts, gpus, candidate, &out);
    for (int op = 0; op < GV_OP_COUNT; op++)
        if (gv_facts_uses(facts, (enum gv_op)op))
            find_loss(facts, gpus, candidate, (enum gv_op)op, &out);
    return out;
}

bool gv_has_measured(
    const struct gv_facts *facts, gv_gpuset gpus, const struct gv_candidate *candidate,
    enum gv_op op)
{
    uint64_t *sizes;
    bool measured = false;
    int n = gv_sizes(facts, gpus, op, &sizes);
    for (int i = 0; i < n && !measured; i++)
        measured = compare_at(facts, gpus, candidate, op, sizes[i]).verdict != GV_NOT_MEASURED;
    free(sizes);
    return measured;
}

struct gv_side gv_default_side(const struct gv_facts *facts, gv_gpuset gpus)
{
    struct gv_variant_key base = gv_plain_key(GV_EDIT_NONE);
    struct gv_side side = {.count = 0, .median = NAN, .low = NAN, .high = NAN};
    uint64_t *sizes;
    int n = gv_sizes(facts, gpus, gv_deciding_op(facts), &sizes);
    for (int i = n - 1; i >= 0 && !side.count; i--)
        side = gv_measured(facts, gpus, gv_deciding_op(facts), sizes[i], &base, &base).base;
    free(sizes);
    return side;
}
