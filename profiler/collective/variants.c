/* Which variants of a group are worth measuring: those that the policy could choose. */
#include <stdio.h>
#include <string.h>

#include "profiler/collective/gv_collective.h"

#define MOST_IN_A_BRIDGE 9 /* CUDA maps 8 peers a GPU */
#define MOST_EXCHANGED (128 << 20)

static void add(struct gv_steer *out, int *n, const char *name, const char *force)
{
    if (*n == GV_MAX_STEERS)
        return;
    snprintf(out[*n].name, sizeof(out[*n].name), "%s", name);
    snprintf(out[*n].force, sizeof(out[*n].force), "%s", force);
    (*n)++;
}

static bool sound(const struct gv_profile *p, int a, int b)
{
    return gv_profile_p2p(p, a, b) == GV_P2P_VERIFIED && gv_profile_p2p(p, b, a) == GV_P2P_VERIFIED;
}

bool gv_transport_is_shm(const char *text)
{
    return !strncmp(text, "SHM", 3) || strstr(text, "shared memory");
}

static bool is_shm(const struct gv_wire *edge)
{
    return gv_transport_is_shm(edge->transport);
}

/* Lends a link to each edge of the default ring that is on SHM though P2P is sound there. */
static void add_lend(
    const struct gv_profile *p, const struct gv_wiring *w, int ngpus, struct gv_steer *out, int *n)
{
    char force[256] = "lend";
    int lent = 0;
    for (int i = 0; i < w->nring; i++) {
        const struct gv_wire *e = &w->edge[i];
        char pair[16], back[16];
        snprintf(pair, sizeof(pair), " %d-%d", e->from, e->to);
        snprintf(back, sizeof(back), " %d-%d", e->to, e->from);
        if (!is_shm(e) || !sound(p, e->from, e->to) || strstr(force, back) || strstr(force, pair))
            continue;
        if (p->gpus[e->from].sm == 80 || p->gpus[e->to].sm == 80 ||
            strlen(force) + strlen(pair) >= sizeof(force))
            return; /* NCCL would read over such links there */
        strcat(force, pair);
        lent++;
    }
    if (lent && ngpus > 2) /* two GPUs would be all NVLink, which allows LL128 over PCIe */
        add(out, n, "lend", force);
}

static void add_bridge(
    const struct gv_profile *p, const struct gv_wiring *w, gv_gpuset gpus, struct gv_steer *out,
    int *n)
{
    bool crosses = false;
    int first = gv_gpuset_first(gpus);
    if (gv_gpuset_count(gpus) > MOST_IN_A_BRIDGE)
        return;
    for (gv_gpuset a = gpus; a; a &= a - 1)
        if (p->gpus[gv_gpuset_first(a)].numa_node != p->gpus[first].numa_node ||
            p->gpus[first].numa_node < 0)
            return;
    for (gv_gpuset a = gpus; a; a &= a - 1)
        for (gv_gpuset b = a & (a - 1); b; b &= b - 1)
            if (!sound(p, gv_gpuset_first(a), gv_gpuset_first(b)))
                return; /* all pairs become P2P */
    for (int i = 0; i < w->nring; i++)
        crosses |= is_shm(&w->edge[i]);
    if (crosses)
        add(out, n, "bridge", "bridge");
}

static const struct gv_wiring *default_wiring(const struct gv_collective *base)
{
    for (int s = 0; base && s < base->nsteers; s++)
        if (!strcmp(base->steer[s].force, "default") && base->wiring[s].nring)
            return &base->wiring[s];
    return NULL;
}

int gv_collective_variants(
    const struct gv_profile *profile, const struct gv_collective *base, gv_gpuset gpus,
    struct gv_steer out[GV_MAX_STEERS])
{
    const struct gv_wiring *w = default_wiring(base);
    int n = 0;
    add(out, &n, "default", "default");
    if (!w)
        return n;
    add_lend(profile, w, gv_gpuset_count(gpus), out, &n);
    add_bridge(profile, w, gpus, out, &n);
    return n;
}

int gv_collective_cases(bool quick, uint64_t most, struct gv_case out[GV_MAX_CASES])
{
    static const enum gv_op ops[] = {GV_OP_ALL_REDUCE, GV_OP_ALL_TO_ALL};
    static const uint64_t few[] = {64 << 10, 16 << 20, 128 << 20};
    static const uint64_t many[] = {8 << 10, 128 << 10, 1 << 20, 16 << 20, 128 << 20, 1 << 30};
    const uint64_t *sizes = quick ? few : many;
    int nsizes = quick ? 3 : 6, n = 0;
    for (int o = 0; o < 2; o++)
        for (int i = 0; i < nsizes; i++) {
            uint64_t bytes = sizes[i] < most ? sizes[i] : most;
            if (i && bytes == (sizes[i - 1] < most ? sizes[i - 1] : most))
                continue;
            if (ops[o] == GV_OP_ALL_TO_ALL && bytes > MOST_EXCHANGED)
                continue;
            out[n++] = (struct gv_case){
                .op = ops[o], .bytes = bytes, .type = GV_TYPE_FLOAT, .redop = GV_REDOP_SUM};
        }
    return n;
}

int gv_collective_tunings(const char *edit, struct gv_steer out[GV_MAX_STEERS])
{
    static const char *const algorithms[] = {"RING", "TREE"};
    static const char *const protocols[] = {"LL", "LL128", "SIMPLE"};
    bool lent = !strncmp(edit, "lend", 4); /* the plugin vetoes LL128 there */
    int n = 0;
    add(out, &n, edit[0] ? edit : "default", edit[0] ? edit : "default");
    for (int a = 0; a < 2; a++)
        for (int p = 0; p < 3; p++) {
            char force[256], name[32];
            if (lent && p == 1)
                continue;
            snprintf(name, sizeof(name), "%s %s", algorithms[a], protocols[p]);
            snprintf(
                force, sizeof(force), "%.200s%salgorithm=%s protocol=%s", edit, edit[0] ? " " : "",
                algorithms[a], protocols[p]);
            add(out, &n, name, force);
        }
    return n;
}

int gv_collective_tuning_cases(struct gv_case out[GV_MAX_CASES])
{
    static const uint64_t sizes[] = {8 << 10, 32 << 10, 128 << 10, 512 << 10, 2 << 20, 16 << 20};
    int n = (int)(sizeof(sizes) / sizeof(sizes[0]));
    for (int i = 0; i < n; i++)
        out[i] = (struct gv_case){
            .op = GV_OP_ALL_REDUCE,
            .bytes = sizes[i],
            .type = GV_TYPE_FLOAT,
            .redop = GV_REDOP_SUM};
    return n;
}
