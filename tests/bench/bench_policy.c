/* gv-bench-policy: how good the policy's choices are, one JSON object. A machine of the fabric
 * model is calibrated; for many of its groups of GPUs the plan is carried out, and compared with
 * the best that the plugin could have done. Exits 1 where a choice is worse than NCCL's default
 * beyond the noise, or joins a pair that is not sound. */
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/bench/calibrated.h"
#include "tests/bench/oracle.h"
#include "tests/bench/statistics.h"

#define MAX_LOSS 0.05
/* The profile's min_gain: under it rule 1 sees no difference. */
#define MIN_GAIN 0.03
/* Regret below this is none: samples are off by GV_MODEL_NOISE on either side. */
#define NO_REGRET (2 * GV_MODEL_NOISE)

/* What a decision rests on. */
enum basis {
    BASIS_MEASURED,     /* this very group was measured */
    BASIS_INTERPOLATED, /* groups of the same islands, smaller and larger */
    BASIS_NONE,         /* not measured, or nothing but the default: the default stays, rule 3 */
    BASIS_BAD,          /* a pair is not sound: it is separated, whatever that costs */
    BASES
};
static const char *const basis_names[] = {"measured", "interpolated", "not_measured", "bad_pair"};

struct tally {
    double *regret;
    int n, capacity, none;
    double sum, worst;
    char worst_group[300], worst_why[400];
    struct gv_oracle worst_oracle;
    double worst_chosen;
};

struct result {
    struct tally tally[BASES],
        all_measured; /* the latter: every group measured before it is asked */
    int groups, worse, slower, unsound, not_exhausted, default_unsound;
    int rule_2; /* groups where rule 2 keeps a plan back that is faster for large AllReduces */
    double rule_2_worst;
    long plans;
    double *decide_us;
    int ndecide, decide_capacity;
};

struct options {
    const char *machine; /* a file; NULL: machines made by chance */
    unsigned from, count, seed;
    int groups, most;
    enum gv_measured_with with;
    bool every;             /* groups of the machine, not some of them */
    unsigned share, shares; /* of these groups: every so manieth */
};

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static void add_number(double **list, int *n, int *capacity, double value)
{
    if (*n == *capacity) {
        *capacity = *capacity ? 2 * *capacity : 256;
        *list = realloc(*list, sizeof(**list) * (size_t)*capacity);
        if (!*list)
            abort();
    }
    (*list)[(*n)++] = value;
}

/* ---- one group ---- */

struct chosen {
    struct gv_plan plan;
    double gbs;
    bool sound;
    enum basis basis;
};

static enum basis basis_of(const struct gv_plan *plan)
{
    if (plan->nedits && plan->edits[0].kind == GV_EDIT_SEPARATE && isnan(plan->gain))
        return BASIS_BAD;
    if (plan->level_pxb)
        return BASIS_BAD;
    return plan->evidence == GV_EVIDENCE_MEASURED       ? BASIS_MEASURED
           : plan->evidence == GV_EVIDENCE_INTERPOLATED ? BASIS_INTERPOLATED
                                                        : BASIS_NONE;
}

/* The policy's plan for the group, carried out. */
static struct chosen choose(
    const struct gv_model *model, const struct gv_calibration *cal, gv_gpuset gpus,
    struct result *result)
{
    struct chosen c = {.gbs = NAN};
    struct gv_wired *w = calloc(1, sizeof(*w));
    struct gv_profile *profile = gv_calibration_profile(cal);
    if (!w || !profile)
        abort();
    struct gv_policy_in in = {
        .profile = profile, .gpus = gpus, .one_node = true, .nccl_version = GV_MODEL_NCCL};
    double begin = now_us();
    gv_policy_decide(&in, &c.plan);
    add_number(&result->decide_us, &result->ndecide, &result->decide_capacity, now_us() - begin);
    if (!gv_model_wire(
            model, gpus, c.plan.edits, c.plan.nedits, c.plan.nvb_disable, c.plan.level_pxb, w)) {
        c.gbs = w->ring.ring_gbs;
        c.sound = w->all_sound;
    }
    c.basis = basis_of(&c.plan);
    gv_plan_finish(&c.plan);
    gv_profile_free(profile);
    free(w);
    return c;
}

static void take(
    struct tally *t, const struct gv_model *model, gv_gpuset gpus, const struct chosen *c,
    const struct gv_oracle *o)
{
    char list[256];
    double best = fmax(o->best_gbs, c->gbs), regret = 1 - c->gbs / best;
    add_number(&t->regret, &t->n, &t->capacity, regret);
    t->none += regret <= NO_REGRET;
    t->sum += regret;
    if (t->n > 1 && regret <= t->worst)
        return;
    t->worst = regret;
    t->worst_oracle = *o;
    t->worst_chosen = c->gbs;
    snprintf(
        t->worst_group, sizeof(t->worst_group), "%s: %s", model->fabric.machine.name,
        gv_gpuset_format(gpus, list, sizeof(list)));
    snprintf(t->worst_why, sizeof(t->worst_why), "%s", c->plan.reason);
}

static void complain(
    const struct gv_model *model, gv_gpuset gpus, const struct chosen *c, const struct gv_oracle *o,
    const char *what)
{
    char list[256];
    fprintf(
        stderr, "bench: %s: GPUs %s: %s: chosen %.3f GB/s, default %.3f, best %.3f: %s\n",
        model->fabric.machine.name, gv_gpuset_format(gpus, list, sizeof(list)), what, c->gbs,
        o->default_gbs, o->best_gbs, c->plan.reason);
}

/* What must hold for every choice. */
static void check(
    const struct gv_model *model, gv_gpuset gpus, const struct chosen *c, const struct gv_oracle *o,
    struct result *result)
{
    if (!c->sound) {
        result->unsound++;
        complain(model, gpus, c, o, "a pair that is not sound is joined");
    } else if (c->gbs < o->default_gbs * (1 - NO_REGRET)) {
        result->slower++;
    }
    if (c->sound && c->gbs < o->default_gbs * (1 - MIN_GAIN)) {
        result->worse++;
        complain(model, gpus, c, o, "worse than the default");
    }
}

/* NCCL's search takes up to half a second for a large communicator. */
static int most_plans(const struct options *o, gv_gpuset gpus)
{
    return gv_gpuset_count(gpus) > 16 ? o->most / 10 + 4 : o->most;
}

static void look_at_group(
    const struct options *o, const struct gv_model *model, struct gv_calibration *cal,
    gv_gpuset gpus, struct result *result)
{
    struct gv_oracle best =
        gv_oracle_ask(model, gpus, o->with == GV_WITH_NCCL, MAX_LOSS, most_plans(o, gpus));
    struct chosen c = choose(model, cal, gpus, result);
    result->groups++;
    result->plans += best.plans;
    result->not_exhausted += !best.exhausted;
    result->default_unsound += isnan(best.default_gbs);
    double kept_back = best.best_gbs > 0 ? 1 - best.best_gbs / best.free_gbs : 0;
    result->rule_2 += kept_back > NO_REGRET;
    result->rule_2_worst = fmax(result->rule_2_worst, kept_back);
    check(model, gpus, &c, &best, result);
    take(&result->tally[c.basis], model, gpus, &c, &best);
    int before = cal->ngroups;
    if (!gv_calibrated_has(cal, gpus))
        gv_calibrated_add(cal, model, gpus, o->with);
    struct chosen again = choose(model, cal, gpus, result);
    gv_calibrated_cut(cal, before);
    check(model, gpus, &again, &best, result);
    take(&result->all_measured, model, gpus, &again, &best);
}

/* ---- machines ---- */

/* Groups of a machine: what calibrate measured, then sets drawn from some of its islands. */
static gv_gpuset draw(const struct gv_model *model, uint64_t *seed)
{
    gv_gpuset set = 0;
    unsigned percent = 20 + gv_chance(seed, 81);
    for (int i = 0; i < gv_model_ngpus(model); i++)
        if (gv_chance(seed, 100) < percent)
            set |= GV_GPU_BIT(i);
    return gv_gpuset_count(set) > 1 ? set : gv_model_gpus(model);
}

static void look_at_machine(const struct options *o, struct gv_model *model, struct result *result)
{
    model->noise_seed = o->seed;
    struct gv_calibration *cal = gv_calibrated_new(model, o->with);
    gv_gpuset all = gv_model_gpus(model), groups[GV_MAX_GPUS];
    uint64_t seed = all;
    for (gv_gpuset gpus = 2 + o->share; o->every && gpus <= all; gpus += o->shares)
        if (gv_gpuset_count(gpus) > 1)
            look_at_group(o, model, cal, gpus, result);
    int n = gv_shape_groups(cal, groups), most = gv_model_ngpus(model) > 16 ? 2 : 1;
    for (int i = 0; i < o->groups / most && !o->every; i++)
        look_at_group(o, model, cal, i < n ? groups[i] : draw(model, &seed), result);
    gv_calibrated_free(cal);
    gv_model_free(model);
}

/* ---- output ---- */

static void print_tally(const char *name, struct tally *t)
{
    printf(",\"%s\":{\"groups\":%d,\"no_regret\":%d", name, t->n, t->none);
    if (t->n) {
        size_t n = (size_t)t->n;
        gv_sort(t->regret, n);
        printf(
            ",\"mean\":%.5f,\"p50\":%.5f,\"p90\":%.5f,\"p99\":%.5f,\"worst\":%.5f", t->sum / t->n,
            gv_quantile(t->regret, n, 0.5), gv_quantile(t->regret, n, 0.9),
            gv_quantile(t->regret, n, 0.99), t->worst);
        printf(
            ",\"worst_case\":{\"group\":\"%s\",\"chosen_gbs\":%.3f,\"best_gbs\":%.3f,"
            "\"bound_gbs\":%.3f,\"why\":\"%s\"}",
            t->worst_group, t->worst_chosen, t->worst_oracle.best_gbs, t->worst_oracle.bound_gbs,
            t->worst_why);
    }
    printf(",\"regrets\":[");
    for (int i = 0; i < t->n; i++)
        printf("%s%.5f", i ? "," : "", t->regret[i]);
    printf("]}");
    free(t->regret);
}

static void print(const struct options *o, struct result *r)
{
    size_t n = (size_t)r->ndecide;
    printf(
        "{\"machines\":%u,\"with\":\"%s\",\"groups\":%d,\"plans\":%ld,\"not_exhausted\":%d,"
        "\"default_unsound\":%d,\"worse_than_default\":%d,\"slower_by_under_3_percent\":%d,"
        "\"unsound\":%d,\"no_regret_below\":%.3f,"
        "\"rule_2\":{\"groups\":%d,\"worst\":%.5f}",
        o->machine ? 1 : o->count, o->with == GV_WITH_NCCL ? "nccl" : "ring", r->groups, r->plans,
        r->not_exhausted, r->default_unsound, r->worse, r->slower - r->worse, r->unsound, NO_REGRET,
        r->rule_2, r->rule_2_worst);
    for (int b = 0; b < BASES; b++)
        print_tally(basis_names[b], &r->tally[b]);
    print_tally("every_group_measured", &r->all_measured);
    gv_sort(r->decide_us, n);
    printf(
        ",\"decide_us\":{\"median\":%.1f,\"p99\":%.1f,\"max\":%.1f}}\n",
        gv_quantile(r->decide_us, n, 0.5), gv_quantile(r->decide_us, n, 0.99),
        gv_quantile(r->decide_us, n, 1));
    free(r->decide_us);
}

static int usage(void)
{
    fputs(
        "Usage: gv-bench-policy [--machine FILE] [--from N] [--count N] [--groups N] [--most PLANS]"
        " [--with nccl|ring] [--seed N] [--every [--share I/N]]\n",
        stderr);
    return 2;
}

static int parse(int argc, char **argv, struct options *o)
{
    static const struct option known[] = {
        {"machine", required_argument, NULL, 'm'}, {"from", required_argument, NULL, 'f'},
        {"count", required_argument, NULL, 'c'},   {"groups", required_argument, NULL, 'g'},
        {"most", required_argument, NULL, 'p'},    {"with", required_argument, NULL, 'w'},
        {"seed", required_argument, NULL, 's'},    {"every", no_argument, NULL, 'e'},
        {"share", required_argument, NULL, 'h'},   {0}};
    for (int c; (c = getopt_long(argc, argv, "", known, NULL)) >= 0;) {
        if (c == 'm')
            o->machine = optarg;
        else if (c == 'f')
            o->from = (unsigned)atoi(optarg);
        else if (c == 'c')
            o->count = (unsigned)atoi(optarg);
        else if (c == 'g')
            o->groups = atoi(optarg);
        else if (c == 'p')
            o->most = atoi(optarg);
        else if (c == 'w')
            o->with = strcmp(optarg, "ring") ? GV_WITH_NCCL : GV_WITH_OWN_RING;
        else if (c == 's')
            o->seed = (unsigned)atoi(optarg);
        else if (c == 'e')
            o->every = true;
        else if (
            c == 'h' && sscanf(optarg, "%u/%u", &o->share, &o->shares) == 2 && o->share > 0 &&
            o->share <= o->shares)
            continue;
        else
            return -1;
    }
    return optind < argc ? -1 : 0;
}

int main(int argc, char **argv)
{
    struct options o = {
        .count = 200, .groups = 24, .most = GV_ORACLE_MOST, .share = 1, .shares = 1};
    struct result result = {0};
    if (parse(argc, argv, &o))
        return usage();
    if (o.machine)
        look_at_machine(&o, gv_model_read(o.machine), &result);
    for (unsigned i = 0; !o.machine && i < o.count; i++)
        look_at_machine(&o, gv_model_random(o.from + i), &result);
    print(&o, &result);
    return result.worse || result.unsound ? 1 : 0;
}
