#include "tests/bench/calibrated.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/collective/gv_busbw.h"
#include "profiler/collective/gv_collective.h"
#include "profiler/probe/variants.h"

#define REPEATS 5 /* as calibrate without --quick */
#define RING_BYTES ((uint64_t)1 << 30)

static double noise(uint64_t *seed)
{
    return 1 + GV_MODEL_NOISE * (gv_chance(seed, 2001) / 1000.0 - 1);
}

static enum gv_path_class class_of(const struct gv_fabric *f, int a, int b)
{
    static const enum gv_path_class classes[] = {GV_PATH_UNKNOWN, GV_PATH_NVL, GV_PATH_PIX,
                                                 GV_PATH_PXB,     GV_PATH_PHB, GV_PATH_SYS};
    return classes[gv_fabric_class(f, a, b)];
}

static void fill_gpu(struct gv_calibration *cal, const struct gv_model *model, int i)
{
    const struct gv_bench_gpu *g = &model->fabric.machine.gpus[i];
    struct gv_device *d = &cal->gpus.device[i];
    struct gv_machine_gpu *m = &cal->machine.gpus[i];
    snprintf(d->bus_id, sizeof(d->bus_id), "%s", g->pci.bus_id);
    snprintf(d->uuid, sizeof(d->uuid), "%s", g->uuid);
    snprintf(d->model, sizeof(d->model), "%s", g->model);
    snprintf(m->bus_id, sizeof(m->bus_id), "%s", g->pci.bus_id);
    snprintf(m->root_port, sizeof(m->root_port), "port %d", model->fabric.port[i]);
    d->sm = g->sm;
    m->numa_node = g->pci.node;
    m->pci_vendor = g->pci.vendor;
    m->pci_device = g->pci.device;
    cal->island[i] = model->fabric.port[i];
}

static double write_gbs(const struct gv_fabric *f, int a, int b)
{
    struct gv_flow flow;
    const struct gv_flow *one = &flow;
    double rate = 0;
    gv_flow_init(&flow);
    gv_flow_write(&flow, f, a, b, 1);
    gv_fabric_share(f, &one, 1, &rate);
    gv_flow_finish(&flow);
    return rate;
}

static void
fill_pair(struct gv_calibration *cal, const struct gv_model *model, int a, int b, uint64_t *seed)
{
    const struct gv_fabric *f = &model->fabric;
    struct gv_pair_state *s = &cal->pair[a][b];
    const struct gv_figure none = {NAN, NAN, NAN, 0};
    cal->path_class[a][b] = class_of(f, a, b);
    cal->nvlinks[a][b] = f->nvlinks[a][b];
    s->p2p = model->state[a][b];
    s->checked = s->measured = true;
    s->write_gbs = s->read_gbs = s->both_ways_gbs = s->latency_us = s->loaded_write_gbs =
        s->host_path_gbs = none;
    if (s->p2p == GV_P2P_VERIFIED) {
        double gbs = write_gbs(f, a, b) * noise(seed);
        s->write_gbs = (struct gv_figure){gbs, gbs, gbs, 5};
    }
}

struct gv_calibration *gv_calibrated_new(struct gv_model *model, enum gv_measured_with with)
{
    struct gv_calibration *cal = calloc(1, sizeof(*cal));
    uint64_t seed = 7;
    if (!cal)
        abort();
    cal->n = cal->gpus.n = cal->machine.ngpus = gv_model_ngpus(model);
    cal->options.machine_name = model->fabric.machine.name;
    snprintf(cal->nccl, sizeof(cal->nccl), "2.28.9");
    snprintf(
        cal->facts.cpu_vendor, sizeof(cal->facts.cpu_vendor), "%s",
        strcmp(model->fabric.machine.cpu.vendor, "AuthenticAMD") ? "intel" : "amd");
    for (int a = 0; a < cal->n; a++) {
        fill_gpu(cal, model, a);
        for (int b = 0; b < cal->n; b++)
            if (a != b)
                fill_pair(cal, model, a, b, &seed);
    }
    struct gv_profile *pairs = gv_calibration_profile(cal);
    model->level_pxb = gv_policy_level_pxb(pairs, GV_MODEL_NCCL, NULL);
    gv_profile_free(pairs);
    gv_gpuset groups[GV_MAX_GPUS];
    int n = gv_shape_groups(cal, groups);
    for (int i = 0; i < n; i++)
        gv_calibrated_add(cal, model, groups[i], with);
    return cal;
}

bool gv_calibrated_has(const struct gv_calibration *cal, gv_gpuset gpus)
{
    for (int i = 0; i < cal->ngroups; i++)
        if (cal->groups[i].gpus == gpus)
            return true;
    return false;
}

static void free_group(struct gv_profile_group *g)
{
    for (int v = 0; v < g->nvariants; v++) {
        for (int r = 0; r < g->variants[v].nruns; r++) {
            free(g->variants[v].runs[r].busbw_gbs);
            free(g->variants[v].runs[r].throttled);
        }
        free(g->variants[v].runs);
    }
    free(g->variants);
}

void gv_calibrated_cut(struct gv_calibration *cal, int ngroups)
{
    while (cal->ngroups > ngroups)
        free_group(&cal->groups[--cal->ngroups]);
}

void gv_calibrated_free(struct gv_calibration *cal)
{
    gv_calibrated_cut(cal, 0);
    free(cal->groups);
    free(cal);
}

/* ---- with NCCL ---- */

/* What GV100_FORCE (plugin/core/gv_force.h) asks for: "lend 4-5 5-0 algorithm=RING protocol=LL". */
struct forced {
    struct gv_edit edits[GV_MAX_EDITS];
    int n, algorithm, protocol;
    bool lent;
};

static struct forced forced_by(const char *force, gv_gpuset gpus)
{
    struct forced f = {.algorithm = -1, .protocol = GV_PROTO_SIMPLE};
    char word[64];
    int used, a, b;
    for (; sscanf(force, " %63s%n", word, &used) == 1; force += used) {
        if (!strcmp(word, "bridge"))
            f.edits[f.n++] = (struct gv_edit){.kind = GV_EDIT_BRIDGE, .gpus = gpus};
        else if (!strncmp(word, "algorithm=", 10))
            f.algorithm = gv_algo_from_name(word + 10);
        else if (!strncmp(word, "protocol=", 9))
            f.protocol = gv_proto_from_name(word + 9);
        else if (sscanf(word, "%d-%d", &a, &b) == 2)
            f.edits[f.n++] = (struct gv_edit){.kind = GV_EDIT_LEND, .from = a, .to = b};
    }
    f.lent = f.n && f.edits[0].kind == GV_EDIT_LEND;
    return f;
}

static int nvlinks_of(const struct gv_model *m, int gpu)
{
    int n = 0;
    for (int b = 0; b < gv_model_ngpus(m); b++)
        n += m->fabric.nvlinks[gpu][b] > 0;
    return n;
}

/* Whether a GPU has two NVLinks with those that are lent. */
static bool two_links(const struct gv_model *m, const struct forced *f)
{
    int links[GV_MAX_GPUS] = {0};
    bool two = false;
    for (int i = 0; f->lent && i < f->n; i++) {
        links[f->edits[i].from]++;
        links[f->edits[i].to]++;
    }
    for (int a = 0; a < gv_model_ngpus(m); a++)
        two |= links[a] && links[a] + nvlinks_of(m, a) > 1;
    return two;
}

static void fill_wiring(const struct gv_wired *w, struct gv_wiring *out)
{
    const struct gv_nccl_eval_out *e = &w->eval;
    out->nring = e->n;
    for (int i = 0; i < e->n; i++) {
        out->ring[i] = e->ring[i];
        out->edge[i].from = e->ring[i];
        out->edge[i].to = e->ring[(i + 1) % e->n];
        snprintf(
            out->edge[i].transport, sizeof(out->edge[i].transport), "%s",
            w->shm[i] ? "SHM/direct/direct" : "P2P/IPC");
    }
}

/* One variant's cells. Wrong results and ranks that hang leave none. */
static void fill_cells(
    struct gv_collective *c, int s, const struct gv_wired *w, const struct forced *f,
    uint64_t *seed)
{
    double us_per_gb = NAN;
    for (int k = 0; k < c->ncases; k++) {
        const struct gv_case *what = &c->cases[k];
        struct gv_cell *cell = gv_cell_of(c, s, k);
        bool all = what->op == GV_OP_ALL_TO_ALL;
        if (all ? !w->all_sound || !w->peers : !w->ring_sound)
            continue;
        if (all && isnan(us_per_gb))
            us_per_gb = gv_wired_us_per_gb(w);
        double us = all ? gv_wired_all_to_all_us(w, us_per_gb, what->bytes)
                        : gv_wired_forced_us(w, what->bytes, f->lent, f->algorithm, f->protocol);
        for (int i = 0; i < REPEATS; i++)
            cell->time_us[cell->count++] = us * noise(seed);
    }
}

static struct gv_collective *collective_new(gv_gpuset gpus)
{
    struct gv_collective *c = calloc(1, sizeof(*c));
    if (!c)
        abort();
    c->cell = calloc(GV_MAX_STEERS * GV_MAX_CASES, sizeof(*c->cell));
    if (!c->cell)
        abort();
    for (gv_gpuset rest = gpus; rest; rest &= rest - 1)
        c->gpu[c->nranks++] = gv_gpuset_first(rest);
    return c;
}

static void collective_keep(struct gv_calibration *cal, struct gv_collective *c)
{
    if (gv_collective_groups(c, &cal->groups, &cal->ngroups))
        abort();
    free(c->cell);
    free(c);
}

/* The plan carried out last: steers that differ in the tuner's choice alone come one after another.
 */
struct carried_out {
    struct gv_wired wired;
    struct gv_edit edits[GV_MAX_EDITS];
    int n; /* -1: none */
    bool works;
};

static void carry_out(
    const struct gv_model *model, gv_gpuset gpus, const struct forced *f, struct carried_out *to)
{
    if (to->n == f->n && !memcmp(to->edits, f->edits, sizeof(f->edits[0]) * (size_t)f->n))
        return;
    to->n = f->n;
    memcpy(to->edits, f->edits, sizeof(f->edits[0]) * (size_t)f->n);
    to->works = !gv_model_wire(model, gpus, f->edits, f->n, two_links(model, f), false, &to->wired);
}

/* Fills the cells of steer `s`. False where NCCL would fail. */
static bool fill_steer(
    struct gv_collective *c, int s, const struct gv_model *model, gv_gpuset gpus,
    struct carried_out *plan, uint64_t *seed)
{
    struct forced f = forced_by(c->steer[s].force, gpus);
    carry_out(model, gpus, &f, plan);
    if (!plan->works)
        return false;
    fill_wiring(&plan->wired, &c->wiring[s]);
    fill_cells(c, s, &plan->wired, &f, seed);
    return true;
}

/* The plan with the best AllReduce of the largest size; "" where there is none but the default. */
static const char *best_plan(const struct gv_collective *c)
{
    int best = -1, k = c->ncases - 1;
    while (k > 0 && c->cases[k].op != GV_OP_ALL_REDUCE)
        k--;
    for (int s = 1; s < c->nsteers; s++)
        if (gv_cell_of(c, s, k)->count &&
            (best < 0 || gv_cell_of(c, s, k)->time_us[0] < gv_cell_of(c, best, k)->time_us[0]))
            best = s;
    return best < 0 ? "" : c->steer[best].force;
}

static void measure_tunings(
    struct gv_calibration *cal, const struct gv_model *model, gv_gpuset gpus, const char *edit,
    struct carried_out *plan, uint64_t *seed)
{
    struct gv_collective *c = collective_new(gpus);
    c->ncases = gv_collective_tuning_cases(c->cases);
    c->nsteers = gv_collective_tunings(edit, c->steer);
    for (int s = 0; s < c->nsteers; s++)
        fill_steer(c, s, model, gpus, plan, seed);
    collective_keep(cal, c);
}

static void
measure_with_nccl(struct gv_calibration *cal, const struct gv_model *model, gv_gpuset gpus)
{
    struct gv_collective *c = collective_new(gpus);
    struct carried_out *plan = calloc(1, sizeof(*plan));
    struct gv_profile *profile = gv_calibration_profile(cal);
    uint64_t seed = gpus * 31 + 5 + model->noise_seed * 1000003;
    char best[256];
    if (!plan || !profile)
        abort();
    plan->n = -1;
    c->ncases = gv_collective_cases(false, (uint64_t)1 << 30, c->cases);
    c->nsteers = gv_collective_variants(profile, NULL, gpus, c->steer);
    if (fill_steer(c, 0, model, gpus, plan, &seed))
        c->nsteers = gv_collective_variants(profile, c, gpus, c->steer);
    for (int s = 1; s < c->nsteers; s++)
        fill_steer(c, s, model, gpus, plan, &seed);
    snprintf(best, sizeof(best), "%s", best_plan(c));
    collective_keep(cal, c);
    measure_tunings(cal, model, gpus, "", plan, &seed);
    if (best[0])
        measure_tunings(cal, model, gpus, best, plan, &seed);
    gv_profile_free(profile);
    free(plan);
}

/* ---- with calibrate's own ring ---- */

static void
measure_with_ring(struct gv_calibration *cal, const struct gv_model *model, gv_gpuset gpus)
{
    const struct gv_item item = {.gpus = gpus};
    struct gv_ring_variant *v = calloc(2, sizeof(*v));
    struct gv_ring ring = {.bytes = RING_BYTES};
    uint64_t seed = gpus * 37 + 3 + model->noise_seed * 1000003;
    if (!v)
        abort();
    ring.n = gv_shape_ring(cal, gpus, ring.gpu);
    int n = gv_ring_variants(cal, &ring, v);
    for (int i = 0; i < n; i++) {
        double gbs = gv_fabric_ring_of(&model->fabric, ring.gpu, v[i].ring.shm, ring.n).ring_gbs;
        for (v[i].count = 0; v[i].count < REPEATS; v[i].count++)
            v[i].samples[v[i].count] = gbs * noise(&seed);
    }
    if (gv_ring_keep(cal, &item, v, n))
        abort();
    free(v);
}

void gv_calibrated_add(
    struct gv_calibration *cal, const struct gv_model *model, gv_gpuset gpus,
    enum gv_measured_with with)
{
    (with == GV_WITH_NCCL ? measure_with_nccl : measure_with_ring)(cal, model, gpus);
}
