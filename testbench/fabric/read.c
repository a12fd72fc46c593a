/* The `fabric` of a machine file. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "config/yaml_tree.h"
#include "testbench/fabric/gv_fabric.h"

struct reader {
    struct gv_yaml tree;
    const char *path;
    struct gv_error *err;
};

struct number {
    const char *key;
    double *to;
    int *to_int;
    bool required;
};

#define FAIL(r, at, ...)                                                                           \
    gv_error_at(                                                                                   \
        (r)->err, (r)->path, (r)->tree.nodes[at].line, (r)->tree.nodes[at].column, __VA_ARGS__)

static int take_number(struct reader *r, int at, const struct number *number)
{
    const struct gv_yaml_node *node = &r->tree.nodes[at];
    char *end = NULL;
    double value = node->kind == GV_YAML_SCALAR ? strtod(node->text, &end) : 0;
    if (!end || *end || end == node->text || value <= 0)
        return FAIL(r, at, "'%s': a number above 0 is expected", number->key);
    if (number->to)
        *number->to = value;
    else
        *number->to_int = (int)value;
    return 0;
}

/* Reads the map `at` whose keys are all numbers, but for `other` (may be NULL), which is skipped.
 */
static int
take_map(struct reader *r, int at, const struct number *numbers, int n, const char *other)
{
    if (r->tree.nodes[at].kind != GV_YAML_MAP)
        return FAIL(r, at, "a mapping (key: value) is expected here");
    for (int key = r->tree.nodes[at].first; key >= 0;) {
        int value = r->tree.nodes[key].next, i = 0;
        const char *name = r->tree.nodes[key].text;
        while (i < n && strcmp(numbers[i].key, name))
            i++;
        if (i < n && take_number(r, value, &numbers[i]))
            return -1;
        if (i == n && (!other || strcmp(other, name)))
            return FAIL(r, key, "unknown key '%s'; testbench/fabric/README.md lists them", name);
        key = r->tree.nodes[value].next;
    }
    for (int i = 0; i < n; i++)
        if (numbers[i].required && gv_yaml_value(&r->tree, at, numbers[i].key) < 0)
            return FAIL(r, at, "'%s' is missing here", numbers[i].key);
    return 0;
}

static int take_caps(struct reader *r, int at, struct gv_fabric_caps *caps)
{
    const struct number numbers[] = {
        {"write_gbs", &caps->write_gbs, NULL, true},
        {"read_gbs", &caps->read_gbs, NULL, false},
        {"both_ways_gbs", &caps->both_ways_gbs, NULL, false},
        {"ring_gbs", &caps->ring_gbs, NULL, false},
        {"exchange_gbs", &caps->exchange_gbs, NULL, false},
        {"latency_us", &caps->latency_us, NULL, true},
    };
    return take_map(r, at, numbers, 6, NULL);
}

static int take_classes(struct reader *r, int at, struct gv_fabric *f)
{
    static const char *const names[GV_FABRIC_CLASSES] = {"", "NVL", "PIX", "PXB", "PHB", "SYS"};
    if (r->tree.nodes[at].kind != GV_YAML_MAP)
        return FAIL(r, at, "classes: a mapping is expected here");
    for (int key = r->tree.nodes[at].first; key >= 0;) {
        int value = r->tree.nodes[key].next, c = 1;
        while (c < GV_FABRIC_CLASSES && strcmp(names[c], r->tree.nodes[key].text))
            c++;
        if (c == GV_FABRIC_CLASSES)
            return FAIL(
                r, key, "'%s' is no path class (NVL, PIX, PXB, PHB, SYS)", r->tree.nodes[key].text);
        if (take_caps(r, value, &f->caps[c]))
            return -1;
        key = r->tree.nodes[value].next;
    }
    return 0;
}

static int take_memory(struct reader *r, int at, struct gv_fabric *f)
{
    struct gv_fabric_gpu gpu = f->gpu[0];
    gv_gpuset gpus;
    const struct number numbers[] = {
        {"gbs", &gpu.memory_gbs, NULL, true},
        {"theoretical_gbs", &gpu.theoretical_gbs, NULL, true},
        {"bus_width_bits", NULL, &gpu.bus_width_bits, false},
        {"memory_mhz", NULL, &gpu.memory_mhz, false},
        {"app_core_mhz", NULL, &gpu.app_core_mhz, false},
        {"max_core_mhz", NULL, &gpu.max_core_mhz, false},
        {"power_limit_w", NULL, &gpu.power_limit_w, false},
        {"multiprocessors", NULL, &gpu.multiprocessors, false},
        {"link_gbs", &gpu.link_gbs, NULL, false},
        {"to_device_gbs", &gpu.to_device_gbs, NULL, false},
        {"to_host_gbs", &gpu.to_host_gbs, NULL, false},
    };
    if (take_map(r, at, numbers, 11, "gpus"))
        return -1;
    int list = gv_yaml_value(&r->tree, at, "gpus");
    if (list < 0 || r->tree.nodes[list].kind != GV_YAML_SCALAR ||
        gv_gpuset_parse(r->tree.nodes[list].text, &gpus, NULL))
        return FAIL(r, at, "gpus: a list such as \"0-5,7\" is expected");
    for (int i = 0; i < f->machine.ngpus; i++)
        if (gv_gpuset_has(gpus, i)) {
            int width = f->gpu[i].link_width;
            f->gpu[i] = gpu;
            f->gpu[i].link_width = width;
        }
    return 0;
}

static int take_memories(struct reader *r, int at, struct gv_fabric *f)
{
    if (r->tree.nodes[at].kind != GV_YAML_LIST)
        return FAIL(r, at, "gpus: a list is expected here");
    for (int i = r->tree.nodes[at].first; i >= 0; i = r->tree.nodes[i].next)
        if (take_memory(r, i, f))
            return -1;
    return 0;
}

static int take_links(struct reader *r, int at, struct gv_fabric *f)
{
    const struct number numbers[] = {
        {"gpu_gbs", &f->link_gbs, NULL, true},
        {"gpu_both_gbs", &f->link_both_gbs, NULL, true},
        {"uplink_gbs", &f->uplink_gbs, NULL, false},
        {"uplink_both_gbs", &f->uplink_both_gbs, NULL, false},
        {"to_device_gbs", &f->to_device_gbs, NULL, true},
        {"to_host_gbs", &f->to_host_gbs, NULL, true},
        {"staged_gbs", &f->staged_gbs, NULL, true},
        {"host_latency_us", &f->host_latency_us, NULL, true},
        {"shm_edge_gbs", &f->shm_edge_gbs, NULL, true},
        {"shm_ports_gbs", &f->shm_ports_gbs, NULL, true},
    };
    return take_map(r, at, numbers, 10, NULL);
}

static int take_fabric(struct reader *r, struct gv_fabric *f)
{
    int at = gv_yaml_value(&r->tree, 0, "fabric");
    static const char *const names[] = {"gpus", "links", "classes"};
    if (at < 0 || r->tree.nodes[at].kind != GV_YAML_MAP)
        return gv_error_at(r->err, r->path, 0, 0, "it has no 'fabric'");
    for (int key = r->tree.nodes[at].first; key >= 0;
         key = r->tree.nodes[r->tree.nodes[key].next].next) {
        const char *name = r->tree.nodes[key].text;
        if (strcmp(name, names[0]) && strcmp(name, names[1]) && strcmp(name, names[2]))
            return FAIL(r, key, "unknown key '%s'; testbench/fabric/README.md lists them", name);
    }
    for (int i = 0; i < 3; i++) {
        int value = gv_yaml_value(&r->tree, at, names[i]);
        if (value < 0)
            return FAIL(r, at, "'%s' is missing in the fabric", names[i]);
        if ((i == 0 ? take_memories : i == 1 ? take_links : take_classes)(r, value, f))
            return -1;
    }
    return 0;
}

/* The topmost bridge above each GPU, numbered in the order of GPUs. */
static void number_ports(struct gv_fabric *f)
{
    const struct gv_bench_pci *ports[GV_MAX_GPUS];
    for (int i = 0; i < f->machine.ngpus; i++) {
        const struct gv_bench_pci *at = &f->machine.gpus[i].pci, *up = at;
        while ((up = gv_bench_machine_bridge(&f->machine, at->parent)))
            at = up;
        int p = 0;
        while (p < f->nports && ports[p] != at)
            p++;
        ports[p] = at;
        f->nports += p == f->nports;
        f->port[i] = p;
    }
}

static double lanes_by_speed(const struct gv_bench_pci *pci)
{
    return pci->width * strtod(pci->speed, NULL);
}

/* Where the file does not say what an uplink carries: a GPU's own link, as its narrowest bridge
 * compares with it. */
static void derive_uplinks(struct gv_fabric *f)
{
    double ratio = INFINITY;
    for (int i = 0; i < f->machine.ngpus; i++) {
        const struct gv_bench_pci *gpu = &f->machine.gpus[i].pci, *at = gpu;
        while ((at = gv_bench_machine_bridge(&f->machine, at->parent)))
            ratio = fmin(ratio, lanes_by_speed(at) / lanes_by_speed(gpu));
    }
    if (!isfinite(ratio))
        ratio = 1;
    if (!(f->uplink_gbs > 0))
        f->uplink_gbs = ratio * f->link_gbs;
    if (!(f->uplink_both_gbs > 0))
        f->uplink_both_gbs = ratio * f->link_both_gbs;
}

void gv_fabric_init(struct gv_fabric *f)
{
    const struct gv_fabric_caps none = {INFINITY, INFINITY, INFINITY, INFINITY, INFINITY, 1};
    for (int c = 0; c < GV_FABRIC_CLASSES; c++)
        f->caps[c] = none;
    f->max_peers = 8; /* CUDA's limit of peer connections of one GPU */
    for (int i = 0; i < f->machine.ngpus; i++)
        f->gpu[i] = (struct gv_fabric_gpu){
            .bus_width_bits = 4096,
            .memory_mhz = -1,
            .app_core_mhz = -1,
            .max_core_mhz = -1,
            .power_limit_w = -1,
            .multiprocessors = 80,
            .link_width = f->machine.gpus[i].pci.width,
        };
    for (int i = 0; i < f->machine.nnvlinks; i++) {
        const struct gv_bench_nvlink *l = &f->machine.nvlinks[i];
        f->nvlinks[l->gpus[0]][l->gpus[1]] = f->nvlinks[l->gpus[1]][l->gpus[0]] = l->count;
    }
    number_ports(f);
}

static char *slurp(const char *path, size_t *len)
{
    FILE *file = fopen(path, "rb");
    char *text = malloc(1 << 20);
    *len = file && text ? fread(text, 1, 1 << 20, file) : 0;
    if (file)
        fclose(file);
    return text;
}

int gv_fabric_read(const char *path, struct gv_fabric *f, struct gv_error *err)
{
    struct gv_error local;
    struct reader r = {.path = path, .err = err ? err : &local};
    size_t len;

    memset(f, 0, sizeof(*f));
    if (gv_bench_machine_read(path, &f->machine, err))
        return -1;
    gv_fabric_init(f);
    char *text = slurp(path, &len);
    int rc = !text || gv_yaml_parse(&r.tree, text, len, path, r.err) ? -1 : 0;
    if (!rc) {
        rc = take_fabric(&r, f);
        derive_uplinks(f);
        gv_yaml_finish(&r.tree);
    }
    free(text);
    for (int i = 0; i < f->machine.ngpus && !rc; i++)
        if (f->gpu[i].memory_gbs <= 0)
            rc = gv_error_at(r.err, path, 0, 0, "fabric: gpus says nothing of GPU %d", i);
    return rc;
}
