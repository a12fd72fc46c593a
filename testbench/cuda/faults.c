/* The faults file: README.md has the keys. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/yaml_tree.h"
#include "testbench/cuda/gv_virtual.h"

struct reader {
    struct gv_yaml tree;
    const char *path;
    struct gv_error *err;
    struct gv_faults *out;
    int ngpus;
};

#define FAIL(r, at, ...)                                                                           \
    gv_error_at(                                                                                   \
        (r)->err, (r)->path, (r)->tree.nodes[at].line, (r)->tree.nodes[at].column, __VA_ARGS__)

static int number(struct reader *r, int at, double *out)
{
    char *end = NULL;
    *out = 0;
    if (r->tree.nodes[at].kind == GV_YAML_SCALAR)
        *out = strtod(r->tree.nodes[at].text, &end);
    return end && !*end && end != r->tree.nodes[at].text ? 0 : FAIL(r, at, "a number is expected");
}

static int gpu_number(struct reader *r, int at, int *out)
{
    double value;
    if (number(r, at, &value))
        return -1;
    *out = (int)value;
    return *out < 0 || *out >= r->ngpus ? FAIL(r, at, "there is no GPU %d", *out) : 0;
}

/* [[from, to], ...] */
static int take_pairs(struct reader *r, int at, enum gv_fault_kind kind)
{
    for (int i = r->tree.nodes[at].first; i >= 0; i = r->tree.nodes[i].next) {
        const struct gv_yaml_node *pair = &r->tree.nodes[i];
        struct gv_fault_pair *p = &r->out->pairs[r->out->npairs];
        if (pair->kind != GV_YAML_LIST || pair->nchildren != 2)
            return FAIL(r, i, "a pair such as [0, 5] is expected");
        if (r->out->npairs == GV_VIRTUAL_PAIRS)
            return FAIL(r, i, "more than %d pairs", GV_VIRTUAL_PAIRS);
        p->kind = kind;
        if (gpu_number(r, pair->first, &p->from) ||
            gpu_number(r, r->tree.nodes[pair->first].next, &p->to))
            return -1;
        r->out->npairs++;
    }
    return 0;
}

static int take_gpu_key(struct reader *r, int key, int value, struct gv_fault_gpu *gpu)
{
    const char *name = r->tree.nodes[key].text;
    double v;
    if (!strcmp(name, "gpu"))
        return 0;
    if (number(r, value, &v))
        return -1;
    if (!strcmp(name, "ecc_after"))
        gpu->ecc_after = (int)v;
    else if (!strcmp(name, "lost_after"))
        gpu->lost_after = (int)v;
    else if (!strcmp(name, "free_mib"))
        gpu->free_mib = (int)v;
    else if (!strcmp(name, "link_width"))
        gpu->link_width = (int)v;
    else if (!strcmp(name, "throttle"))
        gpu->throttle = v;
    else if (!strcmp(name, "user_pid"))
        gpu->user_pid = (unsigned)v;
    else if (!strcmp(name, "mig"))
        gpu->mig = v != 0;
    else
        return FAIL(r, key, "unknown key '%s'", name);
    return 0;
}

static int take_gpus(struct reader *r, int at)
{
    for (int i = r->tree.nodes[at].first; i >= 0; i = r->tree.nodes[i].next) {
        int which = gv_yaml_value(&r->tree, i, "gpu"), gpu;
        if (which < 0)
            return FAIL(r, i, "'gpu' is missing here");
        if (gpu_number(r, which, &gpu))
            return -1;
        for (int key = r->tree.nodes[i].first; key >= 0;
             key = r->tree.nodes[r->tree.nodes[key].next].next)
            if (take_gpu_key(r, key, r->tree.nodes[key].next, &r->out->gpu[gpu]))
                return -1;
    }
    return 0;
}

static int take(struct reader *r, int key, int value)
{
    static const char *const kinds[] = {"corrupt", "hung",      "dead",
                                        "one_way", "no_enable", "nccl_corrupt"};
    const char *name = r->tree.nodes[key].text;
    double v;
    for (int k = 0; k < 6; k++)
        if (!strcmp(name, kinds[k]))
            return take_pairs(r, value, (enum gv_fault_kind)k);
    if (!strcmp(name, "gpus"))
        return take_gpus(r, value);
    if (number(r, value, &v))
        return -1;
    if (!strcmp(name, "noise"))
        r->out->noise = v;
    else if (!strcmp(name, "seed"))
        r->out->seed = (uint64_t)v;
    else if (!strcmp(name, "pinned_mib"))
        r->out->pinned_mib = v > 0 ? (int)v : -1;
    else if (!strcmp(name, "peer_copies"))
        r->out->peer_copies = (int)v;
    else if (!strcmp(name, "queue"))
        r->out->queue = (int)v;
    else if (!strcmp(name, "init"))
        r->out->init = (int)v;
    else if (!strcmp(name, "cuda_version"))
        r->out->cuda_version = (int)v;
    else if (!strcmp(name, "host_path_corrupt"))
        r->out->control = v != 0;
    else
        return FAIL(r, key, "unknown key '%s'; testbench/cuda/README.md lists them", name);
    return 0;
}

int gv_faults_read(const char *path, int ngpus, struct gv_faults *out, struct gv_error *err)
{
    struct gv_error local;
    struct reader r = {.path = path, .err = err ? err : &local, .out = out, .ngpus = ngpus};
    static char text[1 << 16]; /* read once a process, under the world's lock */
    FILE *file = fopen(path, "rb");
    if (!file)
        return gv_error_at(r.err, path, 0, 0, "cannot be opened: %m");
    size_t len = fread(text, 1, sizeof(text), file);
    fclose(file);
    memset(out, 0, sizeof(*out));
    if (gv_yaml_parse(&r.tree, text, len, path, r.err))
        return -1;
    int rc = 0;
    if (r.tree.nodes[0].kind != GV_YAML_MAP)
        rc = FAIL(&r, 0, "a mapping (key: value) is expected");
    for (int key = r.tree.nodes[0].first; key >= 0 && !rc;
         key = r.tree.nodes[r.tree.nodes[key].next].next)
        rc = take(&r, key, r.tree.nodes[key].next);
    gv_yaml_finish(&r.tree);
    return rc;
}
