/* NCCL's published cost model for one node: time = latency + bytes / bandwidth. */
#include "testbench/nccl/gv_nccl_eval.h"

#define TREE GV_NCCL_TREE
#define RING GV_NCCL_RING

enum { NVLINK, PCIE };
enum { VOLTA, AMPERE, HOPPER, BLACKWELL };

/* Microseconds before the first step, [tree, ring][protocol]; since 2.23. */
static const double base_us[2][GV_NCCL_NUM_PROTO] = {{6.8, 14.0, 8.4}, {6.6, 14.0, 8.4}};
/* Microseconds a step over NVLink and over PCIe. */
static const double step_us[2][2][GV_NCCL_NUM_PROTO] = {
    {{0.6, 1.25, 4.0}, {0.6, 1.9, 3.4}}, {{1.0, 1.9, 4.0}, {1.0, 2.5, 5.7}}};
/* Before 2.23 Tree/Simple had no base and dear steps. */
static const double old_tree_simple_step_us = 28;

/* Caps in GB/s by generation, one node. LL for the whole node, the others a channel. */
static const double ll_gbs[] = {39.0, 87.7, 141.0, 282.0};
static const double ring_ll128_gbs[] = {20.0, 20.0, 36.7, 73.4};
static const double tree_ll128_gbs[] = {20.0, 20.0, 36.7, 55.6};
static const double tree_gbs[] = {26.5, 24.0, 38.7, 70.0};

/* How far trees fall short of the model, from 64 bytes up in powers of two. */
static const float tree_factor[GV_NCCL_NUM_PROTO][23] = {
    {1,   1,   1,   1,   .9f, .8f, .7f, .7f, .7f, .7f, .6f, .5f,
     .4f, .4f, .5f, .6f, .7f, .8f, .9f, 1,   1,   1,   1},
    {1,   1,   1,   1,   1,   .9f, .8f, .8f, .8f, .7f, .6f, .6f,
     .6f, .6f, .6f, .6f, .8f, .9f, .9f, .9f, .9f, 1,   1},
    {.9f, .9f, .9f, .9f, .9f, .9f, .9f, .8f, .7f, .6f, .6f, .5f,
     .5f, .5f, .5f, .6f, .7f, .8f, .7f, .7f, .8f, .9f, .9f}};

/* Operations that a tree carries for one latency. */
#define TREE_BATCH 9

struct model {
    const struct gv_nccl_eval_out *eval;
    int release, generation, steps;
    enum gv_nccl_func func;
};

static double min(double a, double b)
{
    return a < b ? a : b;
}

static int generation_of(const struct model *m)
{
    int sm = m->eval->min_sm;
    if (sm >= 100 && m->release >= 22500)
        return BLACKWELL;
    return sm >= 90 ? HOPPER : sm >= 80 ? AMPERE : VOLTA;
}

static int steps_of(enum gv_nccl_func func, int ranks)
{
    if (func == GV_NCCL_ALLREDUCE)
        return 2 * (ranks - 1);
    return func == GV_NCCL_ALLGATHER || func == GV_NCCL_REDUCESCATTER ? ranks - 1 : ranks;
}

/* LL carries flags in half of its words; up to 2.20 it was held to be slower than that. */
static double ll_share(const struct model *m)
{
    if (m->release >= 22100)
        return 0.5;
    return m->func == GV_NCCL_ALLREDUCE || m->func == GV_NCCL_REDUCE ? 1.0 / 4 : 1.0 / 3;
}

static double ring_gbs(const struct model *m, int proto)
{
    int channels = m->eval->graph_channels < m->eval->tree_channels ? m->eval->graph_channels
                                                                    : m->eval->tree_channels;
    double bus = channels * m->eval->graph_gbs;
    if (proto == GV_NCCL_LL)
        bus = min(ll_gbs[m->generation], bus * ll_share(m));
    if (proto == GV_NCCL_LL128)
        bus = min(bus * 0.92, channels * ring_ll128_gbs[m->generation]);
    return bus * m->eval->n / m->steps;
}

static double tree_model_gbs(const struct model *m, int proto)
{
    int channels = m->eval->graph_channels < m->eval->tree_channels ? m->eval->graph_channels
                                                                    : m->eval->tree_channels;
    double bus = min(channels * m->eval->tree_gbs * 0.92, channels * tree_gbs[m->generation]);
    if (proto == GV_NCCL_LL)
        bus = min(bus / 3.8, ll_gbs[m->generation]);
    if (proto == GV_NCCL_LL128)
        bus = min(bus * 7.0 / 9.0, channels * tree_ll128_gbs[m->generation]);
    if (m->eval->tree_chain)
        bus *= 0.85;
    return bus * 0.5;
}

static double step_latency(const struct model *m, int algo, int proto)
{
    enum gv_nccl_path path = algo == RING ? m->eval->graph_path : m->eval->graph_path_tree;
    if (algo == TREE && proto == GV_NCCL_SIMPLE && m->release < 22300)
        return old_tree_simple_step_us;
    return step_us[path == GV_NCCL_NVL ? NVLINK : PCIE][algo][proto];
}

static double latency_us(const struct model *m, int algo, int proto)
{
    bool no_base = algo == TREE && proto == GV_NCCL_SIMPLE && m->release < 22300;
    double base = no_base ? 0 : base_us[algo][proto], step = step_latency(m, algo, proto);
    if (algo == TREE)
        return base + 2 * (m->eval->n - 1) * step;
    if (m->func != GV_NCCL_BROADCAST && m->func != GV_NCCL_REDUCE)
        return base + m->steps * step;
    /* One-way rings pipeline; different rings in one call do not. */
    if (m->eval->same_channels)
        return base + step;
    return base + m->steps * (proto == GV_NCCL_SIMPLE ? step_latency(m, TREE, proto) : step);
}

static float size_factor(int algo, int proto, uint64_t bytes)
{
    if (algo != TREE || bytes < 64)
        return 1;
    int log_size = 63 - __builtin_clzll(bytes >> 6);
    return log_size < 23 ? tree_factor[proto][log_size] : 1;
}

static bool offered(const struct model *m, int algo, int proto)
{
    if (algo == TREE && m->func != GV_NCCL_ALLREDUCE)
        return false;
    if (proto != GV_NCCL_LL128)
        return true;
    return algo == RING ? m->eval->ll128_allowed : m->eval->ll128_tree;
}

int gv_nccl_costs(
    const struct gv_nccl_eval_out *eval, int release, enum gv_nccl_func func, uint64_t bytes,
    int ops, float table[GV_NCCL_NUM_ALGO][GV_NCCL_NUM_PROTO])
{
    struct model m = {.eval = eval, .release = release, .func = func};
    if (func >= GV_NCCL_NUM_FUNC || eval->result || eval->approximate)
        return -1;
    for (int a = 0; a < GV_NCCL_NUM_ALGO; a++)
        for (int p = 0; p < GV_NCCL_NUM_PROTO; p++)
            table[a][p] = -1;
    if (eval->n == 1) {
        table[RING][GV_NCCL_SIMPLE] = 0;
        return 0;
    }
    m.generation = generation_of(&m);
    m.steps = steps_of(func, eval->n);
    for (int a = TREE; a <= RING; a++)
        for (int p = 0; p < GV_NCCL_NUM_PROTO; p++) {
            double gbs = a == RING ? ring_gbs(&m, p) : tree_model_gbs(&m, p);
            int batches = a == RING ? ops : (ops + TREE_BATCH - 1) / TREE_BATCH;
            if (offered(&m, a, p) && gbs > 0)
                table[a][p] =
                    (float)(latency_us(&m, a, p) * batches + (double)bytes / (1000 * gbs * size_factor(a, p, bytes)));
        }
    return 0;
}
