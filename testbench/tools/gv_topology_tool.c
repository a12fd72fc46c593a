/* gv-topology: prints the topology file that NCCL would be given, edits included. */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/gv_gpuset.h"
#include "plugin/topology/gv_topology.h"

#define MAX_EDITS 64

enum edit_kind { LEND, BRIDGE, SEPARATE };

struct edit {
    enum edit_kind kind;
    char *what;
};

struct options {
    const char *sysfs, *file;
    struct edit edit[MAX_EDITS];
    char *nvlink[MAX_EDITS];
    int nedits, nnvlinks, sm, release;
    bool memfd;
};

struct machine {
    struct gv_tree *tree;
    char bus_id[GV_MAX_GPUS][24];
    struct gv_tree_gpu gpu[GV_MAX_GPUS];
    int n;
};

static const struct argp_option known[] = {
    {"sysfs", 's', "DIR", 0, "the machine's sysfs (default: $GV100_SYSFS, else /sys)", 0},
    {"file", 'f', "FILE", 0, "start from this topology file instead", 0},
    {"lend", 'l', "A-B[:COUNT]", 0, "join two GPUs by a lent link", 0},
    {"bridge", 'b', "GPUS", 0, "one bridge over the switches of these GPUs (0-5,7)", 0},
    {"separate", 'p', "A-B", 0, "move A to its CPU, without NVLinks to B", 0},
    {"nvlink", 'n', "A-B:COUNT", 0, "the machine's real NVLinks between two GPUs", 0},
    {"sm", 'm', "N", 0, "compute capability of the GPUs (default 70)", 0},
    {"release", 'r', "N", 0, "NCCL whose limits are checked (default 22809)", 0},
    {"memfd", 'd', NULL, 0, "through a sealed memfd, read back", 0},
    {0},
};

static void add_edit(struct argp_state *state, enum edit_kind kind, char *what)
{
    struct options *o = state->input;
    if (o->nedits == MAX_EDITS)
        argp_error(state, "more than %d edits", MAX_EDITS);
    o->edit[o->nedits++] = (struct edit){kind, what};
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct options *o = state->input;
    switch (key) {
    case 's':
        o->sysfs = arg;
        return 0;
    case 'f':
        o->file = arg;
        return 0;
    case 'l':
        add_edit(state, LEND, arg);
        return 0;
    case 'b':
        add_edit(state, BRIDGE, arg);
        return 0;
    case 'p':
        add_edit(state, SEPARATE, arg);
        return 0;
    case 'n':
        if (o->nnvlinks < MAX_EDITS)
            o->nvlink[o->nnvlinks++] = arg;
        return 0;
    case 'm':
        o->sm = atoi(arg);
        return 0;
    case 'r':
        o->release = atoi(arg);
        return 0;
    case 'd':
        o->memfd = true;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static int fail(const struct gv_error *err)
{
    char text[GV_ERROR_FILE + GV_ERROR_TEXT + 32];
    fprintf(stderr, "gv-topology: %s\n", gv_error_format(err, text, sizeof(text)));
    return -1;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* The GPUs are numbered in PCI order, as sysfs has them. */
static int number_gpus(struct machine *m, struct gv_error *err)
{
    m->n = gv_tree_gpus(m->tree, m->bus_id, GV_MAX_GPUS);
    if (m->n <= 0)
        return gv_error_set(err, "no GPU in the topology");
    qsort(m->bus_id, (size_t)m->n, sizeof(m->bus_id[0]), by_text);
    return 0;
}

/* A number in PCI order or a bus id, up to `end`. */
static int gpu_of(const struct machine *m, char *text, struct gv_error *err)
{
    char *end;
    long index = strtol(text, &end, 10);
    if (*text && !*end && index >= 0 && index < m->n)
        return (int)index;
    for (int i = 0; i < m->n; i++) {
        if (!strcmp(m->bus_id[i], text))
            return i;
    }
    return gv_error_set(err, "'%s' is no GPU of this machine (it has %d)", text, m->n);
}

/* "A-B:COUNT" */
static int
pair_of(const struct machine *m, const char *text, int *a, int *b, int *count, struct gv_error *err)
{
    char left[32], right[32];
    int at = 0;
    *count = 0;
    if (sscanf(text, "%31[^-]-%31[^-]", left, right) != 2)
        return gv_error_set(err, "'%s': two GPUs are expected, as 4-5", text);
    /* A count follows the only colon of a pair of numbers, the last but bus-id colons otherwise. */
    char *colon = strrchr(right, ':');
    if (colon && !strchr(colon, '.') && sscanf(colon, ":%d%n", count, &at) == 1 && !colon[at])
        *colon = '\0';
    *a = gpu_of(m, left, err);
    *b = *a < 0 ? -1 : gpu_of(m, right, err);
    return *b < 0 ? -1 : 0;
}

static void add_nvlink(struct machine *m, int from, int to, int count)
{
    struct gv_tree_gpu *gpu = &m->gpu[from];
    if (gpu->nvlinks == 18)
        return;
    gpu->nvlink[gpu->nvlinks].target = m->bus_id[to];
    gpu->nvlink[gpu->nvlinks++].count = count;
}

static int describe_gpus(struct machine *m, const struct options *o, struct gv_error *err)
{
    for (int i = 0; i < m->n; i++) {
        m->gpu[i].bus_id = m->bus_id[i];
        m->gpu[i].sm = o->sm;
    }
    for (int i = 0; i < o->nnvlinks; i++) {
        int a, b, count;
        if (pair_of(m, o->nvlink[i], &a, &b, &count, err))
            return -1;
        add_nvlink(m, a, b, count);
        add_nvlink(m, b, a, count);
    }
    return 0;
}

/* "0-5,7", or bus ids. */
static int list_of(const struct machine *m, char *what, int *gpus, struct gv_error *err)
{
    int n = gv_gpulist_parse(what, gpus, NULL);
    if (n > 0)
        return n;
    n = 0;
    for (char *save, *word = strtok_r(what, ",", &save); word && n < GV_MAX_GPUS;
         word = strtok_r(NULL, ",", &save)) {
        gpus[n] = gpu_of(m, word, err);
        if (gpus[n++] < 0)
            return -1;
    }
    return n;
}

static int bridge(struct machine *m, const struct options *o, char *what, struct gv_error *err)
{
    const char *bus_ids[GV_MAX_GPUS];
    int gpus[GV_MAX_GPUS], n = list_of(m, what, gpus, err);
    if (n < 0)
        return -1;
    for (int i = 0; i < n; i++) {
        if (gpus[i] >= m->n)
            return gv_error_set(err, "there is no GPU %d: this machine has %d", gpus[i], m->n);
        bus_ids[i] = m->bus_id[gpus[i]];
    }
    return gv_tree_bridge(m->tree, bus_ids, n, o->sysfs, err);
}

static int apply(struct machine *m, const struct options *o, struct edit edit, struct gv_error *err)
{
    int a, b, count;
    if (edit.kind == BRIDGE)
        return bridge(m, o, edit.what, err);
    if (pair_of(m, edit.what, &a, &b, &count, err))
        return -1;
    if (edit.kind == SEPARATE)
        return gv_tree_separate(m->tree, &m->gpu[a], &m->gpu[b], err);
    return gv_tree_lend(m->tree, &m->gpu[a], &m->gpu[b], count, o->sysfs, err);
}

static int check(const struct machine *m, int release, struct gv_error *err)
{
    const char *bus_ids[GV_MAX_GPUS];
    for (int i = 0; i < m->n; i++)
        bus_ids[i] = m->bus_id[i];
    return gv_tree_check(m->tree, bus_ids, m->n, release, err);
}

static int print(const struct machine *m, const struct options *o, struct gv_error *err)
{
    struct gv_str text = {0};
    int fd = o->memfd ? gv_tree_memfd(m->tree, err) : 0;
    int rc = fd < 0 || gv_tree_format(m->tree, &text) ? -1 : 0;
    if (!rc)
        fwrite(text.data, 1, text.len, stdout);
    gv_str_free(&text);
    if (fd > 0)
        close(fd);
    return rc;
}

int main(int argc, char **argv)
{
    static const struct argp argp = {
        .options = known,
        .parser = parse_option,
        .doc = "Prints the topology file that NCCL would be given. GPUs are numbers in PCI order "
               "or bus ids.",
    };
    struct options o = {.sysfs = getenv("GV100_SYSFS"), .sm = 70, .release = 22809};
    static struct machine m;
    struct gv_error err = {0};

    argp_parse(&argp, argc, argv, 0, NULL, &o);
    if (!o.sysfs || !*o.sysfs)
        o.sysfs = "/sys";
    m.tree = gv_tree_base(o.file, o.sysfs, &err);
    int rc = !m.tree || number_gpus(&m, &err) || describe_gpus(&m, &o, &err) ? -1 : 0;
    for (int i = 0; !rc && i < o.nedits; i++)
        rc = apply(&m, &o, o.edit[i], &err);
    if (!rc)
        rc = check(&m, o.release, &err);
    if (!rc)
        rc = print(&m, &o, &err);
    if (rc)
        fail(&err);
    gv_tree_free(m.tree);
    return rc ? 1 : 0;
}
