/* Which resources a path uses. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "testbench/fabric/gv_fabric.h"

/* Resources in blocks: per GPU, per root port, per pair of GPUs, per pair of ports. */
enum { GPU_MEMORY, GPU_OUT, GPU_IN, GPU_BOTH, PER_GPU };
enum { PORT_OUT, PORT_IN, PORT_BOTH, PER_PORT };
enum { PAIR_OUT, PAIR_BACK, PAIR_BOTH, PER_PAIR };

static int gpu_resource(int gpu, int what)
{
    return gpu * PER_GPU + what;
}

static int port_resource(const struct gv_fabric *f, int port, int what)
{
    return f->machine.ngpus * PER_GPU + port * PER_PORT + what;
}

static int pair_base(const struct gv_fabric *f)
{
    return f->machine.ngpus * PER_GPU + f->nports * PER_PORT;
}

static int pair_resource(const struct gv_fabric *f, int a, int b, int what)
{
    int low = a < b ? a : b, high = a < b ? b : a;
    return pair_base(f) + (low * f->machine.ngpus + high) * PER_PAIR + what;
}

static int ports_base(const struct gv_fabric *f)
{
    return pair_base(f) + f->machine.ngpus * f->machine.ngpus * PER_PAIR;
}

static int ports_resource(const struct gv_fabric *f, int a, int b)
{
    int low = a < b ? a : b, high = a < b ? b : a;
    return ports_base(f) + low * f->nports + high;
}

int gv_fabric_resources(const struct gv_fabric *f)
{
    return ports_base(f) + f->nports * f->nports;
}

static double gpu_capacity(const struct gv_fabric *f, int gpu, int what)
{
    const struct gv_fabric_gpu *g = &f->gpu[gpu];
    double width = g->link_width / (double)f->machine.gpus[gpu].pci.width;
    if (what == GPU_MEMORY)
        return g->memory_gbs;
    if (g->link_gbs > 0)
        return width * g->link_gbs * (what == GPU_BOTH ? f->link_both_gbs / f->link_gbs : 1);
    return width * (what == GPU_BOTH ? f->link_both_gbs : f->link_gbs);
}

double gv_fabric_capacity(const struct gv_fabric *f, int r)
{
    int n = f->machine.ngpus;
    if (r < n * PER_GPU)
        return gpu_capacity(f, r / PER_GPU, r % PER_GPU);
    if (r < pair_base(f))
        return (r - n * PER_GPU) % PER_PORT == PORT_BOTH ? f->uplink_both_gbs : f->uplink_gbs;
    if (r >= ports_base(f))
        return f->shm_ports_gbs;
    int at = r - pair_base(f), pair = at / PER_PAIR;
    const struct gv_fabric_caps *caps = &f->caps[gv_fabric_class(f, pair / n, pair % n)];
    return at % PER_PAIR == PAIR_BOTH ? caps->both_ways_gbs : caps->write_gbs;
}

enum gv_fabric_class gv_fabric_class(const struct gv_fabric *f, int a, int b)
{
    const struct gv_bench_gpu *x = &f->machine.gpus[a], *y = &f->machine.gpus[b];
    if (a == b)
        return GV_FABRIC_LOCAL;
    if (f->nvlinks[a][b])
        return GV_FABRIC_NVL;
    if (x->pci.node != y->pci.node)
        return GV_FABRIC_SYS;
    if (f->port[a] != f->port[b])
        return GV_FABRIC_PHB;
    /* Ports of one switch share their parent, the switch's upstream port. */
    const struct gv_bench_pci *p = gv_bench_machine_bridge(&f->machine, x->pci.parent);
    const struct gv_bench_pci *q = gv_bench_machine_bridge(&f->machine, y->pci.parent);
    return p && q && !strcmp(p->parent, q->parent) ? GV_FABRIC_PIX : GV_FABRIC_PXB;
}

bool gv_fabric_p2p(const struct gv_fabric *f, int a, int b)
{
    return f->machine.gpus[a].p2p && f->machine.gpus[b].p2p &&
           gv_fabric_class(f, a, b) != GV_FABRIC_SYS;
}

void gv_flow_init(struct gv_flow *flow)
{
    *flow = (struct gv_flow){.cap_gbs = INFINITY};
}

void gv_flow_finish(struct gv_flow *flow)
{
    free(flow->use);
    *flow = (struct gv_flow){0};
}

static void use(struct gv_flow *flow, int resource, double weight)
{
    for (int i = 0; i < flow->nuse; i++)
        if (flow->use[i].resource == resource) {
            flow->use[i].weight += weight;
            return;
        }
    if (flow->nuse == flow->capacity) {
        flow->capacity = flow->capacity ? 2 * flow->capacity : 16;
        flow->use = realloc(flow->use, sizeof(*flow->use) * (size_t)flow->capacity);
        if (!flow->use)
            abort();
    }
    flow->use[flow->nuse++] = (struct gv_flow_use){resource, weight};
}

static void cap(struct gv_flow *flow, double gbs, double weight)
{
    if (gbs / weight < flow->cap_gbs)
        flow->cap_gbs = gbs / weight;
}

static void out_of(struct gv_flow *flow, const struct gv_fabric *f, int gpu, bool port, double w)
{
    use(flow, gpu_resource(gpu, GPU_OUT), w);
    use(flow, gpu_resource(gpu, GPU_BOTH), w);
    if (port) {
        use(flow, port_resource(f, f->port[gpu], PORT_OUT), w);
        use(flow, port_resource(f, f->port[gpu], PORT_BOTH), w);
    }
}

static void into(struct gv_flow *flow, const struct gv_fabric *f, int gpu, bool port, double w)
{
    use(flow, gpu_resource(gpu, GPU_IN), w);
    use(flow, gpu_resource(gpu, GPU_BOTH), w);
    if (port) {
        use(flow, port_resource(f, f->port[gpu], PORT_IN), w);
        use(flow, port_resource(f, f->port[gpu], PORT_BOTH), w);
    }
}

void gv_flow_memory(struct gv_flow *flow, const struct gv_fabric *f, int gpu, double weight)
{
    (void)f;
    use(flow, gpu_resource(gpu, GPU_MEMORY), weight);
}

/* Bytes that travel from one GPU to another. */
static void between(struct gv_flow *flow, const struct gv_fabric *f, int from, int to, double w)
{
    enum gv_fabric_class c = gv_fabric_class(f, from, to);
    if (c == GV_FABRIC_LOCAL) {
        gv_flow_memory(flow, f, from, w);
        return;
    }
    use(flow, pair_resource(f, from, to, from < to ? PAIR_OUT : PAIR_BACK), w);
    use(flow, pair_resource(f, from, to, PAIR_BOTH), w);
    if (c == GV_FABRIC_NVL)
        return;
    out_of(flow, f, from, c >= GV_FABRIC_PHB, w);
    into(flow, f, to, c >= GV_FABRIC_PHB, w);
}

void gv_flow_write(struct gv_flow *flow, const struct gv_fabric *f, int from, int to, double w)
{
    between(flow, f, from, to, w);
    cap(flow, f->caps[gv_fabric_class(f, from, to)].write_gbs, w);
}

void gv_flow_exchange(struct gv_flow *flow, const struct gv_fabric *f, int from, int to, double w)
{
    gv_flow_write(flow, f, from, to, w);
    cap(flow, f->caps[gv_fabric_class(f, from, to)].exchange_gbs, w);
}

void gv_flow_read(struct gv_flow *flow, const struct gv_fabric *f, int by, int of, double w)
{
    between(flow, f, of, by, w);
    cap(flow, f->caps[gv_fabric_class(f, of, by)].read_gbs, w);
}

void gv_flow_to_host(struct gv_flow *flow, const struct gv_fabric *f, int gpu, double w)
{
    double own = f->gpu[gpu].to_host_gbs;
    out_of(flow, f, gpu, true, w);
    cap(flow, own > 0 ? own : f->to_host_gbs, w);
}

void gv_flow_to_device(struct gv_flow *flow, const struct gv_fabric *f, int gpu, double w)
{
    double own = f->gpu[gpu].to_device_gbs;
    into(flow, f, gpu, true, w);
    cap(flow, own > 0 ? own : f->to_device_gbs, w);
}

void gv_flow_staged(struct gv_flow *flow, const struct gv_fabric *f, int from, int to, double w)
{
    out_of(flow, f, from, true, w);
    into(flow, f, to, true, w);
    cap(flow, f->staged_gbs, w);
}

void gv_flow_ring_edge(struct gv_flow *flow, const struct gv_fabric *f, int from, int to, bool shm)
{
    if (from == to) {
        gv_flow_memory(flow, f, from, 4);
        return;
    }
    if (!shm) {
        between(flow, f, from, to, 1);
        cap(flow, f->caps[gv_fabric_class(f, from, to)].ring_gbs, 1);
        return;
    }
    out_of(flow, f, from, true, 1);
    into(flow, f, to, true, 1);
    cap(flow, f->shm_edge_gbs, 1);
    if (f->port[from] != f->port[to])
        use(flow, ports_resource(f, f->port[from], f->port[to]), 1);
}
