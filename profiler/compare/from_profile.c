/* What a profile measured, as a comparison: no new figure, the samples as they stand there. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/collective/gv_busbw.h"
#include "profiler/collective/gv_release.h"
#include "profiler/compare/gv_compare.h"

struct reading {
    const struct gv_profile *profile;
    const char *path;
    gv_gpuset gpus;
    struct gv_policy_in in;
    struct gv_facts facts;
    struct gv_plan plan;
    struct gv_compared *out;
    const struct gv_profile_group *group[GV_MAX_CASES]; /* of each case */
    struct gv_error *err;
};

/* "0-1, 0-5": every set of GPUs that was measured. */
static const char *sets_of(const struct gv_profile *p, char *out, size_t size, int *count)
{
    gv_gpuset seen[64];
    char text[256];
    *count = 0;
    out[0] = 0;
    for (int i = 0; i < p->ngroups; i++) {
        int known = 0;
        while (known < *count && seen[known] != p->groups[i].gpus)
            known++;
        if (known < *count || *count == 64)
            continue;
        seen[(*count)++] = p->groups[i].gpus;
        size_t n = strlen(out);
        gv_gpuset_format(p->groups[i].gpus, text, sizeof(text));
        snprintf(out + n, size - n, "%s%s", n ? "; " : "", text);
    }
    return out;
}

static int choose_gpus(struct reading *r)
{
    char sets[400], wanted[256];
    int count;
    sets_of(r->profile, sets, sizeof(sets), &count);
    if (!count)
        return gv_error_at(r->err, r->path, 0, 0, "measured no group; gv100 calibrate does");
    if (!r->gpus && count == 1)
        r->gpus = r->profile->groups[0].gpus;
    if (!r->gpus)
        return gv_error_at(
            r->err, r->path, 0, 0, "has several groups, one is to be named with --gpus: %s", sets);
    for (int i = 0; i < r->profile->ngroups; i++)
        if (r->profile->groups[i].gpus == r->gpus)
            return 0;
    return gv_error_at(
        r->err, r->path, 0, 0, "did not measure GPUs %.100s; it measured %s",
        gv_gpuset_format(r->gpus, wanted, sizeof(wanted)), sets);
}

/* One of each operation and size; measured beside other groups counts before measured alone, as in
 * the policy. */
static int list_cases(struct reading *r)
{
    struct gv_collective *run = &r->out->run;
    for (int i = 0; i < r->profile->ngroups; i++) {
        const struct gv_profile_group *g = &r->profile->groups[i];
        int k = 0;
        if (g->gpus != r->gpus)
            continue;
        while (k < run->ncases && (run->cases[k].op != g->op || run->cases[k].bytes != g->bytes))
            k++;
        if (k == GV_MAX_CASES)
            return gv_error_at(r->err, r->path, 0, 0, "more than %d sizes", GV_MAX_CASES);
        if (k < run->ncases && !(g->loaded && !r->group[k]->loaded))
            continue;
        r->group[k] = g;
        run->cases[k] = (struct gv_case){
            .op = g->op, .bytes = g->bytes, .type = GV_TYPE_FLOAT, .redop = GV_REDOP_SUM};
        run->ncases += k == run->ncases;
    }
    return 0;
}

/* The samples that the key names, as times. */
static void take(
    struct gv_cell *cell, const struct gv_profile_group *g, int nranks,
    const struct gv_variant_key *key)
{
    for (int v = 0; v < g->nvariants; v++) {
        if (!gv_variant_is(&g->variants[v], key))
            continue;
        for (int i = 0; i < g->variants[v].nruns; i++) {
            const struct gv_profile_run *run = &g->variants[v].runs[i];
            for (int k = 0; k < run->count && cell->count < GV_MAX_REPEATS; k++) {
                int at = cell->count++;
                cell->time_us[at] = gv_busbw_time_us(g->op, nranks, g->bytes, run->busbw_gbs[k]);
                cell->first_us[at] = NAN;
                cell->throttled[at] = run->throttled && run->throttled[k];
            }
        }
    }
}

/* What the plan does to this case. `lend` holds its pairs. */
static struct gv_variant_key
planned(const struct reading *r, const struct gv_case *what, int lend[GV_MAX_EDITS][2])
{
    const struct gv_plan *plan = &r->plan;
    struct gv_variant_key key = {
        .algorithm = GV_ALGO_ANY, .protocol = GV_PROTO_ANY, .lend = (const int(*)[2])lend};
    for (int i = 0; i < plan->nedits; i++) {
        key.edit = plan->edits[i].kind;
        key.lend_count = plan->edits[i].count;
        lend[key.nlend][0] = plan->edits[i].from;
        lend[key.nlend++][1] = plan->edits[i].to;
    }
    for (int i = 0; i < plan->nrows; i++) {
        const struct gv_tuner_row *row = &plan->rows[i];
        if (row->op != what->op || what->bytes < row->min_bytes || what->bytes > row->max_bytes)
            continue;
        key.algorithm = row->algorithm;
        key.protocol = row->protocol;
        key.channels = row->channels;
        break;
    }
    return key;
}

static void take_tuned(struct reading *r, int k, struct gv_cell *cell)
{
    int lend[GV_MAX_EDITS][2], nranks = r->out->run.nranks;
    struct gv_variant_key key = planned(r, &r->out->run.cases[k], lend);
    take(cell, r->group[k], nranks, &key);
    if (!cell->count && r->plan.transport == GV_TRANSPORT_P2P) { /* the same transports */
        key.edit = GV_EDIT_P2P_LEVEL;
        take(cell, r->group[k], nranks, &key);
    }
    if (!cell->count)
        snprintf(
            cell->error, sizeof(cell->error),
            "the profile did not measure this operation and size under its own plan");
}

static void take_samples(struct reading *r)
{
    struct gv_collective *run = &r->out->run;
    struct gv_variant_key none = {.algorithm = GV_ALGO_ANY, .protocol = GV_PROTO_ANY};
    for (int k = 0; k < run->ncases; k++) {
        struct gv_cell *base = gv_cell_of(run, 0, k);
        take(base, r->group[k], run->nranks, &none);
        if (!base->count)
            snprintf(
                base->error, sizeof(base->error), "the profile did not measure NCCL's default");
        take_tuned(r, k, gv_cell_of(run, 1, k));
    }
}

static const char *word(enum gv_transport t)
{
    return t == GV_TRANSPORT_P2P ? "P2P" : t == GV_TRANSPORT_SHM ? "SHM" : "";
}

/* A ring edge when NCCL is left alone: as the profile measured it, else by NCCL's own rule. */
static const char *default_word(const struct reading *r, int from, int to)
{
    for (int k = 0; k < r->out->run.ncases; k++) {
        const struct gv_profile_group *g = r->group[k];
        for (int i = 0; g->shm_edges_known && i < g->nshm_edges; i++)
            if (g->shm_edges[i][0] == from && g->shm_edges[i][1] == to)
                return "SHM";
        if (g->shm_edges_known)
            return "P2P";
    }
    return gv_facts_joined(&r->facts, from, to) ? "P2P" : "SHM";
}

static void wire(struct reading *r)
{
    struct gv_wiring *before = &r->out->run.wiring[0], *after = &r->out->run.wiring[1];
    before->nring = after->nring = r->plan.nring;
    for (int i = 0; i < r->plan.nring; i++) {
        const struct gv_ring_edge *e = &r->plan.edges[i];
        before->ring[i] = after->ring[i] = e->from;
        before->edge[i].from = after->edge[i].from = e->from;
        before->edge[i].to = after->edge[i].to = e->to;
        snprintf(
            before->edge[i].transport, sizeof(before->edge[i].transport), "%s",
            default_word(r, e->from, e->to));
        const char *tuned = r->plan.transport == GV_TRANSPORT_DEFAULT ? before->edge[i].transport
                                                                      : word(e->transport);
        snprintf(after->edge[i].transport, sizeof(after->edge[i].transport), "%s", tuned);
    }
    snprintf(after->decided, sizeof(after->decided), "%s", r->plan.reason);
    snprintf(
        after->plugin_transport, sizeof(after->plugin_transport), "%s",
        gv_transport_name(r->plan.transport));
}

static void fill_head(struct reading *r)
{
    struct gv_compared *out = r->out;
    const struct gv_profile_provenance *from = &r->profile->provenance;
    struct gv_compared_origin *origin = &out->origin[0];
    snprintf(out->host, sizeof(out->host), "%s", r->profile->name);
    snprintf(out->driver, sizeof(out->driver), "%s", from->driver);
    snprintf(out->date, sizeof(out->date), "%s", from->date);
    snprintf(out->tool, sizeof(out->tool), "%s", from->tool);
    snprintf(out->profile, sizeof(out->profile), "%s", r->path);
    out->profile_hash = r->profile->hash;
    out->virtual_machine = from->kind == GV_VIRTUAL;
    out->thin = from->kind != GV_CUDA;
    out->min_gain = r->profile->policy.min_gain;
    out->max_loss = r->profile->policy.max_loss;
    out->run.nccl_version = gv_nccl_parse(from->nccl);
    for (gv_gpuset rest = r->gpus; rest; rest &= rest - 1) {
        int gpu = gv_gpuset_first(rest), at = out->run.nranks++;
        out->run.gpu[at] = gpu;
        snprintf(out->model[at], sizeof(out->model[at]), "%s", r->profile->gpus[gpu].model);
        snprintf(out->bus_id[at], sizeof(out->bus_id[at]), "%s", r->profile->gpus[gpu].bus_id);
    }
    out->norigins = 1;
    origin->profile = true;
    snprintf(origin->file, sizeof(origin->file), "%s", r->path);
    snprintf(origin->host, sizeof(origin->host), "%s", r->profile->name);
    snprintf(origin->driver, sizeof(origin->driver), "%s", from->driver);
    snprintf(origin->date, sizeof(origin->date), "%s", from->date);
    snprintf(origin->nccl, sizeof(origin->nccl), "%s", from->nccl);
}

static int fill(struct reading *r)
{
    struct gv_collective *run = &r->out->run;
    int same[GV_MAX_GPUS];
    for (int i = 0; i < GV_MAX_GPUS; i++)
        same[i] = i;
    if (list_cases(r))
        return -1;
    run->nsteers = 2;
    snprintf(run->steer[0].name, sizeof(run->steer[0].name), "default");
    snprintf(run->steer[0].force, sizeof(run->steer[0].force), "default");
    snprintf(run->steer[1].name, sizeof(run->steer[1].name), "tuned");
    run->wiring[0].nccl_version = run->wiring[1].nccl_version = run->nccl_version;
    run->cell = calloc((size_t)(2 * run->ncases), sizeof(*run->cell));
    if (!run->cell)
        return gv_error_set(r->err, "out of memory");
    take_samples(r);
    wire(r);
    gv_compared_rings(r->out, r->profile, same);
    gv_compared_note(
        r->out, "Samples of the profile, and what its policy decides; nothing was measured now.");
    return gv_compared_judge(r->out) ? gv_error_set(r->err, "out of memory") : 0;
}

int gv_compared_from_profile(
    const struct gv_profile *profile, const char *path, gv_gpuset gpus, struct gv_compared *out,
    struct gv_error *err)
{
    struct reading *r = calloc(1, sizeof(*r));
    memset(out, 0, sizeof(*out));
    out->job.step_s = NAN;
    if (!r)
        return gv_error_set(err, "out of memory");
    *r = (struct reading){.profile = profile, .path = path, .gpus = gpus, .out = out, .err = err};
    int rc = choose_gpus(r);
    if (!rc) {
        r->in = (struct gv_policy_in){
            .profile = profile,
            .gpus = r->gpus,
            .nranks = gv_gpuset_count(r->gpus),
            .nnodes = 1,
            .one_node = true,
        };
        gv_facts_init(&r->facts, &r->in);
        gv_policy_decide(&r->in, &r->plan);
        fill_head(r);
        rc = fill(r);
        gv_plan_finish(&r->plan);
        gv_facts_finish(&r->facts);
    }
    free(r);
    if (rc)
        gv_compared_finish(out);
    return rc;
}
