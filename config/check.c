#include "config/check.h"

#include <ctype.h>
#include <string.h>

#include "config/gv_profile.h"

/* The node of `key`, or the map itself where the file is silent: a place for an error. */
static int place(const struct gv_reader *r, int node, const char *key)
{
    int value = gv_yaml_value(r->tree, node, key);
    return value < 0 ? node : value;
}

/* The i-th entry of the list `key`. */
static int entry(const struct gv_reader *r, int node, const char *key, int i)
{
    int child = r->tree->nodes[place(r, node, key)].first;
    while (i-- > 0 && child >= 0)
        child = r->tree->nodes[child].next;
    return child < 0 ? node : child;
}

/* Counts the GPUs too: from here on indexes are checked against r->ngpus. */
int gv_check_gpu(struct gv_reader *r, int node, void *object)
{
    const struct gv_profile_gpu *gpu = object;
    if (gpu->index != r->ngpus)
        return gv_reader_fail(
            r, place(r, node, "index"),
            "index: GPUs are listed in order from 0 without gaps; %d is expected here, found %d",
            r->ngpus, gpu->index);
    r->ngpus++;
    return 0;
}

static int
same_gpu(struct gv_reader *r, int node, const struct gv_profile *p, int a, int b, const char *key)
{
    int at = entry(r, node, "gpus", b);
    return gv_reader_fail(
        r, place(r, at, key), "%s: GPU %d has the same as GPU %d", key, p->gpus[b].index,
        p->gpus[a].index);
}

static int needed(struct gv_reader *r, int node, const struct gv_profile *p, int gpu)
{
    const struct gv_profile_gpu *g = &p->gpus[gpu];
    const char *key = p->match == GV_MATCH_UUID ? "uuid" : "bus_id";
    const char *value = p->match == GV_MATCH_UUID ? g->uuid : g->bus_id;
    if (p->match == GV_MATCH_SHAPE || *value)
        return 0;
    return gv_reader_fail(
        r, entry(r, node, "gpus", gpu), "'%s' is missing in this gpu: match: %s needs it", key,
        gv_match_name(p->match));
}

int gv_check_machine(struct gv_reader *r, int node, void *object)
{
    const struct gv_profile *p = object;
    for (int b = 0; b < p->ngpus; b++) {
        if (needed(r, node, p, b))
            return -1;
        for (int a = 0; a < b; a++) {
            if (*p->gpus[b].uuid && !strcmp(p->gpus[a].uuid, p->gpus[b].uuid))
                return same_gpu(r, node, p, a, b, "uuid");
            if (*p->gpus[b].bus_id && !strcmp(p->gpus[a].bus_id, p->gpus[b].bus_id))
                return same_gpu(r, node, p, a, b, "bus_id");
        }
    }
    return 0;
}

/* PIX, PXB, PHB, NODE, SYS, or NV and a number. */
static bool smi_class_known(const char *name)
{
    static const char *const known[] = {"PIX", "PXB", "PHB", "NODE", "SYS"};
    for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (!strcmp(name, known[i]))
            return true;
    size_t digits = strspn(name + (strncmp(name, "NV", 2) ? 0 : 2), "0123456789");
    return !strncmp(name, "NV", 2) && digits && !name[2 + digits];
}

int gv_check_path(struct gv_reader *r, int node, void *object)
{
    const struct gv_profile_path *path = object;
    if (*path->smi_class && !smi_class_known(path->smi_class))
        return gv_reader_fail(
            r, place(r, node, "smi_class"),
            "smi_class: '%s' is not known; it may be: PIX, PXB, PHB, NODE, SYS, NV and a number",
            path->smi_class);
    if (gv_gpuset_count(path->from | path->to) < 2)
        return gv_reader_fail(
            r, place(r, node, "to"), "to: the entry covers no pair: both ends are the same GPU");
    if (path->p2p != GV_P2P_REFUSED)
        return 0;
    const struct gv_figure *figures[] = {
        &path->write_gbs, &path->read_gbs, &path->both_ways_gbs, &path->loaded_write_gbs};
    static const char *const keys[] = {
        "write_gbs", "read_gbs", "both_ways_gbs", "loaded_write_gbs"};
    for (int i = 0; i < 4; i++)
        if (figures[i]->count)
            return gv_reader_fail(
                r, place(r, node, keys[i]),
                "%s: P2P is refused on this path, so it has no P2P figure; a copy through the host "
                "is host_path_gbs",
                keys[i]);
    return 0;
}

int gv_check_variant(struct gv_reader *r, int node, void *object)
{
    const struct gv_profile_variant *v = object;
    if (v->edit != GV_EDIT_LEND && (v->nlend || v->lend_count))
        return gv_reader_fail(
            r, place(r, node, v->nlend ? "lend" : "lend_count"),
            "%s: only a variant with edit: lend has it", v->nlend ? "lend" : "lend_count");
    for (int i = 0; i < v->nlend; i++)
        for (int j = 0; j < i; j++)
            if (v->lend[i][0] == v->lend[j][1] && v->lend[i][1] == v->lend[j][0])
                return gv_reader_fail(
                    r, entry(r, node, "lend", i), "lend: the pair %d, %d stands twice",
                    v->lend[i][0], v->lend[i][1]);
    return 0;
}

static int check_ring(struct gv_reader *r, int node, const struct gv_profile_group *g)
{
    gv_gpuset members = 0;
    for (int i = 0; i < g->nring; i++)
        members |= GV_GPU_BIT(g->ring[i]);
    if (g->nring && members != g->gpus)
        return gv_reader_fail(
            r, place(r, node, "ring"), "ring: it must name exactly the GPUs of the group");
    return 0;
}

static bool ring_edge(const struct gv_profile_group *g, const int edge[2])
{
    for (int i = 0; i < g->nring; i++)
        if (g->ring[i] == edge[0] && g->ring[(i + 1) % g->nring] == edge[1])
            return true;
    return g->nring == 0;
}

static int check_edges(struct gv_reader *r, int node, const struct gv_profile_group *g)
{
    for (int i = 0; i < g->nshm_edges; i++) {
        const int *edge = g->shm_edges[i];
        bool inside = gv_gpuset_has(g->gpus, edge[0]) && gv_gpuset_has(g->gpus, edge[1]);
        if (!inside || !ring_edge(g, edge))
            return gv_reader_fail(
                r, entry(r, node, "shm_edges", i), "shm_edges: %d to %d is no edge of the %s",
                edge[0], edge[1], inside ? "ring" : "group");
    }
    return 0;
}

static bool same_variant(const struct gv_profile_variant *a, const struct gv_profile_variant *b)
{
    return a->edit == b->edit && a->algorithm == b->algorithm && a->protocol == b->protocol &&
           a->channels == b->channels && a->lend_count == b->lend_count && a->nlend == b->nlend &&
           !memcmp(a->lend, b->lend, (size_t)a->nlend * sizeof(a->lend[0]));
}

static int check_variants(struct gv_reader *r, int node, const struct gv_profile_group *g)
{
    for (int b = 0; b < g->nvariants; b++) {
        const struct gv_profile_variant *v = &g->variants[b];
        int at = entry(r, node, "variants", b);
        for (int i = 0; i < v->nlend; i++)
            if (!gv_gpuset_has(g->gpus, v->lend[i][0]) || !gv_gpuset_has(g->gpus, v->lend[i][1]))
                return gv_reader_fail(
                    r, entry(r, at, "lend", i), "lend: %d, %d: not both in the group",
                    v->lend[i][0], v->lend[i][1]);
        for (int a = 0; a < b; a++)
            if (same_variant(&g->variants[a], v))
                return gv_reader_fail(
                    r, at, "this variant is the same as number %d: put its runs there", a + 1);
    }
    return 0;
}

int gv_check_group(struct gv_reader *r, int node, void *object)
{
    const struct gv_profile_group *g = object;
    if (check_ring(r, node, g) || check_edges(r, node, g))
        return -1;
    return check_variants(r, node, g);
}

static bool same_group(const struct gv_profile_group *a, const struct gv_profile_group *b)
{
    return a->gpus == b->gpus && a->op == b->op && a->bytes == b->bytes && !a->loaded && !b->loaded;
}

static int check_groups(struct gv_reader *r, int node, const struct gv_profile *p)
{
    for (int b = 0; b < p->ngroups; b++)
        for (int a = 0; a < b; a++)
            if (same_group(&p->groups[a], &p->groups[b]))
                return gv_reader_fail(
                    r, entry(r, node, "groups", b),
                    "this group (same GPUs, op and bytes) stands in line %u already: put its "
                    "variants there",
                    r->tree->nodes[entry(r, node, "groups", a)].line);
    return 0;
}

/* The GPUs that `gpu` reaches by this entry. */
static gv_gpuset reached(const struct gv_profile_path *path, int gpu)
{
    gv_gpuset to = gv_gpuset_has(path->from, gpu) ? path->to : 0;
    if (path->both_directions && gv_gpuset_has(path->to, gpu))
        to |= path->from;
    return to & ~GV_GPU_BIT(gpu);
}

static int check_paths(struct gv_reader *r, int node, const struct gv_profile *p)
{
    gv_gpuset covered[GV_MAX_GPUS] = {0};
    for (int i = 0; i < p->npaths; i++) {
        for (int gpu = 0; gpu < p->ngpus; gpu++) {
            gv_gpuset here = reached(&p->paths[i], gpu), twice = here & covered[gpu];
            if (twice)
                return gv_reader_fail(
                    r, entry(r, node, "paths", i),
                    "the pair %d to %d is covered by an earlier path too: each pair once", gpu,
                    gv_gpuset_first(twice));
            covered[gpu] |= here;
        }
    }
    return 0;
}

int gv_check_handoff(struct gv_reader *r, int node, void *object)
{
    const struct gv_profile_handoff *h = object;
    bool from = h->from < r->ngpus;
    if (from && h->to < r->ngpus)
        return 0;
    return gv_reader_fail(
        r, place(r, node, from ? "to" : "from"), "%s: there is no GPU %d; the machine has 0-%d",
        from ? "to" : "from", from ? h->to : h->from, r->ngpus - 1);
}

static int check_handoffs(struct gv_reader *r, int node, const struct gv_profile *p)
{
    for (int b = 0; b < p->nhandoffs; b++)
        for (int a = 0; a < b; a++) {
            const struct gv_profile_handoff *x = &p->handoffs[a], *y = &p->handoffs[b];
            if (x->from == y->from && x->to == y->to && x->bytes == y->bytes)
                return gv_reader_fail(
                    r, entry(r, node, "handoffs", b),
                    "this hand-off (same GPUs and bytes) stands in line %u already",
                    r->tree->nodes[entry(r, node, "handoffs", a)].line);
        }
    return 0;
}

int gv_check_tuner(struct gv_reader *r, int node, void *object)
{
    const struct gv_profile_tuner *t = object;
    if (t->op > GV_OP_ALL_REDUCE)
        return gv_reader_fail(
            r, place(r, node, "op"), "op: a tuner is not asked about %s", gv_op_name(t->op));
    if (t->algorithm == GV_ALGO_ANY || t->protocol == GV_PROTO_ANY)
        return gv_reader_fail(
            r, place(r, node, t->algorithm == GV_ALGO_ANY ? "algorithm" : "protocol"),
            "a row names both an algorithm and a protocol");
    if (t->max_bytes && t->max_bytes < t->min_bytes)
        return gv_reader_fail(
            r, place(r, node, "max_bytes"), "max_bytes: it is less than min_bytes");
    return 0;
}

static bool covers(int condition, int of)
{
    return condition == -1 || condition == of;
}

bool gv_profile_tuner_hides(
    const struct gv_profile_tuner *first, const struct gv_profile_tuner *later)
{
    uint64_t end = first->max_bytes ? first->max_bytes : UINT64_MAX;
    uint64_t later_end = later->max_bytes ? later->max_bytes : UINT64_MAX;
    return first->op == later->op && first->min_bytes <= later_end && later->min_bytes <= end &&
           covers(first->nodes, later->nodes) && covers(first->ranks, later->ranks) &&
           covers(first->pipe_ops, later->pipe_ops) && covers(first->registered, later->registered);
}

static int check_tuner(struct gv_reader *r, int node, const struct gv_profile *p)
{
    for (int b = 0; b < p->ntuner; b++)
        for (int a = 0; a < b; a++)
            if (gv_profile_tuner_hides(&p->tuner[a], &p->tuner[b]))
                return gv_reader_fail(
                    r, entry(r, node, "tuner", b),
                    "the row in line %u holds for the same calls, and it stands first",
                    r->tree->nodes[entry(r, node, "tuner", a)].line);
    return 0;
}

int gv_check_profile(struct gv_reader *r, int node, void *object)
{
    const struct gv_profile *p = object;
    if (check_paths(r, node, p) || check_groups(r, node, p) || check_handoffs(r, node, p))
        return -1;
    return check_tuner(r, node, p);
}
