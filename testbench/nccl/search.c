#include "testbench/nccl/search.h"

#include <stdlib.h>
#include <string.h>

#include "testbench/nccl/channel.h"
#include "testbench/nccl/paths.h"

/* NCCL counts steps, not time: steps of one search, and of all of them before it takes what it has.
 */
#define STEPS_SEARCH (1 << 14)
#define STEPS_SAME_CHANNELS (1 << 8)
#define STEPS_TOTAL (1 << 19)

struct speeds {
    const float *gbs;
    int n;
};

static struct speeds speeds_for(int sm, int release)
{
    static const float old[] = {40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3};
    static const float sm90_first[] = {60, 50, 40, 30, 24, 20, 15, 12, 6, 3};
    static const float sm90[] = {60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3};
    static const float sm100_first[] = {90, 80, 70, 60, 50, 40, 30, 24, 20, 19};
    static const float sm100_second[] = {90, 80, 70, 60, 50, 40, 30, 24, 20, 19, 18};
    static const float sm100[] = {90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18};
    if (sm >= 100 && release >= 22902)
        return (struct speeds){sm100, 12};
    if (sm >= 100 && release >= 22703)
        return (struct speeds){sm100_second, 11};
    if (sm >= 100 && release >= 22500)
        return (struct speeds){sm100_first, 10};
    if (sm >= 90 && release >= 22100)
        return (struct speeds){sm90, 11};
    if (sm >= 90)
        return (struct speeds){sm90_first, 10};
    return (struct speeds){old, 13};
}

/* All the searches for one plan. */
struct campaign {
    struct gv_nt_walk s;
    struct gv_nt_plan trial;
    struct speeds speeds;
    int speed, min_sm;
    enum gv_nccl_path min_type, max_type;
    int cross_nic; /* 2: may be tried */
    long budget;   /* steps of the first pass that are left */
};

static enum gv_nccl_path next_type(const struct campaign *c, enum gv_nccl_path type)
{
    do
        type++;
    while (type < GV_NCCL_DIS && !gv_nt_path_exists(type, c->s.sys->release));
    return type;
}

static void search_once(struct campaign *c)
{
    struct gv_nt_walk *s = &c->s;
    s->steps = c->trial.same_channels ? STEPS_SAME_CHANNELS : STEPS_SEARCH;
    c->trial.channels = 0;
    c->budget -= s->steps;
    gv_nt_walk_channels(s);
}

static bool good_enough(const struct campaign *c)
{
    const struct gv_nt_plan *best = c->s.best;
    return c->s.steps == GV_NT_PERFECT ||
           (float)best->channels * best->gbs_inter >= c->s.sys->total_gbs;
}

static void set_speed(struct campaign *c, int speed)
{
    c->speed = speed;
    c->trial.gbs_intra = c->trial.gbs_inter = c->speeds.gbs[speed];
}

static bool may_differ(const struct campaign *c)
{
    const struct gv_nt_node *cpu = c->s.sys->node[GV_NT_CPU][0];
    bool amd = cpu->arch == GV_NT_X86 && cpu->vendor == GV_NT_AMD;
    return c->trial.same_channels && !(amd && c->trial.type == GV_NCCL_SYS);
}

/* Weakens the demand by the next smallest amount: different channels, a simpler tree, a farther
 * path, crossing NICs, less bandwidth. False when nothing is left. */
static bool relax(struct campaign *c)
{
    struct gv_nt_plan *t = &c->trial, *best = c->s.best;
    if (may_differ(c)) {
        t->same_channels = false;
        return true;
    }
    t->same_channels = true;
    c->budget += c->s.steps;
    if (c->budget < 0 && best->channels)
        return false;
    if (c->min_sm >= 90 && t->shape == GV_NT_TREE_BALANCED) {
        t->shape = GV_NT_TREE_CHAIN;
        return true;
    }
    t->shape = best->shape;
    if (t->type < c->max_type && (!best->channels || t->type < best->type)) {
        t->type = next_type(c, t->type);
        if (t->type < GV_NCCL_DIS)
            return true;
    }
    t->type = c->min_type;
    if (c->cross_nic == 2 && !t->cross_nic && t->shape != GV_NT_TREE_CHAIN) {
        t->cross_nic = true;
        return true;
    }
    t->cross_nic = false;
    if (c->speed < c->speeds.n - 1 &&
        (!best->channels || c->speeds.gbs[c->speed + 1] / best->gbs_inter > .49)) {
        set_speed(c, c->speed + 1);
        return true;
    }
    return false;
}

static void first_pass(struct campaign *c)
{
    do
        search_once(c);
    while (!good_enough(c) && relax(c));
}

/* Fast links are shared by twice the channels. */
static void double_channels(struct campaign *c)
{
    struct gv_nt_plan *p = c->s.best;
    if (!p->channels || p->gbs_intra < 25)
        return;
    if (c->min_sm > 80 && p->gbs_intra < 50 && p->channels > 4)
        return;
    int twice = 2 * p->channels < p->max_channels ? 2 * p->channels : p->max_channels;
    float share = (float)((twice + p->channels - 1) / p->channels);
    memcpy(
        p->order + p->channels * c->s.n, p->order,
        (size_t)((twice - p->channels) * c->s.n) * sizeof(int));
    p->gbs_intra /= share;
    p->gbs_inter /= share;
    p->channels = twice;
}

static int speed_below(const struct campaign *c, float gbs)
{
    int speed = 0;
    while (speed < c->speeds.n - 1 && c->speeds.gbs[speed] > gbs)
        speed++;
    return speed;
}

/* Asks for more bandwidth with the channels found: all of it for rings, inside the host for trees.
 */
static bool raise_demand(struct campaign *c)
{
    struct gv_nt_plan *t = &c->trial, *best = c->s.best;
    if (c->s.steps == 0 || c->speed == 0)
        return false;
    if (best->shape == GV_NT_RING) {
        set_speed(c, c->speed - 1);
        return true;
    }
    if (t->gbs_intra != best->gbs_intra || t->gbs_intra >= t->gbs_inter * 2)
        return false;
    t->gbs_intra = c->speeds.gbs[--c->speed];
    return true;
}

static void second_pass(struct campaign *c)
{
    c->s.steps = GV_NT_PERFECT;
    double_channels(c);
    c->trial = *c->s.best;
    set_speed(c, speed_below(c, c->s.best->gbs_inter));
    c->trial.min_channels = c->s.best->channels;
    while (raise_demand(c))
        search_once(c);
}

/* Two NVLink islands: trees want two channels, so rings must offer them (from 2.26). */
static bool split_nvlink(const struct gv_nt_system *sys)
{
    int n = sys->count[GV_NT_GPU], domain[GV_NCCL_MAX_GPUS], size[GV_NCCL_MAX_GPUS] = {0};
    int islands = 0;
    for (int g = 0; g < n; g++)
        domain[g] = g;
    for (int g = 0; g < n; g++)
        for (int p = g + 1; p < n; p++) {
            const struct gv_nt_node *a = sys->node[GV_NT_GPU][g], *b = sys->node[GV_NT_GPU][p];
            if (gv_nt_path_between(sys, a, b)->type == GV_NCCL_NVL)
                domain[p] = domain[g];
        }
    for (int g = 0; g < n; g++)
        size[domain[g]]++;
    for (int g = 0; g < n; g++)
        islands += size[g] > 1;
    return islands == 2;
}

/* From 2.25 the search stays between the nearest and the farthest pair. */
static void set_type_range(struct campaign *c)
{
    const struct gv_nt_system *sys = c->s.sys;
    c->min_type = c->s.n == 1 ? GV_NCCL_LOC : GV_NCCL_NVL;
    c->max_type = GV_NCCL_SYS;
    if (sys->release < 22500 || c->s.n == 1)
        return;
    c->min_type = GV_NCCL_SYS;
    c->max_type = GV_NCCL_LOC;
    for (int a = 0; a < c->s.n; a++)
        for (int b = 0; b < c->s.n; b++) {
            enum gv_nccl_path type =
                gv_nt_path_between(sys, gv_nt_gpu(&c->s, a), gv_nt_gpu(&c->s, b))->type;
            if (a != b && type < c->min_type)
                c->min_type = type;
            if (a != b && type > c->max_type)
                c->max_type = type;
        }
}

static int lowest_sm(const struct gv_nt_system *sys)
{
    int sm = sys->node[GV_NT_GPU][0]->sm;
    for (int g = 1; g < sys->count[GV_NT_GPU]; g++)
        if (sys->node[GV_NT_GPU][g]->sm < sm)
            sm = sys->node[GV_NT_GPU][g]->sm;
    return sm;
}

static void prepare(struct campaign *c, struct gv_nt_system *sys, struct gv_nt_plan *plan)
{
    c->s = (struct gv_nt_walk){.sys = sys, .trial = &c->trial, .best = plan};
    c->s.n = sys->count[GV_NT_GPU];
    gv_nt_walk_rank(&c->s);
    c->min_sm = lowest_sm(sys);
    c->speeds = speeds_for(c->min_sm, sys->release);
    c->budget = STEPS_TOTAL;
    set_type_range(c);
    /* NICs stay in the graph from 2.28, so two of them give a second round with nothing new. */
    c->cross_nic = sys->release >= 22800 && sys->count[GV_NT_NET] > 1 ? 2 : 0;
    plan->gbs_intra = plan->gbs_inter = 0;
    plan->type = c->min_type;
    plan->channels = plan->hops = 0;
    plan->same_channels = true;
    plan->cross_nic = false;
    if (sys->release >= 22600 && plan->shape == GV_NT_RING && split_nvlink(sys) &&
        plan->max_channels >= 2 && plan->min_channels == 1)
        plan->min_channels = 2;
}

static void set_first_speed(struct campaign *c)
{
    float total = c->s.sys->total_gbs;
    if (c->s.n > 1 && c->s.best->shape != GV_NT_RING)
        total = (float)(total * (c->s.n * 1.0 / (c->s.n - 1)));
    int speed = 0;
    while (speed < c->speeds.n - 1 &&
           (c->speeds.gbs[speed] > c->s.sys->max_gbs ||
            c->speeds.gbs[speed] * (float)c->s.best->min_channels > total))
        speed++;
    set_speed(c, speed);
}

static void file_order(struct campaign *c)
{
    struct gv_nt_plan *p = c->s.best;
    for (int g = 0; g < c->s.n; g++)
        p->order[g] = gv_nt_gpu(&c->s, g)->rank;
    p->gbs_intra = p->gbs_inter = 0.1f;
    p->type = GV_NCCL_SYS;
    p->channels = 1;
}

void gv_nt_search(struct gv_nt_system *sys, struct gv_nt_plan *plan)
{
    struct campaign *c = calloc(1, sizeof(*c));
    prepare(c, sys, plan);
    c->trial = *plan;
    set_first_speed(c);
    first_pass(c);
    second_pass(c);
    if (!plan->channels)
        file_order(c);
    free(c);
}
