/* Plans carried out: the edits go into NCCL's tree, the evaluator says what NCCL makes of it, the
 * fabric how fast that is. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/model.h"

static struct gv_tree_gpu describe(const struct gv_bench_machine *m, int gpu)
{
    struct gv_tree_gpu facts = {.bus_id = m->gpus[gpu].pci.bus_id, .sm = m->gpus[gpu].sm};
    for (int i = 0; i < m->nnvlinks; i++) {
        const int *pair = m->nvlinks[i].gpus;
        if (pair[0] != gpu && pair[1] != gpu)
            continue;
        int other = pair[0] == gpu ? pair[1] : pair[0];
        facts.nvlink[facts.nvlinks].target = m->gpus[other].pci.bus_id;
        facts.nvlink[facts.nvlinks++].count = m->nvlinks[i].count;
    }
    return facts;
}

static int apply(const struct gv_model *model, struct gv_tree *tree, const struct gv_edit *edit)
{
    const struct gv_bench_machine *m = &model->fabric.machine;
    struct gv_error err = {0};
    if (edit->kind == GV_EDIT_BRIDGE) {
        const char *ids[GV_MAX_GPUS];
        int n = 0;
        for (gv_gpuset rest = edit->gpus; rest; rest &= rest - 1)
            ids[n++] = m->gpus[gv_gpuset_first(rest)].pci.bus_id;
        return gv_tree_bridge(tree, ids, n, "/nonexistent", &err);
    }
    struct gv_tree_gpu from = describe(m, edit->from), to = describe(m, edit->to);
    if (edit->kind == GV_EDIT_LEND)
        return gv_tree_lend(tree, &from, &to, edit->count, "/nonexistent", &err);
    return gv_tree_separate(tree, &from, &to, &err);
}

static int
edited(const struct gv_model *model, const struct gv_edit *edits, int nedits, struct gv_str *xml)
{
    struct gv_tree *tree = gv_tree_copy(model->tree);
    int rc = tree ? 0 : -1;
    for (int i = 0; !rc && i < nedits; i++)
        rc = apply(model, tree, &edits[i]);
    if (!rc)
        rc = gv_tree_format(tree, xml);
    gv_tree_free(tree);
    return rc;
}

static int evaluate(
    const struct gv_model *model, gv_gpuset gpus, const struct gv_str *xml, bool nvb_disable,
    bool level_pxb, struct gv_nccl_eval_out *out)
{
    int list[GV_MAX_GPUS], n = 0;
    for (gv_gpuset rest = gpus; rest; rest &= rest - 1)
        list[n++] = gv_gpuset_first(rest);
    struct gv_nccl_eval_in in = {
        .xml = xml->len ? xml->data : model->xml.data,
        .xml_len = xml->len ? xml->len : model->xml.len,
        .release = GV_MODEL_NCCL,
        .gpus = list,
        .ngpus = n,
        .nop2p = gv_bench_machine_nop2p(&model->fabric.machine),
        .p2p_level = level_pxb || model->level_pxb ? GV_NCCL_PXB : -1,
        .nvb_disable = nvb_disable};
    return gv_nccl_evaluate(&in, out);
}

/* What the driver refuses NCCL does over host memory, whatever its own model of the machine says.
 */
static bool joined(const struct gv_wired *w, int from, int to)
{
    const struct gv_nccl_pair *pair = &w->eval.pair[from][to];
    return pair->p2p &&
           gv_fabric_p2p(&w->model->fabric, w->eval.devices[from], w->eval.devices[to]);
}

static bool bad(const struct gv_model *m, int a, int b)
{
    enum gv_p2p there = m->state[a][b], back = m->state[b][a];
    return there > GV_P2P_REFUSED || back > GV_P2P_REFUSED;
}

static void look_at_pairs(struct gv_wired *w)
{
    const struct gv_nccl_eval_out *e = &w->eval;
    const struct gv_fabric *f = &w->model->fabric;
    char error[256];
    w->ring_sound = w->all_sound = true;
    for (int i = 0; i < e->n; i++) {
        int a = e->ring[i], b = e->ring[(i + 1) % e->n];
        w->shm[i] = e->transport[i] != 'P' || !gv_fabric_p2p(f, a, b);
        w->ring_sound &= w->shm[i] || !bad(w->model, a, b);
    }
    for (int a = 0; a < e->n; a++)
        for (int b = 0; b < e->n; b++)
            if (a != b && joined(w, a, b))
                w->all_sound &= !bad(w->model, e->devices[a], e->devices[b]);
    w->peers = !gv_nccl_alltoall(e, error, sizeof(error));
}

int gv_model_wire(
    const struct gv_model *model, gv_gpuset gpus, const struct gv_edit *edits, int nedits,
    bool nvb_disable, bool level_pxb, struct gv_wired *w)
{
    struct gv_str xml = {0};
    w->model = model;
    int rc = nedits ? edited(model, edits, nedits, &xml) : 0;
    if (!rc)
        rc = evaluate(model, gpus, &xml, nvb_disable, level_pxb, &w->eval) ? -1 : 0;
    gv_str_free(&xml);
    if (rc)
        return -1;
    look_at_pairs(w);
    w->ring = gv_fabric_ring_of(&model->fabric, w->eval.ring, w->shm, w->eval.n);
    return 0;
}

double
gv_wired_forced_us(const struct gv_wired *w, uint64_t bytes, bool lent, int algorithm, int protocol)
{
    float costs[GV_NCCL_NUM_ALGO][GV_NCCL_NUM_PROTO];
    bool known = !gv_nccl_costs(&w->eval, GV_MODEL_NCCL, GV_NCCL_ALLREDUCE, bytes, 1, costs);
    bool offered = known && algorithm >= 0 && costs[algorithm][protocol] >= 0 &&
                   !(lent && protocol == GV_NCCL_LL128);
    float best = INFINITY;
    for (int a = GV_NCCL_TREE; known && !offered && a <= GV_NCCL_RING; a++)
        for (int p = GV_NCCL_LL; p <= GV_NCCL_SIMPLE; p++) {
            if (costs[a][p] < 0 || costs[a][p] >= best || (lent && p == GV_NCCL_LL128))
                continue;
            best = costs[a][p];
            algorithm = a;
            protocol = p;
        }
    return gv_fabric_collective_us(
        &w->ring, GV_FABRIC_ALL_REDUCE, (double)bytes, algorithm == GV_NCCL_TREE, protocol,
        w->eval.channels);
}

double gv_wired_all_reduce_us(const struct gv_wired *w, uint64_t bytes, bool lent)
{
    return gv_wired_forced_us(w, bytes, lent, -1, GV_NCCL_SIMPLE);
}

static void route(const struct gv_wired *w, int from, int to, struct gv_flow *flow)
{
    const struct gv_fabric *f = &w->model->fabric;
    int a = w->eval.devices[from], b = w->eval.devices[to], via = w->eval.pair[from][to].via;
    if (from == to)
        gv_flow_memory(flow, f, a, 2);
    else if (!joined(w, from, to))
        gv_flow_ring_edge(flow, f, a, b, true);
    else if (via < 0)
        gv_flow_exchange(flow, f, a, b, 1);
    else {
        gv_flow_exchange(flow, f, a, w->eval.devices[via], 1);
        gv_flow_exchange(flow, f, w->eval.devices[via], b, 1);
    }
}

double gv_wired_us_per_gb(const struct gv_wired *w)
{
    int n = w->eval.n;
    struct gv_flow *flow = calloc((size_t)(n * n), sizeof(*flow));
    if (!flow)
        abort();
    for (int i = 0; i < n * n; i++) {
        gv_flow_init(&flow[i]);
        route(w, i / n, i % n, &flow[i]);
    }
    double us = gv_fabric_drain_us(&w->model->fabric, flow, n * n);
    for (int i = 0; i < n * n; i++)
        gv_flow_finish(&flow[i]);
    free(flow);
    return us;
}

double gv_wired_all_to_all_us(const struct gv_wired *w, double us_per_gb, uint64_t bytes)
{
    return gv_fabric_all_to_all_us(&w->ring, us_per_gb, (double)bytes / w->eval.n);
}

/* ---- the bound ---- */

static bool sound(const struct gv_model *m, int a, int b)
{
    return m->state[a][b] == GV_P2P_VERIFIED && m->state[b][a] == GV_P2P_VERIFIED;
}

/* A ring edge alone. */
static double edge_gbs(const struct gv_model *m, int a, int b, bool shm)
{
    struct gv_flow flow;
    const struct gv_flow *one = &flow;
    double rate = 0;
    gv_flow_init(&flow);
    gv_flow_ring_edge(&flow, &m->fabric, a, b, shm);
    gv_fabric_share(&m->fabric, &one, 1, &rate);
    gv_flow_finish(&flow);
    return rate;
}

static double best_edge(const struct gv_model *m, int a, int b)
{
    double shm = edge_gbs(m, a, b, true);
    return sound(m, a, b) ? fmax(shm, edge_gbs(m, a, b, false)) : shm;
}

/* The second best of the edges from a set to others: a ring through all leaves it and comes back.
 */
static double second_best(const double edge[GV_MAX_GPUS][GV_MAX_GPUS], gv_gpuset from, gv_gpuset to)
{
    double first = 0, second = 0;
    for (gv_gpuset x = from; x; x &= x - 1)
        for (gv_gpuset y = to; y; y &= y - 1) {
            double gbs = edge[gv_gpuset_first(x)][gv_gpuset_first(y)];
            second = fmax(second, fmin(first, gbs));
            first = fmax(first, gbs);
        }
    return second;
}

/* Both ways of a GPU's link, where one edge goes out over it and another comes in. */
static double own_link(const struct gv_model *m, gv_gpuset gpus, int gpu)
{
    for (gv_gpuset rest = gpus; rest; rest &= rest - 1)
        if (m->fabric.nvlinks[gpu][gv_gpuset_first(rest)])
            return INFINITY;
    double width = m->fabric.gpu[gpu].link_width / (double)m->fabric.machine.gpus[gpu].pci.width;
    return width * m->fabric.link_both_gbs / 2;
}

/* Two islands between which nothing is sound: both crossings share the way between two ports. */
static double host_bound(const struct gv_model *m, gv_gpuset island, gv_gpuset rest)
{
    if (!rest || rest & ~gv_model_island(m, gv_gpuset_first(rest)))
        return INFINITY;
    for (gv_gpuset x = island; x; x &= x - 1)
        for (gv_gpuset y = rest; y; y &= y - 1)
            if (sound(m, gv_gpuset_first(x), gv_gpuset_first(y)))
                return INFINITY;
    return m->fabric.shm_ports_gbs / 2;
}

static double bound_of_two(const struct gv_model *m, int a, int b)
{
    const int ring[] = {a, b};
    const bool p2p[] = {false, false}, shm[] = {true, true};
    double host = gv_fabric_ring_of(&m->fabric, ring, shm, 2).ring_gbs;
    return sound(m, a, b) ? fmax(host, gv_fabric_ring_of(&m->fabric, ring, p2p, 2).ring_gbs) : host;
}

double gv_model_bound_gbs(const struct gv_model *m, gv_gpuset gpus)
{
    static double edge[GV_MAX_GPUS][GV_MAX_GPUS];
    double bound = INFINITY;
    if (gv_gpuset_count(gpus) < 3)
        return bound_of_two(m, gv_gpuset_first(gpus), gv_gpuset_first(gpus & (gpus - 1)));
    for (gv_gpuset x = gpus; x; x &= x - 1)
        for (gv_gpuset y = gpus & ~(x & -x); y; y &= y - 1)
            edge[gv_gpuset_first(x)][gv_gpuset_first(y)] =
                best_edge(m, gv_gpuset_first(x), gv_gpuset_first(y));
    for (gv_gpuset x = gpus; x; x &= x - 1) {
        int a = gv_gpuset_first(x);
        gv_gpuset island = gv_model_island(m, a) & gpus;
        bound = fmin(bound, second_best(edge, GV_GPU_BIT(a), gpus & ~GV_GPU_BIT(a)));
        bound = fmin(bound, own_link(m, gpus, a));
        if (island != gpus) {
            bound = fmin(bound, second_best(edge, island, gpus & ~island));
            bound = fmin(bound, host_bound(m, island, gpus & ~island));
        }
    }
    return bound;
}
