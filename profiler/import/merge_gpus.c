/* Which GPU of one file is which GPU of another. By PCI address where both say it, by position
 * where both list the whole machine, and for tables by --gpus; never by anything weaker. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/import/merge.h"

static struct gv_profile_gpu *add_gpu(struct gv_merge *m)
{
    void *list = m->p->gpus;
    if (m->p->ngpus >= GV_MAX_GPUS)
        return NULL;
    struct gv_profile_gpu *g = gv_merge_grow(&list, &m->p->ngpus, sizeof(*g));
    m->p->gpus = list;
    if (g)
        *g = (struct gv_profile_gpu){
            .index = m->p->ngpus - 1,
            .memory_mib = -1,
            .numa_node = -1,
            .sm = -1,
            .link_gen = -1,
            .link_width = -1,
            .link_gen_max = -1,
            .link_width_max = -1,
            .power_limit_w = -1,
            .app_core_mhz = -1,
            .max_core_mhz = -1,
            .memory_mhz = -1};
    return g;
}

static int text_field(
    struct gv_merge *m, const struct gv_import_source *s, unsigned line, const char *what, int gpu,
    char *to, size_t size, const char *value)
{
    if (!*value || !strcmp(to, value))
        return 0;
    if (*to)
        return gv_merge_fail(
            m, s, line, "GPU %d: its %s is %s here, %s elsewhere", gpu, what, value, to);
    snprintf(to, size, "%s", value);
    return 0;
}

static int int_field(
    struct gv_merge *m, const struct gv_import_source *s, unsigned line, const char *what, int gpu,
    int *to, int value)
{
    if (value < 0 || *to == value)
        return 0;
    if (*to >= 0)
        return gv_merge_fail(
            m, s, line, "GPU %d: its %s is %d here, %d elsewhere", gpu, what, value, *to);
    *to = value;
    return 0;
}

static int pci_ids(
    struct gv_merge *m, const struct gv_import_source *s, const struct gv_import_gpu *from,
    struct gv_profile_gpu *g)
{
    if (!from->pci_device)
        return 0;
    if (g->pci_device && g->pci_device != from->pci_device)
        return gv_merge_fail(
            m, s, from->line, "GPU %d: its PCI device is %04x here, %04x elsewhere", g->index,
            from->pci_device, g->pci_device);
    g->pci_device = from->pci_device;
    g->pci_vendor = from->pci_vendor;
    return 0;
}

/* Boards have slightly different names in different tools; the first one stays. */
static int take_gpu(
    struct gv_merge *m, const struct gv_import_source *s, const struct gv_import_gpu *from, int to)
{
    struct gv_profile_gpu *g = &m->p->gpus[to];
    if (!*g->model)
        memcpy(g->model, from->model, sizeof(g->model));
    gv_merge_source(g->source, s, from->line);
    if (from->bus >= 0 && m->bus[to] < 0)
        m->bus[to] = from->bus;
    return text_field(
               m, s, from->line, "PCI address", to, g->bus_id, sizeof(g->bus_id), from->bus_id) ||
                   text_field(m, s, from->line, "UUID", to, g->uuid, sizeof(g->uuid), from->uuid) ||
                   int_field(m, s, from->line, "NUMA node", to, &g->numa_node, from->numa_node) ||
                   int_field(m, s, from->line, "memory", to, &g->memory_mib, from->memory_mib) ||
                   int_field(m, s, from->line, "sm", to, &g->sm, from->sm) ||
                   int_field(
                       m, s, from->line, "link generation", to, &g->link_gen, from->link_gen) ||
                   int_field(
                       m, s, from->line, "link width", to, &g->link_width, from->link_width) ||
                   pci_ids(m, s, from, g)
               ? -1
               : 0;
}

static int bus_number(const char *bus_id)
{
    return *bus_id ? (int)strtol(bus_id + 5, NULL, 16) : -1;
}

/* The profile's GPU with this address, or with this bus where it is the only one; -1. */
static int find(const struct gv_merge *m, const struct gv_import_gpu *g)
{
    int found = -1, n = 0;
    for (int i = 0; i < m->p->ngpus; i++) {
        const char *bus_id = m->p->gpus[i].bus_id;
        if (*g->bus_id && !strcmp(bus_id, g->bus_id))
            return i;
        int bus = *bus_id ? bus_number(bus_id) : m->bus[i];
        if (g->bus >= 0 && bus == g->bus) {
            found = i;
            n++;
        }
    }
    return n == 1 ? found : -1;
}

static bool has_addresses(const struct gv_import_source *s)
{
    for (int i = 0; i < s->ngpus; i++)
        if (!*s->gpus[i].bus_id)
            return false;
    return s->ngpus > 0;
}

static bool profile_has_addresses(const struct gv_merge *m)
{
    for (int i = 0; i < m->p->ngpus; i++)
        if (*m->p->gpus[i].bus_id || m->bus[i] >= 0)
            return true;
    return false;
}

/* GPUs of a whole list in PCI order where it has addresses, else in its own. */
static void pci_order(const struct gv_import_source *s, int order[GV_MAX_GPUS])
{
    bool addresses = has_addresses(s);
    for (int i = 0; i < s->ngpus; i++) {
        int k = i;
        while (addresses && k > 0 && strcmp(s->gpus[order[k - 1]].bus_id, s->gpus[i].bus_id) > 0) {
            order[k] = order[k - 1];
            k--;
        }
        order[k] = i;
    }
}

static int create(struct gv_merge *m, const struct gv_import_source *s, int *map)
{
    int order[GV_MAX_GPUS];
    pci_order(s, order);
    for (int i = 0; i < s->ngpus; i++) {
        if (!add_gpu(m))
            return gv_import_no_memory(m->err);
        map[order[i]] = i;
    }
    m->whole = true;
    return 0;
}

static int match_whole(struct gv_merge *m, const struct gv_import_source *s, int *map)
{
    if (s->ngpus != m->p->ngpus)
        return gv_merge_fail(
            m, s, s->ngpus ? s->gpus[0].line : 0, "it lists %d GPUs, the profile has %d", s->ngpus,
            m->p->ngpus);
    bool by_address = has_addresses(s) && profile_has_addresses(m);
    int order[GV_MAX_GPUS];
    pci_order(s, order);
    for (int i = 0; i < s->ngpus; i++) {
        int at = by_address ? find(m, &s->gpus[order[i]]) : i;
        if (at < 0)
            return gv_merge_fail(
                m, s, s->gpus[order[i]].line, "the profile has no GPU at %s",
                s->gpus[order[i]].bus_id);
        map[order[i]] = at;
    }
    return 0;
}

static int take_all(struct gv_merge *m, const struct gv_import_source *s, const int *map)
{
    for (int i = 0; i < s->ngpus; i++)
        if (take_gpu(m, s, &s->gpus[i], map[i]))
            return -1;
    return 0;
}

/* Sources that list the whole machine; those with PCI addresses come first, since they order. */
static int whole_sources(struct gv_merge *m, bool with_addresses)
{
    for (int k = 0; k < m->im->nsources; k++) {
        const struct gv_import_source *s = &m->im->sources[k];
        if (!s->whole || has_addresses(s) != with_addresses || !s->ngpus)
            continue;
        if (m->whole ? match_whole(m, s, m->map[k]) : create(m, s, m->map[k]))
            return -1;
        if (take_all(m, s, m->map[k]))
            return -1;
    }
    return 0;
}

/* Sorts GPUs that tables alone name, by address. Only before anything else refers to them. */
static int by_address(const void *a, const void *b)
{
    return strcmp(
        ((const struct gv_profile_gpu *)a)->bus_id, ((const struct gv_profile_gpu *)b)->bus_id);
}

/* No list of the machine at all: the GPUs that the tables ran on are the profile's. */
static int from_tables(struct gv_merge *m)
{
    bool addresses = true;
    for (int k = 0; k < m->im->nsources; k++) {
        const struct gv_import_source *s = &m->im->sources[k];
        for (int i = 0; i < s->ngpus; i++) {
            if (find(m, &s->gpus[i]) >= 0)
                continue;
            struct gv_profile_gpu *g = add_gpu(m);
            if (!g)
                return gv_merge_fail(m, s, s->gpus[i].line, "more than 64 GPUs");
            memcpy(g->bus_id, s->gpus[i].bus_id, sizeof(g->bus_id));
            m->bus[g->index] = s->gpus[i].bus;
            addresses &= *g->bus_id != 0;
        }
    }
    if (addresses && m->p->ngpus)
        qsort(m->p->gpus, (size_t)m->p->ngpus, sizeof(*m->p->gpus), by_address);
    for (int i = 0; i < m->p->ngpus; i++)
        m->p->gpus[i].index = i;
    return 0;
}

/* GPUs that only --gpus, a graph or a CSV name by number. */
static int by_number(struct gv_merge *m)
{
    int most = -1;
    for (int i = 0; i < m->im->options.ngpus; i++)
        most = m->im->options.gpus[i] > most ? m->im->options.gpus[i] : most;
    for (int k = 0; k < m->im->nsources; k++) {
        const struct gv_import_source *s = &m->im->sources[k];
        for (int i = 0; i < s->nrings; i++)
            for (int j = 0; j < s->rings[i].n; j++)
                most = s->rings[i].order[j] > most ? s->rings[i].order[j] : most;
        for (int i = 0; i < s->npairs && !s->ngpus; i++) {
            most = s->pairs[i].from > most ? s->pairs[i].from : most;
            most = s->pairs[i].to > most ? s->pairs[i].to : most;
        }
        for (int i = 0; i < s->nsingles && !s->ngpus; i++)
            most = s->singles[i].gpu > most ? s->singles[i].gpu : most;
        for (int i = 0; i < s->nsamples; i++)
            for (gv_gpuset rest = s->samples[i].gpus; rest; rest &= rest - 1)
                most = gv_gpuset_first(rest) > most ? gv_gpuset_first(rest) : most;
    }
    while (m->p->ngpus <= most)
        if (!add_gpu(m))
            return gv_import_no_memory(m->err);
    return 0;
}

static int map_table(struct gv_merge *m, const struct gv_import_source *s, int *map)
{
    const struct gv_import_options *o = &m->im->options;
    int n = s->ngpus ? s->ngpus : o->ngpus;
    if (o->ngpus && o->ngpus != n)
        return gv_merge_fail(
            m, s, s->gpus[0].line, "%d ranks ran, --gpus names %d GPUs", n, o->ngpus);
    for (int i = 0; i < n; i++) {
        map[i] = o->ngpus ? o->gpus[i] : find(m, &s->gpus[i]);
        if (map[i] < 0)
            return gv_merge_fail(
                m, s, s->gpus[i].line,
                "which GPU of the profile rank %d is cannot be told (%s): name the GPUs of the "
                "ranks with --gpus, as in --gpus 0-3",
                i, *s->gpus[i].bus_id ? s->gpus[i].bus_id : "no PCI address");
        if (map[i] >= m->p->ngpus)
            return gv_merge_fail(
                m, s, 0, "--gpus: there is no GPU %d, the profile has %d", map[i], m->p->ngpus);
    }
    return 0;
}

static int tables(struct gv_merge *m)
{
    for (int k = 0; k < m->im->nsources; k++) {
        const struct gv_import_source *s = &m->im->sources[k];
        if (s->whole)
            continue;
        for (int i = 0; i < GV_MAX_GPUS; i++)
            m->map[k][i] = i; /* graphs and CSV count as the profile does */
        if (s->format != GV_IMPORT_NCCL_TESTS && s->format != GV_IMPORT_NCCL_TESTS_JSON)
            continue;
        if (map_table(m, s, m->map[k]) || take_all(m, s, m->map[k]))
            return -1;
    }
    return 0;
}

int gv_merge_gpus(struct gv_merge *m)
{
    m->whole = m->p->ngpus > 0;
    for (int i = 0; i < GV_MAX_GPUS; i++)
        m->bus[i] = -1;
    if (whole_sources(m, true) || whole_sources(m, false))
        return -1;
    if (!m->whole && ((!m->im->options.ngpus && from_tables(m)) || by_number(m)))
        return -1;
    if (!m->p->ngpus)
        return gv_error_set(
            m->err,
            "nothing in these files names a GPU: add them to a profile with --into, or name "
            "the GPUs with --gpus");
    return tables(m);
}
