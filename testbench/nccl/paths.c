#include "testbench/nccl/paths.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool gv_nt_path_exists(enum gv_nccl_path type, int release)
{
    if (type == GV_NCCL_C2C)
        return release >= 22600;
    return type != GV_NCCL_P2C || release >= 22703;
}

static float minf(float a, float b)
{
    return a < b ? a : b;
}

static float maxf(float a, float b)
{
    return a > b ? a : b;
}

/* ---- breadth-first search towards one node ---- */

/* State of one search: the way from every node to `base`, by kind and index. */
struct spread {
    struct gv_nt_system *sys;
    const struct gv_nt_node *base;
    bool nvb;
    struct gv_nt_path *way[GV_NT_KINDS];
};

struct node_list {
    struct gv_nt_node **node;
    int count;
};

static struct gv_nt_path *way_of(const struct spread *s, const struct gv_nt_node *node)
{
    return s->way[node->kind] + node->index;
}

/* Type of the way over `link` from `node`, when the rest of the way is `rest`. */
static enum gv_nccl_path extended_type(
    const struct gv_nt_node *node, const struct gv_nt_link *link, const struct gv_nt_path *rest)
{
    static const enum gv_nccl_path by_wire[] = {GV_NCCL_LOC, GV_NCCL_NVL, GV_NCCL_C2C,
                                                GV_NCCL_PIX, GV_NCCL_SYS, GV_NCCL_LOC};
    enum gv_nccl_path type = by_wire[link->wire];
    if (node->kind == GV_NT_PCI && link->to->kind == GV_NT_PCI)
        type = GV_NCCL_PXB;
    if (link->wire == GV_NT_PCIE && (node->kind == GV_NT_CPU || link->to->kind == GV_NT_CPU))
        type = GV_NCCL_PHB;
    if (node->kind == GV_NT_GPU && rest->type == GV_NCCL_NVL && type == GV_NCCL_NVL)
        type = GV_NCCL_NVB;
    return type > rest->type ? type : rest->type;
}

/* Up to 2.30.4 a shorter way counts, and only if it is faster; from 2.30.7 the nearer type. */
static bool better(
    const struct spread *s, const struct gv_nt_path *old, enum gv_nccl_path type, float gbs,
    int rest_hops)
{
    if (s->sys->release < 23007)
        return (old->gbs == 0 || old->hops > rest_hops) && old->gbs < gbs;
    if (type != old->type)
        return type < old->type;
    return old->gbs < gbs || (old->gbs == gbs && old->hops > rest_hops + 1);
}

/* A GPU may be passed through once, from NVLink to NVLink. */
static bool may_pass(
    const struct spread *s, const struct gv_nt_node *node, const struct gv_nt_link *link,
    const struct gv_nt_path *rest)
{
    if (node == s->base || node->kind != GV_NT_GPU)
        return true;
    return s->nvb && link->wire == GV_NT_NVLINK && link->to->kind == GV_NT_GPU && rest->hops <= 1;
}

static struct gv_nt_link *link_back(const struct gv_nt_node *node, const struct gv_nt_link *link)
{
    for (int i = 0; i < link->to->nlinks; i++) {
        struct gv_nt_link *back = link->to->link + i;
        if (back->to == node && back->wire == link->wire)
            return back;
    }
    return NULL;
}

static int set_way(
    struct spread *s, const struct gv_nt_node *node, const struct gv_nt_link *link,
    const struct gv_nt_path *rest, enum gv_nccl_path type)
{
    struct gv_nt_path *way = way_of(s, link->to);
    struct gv_nt_link *back = link_back(node, link);
    if (back)
        way->hop[0] = back;
    if (!way->hop[0] || rest->hops + 1 >= GV_NT_MAX_HOPS) {
        snprintf(
            s->sys->err->text, sizeof(s->sys->err->text),
            way->hop[0] ? "a path has more than %d hops"
                        : "an nvlink is stated on one side only (no way back, %d)",
            way->hop[0] ? GV_NT_MAX_HOPS : link->to->dev);
        return GV_NCCL_INTERNAL_ERROR;
    }
    memcpy(way->hop + 1, rest->hop, (size_t)rest->hops * sizeof(rest->hop[0]));
    way->hops = rest->hops + 1;
    way->gbs = minf(rest->gbs, link->gbs);
    way->type = type;
    return 0;
}

static void append_once(struct node_list *list, struct gv_nt_node *node)
{
    for (int i = 0; i < list->count; i++)
        if (list->node[i] == node)
            return;
    list->node[list->count++] = node;
}

static int step_from(struct spread *s, const struct gv_nt_node *node, struct node_list *next)
{
    for (int i = 0; i < node->nlinks; i++) {
        const struct gv_nt_link *link = node->link + i;
        const struct gv_nt_path *rest = way_of(s, node);
        if (!may_pass(s, node, link, rest))
            continue;
        enum gv_nccl_path type = extended_type(node, link, rest);
        if (!better(s, way_of(s, link->to), type, minf(rest->gbs, link->gbs), rest->hops))
            continue;
        int rc = set_way(s, node, link, rest, type);
        if (rc)
            return rc;
        append_once(next, link->to);
    }
    return 0;
}

static int spread_from(struct spread *s, struct gv_nt_node *base, struct node_list list[2])
{
    int rc = 0;
    for (int k = 0; k < GV_NT_KINDS; k++)
        for (int i = 0; i < s->sys->count[k]; i++)
            s->way[k][i] = (struct gv_nt_path){.type = GV_NCCL_DIS};
    s->base = base;
    *way_of(s, base) = (struct gv_nt_path){.gbs = GV_NT_LOCAL_GBS, .type = GV_NCCL_LOC};
    list[0].node[0] = base;
    list[0].count = 1;
    for (int now = 0; list[now].count && !rc; now = !now) {
        list[!now].count = 0;
        for (int i = 0; i < list[now].count && !rc; i++)
            rc = step_from(s, list[now].node[i], &list[!now]);
    }
    return rc;
}

/* ---- the table of paths ---- */

static const enum gv_nt_kind ends[] = {GV_NT_CPU, GV_NT_GPU, GV_NT_NET};

static void save_ways(struct spread *s)
{
    for (size_t e = 0; e < sizeof(ends) / sizeof(ends[0]); e++)
        for (int i = 0; i < s->sys->count[ends[e]]; i++) {
            struct gv_nt_node *from = s->sys->node[ends[e]][i];
            *gv_nt_path_between(s->sys, from, s->base) = *way_of(s, from);
        }
}

static void make_table(struct gv_nt_system *sys)
{
    for (int a = 0; a < GV_NT_KINDS; a++)
        for (int b = 0; b < GV_NT_KINDS; b++) {
            free(sys->path[a][b]);
            size_t n = (size_t)sys->count[a] * (size_t)sys->count[b];
            sys->path[a][b] = calloc(n ? n : 1, sizeof(struct gv_nt_path));
        }
}

static int raw_paths(struct gv_nt_system *sys, bool nvb)
{
    struct spread s = {.sys = sys, .nvb = nvb};
    int total = 0, rc = 0;
    make_table(sys);
    for (int k = 0; k < GV_NT_KINDS; k++) {
        s.way[k] = calloc((size_t)sys->count[k] + 1, sizeof(struct gv_nt_path));
        total += sys->count[k];
    }
    struct node_list list[2] = {
        {calloc((size_t)total + 1, sizeof(void *)), 0},
        {calloc((size_t)total + 1, sizeof(void *)), 0}};
    for (size_t e = 0; e < sizeof(ends) / sizeof(ends[0]); e++)
        for (int i = 0; i < sys->count[ends[e]] && !rc; i++) {
            rc = spread_from(&s, sys->node[ends[e]][i], list);
            save_ways(&s);
        }
    free(list[0].node);
    free(list[1].node);
    for (int k = 0; k < GV_NT_KINDS; k++)
        free(s.way[k]);
    return rc;
}

/* ---- who talks to whom ---- */

/* Before 2.23 P2P was open but through Intel, Zhaoxin and ARM hosts; since then closed above PXB
 * but for two GPUs on AMD. */
enum gv_nccl_path gv_nt_p2p_reach(const struct gv_nt_system *sys, const struct gv_nt_rules *rules)
{
    if (rules->p2p_level >= 0)
        return (enum gv_nccl_path)rules->p2p_level;
    const struct gv_nt_node *cpu = sys->node[GV_NT_CPU][0];
    if (sys->release < 22300) {
        bool closed = cpu->arch == GV_NT_ARM ||
                      (cpu->arch == GV_NT_X86 &&
                       (cpu->vendor == GV_NT_INTEL || cpu->vendor == GV_NT_ZHAOXIN));
        return closed ? GV_NCCL_PXB : GV_NCCL_SYS;
    }
    bool amd = cpu->arch == GV_NT_X86 && cpu->vendor == GV_NT_AMD;
    return amd && sys->count[GV_NT_GPU] <= 2 ? GV_NCCL_SYS : GV_NCCL_PXB;
}

static bool refused(const struct gv_nt_rules *rules, const struct gv_nt_node *gpu)
{
    return gpu->dev >= 0 && gpu->dev < 64 && (rules->nop2p >> gpu->dev & 1);
}

/* The check that shapes the paths: distance, then what NVML says of each hop. */
static int p2p_near(
    const struct gv_nt_system *sys, const struct gv_nt_rules *rules, const struct gv_nt_node *a,
    const struct gv_nt_node *b, bool *ok, const struct gv_nt_node **via)
{
    const struct gv_nt_path *path = gv_nt_path_between(sys, a, b);
    *via = path->hops == 2 && path->hop[0]->to->kind == GV_NT_GPU ? path->hop[0]->to : NULL;
    *ok = path->type <= gv_nt_p2p_reach(sys, rules);
    if (!*ok || a == b)
        return 0;
    if (!refused(rules, a) && !refused(rules, b) && !(*via && refused(rules, *via)))
        return 0;
    *ok = false;
    if (path->type > GV_NCCL_NVB)
        return 0;
    snprintf(
        sys->err->text, sizeof(sys->err->text),
        "P2P is disabled between NVLink connected GPUs %d and %d", a->dev, b->dev);
    return GV_NCCL_CUDA_ERROR;
}

/* Fastest way of a GPU to a network device up to PXB. While paths are being shaped NCCL does not
 * look at GPUDirect yet; afterwards a device without it is behind the CPU. */
static float net_gbs(
    const struct gv_nt_system *sys, const struct gv_nt_rules *rules, const struct gv_nt_node *gpu)
{
    float best = 0;
    for (int i = 0; i < sys->count[GV_NT_NET]; i++) {
        const struct gv_nt_node *net = sys->node[GV_NT_NET][i];
        const struct gv_nt_path *path = gv_nt_path_between(sys, gpu, net);
        bool direct = !rules->nets_known || (gpu->gdr && net->gdr);
        if (path->type <= GV_NCCL_PXB && direct)
            best = maxf(best, path->gbs);
    }
    return best;
}

/* Two GPUs whose network devices are both faster than the way between them use the network. */
static bool net_is_faster(
    const struct gv_nt_system *sys, const struct gv_nt_rules *rules, const struct gv_nt_node *a,
    const struct gv_nt_node *b)
{
    float gbs = gv_nt_path_between(sys, a, b)->gbs;
    return rules->use_nets && net_gbs(sys, rules, a) > gbs && net_gbs(sys, rules, b) > gbs;
}

int gv_nt_p2p(
    const struct gv_nt_system *sys, const struct gv_nt_rules *rules, const struct gv_nt_node *a,
    const struct gv_nt_node *b, bool *ok, const struct gv_nt_node **via)
{
    int rc = p2p_near(sys, rules, a, b, ok, via);
    if (!rc && *ok && !*via && net_is_faster(sys, rules, a, b))
        *ok = false;
    return rc;
}

bool gv_nt_shm(
    const struct gv_nt_system *sys, const struct gv_nt_rules *rules, const struct gv_nt_node *a,
    const struct gv_nt_node *b)
{
    return !rules->shm_disable && !net_is_faster(sys, rules, a, b);
}

/* The CPU of a GPU: fewest hops; from 2.30.7 the fastest, then nearest, come first. */
static struct gv_nt_node *local_cpu(const struct gv_nt_system *sys, const struct gv_nt_node *gpu)
{
    struct gv_nt_node *best = NULL;
    for (int i = 0; i < sys->count[GV_NT_CPU]; i++) {
        struct gv_nt_node *cpu = sys->node[GV_NT_CPU][i];
        const struct gv_nt_path *p = gv_nt_path_between(sys, gpu, cpu);
        const struct gv_nt_path *b = best ? gv_nt_path_between(sys, gpu, best) : NULL;
        if (p->hops <= 0)
            continue;
        bool fewer = b && p->hops < b->hops;
        bool nearer = b && (p->gbs > b->gbs || (p->gbs == b->gbs && p->type < b->type) ||
                            (p->gbs == b->gbs && p->type == b->type && fewer));
        if (!b || (sys->release < 23007 ? fewer : nearer))
            best = cpu;
    }
    return best;
}

static int through_cpu(
    const struct gv_nt_system *sys, const struct gv_nt_node *from, const struct gv_nt_node *to)
{
    const struct gv_nt_node *cpu = local_cpu(sys, to);
    if (!cpu) {
        snprintf(sys->err->text, sizeof(sys->err->text), "no CPU close to GPU %d", to->dev);
        return GV_NCCL_INTERNAL_ERROR;
    }
    const struct gv_nt_path *up = gv_nt_path_between(sys, from, cpu);
    const struct gv_nt_path *down = gv_nt_path_between(sys, cpu, to);
    struct gv_nt_path *path = gv_nt_path_between(sys, from, to);
    if (up->hops + down->hops > GV_NT_MAX_HOPS) {
        snprintf(sys->err->text, sizeof(sys->err->text), "path too long");
        return GV_NCCL_INTERNAL_ERROR;
    }
    memcpy(path->hop, up->hop, (size_t)up->hops * sizeof(up->hop[0]));
    memcpy(path->hop + up->hops, down->hop, (size_t)down->hops * sizeof(up->hop[0]));
    path->hops = up->hops + down->hops;
    path->gbs = minf(up->gbs, down->gbs);
    path->type = up->type > down->type ? up->type : down->type;
    if (path->type == GV_NCCL_PHB && (up->type == GV_NCCL_C2C || down->type == GV_NCCL_C2C) &&
        gv_nt_path_exists(GV_NCCL_P2C, sys->release))
        path->type = GV_NCCL_P2C;
    return 0;
}

static int shape_paths_to(
    struct gv_nt_system *sys, const struct gv_nt_rules *rules, const struct gv_nt_node *to)
{
    const struct gv_nt_node *via;
    bool ok;
    int rc = 0, n = sys->count[GV_NT_GPU];
    for (int i = 0; i < n && !rc; i++) {
        const struct gv_nt_node *from = sys->node[GV_NT_GPU][i];
        rc = p2p_near(sys, rules, from, to, &ok, &via);
        if (!rc && !ok)
            rc = through_cpu(sys, from, to);
    }
    for (int i = 0; i < n && !rc; i++) {
        const struct gv_nt_node *from = sys->node[GV_NT_GPU][i];
        if (from == to)
            continue;
        rc = gv_nt_p2p(sys, rules, from, to, &ok, &via);
        if (!rc && !ok && !gv_nt_shm(sys, rules, from, to))
            gv_nt_path_between(sys, from, to)->type = GV_NCCL_NET;
    }
    return rc;
}

static float fastest_path(const struct gv_nt_system *sys)
{
    float best = 0;
    int n = sys->count[GV_NT_GPU];
    for (int i = 0; i < n * n; i++)
        if (sys->path[GV_NT_GPU][GV_NT_GPU][i].hops)
            best = maxf(best, sys->path[GV_NT_GPU][GV_NT_GPU][i].gbs);
    return best;
}

static float gpu_gbs(const struct gv_nt_node *gpu)
{
    float nvlink = 0, pcie = 0;
    for (int i = 0; i < gpu->nlinks; i++) {
        if (gpu->link[i].wire == GV_NT_NVLINK)
            nvlink += gpu->link[i].gbs;
        if (gpu->link[i].wire == GV_NT_PCIE)
            pcie = gpu->link[i].gbs;
    }
    return maxf(nvlink, pcie);
}

static void set_totals(struct gv_nt_system *sys, float raw_gbs)
{
    int n = sys->count[GV_NT_GPU];
    /* From 2.30 the bound is taken before detours. */
    sys->max_gbs = sys->release >= 23000 ? raw_gbs : fastest_path(sys);
    sys->total_gbs = 0;
    for (int i = 0; i < n; i++)
        sys->total_gbs = maxf(sys->total_gbs, gpu_gbs(sys->node[GV_NT_GPU][i]));
    if (n == 1)
        sys->max_gbs = sys->total_gbs = GV_NT_LOCAL_GBS;
}

int gv_nt_compute_paths(struct gv_nt_system *sys, const struct gv_nt_rules *rules)
{
    int rc = raw_paths(sys, !rules->nvb_disable);
    if (rc)
        return rc;
    float raw_gbs = fastest_path(sys);
    for (int i = 0; i < sys->count[GV_NT_GPU] && !rc; i++)
        rc = shape_paths_to(sys, rules, sys->node[GV_NT_GPU][i]);
    set_totals(sys, raw_gbs);
    return rc;
}
