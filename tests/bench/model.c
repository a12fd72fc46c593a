#include "tests/bench/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

unsigned gv_chance(uint64_t *seed, unsigned below)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(*seed >> 33) % below;
}

gv_gpuset gv_model_gpus(const struct gv_model *model)
{
    int n = gv_model_ngpus(model);
    return n >= GV_MAX_GPUS ? ~(gv_gpuset)0 : GV_GPU_BIT(n) - 1;
}

gv_gpuset gv_model_island(const struct gv_model *model, int gpu)
{
    gv_gpuset set = 0;
    for (int i = 0; i < gv_model_ngpus(model); i++)
        if (model->fabric.port[i] == model->fabric.port[gpu])
            set |= GV_GPU_BIT(i);
    return set;
}

void gv_model_free(struct gv_model *model)
{
    if (!model)
        return;
    gv_str_free(&model->xml);
    gv_tree_free(model->tree);
    free(model);
}

static void stop(const char *what, const struct gv_error *err)
{
    char text[GV_ERROR_TEXT + GV_ERROR_FILE + 32];
    fprintf(stderr, "bench: %s: %s\n", what, gv_error_format(err, text, sizeof(text)));
    exit(3);
}

/* From fabric and faults to what NCCL and the plugin see. */
static void finish(struct gv_model *m)
{
    struct gv_error err = {0};
    for (int a = 0; a < gv_model_ngpus(m); a++)
        for (int b = 0; b < gv_model_ngpus(m); b++)
            if (a != b && !gv_fabric_p2p(&m->fabric, a, b))
                m->state[a][b] = GV_P2P_REFUSED;
    gv_bench_machine_topology(&m->fabric.machine, &m->xml);
    m->tree = gv_tree_parse(m->xml.data, m->xml.len, m->fabric.machine.name, &err);
    if (!m->tree)
        stop(m->fabric.machine.name, &err);
}

static struct gv_model *model_new(void)
{
    struct gv_model *m = calloc(1, sizeof(*m));
    if (!m)
        abort();
    for (int a = 0; a < GV_MAX_GPUS; a++)
        for (int b = 0; b < GV_MAX_GPUS; b++)
            m->state[a][b] = GV_P2P_VERIFIED;
    return m;
}

struct gv_model *gv_model_read(const char *path)
{
    struct gv_model *m = model_new();
    struct gv_error err = {0};
    if (gv_fabric_read(path, &m->fabric, &err))
        stop(path, &err);
    finish(m);
    return m;
}

/* ---- machines made by chance ---- */

/* `percent` of 100. */
static bool often(uint64_t *seed, unsigned percent)
{
    return gv_chance(seed, 100) < percent;
}

/* Between low and high. */
static double between(uint64_t *seed, double low, double high)
{
    return low + (high - low) * gv_chance(seed, 1001) / 1000.0;
}

/* `bus_id` receives its own. */
static void add_bridge(
    struct gv_bench_machine *m, int bus, int slot, const char *parent, int node, char bus_id[20])
{
    struct gv_bench_pci *b = &m->bridges[m->nbridges++];
    snprintf(b->bus_id, sizeof(b->bus_id), "%04x:%02x:%02x.0", bus >> 8, bus & 255, slot & 31);
    snprintf(b->parent, sizeof(b->parent), "%s", parent);
    snprintf(b->pci_class, sizeof(b->pci_class), "0x060400");
    snprintf(b->speed, sizeof(b->speed), "8.0 GT/s PCIe");
    b->node = node;
    b->width = 16;
    b->vendor = 0x10b5;
    b->device = 0x9797;
    memcpy(bus_id, b->bus_id, sizeof(b->bus_id));
}

static void add_gpu(struct gv_bench_machine *m, int bus, const char *parent, int node, int sm)
{
    struct gv_bench_gpu *g = &m->gpus[m->ngpus];
    snprintf(g->pci.bus_id, sizeof(g->pci.bus_id), "%04x:%02x:00.0", bus >> 8, bus & 255);
    snprintf(g->pci.parent, sizeof(g->pci.parent), "%s", parent);
    snprintf(g->pci.pci_class, sizeof(g->pci.pci_class), "0x030200");
    snprintf(g->pci.speed, sizeof(g->pci.speed), "8.0 GT/s PCIe");
    g->pci.node = node;
    g->pci.width = 16;
    g->pci.vendor = 0x10de;
    g->pci.device = 0x1db6;
    snprintf(g->model, sizeof(g->model), "GPU");
    snprintf(g->uuid, sizeof(g->uuid), "GPU-%08d-0000-4000-8000-000000000000", m->ngpus++);
    g->sm = sm;
    g->memory_mib = 32768;
    g->p2p = true;
}

/* A root port with `n` GPUs: below a switch, or (one GPU) directly. A PCI domain for each port
 * keeps bus ids in order. */
static void add_port(struct gv_bench_machine *m, int port, int n, int node, int sm)
{
    char host[20], root[20], up[20], down[20];
    int bus = (port + 1) << 8;
    snprintf(host, sizeof(host), "pci%04x:00", port + 1);
    add_bridge(m, bus, 0, host, node, root);
    if (n > 1)
        add_bridge(m, bus + 1, 0, root, node, up);
    for (int i = 0; i < n; i++) {
        if (n > 1)
            add_bridge(m, bus + 2 + i / 32, i % 32, up, node, down);
        add_gpu(m, bus + 16 + i, n > 1 ? down : root, node, sm);
    }
}

static void random_gpus(struct gv_bench_machine *m, uint64_t *seed)
{
    static const int sms[] = {70, 70, 75, 80, 86, 90};
    int sm = sms[gv_chance(seed, 6)], nodes = often(seed, 40) ? 2 : 1;
    int ports = 1 + (int)gv_chance(seed, 8);
    int most = often(seed, 75) ? 16 : GV_MAX_GPUS,
        left = 2 + (int)gv_chance(seed, (unsigned)most - 1);
    for (int p = 0; p < ports && left > 0; p++) {
        int share = left / (ports - p) + (int)gv_chance(seed, 3) - 1;
        int n = p == ports - 1 ? left : share < 1 ? 1 : share > left ? left : share;
        add_port(m, p, n, nodes == 2 && p >= (ports + 1) / 2, sm);
        left -= n;
    }
    m->nnodes = nodes;
    for (int i = 0; i < nodes; i++) {
        m->nodes[i].node = i;
        snprintf(m->nodes[i].cpus, sizeof(m->nodes[i].cpus), "%s", i ? "f0" : "0f");
    }
}

/* Bridges over two neighbours, sometimes across switches; sometimes a chain. */
static void random_nvlinks(struct gv_bench_machine *m, uint64_t *seed)
{
    int step = often(seed, 15) ? 1 : 2, count = 1 + (int)gv_chance(seed, 4);
    if (!often(seed, 35))
        return;
    for (int i = 0; i + 1 < m->ngpus && m->nnvlinks < GV_BENCH_MAX_NVLINKS; i += step)
        if (often(seed, 60))
            m->nvlinks[m->nnvlinks++] = (struct gv_bench_nvlink){{i, i + 1}, count};
}

/* Speeds about those of the reference machine; P2P across the bridge may be faster or slower than
 * host memory, and worse under an all-to-all. */
static void random_speeds(struct gv_fabric *f, uint64_t *seed)
{
    double link = between(seed, 11, 14), edge = between(seed, 5, 9), phb = between(seed, 4.5, 11);
    f->link_gbs = f->uplink_gbs = link;
    f->link_both_gbs = f->uplink_both_gbs = 1.9 * link;
    f->to_device_gbs = f->to_host_gbs = link;
    f->staged_gbs = edge;
    f->host_latency_us = between(seed, 0.9, 1.8);
    f->shm_edge_gbs = edge;
    f->shm_ports_gbs = edge * between(seed, 1.2, 2);
    double inside = between(seed, 0.8, 0.95) * link;
    f->caps[GV_FABRIC_NVL] = (struct gv_fabric_caps){96, 96, 190, 73, INFINITY, 2};
    for (int c = GV_FABRIC_PIX; c <= GV_FABRIC_PXB; c++)
        f->caps[c] = (struct gv_fabric_caps){link, link, 1.9 * link, inside, INFINITY, 1.6};
    f->caps[GV_FABRIC_PHB] = (struct gv_fabric_caps){
        phb * 1.2,
        phb,
        phb * 2.3,
        phb,
        often(seed, 30) ? phb * between(seed, 0.1, 1) : INFINITY,
        between(seed, 1.6, 3)};
    for (int i = 0; i < f->machine.ngpus; i++)
        f->gpu[i].memory_gbs = f->gpu[i].theoretical_gbs = 800;
}

static void random_faults(struct gv_model *m, uint64_t *seed)
{
    static const enum gv_p2p states[] = {GV_P2P_CORRUPT, GV_P2P_HUNG, GV_P2P_ONE_WAY};
    int n = gv_model_ngpus(m), pairs = often(seed, 30) ? 1 + (int)gv_chance(seed, 3) : 0;
    for (int i = 0; i < pairs; i++) {
        int a = (int)gv_chance(seed, (unsigned)n), b = (int)gv_chance(seed, (unsigned)n);
        if (a != b)
            m->state[a][b] = m->state[b][a] = states[gv_chance(seed, 3)];
    }
    for (int i = 0, narrow = often(seed, 25) ? 1 + (int)gv_chance(seed, 2) : 0; i < narrow; i++)
        m->fabric.gpu[gv_chance(seed, (unsigned)n)].link_width = 4;
    int alone = (int)gv_chance(seed, (unsigned)n);
    bool linked = false; /* NCCL fails where NVLinks are there and P2P is not */
    for (int b = 0; b < n; b++)
        linked |= m->fabric.nvlinks[alone][b] > 0;
    if (often(seed, 15) && !linked)
        m->fabric.machine.gpus[alone].p2p = false;
}

struct gv_model *gv_model_random(unsigned number)
{
    struct gv_model *m = model_new();
    struct gv_bench_machine *machine = &m->fabric.machine;
    uint64_t seed = number * 2654435761u + 977;
    for (int i = 0; i < 8; i++)
        gv_chance(&seed, 2);
    snprintf(machine->name, sizeof(machine->name), "random-%u", number);
    bool amd = often(&seed, 30);
    snprintf(machine->cpu.arch, sizeof(machine->cpu.arch), "x86_64");
    snprintf(
        machine->cpu.vendor, sizeof(machine->cpu.vendor), "%s",
        amd ? "AuthenticAMD" : "GenuineIntel");
    machine->cpu.family = amd ? 143 : 6;
    machine->cpu.model = amd ? 49 : 85;
    random_gpus(machine, &seed);
    random_nvlinks(machine, &seed);
    gv_fabric_init(&m->fabric);
    random_speeds(&m->fabric, &seed);
    random_faults(m, &seed);
    finish(m);
    return m;
}
