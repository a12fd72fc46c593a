/* The profile's facts as a placement needs them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/policy/samples.h"
#include "profiler/place/gv_place.h"

static const char *const works[GV_WORKS] = {"sync", "pair", "memory", "independent"};

const char *gv_work_name(enum gv_work work)
{
    return works[work];
}

int gv_work_from_name(const char *name)
{
    for (int i = 0; i < GV_WORKS; i++)
        if (!strcmp(name, works[i]))
            return i;
    return -1;
}

const char *gv_known_name(enum gv_known known)
{
    static const char *const names[] = {"none", "inferred", "measured"};
    return names[known];
}

/* What the profile says, else what the tree of switches implies. */
static enum gv_path_class class_of(const struct gv_place *place, int a, int b)
{
    const struct gv_profile *p = place->profile;
    const struct gv_profile_path *path = gv_profile_path_of(p, a, b);
    if (path && path->nccl_class != GV_PATH_UNKNOWN)
        return path->nccl_class;
    if (gv_gpuset_has(place->island[a], b))
        return GV_PATH_PIX;
    return p->gpus[a].numa_node == p->gpus[b].numa_node ? GV_PATH_PHB : GV_PATH_SYS;
}

static bool usable(const struct gv_place *place, int a, int b)
{
    enum gv_p2p there = gv_profile_p2p(place->profile, a, b),
                back = gv_profile_p2p(place->profile, b, a);
    bool sound = (there == GV_P2P_VERIFIED || there == GV_P2P_UNVERIFIED) &&
                 (back == GV_P2P_VERIFIED || back == GV_P2P_UNVERIFIED);
    return sound &&
           !(place->bad && (gv_gpuset_has(place->bad[a], b) || gv_gpuset_has(place->bad[b], a)));
}

static void pairs(struct gv_place *place)
{
    int n = place->profile->ngpus;
    for (int a = 0; a < n; a++)
        place->island[a] = gv_profile_island(place->profile, a);
    for (int a = 0; a < n; a++)
        for (int b = 0; b < n; b++) {
            if (a == b)
                continue;
            place->path[a][b] = class_of(place, a, b);
            if (usable(place, a, b))
                place->p2p[a] |= GV_GPU_BIT(b);
            if (place->path[a][b] == GV_PATH_NVL)
                place->nvlink[a] |= GV_GPU_BIT(b);
        }
}

static void memories(struct gv_place *place)
{
    const struct gv_profile *p = place->profile;
    for (int i = 0; i < p->ngpus; i++)
        place->copy_gbs[i] = NAN;
    for (int k = 0; k < p->nmemory; k++)
        for (gv_gpuset rest = p->memory[k].gpus; rest; rest &= rest - 1)
            if (p->memory[k].copy_gbs.count)
                place->copy_gbs[gv_gpuset_first(rest)] = p->memory[k].copy_gbs.median;
}

static bool plain(const struct gv_profile_variant *v)
{
    return v->algorithm == GV_ALGO_ANY && v->protocol == GV_PROTO_ANY && !v->channels;
}

static double median(const struct gv_profile_group *g, const struct gv_profile_variant *v)
{
    struct gv_variant_key key = {
        .edit = v->edit,
        .algorithm = v->algorithm,
        .protocol = v->protocol,
        .channels = v->channels,
        .lend_count = v->lend_count,
        .lend = v->lend,
        .nlend = v->nlend,
    };
    return gv_side_of(g, &key).median;
}

/* The figure that belongs to the plan: of its own edit, or of P2P_LEVEL, which makes the same
 * transports. */
static double tuned(const struct gv_profile_group *g, const struct gv_plan *plan)
{
    double found = NAN;
    for (int i = 0; i < g->nvariants; i++) {
        const struct gv_profile_variant *v = &g->variants[i];
        if (!plain(v) || v->edit == GV_EDIT_NONE)
            continue;
        if (plan->nedits && v->edit == plan->edits[0].kind)
            return median(g, v);
        if (v->edit == GV_EDIT_P2P_LEVEL)
            found = median(g, v);
    }
    return found;
}

static bool plan_of(const struct gv_place *place, gv_gpuset gpus, struct gv_plan *plan)
{
    struct gv_policy_in in = {
        .profile = place->profile,
        .gpus = gpus,
        .nranks = gv_gpuset_count(gpus),
        .nnodes = 1,
        .one_node = true,
        .bad = place->bad,
    };
    gv_policy_decide(&in, plan);
    return plan->transport == GV_TRANSPORT_P2P || plan->transport == GV_TRANSPORT_MIXED;
}

static void measure(struct gv_place *place, const struct gv_profile_group *g)
{
    struct gv_measured_set *m = NULL;
    for (int i = 0; i < place->nmeasured && !m; i++)
        if (place->measured[i].gpus == g->gpus)
            m = &place->measured[i];
    if (m || place->nmeasured == (int)(sizeof(place->measured) / sizeof(place->measured[0])))
        return;
    m = &place->measured[place->nmeasured];
    struct gv_plan plan;
    m->gpus = g->gpus;
    m->path = gv_place_ring_class(place, g->gpus);
    m->p2p = plan_of(place, g->gpus, &plan);
    m->busbw[0] = NAN;
    for (int i = 0; i < g->nvariants; i++)
        if (plain(&g->variants[i]) && g->variants[i].edit == GV_EDIT_NONE)
            m->busbw[0] = median(g, &g->variants[i]);
    m->busbw[1] = m->p2p ? tuned(g, &plan) : NAN;
    gv_plan_finish(&plan);
    if (!isnan(m->busbw[0]) || !isnan(m->busbw[1]))
        place->nmeasured++;
}

/* AllReduce, the largest size of each set, alone before loaded. */
static void measurements(struct gv_place *place)
{
    const struct gv_profile *p = place->profile;
    for (int i = 0; i < p->ngroups; i++) {
        const struct gv_profile_group *g = &p->groups[i];
        bool best = g->op == GV_OP_ALL_REDUCE && gv_gpuset_count(g->gpus) > 1;
        for (int k = 0; k < p->ngroups && best; k++) {
            const struct gv_profile_group *o = &p->groups[k];
            if (o != g && o->op == g->op && o->gpus == g->gpus)
                best = o->bytes < g->bytes || (o->bytes == g->bytes && o->loaded >= g->loaded);
        }
        if (best)
            measure(place, g);
    }
}

struct gv_place *gv_place_new(const struct gv_profile *profile, const gv_gpuset *bad)
{
    struct gv_place *place = calloc(1, sizeof(*place));
    if (!place)
        return NULL;
    place->profile = profile;
    place->bad = bad;
    for (int i = 0; i < profile->ngpus; i++)
        place->all |= GV_GPU_BIT(i);
    pairs(place);
    memories(place);
    measurements(place);
    return place;
}

void gv_place_free(struct gv_place *place)
{
    free(place);
}

/* The measured set that tells most about `gpus`: the same class of slowest edge; the same islands
 * before others, the nearest size, the lowest figure. */
static int likeness(const struct gv_place *place, gv_gpuset gpus, gv_gpuset islands, int which)
{
    enum gv_path_class path = gv_place_ring_class(place, gpus);
    int best = -1, best_key[2] = {0, 0};
    for (int i = 0; i < place->nmeasured; i++) {
        const struct gv_measured_set *m = &place->measured[i];
        if (m->path != path || isnan(m->busbw[which]))
            continue;
        gv_gpuset theirs = 0;
        for (gv_gpuset rest = m->gpus; rest; rest &= rest - 1)
            theirs |= place->island[gv_gpuset_first(rest)];
        int key[2] = {theirs != islands, abs(gv_gpuset_count(m->gpus) - gv_gpuset_count(gpus))};
        bool better = best < 0 || key[0] < best_key[0] ||
                      (key[0] == best_key[0] && key[1] < best_key[1]) ||
                      (key[0] == best_key[0] && key[1] == best_key[1] &&
                       m->busbw[which] < place->measured[best].busbw[which]);
        if (better) {
            best = i;
            memcpy(best_key, key, sizeof(key));
        }
    }
    return best;
}

void gv_place_busbw(const struct gv_place *place, struct gv_group_place *group)
{
    group->busbw_gbs = NAN;
    group->known = GV_KNOWN_NOT;
    group->like = -1;
    group->p2p = false;
    if (gv_gpuset_count(group->gpus) < 2)
        return;
    for (int i = 0; i < place->nmeasured; i++) {
        const struct gv_measured_set *m = &place->measured[i];
        if (m->gpus != group->gpus)
            continue;
        group->p2p = m->p2p;
        group->busbw_gbs = isnan(m->busbw[1]) ? m->busbw[0] : m->busbw[1];
        group->known = GV_KNOWN_MEASURED;
        group->like = i;
        return;
    }
    struct gv_plan plan;
    group->p2p = plan_of(place, group->gpus, &plan);
    gv_plan_finish(&plan);
    gv_gpuset islands = 0;
    for (gv_gpuset rest = group->gpus; rest; rest &= rest - 1)
        islands |= place->island[gv_gpuset_first(rest)];
    group->like = likeness(place, group->gpus, islands, group->p2p);
    if (group->like >= 0) {
        group->busbw_gbs = place->measured[group->like].busbw[group->p2p];
        group->known = GV_KNOWN_INFERRED;
    } else
        group->path = gv_place_ring_class(place, group->gpus);
}
