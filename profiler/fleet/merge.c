/* One profile for all hosts of a kind. It is found by shape, and turns nothing on that a host has
 * not verified by itself. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/fleet/merge.h"

const struct gv_profile *gv_merge_profile(const struct merge *m, int i)
{
    return m->fleet->hosts[m->kind->hosts[i]].profile;
}

double gv_merge_digits(double value)
{
    char text[32];
    if (!isfinite(value))
        return value;
    snprintf(text, sizeof(text), "%.5g", value);
    return strtod(text, NULL);
}

static const struct gv_fleet_item *find(const struct merge *m, const char *figure, int a, int b)
{
    struct gv_fleet_key key = {.figure = gv_fleet_figure_of(figure), .a = a, .b = b, .variant = -1};
    return gv_fleet_find(m->fleet, m->kind, &key);
}

/* A setting that is usual, -1 where none is. */
static int usual(const struct merge *m, const char *figure, int a, int b)
{
    const struct gv_fleet_item *item = find(m, figure, a, b);
    return item && isfinite(item->median) ? (int)item->median : -1;
}

/* Median and range across the hosts that are not off. `excused`: hosts that need not have measured
 * it. Not known where a host is missing. */
static struct gv_figure figure_of(struct merge *m, const struct gv_fleet_item *item, int excused)
{
    struct gv_figure f = {NAN, NAN, NAN, 0};
    if (!item)
        return f;
    const struct gv_fleet_value *v = &m->fleet->values[item->first];
    double *values =
        item->n + excused < m->kind->n ? NULL : malloc(sizeof(double) * (size_t)(item->n + 1));
    if (!values) {
        m->left_out++;
        return f;
    }
    for (int i = 0; i < item->n; i++)
        if (!v[i].off)
            values[f.count++] = v[i].value;
    gv_fleet_sort(values, f.count);
    f.median = gv_merge_digits(gv_fleet_middle(values, f.count));
    f.min = gv_merge_digits(f.count ? values[0] : NAN);
    f.max = gv_merge_digits(f.count ? values[f.count - 1] : NAN);
    free(values);
    return f;
}

static void take_gpus(struct merge *m)
{
    for (int i = 0; i < m->first->ngpus; i++) {
        struct gv_profile_gpu *g = &m->out->gpus[m->out->ngpus++];
        *g = m->first->gpus[i];
        g->uuid[0] = g->note[0] = g->source[0] = '\0';
        for (int h = 1; h < m->kind->n; h++)
            if (strcmp(gv_merge_profile(m, h)->gpus[i].bus_id, g->bus_id))
                g->bus_id[0] = '\0';
        g->link_width = usual(m, "link_width", i, -1);
        g->link_gen = usual(m, "link_gen", i, -1);
        g->link_width_max = usual(m, "link_width_max", i, -1);
        g->link_gen_max = usual(m, "link_gen_max", i, -1);
        g->power_limit_w = usual(m, "power_limit_w", i, -1);
        g->app_core_mhz = usual(m, "app_core_mhz", i, -1);
        g->max_core_mhz = usual(m, "max_core_mhz", i, -1);
        g->memory_mhz = usual(m, "memory_mhz", i, -1);
    }
}

/* What the boards' names and clocks give is alike on all hosts, or left out. */
static double theoretical(const struct merge *m, int gpu)
{
    double all = NAN;
    for (int h = 0; h < m->kind->n; h++)
        for (int i = 0; i < gv_merge_profile(m, h)->nmemory; i++) {
            const struct gv_profile_memory *x = &gv_merge_profile(m, h)->memory[i];
            if (!gv_gpuset_has(x->gpus, gpu) || !isfinite(x->theoretical_gbs))
                continue;
            if (isfinite(all) && all != x->theoretical_gbs)
                return NAN;
            all = x->theoretical_gbs;
        }
    return all;
}

static void take_memory(struct merge *m)
{
    for (int i = 0; i < m->first->ngpus; i++) {
        const struct gv_profile_memory x = {
            .gpus = GV_GPU_BIT(i),
            .theoretical_gbs = theoretical(m, i),
            .copy_gbs = figure_of(m, find(m, "copy_gbs", i, -1), 0),
            .read_gbs = figure_of(m, find(m, "read_gbs", i, -1), 0),
            .write_gbs = figure_of(m, find(m, "write_gbs", i, -1), 0),
            .triad_gbs = figure_of(m, find(m, "triad_gbs", i, -1), 0),
        };
        if (x.copy_gbs.count + x.read_gbs.count + x.write_gbs.count + x.triad_gbs.count)
            m->out->memory[m->out->nmemory++] = x;
    }
}

static const struct gv_fleet_item *
find_set(const struct merge *m, const char *figure, gv_gpuset gpus)
{
    struct gv_fleet_key key = {
        .figure = gv_fleet_figure_of(figure), .a = -1, .b = -1, .gpus = gpus, .variant = -1};
    return gv_fleet_find(m->fleet, m->kind, &key);
}

static void add_link(struct merge *m, struct gv_profile_host_link link)
{
    if (link.to_device_gbs.count || link.to_host_gbs.count)
        m->out->host_links[m->out->nhost_links++] = link;
}

static void take_links(struct merge *m)
{
    for (int i = 0; i < m->first->ngpus; i++)
        add_link(
            m, (struct gv_profile_host_link){
                   .gpus = GV_GPU_BIT(i),
                   .to_device_gbs = figure_of(m, find(m, "to_device_gbs", i, -1), 0),
                   .to_host_gbs = figure_of(m, find(m, "to_host_gbs", i, -1), 0)});
    for (int i = 0; i < m->first->nhost_links; i++) {
        const struct gv_profile_host_link *l = &m->first->host_links[i];
        if (l->together)
            add_link(
                m,
                (struct gv_profile_host_link){
                    .gpus = l->gpus,
                    .together = true,
                    .to_device_gbs =
                        figure_of(m, find_set(m, "together_to_device_gbs", l->gpus), 0),
                    .to_host_gbs = figure_of(m, find_set(m, "together_to_host_gbs", l->gpus), 0)});
    }
}

/* Verified only where every host that is not off verified it. */
static enum gv_p2p state_of(struct merge *m, const struct gv_fleet_item *item)
{
    if (!item || !isfinite(item->median))
        return GV_P2P_UNVERIFIED;
    enum gv_p2p state = (enum gv_p2p)item->median;
    return state == GV_P2P_VERIFIED && item->n < m->kind->n ? GV_P2P_UNVERIFIED : state;
}

static void same_class(const struct merge *m, int a, int b, char out[8])
{
    const struct gv_profile_path *p = gv_profile_path_of(m->first, a, b);
    snprintf(out, 8, "%s", p ? p->smi_class : "");
    for (int h = 1; h < m->kind->n; h++) {
        const struct gv_profile_path *q = gv_profile_path_of(gv_merge_profile(m, h), a, b);
        if (!q || strcmp(q->smi_class, out))
            out[0] = '\0';
    }
}

static void take_pair(struct merge *m, int a, int b)
{
    const struct gv_fleet_item *state = find(m, "p2p", a, b);
    struct gv_profile_path p = {.from = GV_GPU_BIT(a), .to = GV_GPU_BIT(b)};
    const struct gv_figure none = {NAN, NAN, NAN, 0};
    if (!state)
        return;
    int class = usual(m, "nccl_class", a, b), links = usual(m, "nvlinks", a, b);
    p.p2p = state_of(m, state);
    p.nccl_class = class > 0 ? (enum gv_path_class) class : GV_PATH_UNKNOWN;
    p.nvlinks = links > 0 ? links : 0;
    same_class(m, a, b, p.smi_class);
    bool refused = p.p2p == GV_P2P_REFUSED;
    struct {
        const char *name;
        struct gv_figure *to;
    } figures[] = {
        {"p2p_write_gbs", &p.write_gbs},     {"p2p_read_gbs", &p.read_gbs},
        {"both_ways_gbs", &p.both_ways_gbs}, {"loaded_write_gbs", &p.loaded_write_gbs},
        {"latency_us", &p.latency_us},       {"host_path_gbs", &p.host_path_gbs},
    };
    for (int i = 0; i < 6; i++) {
        const struct gv_fleet_item *item = find(m, figures[i].name, a, b);
        /* the host path of a pair whose P2P works elsewhere is one host's way out */
        bool kept = refused ? i >= 4 : i != 5 || p.p2p != GV_P2P_VERIFIED;
        *figures[i].to = kept ? figure_of(m, item, state->off) : none;
    }
    if (!isfinite(state->median))
        snprintf(p.note, sizeof(p.note), "hosts differ in P2P");
    else if (state->off)
        snprintf(p.note, sizeof(p.note), "not so on %d of %d hosts", state->off, m->kind->n);
    m->out->paths[m->out->npaths++] = p;
}

static void take_paths(struct merge *m)
{
    for (int a = 0; a < m->first->ngpus; a++)
        for (int b = 0; b < m->first->ngpus; b++)
            if (a != b)
                take_pair(m, a, b);
}

/* Strictest of all: every host's thresholds hold, and no operation is left out that one may use. */
static void take_policy(struct merge *m)
{
    struct gv_profile_policy *p = &m->out->policy;
    *p = m->first->policy;
    for (int h = 1; h < m->kind->n; h++) {
        const struct gv_profile_policy *x = &gv_merge_profile(m, h)->policy;
        p->min_gain = fmax(p->min_gain, x->min_gain);
        p->max_loss = fmin(p->max_loss, x->max_loss);
        p->operations = p->operations && x->operations ? p->operations | x->operations : 0;
    }
}

static void same_text(const struct merge *m, char *text, size_t offset)
{
    for (int h = 1; h < m->kind->n; h++)
        if (strcmp(text, (const char *)&gv_merge_profile(m, h)->provenance + offset))
            *text = '\0';
}

#define SAME(member) same_text(m, p->member, offsetof(struct gv_profile_provenance, member))

static void take_provenance(struct merge *m)
{
    struct gv_profile_provenance *p = &m->out->provenance;
    *p = m->first->provenance;
    for (int h = 1; h < m->kind->n; h++)
        if (strcmp(gv_merge_profile(m, h)->provenance.date, p->date) > 0)
            memcpy(p->date, gv_merge_profile(m, h)->provenance.date, sizeof(p->date));
    SAME(cuda);
    SAME(nccl);
    SAME(nccl_tests);
    SAME(kernel);
    SAME(container);
    snprintf(p->tool, sizeof(p->tool), "gv100 %s fleet", GV_VERSION);
    size_t n = (size_t)snprintf(
        p->source, sizeof(p->source), "median over %d host%s, ranges across them: ", m->kind->n,
        m->kind->n == 1 ? "" : "s");
    for (int h = 0; h < m->kind->n; h++) {
        const char *name = m->fleet->hosts[m->kind->hosts[h]].name;
        if (n + strlen(name) + 20 > sizeof(p->source)) {
            snprintf(p->source + n, sizeof(p->source) - n, " and %d more", m->kind->n - h);
            break;
        }
        n += (size_t)snprintf(p->source + n, sizeof(p->source) - n, "%s%s", h ? ", " : "", name);
    }
}

/* Read back, so that whatever the schema demands is checked. */
static int check(struct gv_fleet_kind *kind, struct gv_error *err)
{
    struct gv_str text = {0};
    struct gv_profile *read = NULL;
    int rc = gv_profile_format(kind->merged, &text) ? gv_fleet_no_memory(err) : 0;
    if (!rc) {
        read = gv_profile_parse(text.data, text.len, kind->name, err);
        rc = read ? 0 : -1;
    }
    gv_str_free(&text);
    gv_profile_free(kind->merged);
    kind->merged = read;
    return rc;
}

static int reserve(struct merge *m)
{
    size_t n = (size_t)m->first->ngpus;
    m->out->gpus = calloc(n + 1, sizeof(*m->out->gpus));
    m->out->memory = calloc(n + 1, sizeof(*m->out->memory));
    m->out->host_links = calloc(n + (size_t)m->first->nhost_links + 1, sizeof(*m->out->host_links));
    m->out->paths = calloc(n * n + 1, sizeof(*m->out->paths));
    m->out->groups = calloc((size_t)m->first->ngroups + 1, sizeof(*m->out->groups));
    return m->out->gpus && m->out->memory && m->out->host_links && m->out->paths && m->out->groups
               ? 0
               : -1;
}

int gv_fleet_merge(struct gv_fleet *fleet, struct gv_fleet_kind *kind, struct gv_error *err)
{
    struct merge m = {.fleet = fleet, .kind = kind, .first = fleet->hosts[kind->hosts[0]].profile};
    kind->merged = m.out = gv_profile_new();
    if (!m.out || reserve(&m))
        return gv_fleet_no_memory(err);
    snprintf(m.out->name, sizeof(m.out->name), "%s", kind->name);
    m.out->match = GV_MATCH_SHAPE;
    memcpy(m.out->cpu_vendor, m.first->cpu_vendor, sizeof(m.out->cpu_vendor));
    take_gpus(&m);
    take_memory(&m);
    take_links(&m);
    take_paths(&m);
    if (gv_merge_fleet_groups(&m))
        return gv_fleet_no_memory(err);
    take_policy(&m);
    take_provenance(&m);
    if (m.left_out)
        gv_str_addf(&kind->left_out, "%d figures that not all of its hosts measured\n", m.left_out);
    for (int i = 0; i < m.out->ngpus; i++)
        if (!m.out->gpus[i].pci_device || !*m.out->gpus[i].island) {
            gv_str_add(
                &kind->left_out, "PCI ids or switches of its GPUs are not known: no host can find "
                                 "the profile by itself, "
                                 "name it with GV100_PROFILE\n");
            break;
        }
    return check(kind, err);
}
