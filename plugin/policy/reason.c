#include "plugin/policy/reason.h"

#include <math.h>

#include "base/gv_size.h"

/* NULL where nothing bad is known of this direction. */
static const char *bad_state(const struct gv_profile_path *path)
{
    enum gv_p2p state = path ? path->p2p : GV_P2P_UNVERIFIED;
    return state == GV_P2P_CORRUPT   ? "corrupt"
           : state == GV_P2P_HUNG    ? "hung"
           : state == GV_P2P_ONE_WAY ? "one-way"
                                     : NULL;
}

static const char *pair_state(const struct gv_facts *facts, int a, int b)
{
    const char *there = bad_state(facts->path[a][b]), *back = bad_state(facts->path[b][a]);
    return there ? there : back ? back : "found bad on this host";
}

void gv_reason_pairs(struct gv_str *out, const int (*pairs)[2], int n)
{
    int shown = n > 5 ? 4 : n;
    for (int i = 0; i < shown; i++) {
        const char *before = i == 0 ? "" : i == n - 1 ? " and " : ", ";
        gv_str_addf(out, "%s%d-%d", before, pairs[i][0], pairs[i][1]);
    }
    if (shown < n)
        gv_str_addf(out, " and %d more", n - shown);
}

void gv_reason_comparison(struct gv_str *out, const struct gv_comparison *comparison)
{
    char size[32];
    gv_str_addf(
        out, "%.2f against %.2f GB/s busbw (%+.1f %%, %s, %s%s)", comparison->other.median,
        comparison->base.median, comparison->gain * 100, gv_op_name(comparison->op),
        gv_size_format(comparison->bytes, size, sizeof(size)),
        comparison->loaded ? ", beside other groups" : "");
}

static const char *count_word(int count)
{
    return count == 1 ? "one" : "two";
}

void gv_reason_thin(struct gv_str *out, const struct gv_comparison *comparison)
{
    int base = comparison->base.count, tuned = comparison->other.count;
    if (!comparison->thin)
        return;
    if (base == tuned)
        gv_str_addf(out, "; %s sample%s a side", count_word(base), base > 1 ? "s" : "");
    else if (tuned < 3)
        gv_str_addf(out, "; %s tuned sample%s", count_word(tuned), tuned > 1 ? "s" : "");
    else
        gv_str_addf(out, "; %s default sample%s", count_word(base), base > 1 ? "s" : "");
    bool many = tuned < 3 ? tuned > 1 : base > 1;
    gv_str_add(out, many ? " are thin evidence" : " is thin evidence");
}

static void
bridge_obstacle(struct gv_str *out, const struct gv_facts *facts, const struct gv_refusal *refusal)
{
    int a = refusal->a, b = refusal->b;
    if (refusal->obstacle == GV_CPU_NODES) {
        const struct gv_profile_gpu *gpus = facts->profile->gpus;
        bool known = gpus[a].numa_node >= 0 && gpus[b].numa_node >= 0;
        gv_str_addf(
            out,
            known ? "no bridge joins %d and %d, which are on two CPU nodes"
                  : "no bridge joins %d and %d, whose CPU nodes are not known",
            a, b);
    }
    if (refusal->obstacle == GV_BRIDGE_SIZE)
        gv_str_add(out, "no bridge over more than 9 GPUs (CUDA allows 8 peers a GPU)");
    if (refusal->obstacle == GV_OPERATIONS)
        gv_str_add(
            out, "all-to-all under a bridge is neither measured nor excluded (declare "
                 "`operations` or measure AllToAll)");
}

static void lend_obstacle(struct gv_str *out, const struct gv_refusal *refusal)
{
    int a = refusal->a, b = refusal->b;
    if (refusal->obstacle == GV_SM_READS)
        gv_str_addf(
            out, "no lent link %d-%d: on compute capability 8.0 NCCL would read over it", a, b);
    if (refusal->obstacle == GV_SM_UNKNOWN)
        gv_str_addf(out, "no lent link %d-%d: compute capability (sm) not known", a, b);
    if (refusal->obstacle == GV_PEERS && b >= 0)
        gv_str_addf(out, "no lent link %d-%d: more than CUDA's 8 peers a GPU", a, b);
    if (refusal->obstacle == GV_PEERS && b < 0)
        gv_str_addf(out, "GPU %d would have more than CUDA's 8 peers", a);
    if (refusal->obstacle == GV_NVB)
        gv_str_addf(
            out, "GPU %d would carry two NVLinks on a machine whose own NVLinks form chains", a);
    if (refusal->obstacle == GV_ALL_NVLINK)
        gv_str_add(
            out, "lent links would make a chain of NVLinks alone, which allows LL128 over PCIe");
}

void gv_reason_obstacle(
    struct gv_str *out, const struct gv_facts *facts, const struct gv_refusal *refusal)
{
    int a = refusal->a, b = refusal->b;
    if (refusal->obstacle == GV_REFUSED)
        gv_str_addf(out, "%d-%d has no P2P (refused by the driver)", a, b);
    if (refusal->obstacle == GV_BAD)
        gv_str_addf(out, "P2P of %d-%d is %s", a, b, pair_state(facts, a, b));
    if (refusal->obstacle == GV_NOT_VERIFIED)
        gv_str_addf(out, "P2P of %d-%d is not verified (run gv100 verify)", a, b);
    if (refusal->obstacle == GV_LEVEL)
        gv_str_add(
            out, "only NCCL_P2P_LEVEL=PXB would take the GPUs apart here, in the whole process");
    if (refusal->obstacle == GV_NOTHING_CROSSES)
        gv_str_add(out, "NCCL joins all edges by P2P itself");
    bridge_obstacle(out, facts, refusal);
    lend_obstacle(out, refusal);
}

static void edit_clause(struct gv_str *out, const struct gv_attempt *attempt)
{
    const struct gv_lent *lent = &attempt->lent;
    const struct gv_separation *apart = &attempt->separation;
    if (attempt->candidate.applied == GV_EDIT_BRIDGE) {
        gv_str_add(out, "a bridge moves the edges across the host bridge from SHM to P2P");
    } else if (attempt->candidate.applied == GV_EDIT_LEND) {
        gv_str_add(out, lent->count > 1 ? "edges " : "edge ");
        gv_reason_pairs(out, lent->pair, lent->count);
        gv_str_add(out, lent->count > 1 ? " move from SHM to P2P" : " moves from SHM to P2P");
    } else {
        gv_reason_pairs(out, apart->pair, apart->count);
        gv_str_add(out, apart->count > 1 ? " move from P2P to SHM" : " moves from P2P to SHM");
    }
}

void gv_reason_measured(struct gv_str *out, const struct gv_attempt *attempt)
{
    gv_str_add(out, "measured: ");
    gv_reason_comparison(out, &attempt->evaluation.deciding);
    gv_str_add(out, ", ");
    edit_clause(out, attempt);
    gv_reason_thin(out, &attempt->evaluation.deciding);
}

static void neighbour(struct gv_str *out, gv_gpuset gpus, const struct gv_evaluation *says)
{
    char list[256];
    gv_gpuset_format(gpus, list, sizeof(list));
    gv_str_addf(out, "%.60s (%+.1f %%)", list, says->deciding.gain * 100);
}

void gv_reason_interpolated(struct gv_str *out, const struct gv_interpolation *between)
{
    gv_str_add(out, "interpolated: not measured, but the same islands gain with ");
    neighbour(out, between->lower, &between->at_lower);
    gv_str_add(out, " and with ");
    neighbour(out, between->upper, &between->at_upper);
    gv_str_add(out, "; ");
    edit_clause(out, &between->attempt);
    if (between->at_lower.deciding.thin || between->at_upper.deciding.thin)
        gv_str_add(out, "; thin evidence");
}

/* Rule 1 but for the ranges. */
static bool medians_gain(const struct gv_facts *facts, const struct gv_comparison *deciding)
{
    struct gv_side base = deciding->base;
    base.high = -INFINITY; /* as if no samples overlapped */
    return gv_compare(facts, base, deciding->other).verdict == GV_GAIN;
}

/* Rule 1's side of a refusal. */
static void
no_gain(struct gv_str *out, const struct gv_facts *facts, const struct gv_comparison *deciding)
{
    gv_str_add(out, "measured ");
    gv_reason_comparison(out, deciding);
    if (deciding->verdict == GV_LOSS || deciding->gain < 0)
        gv_str_add(out, ": NCCL's own choice is not slower");
    else if (deciding->verdict == GV_NOT_MEASURED)
        gv_str_addf(
            out, ", but of %d and %d samples: three a side are needed (run gv100 calibrate)",
            deciding->base.count, deciding->other.count);
    else if (medians_gain(facts, deciding))
        gv_str_add(out, ", but the samples overlap");
    else
        gv_str_addf(out, ": under the %.3g %% that count as a gain", facts->min_gain * 100);
    if (deciding->verdict != GV_NOT_MEASURED)
        gv_reason_thin(out, deciding);
}

void gv_reason_not_accepted(
    struct gv_str *out, const struct gv_facts *facts, const struct gv_attempt *attempt)
{
    const struct gv_evaluation *evaluation = &attempt->evaluation;
    if (evaluation->verdict != GV_GAIN) {
        no_gain(out, facts, &evaluation->deciding);
        return;
    }
    if (attempt->refusal.obstacle) {
        gv_reason_obstacle(out, facts, &attempt->refusal);
        gv_str_add(out, "; measured ");
        gv_reason_comparison(out, &evaluation->deciding);
        return;
    }
    gv_str_add(out, "measured ");
    gv_reason_comparison(out, &evaluation->deciding);
    gv_str_add(out, ", but ");
    gv_reason_comparison(out, &evaluation->loss);
    gv_str_addf(out, ": a loss of more than %.3g %% is refused", facts->max_loss * 100);
}

/* Why a neighbour does not gain. */
static void idle_neighbour(struct gv_str *out, gv_gpuset gpus, const struct gv_evaluation *says)
{
    char list[256], size[32];
    if (!says->refused || says->verdict != GV_GAIN) {
        neighbour(out, gpus, says);
        gv_str_add(out, " does not gain");
        return;
    }
    gv_str_addf(
        out, "%.60s loses %.1f %% (%s, %s)", gv_gpuset_format(gpus, list, sizeof(list)),
        -100 * says->loss.gain, gv_op_name(says->loss.op),
        gv_size_format(says->loss.bytes, size, sizeof(size)));
}

static void calibrate(struct gv_str *out, const struct gv_facts *facts)
{
    char list[256];
    gv_gpuset_format(facts->in->gpus, list, sizeof(list));
    gv_str_addf(out, " (run gv100 calibrate --groups %.120s)", list);
}

void gv_reason_not_measured(
    struct gv_str *out, const struct gv_facts *facts, const struct gv_interpolation *between)
{
    bool lower = between->lower, upper = between->upper;
    enum gv_obstacle obstacle = between->attempt.refusal.obstacle;
    if (obstacle == GV_BAD || (lower && upper && obstacle)) { /* no measurement would help */
        gv_reason_obstacle(out, facts, &between->attempt.refusal);
        return;
    }
    gv_str_add(out, "not measured, and ");
    if (lower && upper) {
        bool low = between->at_lower.verdict == GV_GAIN && !between->at_lower.refused;
        gv_str_add(out, "of the same islands ");
        idle_neighbour(
            out, low ? between->upper : between->lower,
            low ? &between->at_upper : &between->at_lower);
    } else {
        gv_str_addf(
            out, "no group of the same islands is measured with %s",
            !lower && !upper ? "fewer or with more GPUs"
            : lower          ? "more GPUs"
                             : "fewer GPUs");
    }
    calibrate(out, facts);
}
