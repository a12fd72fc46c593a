/* What is compared: one table of figures, and how each is found in a profile. */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/fleet/fleet.h"

/* Where the value lies. */
enum place { IN_GPU, IN_MEMORY, IN_LINK_ALONE, IN_LINKS_TOGETHER, IN_PATH, IN_GROUP };

#define INT_OF(owner, member) IN_GPU, offsetof(struct owner, member)
#define FIGURE_OF(place, owner, member) place, offsetof(struct owner, member)

/* A setting is compared where two hosts may differ in it without being of two kinds. */
#define ROWS(ROW)                                                                                  \
    ROW("link_width", "PCIe link", "lanes", GV_SCOPE_GPU, true,                                    \
        INT_OF(gv_profile_gpu, link_width))                                                        \
    ROW("link_gen", "PCIe generation", "", GV_SCOPE_GPU, true, INT_OF(gv_profile_gpu, link_gen))   \
    ROW("link_width_max", "PCIe link of board and slot", "lanes", GV_SCOPE_GPU, true,              \
        INT_OF(gv_profile_gpu, link_width_max))                                                    \
    ROW("link_gen_max", "PCIe generation of board and slot", "", GV_SCOPE_GPU, true,               \
        INT_OF(gv_profile_gpu, link_gen_max))                                                      \
    ROW("power_limit_w", "power limit", "W", GV_SCOPE_GPU, true,                                   \
        INT_OF(gv_profile_gpu, power_limit_w))                                                     \
    ROW("app_core_mhz", "application clock", "MHz", GV_SCOPE_GPU, true,                            \
        INT_OF(gv_profile_gpu, app_core_mhz))                                                      \
    ROW("max_core_mhz", "highest clock", "MHz", GV_SCOPE_GPU, true,                                \
        INT_OF(gv_profile_gpu, max_core_mhz))                                                      \
    ROW("memory_mhz", "memory clock", "MHz", GV_SCOPE_GPU, true,                                   \
        INT_OF(gv_profile_gpu, memory_mhz))                                                        \
    ROW("copy_gbs", "memory copy", "GB/s", GV_SCOPE_GPU, false,                                    \
        FIGURE_OF(IN_MEMORY, gv_profile_memory, copy_gbs))                                         \
    ROW("read_gbs", "memory read", "GB/s", GV_SCOPE_GPU, false,                                    \
        FIGURE_OF(IN_MEMORY, gv_profile_memory, read_gbs))                                         \
    ROW("write_gbs", "memory write", "GB/s", GV_SCOPE_GPU, false,                                  \
        FIGURE_OF(IN_MEMORY, gv_profile_memory, write_gbs))                                        \
    ROW("triad_gbs", "memory triad", "GB/s", GV_SCOPE_GPU, false,                                  \
        FIGURE_OF(IN_MEMORY, gv_profile_memory, triad_gbs))                                        \
    ROW("to_device_gbs", "host to GPU", "GB/s", GV_SCOPE_GPU, false,                               \
        FIGURE_OF(IN_LINK_ALONE, gv_profile_host_link, to_device_gbs))                             \
    ROW("to_host_gbs", "GPU to host", "GB/s", GV_SCOPE_GPU, false,                                 \
        FIGURE_OF(IN_LINK_ALONE, gv_profile_host_link, to_host_gbs))                               \
    ROW("together_to_device_gbs", "host to GPU, all at once", "GB/s", GV_SCOPE_GROUP, false,       \
        FIGURE_OF(IN_LINKS_TOGETHER, gv_profile_host_link, to_device_gbs))                         \
    ROW("together_to_host_gbs", "GPU to host, all at once", "GB/s", GV_SCOPE_GROUP, false,         \
        FIGURE_OF(IN_LINKS_TOGETHER, gv_profile_host_link, to_host_gbs))                           \
    ROW("p2p", "P2P", "", GV_SCOPE_PAIR, true, IN_PATH, 0)                                         \
    ROW("nccl_class", "path", "", GV_SCOPE_PAIR, true, IN_PATH, 0)                                 \
    ROW("nvlinks", "NVLinks", "", GV_SCOPE_PAIR, true, IN_PATH, 0)                                 \
    ROW("p2p_write_gbs", "P2P write", "GB/s", GV_SCOPE_PAIR, false,                                \
        FIGURE_OF(IN_PATH, gv_profile_path, write_gbs))                                            \
    ROW("p2p_read_gbs", "P2P read", "GB/s", GV_SCOPE_PAIR, false,                                  \
        FIGURE_OF(IN_PATH, gv_profile_path, read_gbs))                                             \
    ROW("both_ways_gbs", "P2P both ways", "GB/s", GV_SCOPE_PAIR, false,                            \
        FIGURE_OF(IN_PATH, gv_profile_path, both_ways_gbs))                                        \
    ROW("latency_us", "P2P latency", "us", GV_SCOPE_PAIR, false,                                   \
        FIGURE_OF(IN_PATH, gv_profile_path, latency_us))                                           \
    ROW("loaded_write_gbs", "P2P write, loaded", "GB/s", GV_SCOPE_PAIR, false,                     \
        FIGURE_OF(IN_PATH, gv_profile_path, loaded_write_gbs))                                     \
    ROW("host_path_gbs", "through the host", "GB/s", GV_SCOPE_PAIR, false,                         \
        FIGURE_OF(IN_PATH, gv_profile_path, host_path_gbs))                                        \
    ROW("busbw_gbs", "bus bandwidth", "GB/s", GV_SCOPE_GROUP, false, IN_GROUP, 0)

#define FIGURE_ROW(name, label, unit, scope, counted, ...) {name, label, unit, scope, counted},
#define PLACE_ROW(name, label, unit, scope, counted, ...) {__VA_ARGS__},

const struct gv_fleet_figure gv_fleet_figures[] = {ROWS(FIGURE_ROW)};
static const struct {
    enum place place;
    size_t offset;
} places[] = {ROWS(PLACE_ROW)};
const int gv_fleet_nfigures = (int)(sizeof(gv_fleet_figures) / sizeof(gv_fleet_figures[0]));

int gv_fleet_figure_of(const char *name)
{
    int i = 0;
    while (i < gv_fleet_nfigures && strcmp(gv_fleet_figures[i].name, name))
        i++;
    return i;
}

static void
put(struct gv_fleet *fleet, const struct gv_fleet_key *key, int host, double value, double range)
{
    struct gv_fleet_value *v = gv_fleet_grow(&fleet->values, &fleet->nvalues, sizeof(*v));
    if (!v) {
        fleet->failed = true;
        return;
    }
    v->key = *key;
    v->host = host;
    v->value = value;
    v->range = range;
}

static void put_figure(
    struct gv_fleet *fleet, const struct gv_fleet_key *key, int host, const struct gv_figure *f)
{
    if (f->count > 0 && isfinite(f->median))
        put(fleet, key, host, f->median, f->max - f->min);
}

static struct gv_fleet_key key_of(int figure, int a, int b)
{
    return (struct gv_fleet_key){.figure = figure, .a = a, .b = b, .variant = -1};
}

static void of_gpu(struct gv_fleet *fleet, int host, const struct gv_profile_gpu *g, int f)
{
    int value = *(const int *)((const char *)g + places[f].offset);
    struct gv_fleet_key key = key_of(f, g->index, -1);
    if (value >= 0)
        put(fleet, &key, host, value, 0);
}

static void of_memory(struct gv_fleet *fleet, int host, const struct gv_profile_memory *m, int f)
{
    for (gv_gpuset rest = m->gpus; rest; rest &= rest - 1) {
        struct gv_fleet_key key = key_of(f, gv_gpuset_first(rest), -1);
        put_figure(
            fleet, &key, host, (const struct gv_figure *)((const char *)m + places[f].offset));
    }
}

static void of_link(struct gv_fleet *fleet, int host, const struct gv_profile_host_link *l, int f)
{
    const struct gv_figure *value = (const struct gv_figure *)((const char *)l + places[f].offset);
    if (l->together != (places[f].place == IN_LINKS_TOGETHER))
        return;
    struct gv_fleet_key key = key_of(f, -1, -1);
    key.gpus = l->gpus;
    if (l->together) {
        put_figure(fleet, &key, host, value);
        return;
    }
    for (gv_gpuset rest = l->gpus; rest; rest &= rest - 1) {
        key = key_of(f, gv_gpuset_first(rest), -1);
        put_figure(fleet, &key, host, value);
    }
}

static void
of_pair(struct gv_fleet *fleet, int host, const struct gv_profile_path *p, int a, int b, int f)
{
    static const char *const counted[] = {"p2p", "nccl_class", "nvlinks"};
    const int values[] = {(int)p->p2p, (int)p->nccl_class, p->nvlinks};
    struct gv_fleet_key key = key_of(f, a, b);
    if (!gv_fleet_figures[f].counted) {
        put_figure(
            fleet, &key, host, (const struct gv_figure *)((const char *)p + places[f].offset));
        return;
    }
    for (int i = 0; i < 3; i++)
        if (!strcmp(counted[i], gv_fleet_figures[f].name) && (i != 1 || values[i]))
            put(fleet, &key, host, values[i], 0);
}

static void of_path(struct gv_fleet *fleet, int host, const struct gv_profile_path *p, int f)
{
    for (gv_gpuset from = p->from; from; from &= from - 1)
        for (gv_gpuset to = p->to; to; to &= to - 1) {
            int a = gv_gpuset_first(from), b = gv_gpuset_first(to);
            if (a == b)
                continue;
            of_pair(fleet, host, p, a, b, f);
            bool again = gv_gpuset_has(p->from, b) && gv_gpuset_has(p->to, a);
            if (p->both_directions && !again)
                of_pair(fleet, host, p, b, a, f);
        }
}

bool gv_fleet_same_variant(const struct gv_profile_variant *a, const struct gv_profile_variant *b)
{
    return a->edit == b->edit && a->algorithm == b->algorithm && a->protocol == b->protocol &&
           a->channels == b->channels && a->lend_count == b->lend_count && a->nlend == b->nlend &&
           !memcmp(a->lend, b->lend, (size_t)a->nlend * sizeof(a->lend[0]));
}

int gv_fleet_variant(struct gv_fleet *fleet, const struct gv_profile_variant *variant)
{
    for (int i = 0; i < fleet->nvariants; i++)
        if (gv_fleet_same_variant(&fleet->variants[i], variant))
            return i;
    struct gv_profile_variant *one =
        gv_fleet_grow(&fleet->variants, &fleet->nvariants, sizeof(*one));
    if (!one)
        return -1;
    *one = *variant;
    one->runs = NULL;
    one->nruns = 0;
    return fleet->nvariants - 1;
}

/* Samples that a throttled GPU spoiled say nothing of the machine. */
static void of_variant(
    struct gv_fleet *fleet, int host, struct gv_fleet_key key, const struct gv_profile_variant *v)
{
    int n = 0, k = 0;
    for (int r = 0; r < v->nruns; r++)
        n += v->runs[r].count;
    double *all = malloc(sizeof(double) * (size_t)(n + 1));
    key.variant = gv_fleet_variant(fleet, v);
    fleet->failed |= !all || key.variant < 0;
    for (int r = 0; all && r < v->nruns; r++)
        for (int i = 0; i < v->runs[r].count; i++)
            if (!v->runs[r].throttled || !v->runs[r].throttled[i])
                all[k++] = v->runs[r].busbw_gbs[i];
    if (all && k) {
        gv_fleet_sort(all, k);
        put(fleet, &key, host, gv_fleet_middle(all, k), all[k - 1] - all[0]);
    }
    free(all);
}

static void of_groups(struct gv_fleet *fleet, int host, const struct gv_profile *p, int f)
{
    for (int g = 0; g < p->ngroups; g++) {
        const struct gv_profile_group *group = &p->groups[g];
        struct gv_fleet_key key = key_of(f, -1, -1);
        key.gpus = group->gpus;
        key.op = group->op;
        key.bytes = group->bytes;
        key.loaded = group->loaded;
        for (int v = 0; v < group->nvariants; v++)
            of_variant(fleet, host, key, &group->variants[v]);
    }
}

static void of_host(struct gv_fleet *fleet, int host, int f)
{
    const struct gv_profile *p = fleet->hosts[host].profile;
    enum place place = places[f].place;
    for (int i = 0; i < p->ngpus && place == IN_GPU; i++)
        of_gpu(fleet, host, &p->gpus[i], f);
    for (int i = 0; i < p->nmemory && place == IN_MEMORY; i++)
        of_memory(fleet, host, &p->memory[i], f);
    for (int i = 0; i < p->nhost_links && (place == IN_LINK_ALONE || place == IN_LINKS_TOGETHER);
         i++)
        of_link(fleet, host, &p->host_links[i], f);
    for (int i = 0; i < p->npaths && place == IN_PATH; i++)
        of_path(fleet, host, &p->paths[i], f);
    if (place == IN_GROUP)
        of_groups(fleet, host, p, f);
}

int gv_fleet_collect(struct gv_fleet *fleet, const struct gv_fleet_kind *kind)
{
    for (int i = 0; i < kind->n; i++)
        for (int f = 0; f < gv_fleet_nfigures; f++)
            of_host(fleet, kind->hosts[i], f);
    return fleet->failed ? -1 : 0;
}
