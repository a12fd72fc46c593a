/* From samples to verdicts. */
#include <math.h>
#include <stdlib.h>

#include "profiler/compare/gv_compare.h"
#include "profiler/collective/gv_busbw.h"

const char *gv_judgement(enum gv_verdict verdict)
{
    static const char *const names[] = {"not measured", "tie", "gain", "loss"};
    return names[verdict];
}

/* The policy judges variants of a group; here the two sides stand in for two of them. */
static struct gv_side side_of(const double *busbw, const bool *throttled, int n)
{
    struct gv_profile_run run = {
        .busbw_gbs = (double *)busbw, .throttled = (bool *)throttled, .count = n};
    struct gv_profile_variant variant = {
        .algorithm = GV_ALGO_ANY, .protocol = GV_PROTO_ANY, .runs = &run, .nruns = 1};
    struct gv_profile_group group = {.variants = &variant, .nvariants = 1};
    struct gv_variant_key key = {.algorithm = GV_ALGO_ANY, .protocol = GV_PROTO_ANY};
    return gv_side_of(&group, &key);
}

/* busbw of each sample; the number of them. */
static int samples(const struct gv_compared *c, int s, int k, double out[GV_MAX_REPEATS])
{
    const struct gv_cell *cell = gv_cell_of(&c->run, s, k);
    const struct gv_case *what = &c->run.cases[k];
    for (int i = 0; i < cell->count; i++)
        out[i] = gv_busbw_gbs(what->op, c->run.nranks, what->bytes, cell->time_us[i]);
    return cell->count;
}

struct gv_compared_side gv_compared_side_of(const struct gv_compared *c, int s, int k)
{
    const struct gv_cell *cell = gv_cell_of(&c->run, s, k);
    const struct gv_case *what = &c->run.cases[k];
    double busbw[GV_MAX_REPEATS];
    int n = samples(c, s, k, busbw);
    struct gv_compared_side side = {
        .time_us = gv_median(cell->time_us, n),
        .first_us = gv_median(cell->first_us, n),
        .busbw = side_of(busbw, cell->throttled, n),
    };
    side.algbw_gbs = n ? gv_algbw_gbs(what->bytes, side.time_us) : NAN;
    side.busbw_gbs = n ? gv_busbw_gbs(what->op, c->run.nranks, what->bytes, side.time_us) : NAN;
    if (cell->wrong) /* wrong data has no speed */
        side.busbw = (struct gv_side){.count = 0, .median = NAN, .low = NAN, .high = NAN};
    return side;
}

static void judge_row(const struct gv_compared *c, struct gv_compared_row *row)
{
    /* of our own measurement, three samples a side are asked for */
    struct gv_profile measured = {.provenance.kind = c->thin ? GV_PUBLISHED : GV_CUDA};
    struct gv_facts facts = {
        .profile = &measured, .min_gain = c->min_gain, .max_loss = c->max_loss};
    double base[GV_MAX_REPEATS], other[GV_MAX_REPEATS];
    int nbase = samples(c, c->base, row->k, base), nother = samples(c, row->other, row->k, other);
    row->base = gv_compared_side_of(c, c->base, row->k);
    row->tuned = gv_compared_side_of(c, row->other, row->k);
    struct gv_comparison comparison = gv_compare(&facts, row->base.busbw, row->tuned.busbw);
    row->gain = comparison.gain;
    row->verdict = comparison.verdict;
    row->interval = gv_bootstrap_gain(base, nbase, other, nother);
}

int gv_compared_judge(struct gv_compared *c)
{
    int most = (c->run.nsteers - 1) * c->run.ncases;
    c->rows = calloc((size_t)(most > 0 ? most : 1), sizeof(*c->rows));
    if (!c->rows)
        return -1;
    c->nrows = 0;
    for (int s = 0; s < c->run.nsteers; s++)
        for (int k = 0; s != c->base && k < c->run.ncases; k++) {
            struct gv_compared_row *row = &c->rows[c->nrows++];
            row->other = s;
            row->k = k;
            judge_row(c, row);
        }
    return 0;
}

void gv_compared_finish(struct gv_compared *c)
{
    gv_collective_finish(&c->run);
    gv_histogram_finish(&c->job.sizes);
    for (int i = 0; i < c->settings.nenvironment; i++)
        free(c->settings.environment[i]);
    for (int i = 0; i < c->norigins; i++)
        free(c->origin[i].command);
    free(c->rows);
    free(c->witness);
    c->settings.nenvironment = c->norigins = 0;
    c->witness = NULL;
    c->nwitness = 0;
    c->rows = NULL;
    c->nrows = 0;
}
