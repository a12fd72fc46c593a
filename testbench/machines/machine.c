#include "testbench/machines/gv_bench_machine.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>
#include <yaml.h>

/* A mapping or sequence of the file and where it stands, for errors. */
struct reader {
    yaml_document_t doc;
    const char *path;
    struct gv_error *err;
    struct gv_bench_machine *m;
};

typedef int (*take_fn)(struct reader *r, yaml_node_t *value, void *to);

struct key {
    const char *name;
    take_fn take;
    size_t offset, size;
    bool required;
};

#define fail(r, at, ...)                                                                           \
    gv_error_at(                                                                                   \
        (r)->err, (r)->path, (unsigned)(at)->start_mark.line + 1,                                  \
        (unsigned)(at)->start_mark.column + 1, __VA_ARGS__)

static const char *text_of(struct reader *r, yaml_node_t *node)
{
    if (node->type == YAML_SCALAR_NODE)
        return (const char *)node->data.scalar.value;
    fail(r, node, "%s: a single value is expected here", "machine");
    return NULL;
}

static int take_int(struct reader *r, yaml_node_t *node, void *to)
{
    const char *text = text_of(r, node);
    if (!text)
        return -1;
    char *end;
    long value = strtol(text, &end, 0);
    if (!*text || *end || value < INT_MIN || value > INT_MAX)
        return fail(r, node, "'%s' is not a whole number", text);
    *(int *)to = (int)value;
    return 0;
}

static int take_bool(struct reader *r, yaml_node_t *node, void *to)
{
    const char *text = text_of(r, node);
    if (!text)
        return -1;
    if (strcmp(text, "true") && strcmp(text, "false"))
        return fail(r, node, "'%s' is neither true nor false", text);
    *(bool *)to = !strcmp(text, "true");
    return 0;
}

/* "10de:1db6" into two adjacent numbers. */
static int take_pci_id(struct reader *r, yaml_node_t *node, void *to)
{
    const char *text = text_of(r, node);
    unsigned vendor, device;
    int used = 0;
    if (!text)
        return -1;
    if (sscanf(text, "%4x:%4x%n", &vendor, &device, &used) != 2 || text[used])
        return fail(r, node, "'%s' is no PCI id such as 10de:1db6", text);
    ((uint16_t *)to)[0] = (uint16_t)vendor;
    ((uint16_t *)to)[1] = (uint16_t)device;
    return 0;
}

static int take_text(struct reader *r, yaml_node_t *node, char *to, size_t size)
{
    const char *text = text_of(r, node);
    if (!text)
        return -1;
    if (strlen(text) >= size)
        return fail(r, node, "'%s' is too long", text);
    memcpy(to, text, strlen(text) + 1);
    return 0;
}

static int
read_map(struct reader *r, yaml_node_t *map, const struct key *keys, size_t nkeys, void *base)
{
    if (map->type != YAML_MAPPING_NODE)
        return fail(r, map, "%s: a mapping (key: value) is expected here", "machine");
    uint64_t seen = 0;
    for (yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top;
         p++) {
        yaml_node_t *key = yaml_document_get_node(&r->doc, p->key);
        yaml_node_t *value = yaml_document_get_node(&r->doc, p->value);
        const char *name = text_of(r, key);
        size_t i = 0;
        while (name && i < nkeys && strcmp(keys[i].name, name))
            i++;
        if (!name)
            return -1;
        if (i == nkeys)
            return fail(r, key, "unknown key '%s'; testbench/machines/README.md lists them", name);
        if (seen >> i & 1)
            return fail(r, key, "'%s' stands here twice", name);
        seen |= (uint64_t)1 << i;
        char *to = (char *)base + keys[i].offset;
        int rc = keys[i].take ? keys[i].take(r, value, to) : take_text(r, value, to, keys[i].size);
        if (rc)
            return rc;
    }
    for (size_t i = 0; i < nkeys; i++)
        if (keys[i].required && !(seen >> i & 1))
            return fail(r, map, "'%s' is missing here", keys[i].name);
    return 0;
}

/* Calls `each` for every item of a sequence, at most `max` of them. Returns their number or -1. */
static int read_list(
    struct reader *r, yaml_node_t *list, int max, int (*each)(struct reader *, yaml_node_t *, int))
{
    int n = 0;
    if (list->type != YAML_SEQUENCE_NODE)
        return fail(r, list, "%s: a list is expected here", "machine");
    for (yaml_node_item_t *i = list->data.sequence.items.start; i < list->data.sequence.items.top;
         i++, n++) {
        yaml_node_t *item = yaml_document_get_node(&r->doc, *i);
        if (n == max)
            return fail(r, item, "%s: too many entries", "machine");
        if (each(r, item, n))
            return -1;
    }
    return n;
}

#define TEXT(T, name, field, req)                                                                  \
    {                                                                                              \
        name, NULL, offsetof(T, field), sizeof(((T *)0)->field), req                               \
    }
#define FIELD(T, name, take, field, req)                                                           \
    {                                                                                              \
        name, take, offsetof(T, field), 0, req                                                     \
    }
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* PCI functions have a bus id and sit below another one that stands before them, or below a host
 * bridge. */
static int check_pci(struct reader *r, yaml_node_t *at, const struct gv_bench_pci *pci)
{
    unsigned domain, bus, device, function;
    int used = 0;
    if (sscanf(pci->bus_id, "%4x:%2x:%2x.%1x%n", &domain, &bus, &device, &function, &used) != 4 ||
        pci->bus_id[used] || used != 12)
        return fail(r, at, "'%s' is no bus id such as 0000:1a:00.0", pci->bus_id);
    if (strncmp(pci->parent, "pci", 3) && !gv_bench_machine_bridge(r->m, pci->parent))
        return fail(r, at, "no bridge '%s' stands before it", pci->parent);
    return 0;
}

static void pci_defaults(struct gv_bench_pci *pci, const char *pci_class)
{
    snprintf(pci->pci_class, sizeof(pci->pci_class), "%s", pci_class);
    snprintf(pci->speed, sizeof(pci->speed), "8.0 GT/s PCIe");
    pci->width = 16;
}

#define PCI_KEYS(T, prefix)                                                                        \
    TEXT(T, "bus_id", prefix bus_id, true), TEXT(T, "parent", prefix parent, true),                \
        TEXT(T, "class", prefix pci_class, false), TEXT(T, "speed", prefix speed, false),          \
        FIELD(T, "width", take_int, prefix width, false),                                          \
        FIELD(T, "node", take_int, prefix node, true),                                             \
        FIELD(T, "id", take_pci_id, prefix vendor, true)

static int read_bridge(struct reader *r, yaml_node_t *node, int i)
{
    static const struct key keys[] = {PCI_KEYS(struct gv_bench_pci, )};
    struct gv_bench_pci *bridge = &r->m->bridges[i];
    pci_defaults(bridge, "0x060400");
    if (read_map(r, node, keys, COUNT(keys), bridge) || check_pci(r, node, bridge))
        return -1;
    r->m->nbridges = i + 1;
    return 0;
}

static int read_gpu(struct reader *r, yaml_node_t *node, int i)
{
    static const struct key keys[] = {
        PCI_KEYS(struct gv_bench_gpu, pci.),
        TEXT(struct gv_bench_gpu, "model", model, false),
        TEXT(struct gv_bench_gpu, "uuid", uuid, false),
        FIELD(struct gv_bench_gpu, "sm", take_int, sm, true),
        FIELD(struct gv_bench_gpu, "memory_mib", take_int, memory_mib, false),
        FIELD(struct gv_bench_gpu, "p2p", take_bool, p2p, false),
    };
    struct gv_bench_gpu *gpu = &r->m->gpus[i];
    pci_defaults(&gpu->pci, "0x030200");
    gpu->p2p = true;
    if (read_map(r, node, keys, COUNT(keys), gpu) || check_pci(r, node, &gpu->pci))
        return -1;
    if (i && strcasecmp(gpu[-1].pci.bus_id, gpu->pci.bus_id) >= 0)
        return fail(r, node, "GPU %s does not follow in PCI order", gpu->pci.bus_id);
    r->m->ngpus = i + 1;
    return 0;
}

static int read_node(struct reader *r, yaml_node_t *node, int i)
{
    static const struct key keys[] = {
        FIELD(struct gv_bench_node, "node", take_int, node, true),
        TEXT(struct gv_bench_node, "cpus", cpus, true),
    };
    return read_map(r, node, keys, COUNT(keys), &r->m->nodes[i]);
}

static int take_pair_item(struct reader *r, yaml_node_t *node, int i)
{
    return take_int(r, node, &r->m->nvlinks[r->m->nnvlinks].gpus[i]);
}

static int take_pair(struct reader *r, yaml_node_t *node, void *to)
{
    int *pair = to;
    if (read_list(r, node, 2, take_pair_item) != 2)
        return r->err->text[0] ? -1 : fail(r, node, "%s: two GPUs are expected", "gpus");
    for (int i = 0; i < 2; i++)
        if (pair[i] < 0 || pair[i] >= r->m->ngpus)
            return fail(r, node, "%s: there is no such GPU (gpus stand before nvlinks)", "gpus");
    return 0;
}

static int read_nvlink(struct reader *r, yaml_node_t *node, int i)
{
    static const struct key keys[] = {
        FIELD(struct gv_bench_nvlink, "gpus", take_pair, gpus, true),
        FIELD(struct gv_bench_nvlink, "count", take_int, count, true),
    };
    r->m->nnvlinks = i;
    return read_map(r, node, keys, COUNT(keys), &r->m->nvlinks[i]);
}

static int take_bridges(struct reader *r, yaml_node_t *node, void *to)
{
    (void)to;
    return read_list(r, node, GV_BENCH_MAX_BRIDGES, read_bridge) < 0 ? -1 : 0;
}

static int take_gpus(struct reader *r, yaml_node_t *node, void *to)
{
    (void)to;
    return read_list(r, node, GV_MAX_GPUS, read_gpu) < 0 ? -1 : 0;
}

static int take_nodes(struct reader *r, yaml_node_t *node, void *to)
{
    (void)to;
    r->m->nnodes = read_list(r, node, GV_BENCH_MAX_NODES, read_node);
    return r->m->nnodes < 0 ? -1 : 0;
}

static int take_nvlinks(struct reader *r, yaml_node_t *node, void *to)
{
    (void)to;
    int n = read_list(r, node, GV_BENCH_MAX_NVLINKS, read_nvlink);
    r->m->nnvlinks = n < 0 ? 0 : n;
    return n < 0 ? -1 : 0;
}

static int take_cpu(struct reader *r, yaml_node_t *node, void *to)
{
    static const struct key keys[] = {
        TEXT(struct gv_bench_cpu, "arch", arch, true),
        TEXT(struct gv_bench_cpu, "vendor", vendor, true),
        FIELD(struct gv_bench_cpu, "family", take_int, family, true),
        FIELD(struct gv_bench_cpu, "model", take_int, model, true),
    };
    return read_map(r, node, keys, COUNT(keys), to);
}

static int take_schema(struct reader *r, yaml_node_t *node, void *to)
{
    (void)to;
    const char *text = text_of(r, node);
    return !text ? -1 : strcmp(text, "1") ? fail(r, node, "schema '%s' is not known", text) : 0;
}

static int take_nothing(struct reader *r, yaml_node_t *node, void *to)
{
    (void)r, (void)node, (void)to;
    return 0;
}

static int read_top(struct reader *r, yaml_node_t *top)
{
    typedef struct gv_bench_machine M;
    static const struct key keys[] = {
        FIELD(M, "gv_bench_machine", take_schema, name, true),
        TEXT(M, "name", name, true),
        TEXT(M, "driver", driver, true),
        TEXT(M, "boot_id", boot_id, true),
        FIELD(M, "cpu", take_cpu, cpu, true),
        FIELD(M, "nodes", take_nodes, nodes, true),
        FIELD(M, "bridges", take_bridges, bridges, true),
        FIELD(M, "gpus", take_gpus, gpus, true),
        FIELD(M, "nvlinks", take_nvlinks, nvlinks, false),
        FIELD(M, "fabric", take_nothing, name, false),
    };
    return read_map(r, top, keys, COUNT(keys), r->m);
}

int gv_bench_machine_read(const char *path, struct gv_bench_machine *out, struct gv_error *err)
{
    struct gv_error local = {0};
    struct reader r = {.path = path, .err = err ? err : &local, .m = out};
    yaml_parser_t parser;
    FILE *file = fopen(path, "rb");
    int rc = -1;

    memset(out, 0, sizeof(*out));
    *r.err = (struct gv_error){0};
    if (!file)
        return gv_error_at(r.err, path, 0, 0, "cannot be opened: %m");
    if (!yaml_parser_initialize(&parser)) {
        fclose(file);
        return gv_error_at(r.err, path, 0, 0, "out of memory");
    }
    yaml_parser_set_input_file(&parser, file);
    if (!yaml_parser_load(&parser, &r.doc)) {
        gv_error_at(
            r.err, path, (unsigned)parser.problem_mark.line + 1,
            (unsigned)parser.problem_mark.column + 1, "%s", parser.problem);
    } else {
        yaml_node_t *top = yaml_document_get_root_node(&r.doc);
        rc = top ? read_top(&r, top) : gv_error_at(r.err, path, 1, 1, "the file is empty");
        yaml_document_delete(&r.doc);
    }
    yaml_parser_delete(&parser);
    fclose(file);
    return rc;
}

int gv_bench_machine_resolve(
    const char *name_or_path, const char *folder, char *out, struct gv_error *err)
{
    const char *dot = strrchr(name_or_path, '.');
    const char *dirs[] = {getenv("GV_MACHINES_DIR"), folder};

    if (strchr(name_or_path, '/') || (dot && !strcmp(dot, ".yaml"))) {
        snprintf(out, PATH_MAX, "%s", name_or_path);
        return 0;
    }
    for (size_t i = 0; i < COUNT(dirs); i++) {
        if (!dirs[i] || !*dirs[i])
            continue;
        snprintf(out, PATH_MAX, "%s/%s/machine.yaml", dirs[i], name_or_path);
        if (!access(out, R_OK))
            return 0;
    }
    return gv_error_set(
        err, "no machine '%s'; give a path, or a folder's name below testbench/machines",
        name_or_path);
}

gv_gpuset gv_bench_machine_nop2p(const struct gv_bench_machine *machine)
{
    gv_gpuset set = 0;
    for (int i = 0; i < machine->ngpus; i++)
        if (!machine->gpus[i].p2p)
            set |= GV_GPU_BIT(i);
    return set;
}

const struct gv_bench_pci *
gv_bench_machine_bridge(const struct gv_bench_machine *machine, const char *bus_id)
{
    for (int i = 0; i < machine->nbridges; i++)
        if (!strcasecmp(machine->bridges[i].bus_id, bus_id))
            return &machine->bridges[i];
    return NULL;
}
