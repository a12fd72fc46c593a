/* From what was found to a profile, and back. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "profiler/probe/gv_calibration.h"

/* Five digits say all that a measurement does, and keep the file readable. */
static double digits(double value)
{
    char text[32];
    if (!isfinite(value))
        return value;
    snprintf(text, sizeof(text), "%.5g", value);
    return strtod(text, NULL);
}

static struct gv_figure tidy(struct gv_figure f)
{
    return (struct gv_figure){digits(f.median), digits(f.min), digits(f.max), f.count};
}

static void fill_gpu(const struct gv_calibration *cal, int i, struct gv_profile_gpu *g)
{
    const struct gv_device *d = &cal->gpus.device[i];
    const struct gv_machine_gpu *m = &cal->machine.gpus[i];
    g->index = i;
    snprintf(g->model, sizeof(g->model), "%s", d->model);
    snprintf(g->bus_id, sizeof(g->bus_id), "%s", d->bus_id);
    snprintf(g->uuid, sizeof(g->uuid), "%s", d->uuid);
    if (cal->island[i] < 26)
        snprintf(g->island, sizeof(g->island), "%c", 'A' + cal->island[i]);
    else
        snprintf(g->island, sizeof(g->island), "I%d", cal->island[i]);
    g->pci_vendor = m->pci_vendor;
    g->pci_device = m->pci_device;
    g->memory_mib = (int)(d->memory_bytes >> 20);
    g->numa_node = m->numa_node;
    g->sm = d->sm;
    g->link_gen = d->link_gen;
    g->link_width = d->link_width > 0 ? d->link_width : m->link_width;
    g->link_gen_max = d->link_gen_max;
    g->link_width_max = d->link_width_max > 0 ? d->link_width_max : m->link_width_max;
    g->power_limit_w = d->power_limit_w;
    g->app_core_mhz = d->app_core_mhz;
    g->max_core_mhz = d->max_core_mhz;
    g->memory_mhz = d->memory_mhz;
}

static void fill_provenance(const struct gv_calibration *cal, struct gv_profile_provenance *p)
{
    time_t now = time(NULL);
    struct tm tm;
    p->kind = cal->options.virtual_machine ? GV_VIRTUAL : GV_CUDA;
    if (localtime_r(&now, &tm))
        strftime(p->date, sizeof(p->date), "%Y-%m-%d", &tm);
    snprintf(
        p->driver, sizeof(p->driver), "%.31s",
        cal->gpus.driver[0] ? cal->gpus.driver : cal->machine.driver);
    snprintf(
        p->cuda, sizeof(p->cuda), "%d.%d", cal->gpus.cuda.version / 1000,
        cal->gpus.cuda.version % 1000 / 10);
    snprintf(p->tool, sizeof(p->tool), "gv100 %s", GV_VERSION);
    snprintf(p->nccl, sizeof(p->nccl), "%s", cal->nccl);
    snprintf(p->kernel, sizeof(p->kernel), "%s", cal->facts.kernel);
    snprintf(p->container, sizeof(p->container), "%s", cal->facts.container);
}

static void fill_host(const struct gv_calibration *cal, struct gv_profile_host *h)
{
    snprintf(h->cpu_model, sizeof(h->cpu_model), "%s", cal->facts.cpu_model);
    snprintf(h->iommu, sizeof(h->iommu), "%s", cal->facts.iommu);
    h->shm_mib = cal->facts.shm_mib > 1000000000 ? -1 : (int)cal->facts.shm_mib;
    h->peers = cal->peers;
}

static void fill_path(const struct gv_calibration *cal, int a, int b, struct gv_profile_path *p)
{
    const struct gv_pair_state *s = &cal->pair[a][b];
    *p = (struct gv_profile_path){
        .from = GV_GPU_BIT(a),
        .to = GV_GPU_BIT(b),
        .nccl_class = cal->path_class[a][b],
        .nvlinks = cal->nvlinks[a][b],
        .p2p = s->p2p,
        .write_gbs = tidy(s->write_gbs),
        .read_gbs = tidy(s->read_gbs),
        .both_ways_gbs = tidy(s->both_ways_gbs),
        .latency_us = tidy(s->latency_us),
        .loaded_write_gbs = tidy(s->loaded_write_gbs),
        .host_path_gbs = tidy(s->host_path_gbs),
    };
    memcpy(p->smi_class, cal->smi_class[a][b], sizeof(p->smi_class));
    memcpy(p->note, s->note, sizeof(p->note));
    gv_shape_acs(cal, a, b, p->acs, sizeof(p->acs));
}

static int fill_paths(const struct gv_calibration *cal, struct gv_profile *p)
{
    p->paths = calloc((size_t)(cal->n * cal->n) + 1, sizeof(*p->paths));
    for (int a = 0; a < cal->n && p->paths; a++)
        for (int b = 0; b < cal->n; b++)
            if (a != b)
                fill_path(cal, a, b, &p->paths[p->npaths++]);
    return p->paths ? 0 : -1;
}

static struct gv_profile_memory tidy_memory(struct gv_profile_memory m)
{
    m.copy_gbs = tidy(m.copy_gbs);
    m.read_gbs = tidy(m.read_gbs);
    m.write_gbs = tidy(m.write_gbs);
    m.triad_gbs = tidy(m.triad_gbs);
    m.theoretical_gbs = digits(m.theoretical_gbs);
    return m;
}

static struct gv_profile_host_link tidy_link(struct gv_profile_host_link link)
{
    link.to_device_gbs = tidy(link.to_device_gbs);
    link.to_host_gbs = tidy(link.to_host_gbs);
    return link;
}

static int fill_figures(const struct gv_calibration *cal, struct gv_profile *p)
{
    size_t n = (size_t)cal->n;
    p->memory = calloc(n + 1, sizeof(*p->memory));
    p->host_links = calloc(n + (size_t)cal->nhost_together + 1, sizeof(*p->host_links));
    if (!p->memory || !p->host_links)
        return -1;
    for (int i = 0; i < cal->n; i++) {
        if (cal->memory[i].gpus && cal->memory[i].copy_gbs.count)
            p->memory[p->nmemory++] = tidy_memory(cal->memory[i]);
        if (cal->host_alone[i].gpus)
            p->host_links[p->nhost_links++] = tidy_link(cal->host_alone[i]);
    }
    for (int i = 0; i < cal->nhost_together; i++)
        p->host_links[p->nhost_links++] = tidy_link(cal->host_together[i]);
    return 0;
}

static int copy_run(const struct gv_profile_run *from, struct gv_profile_run *to)
{
    size_t n = (size_t)from->count;
    *to = *from;
    to->busbw_gbs = malloc(sizeof(double) * (n + 1));
    to->throttled = from->throttled ? malloc(sizeof(bool) * (n + 1)) : NULL;
    if (!to->busbw_gbs || (from->throttled && !to->throttled))
        return -1;
    for (size_t i = 0; i < n; i++)
        to->busbw_gbs[i] = digits(from->busbw_gbs[i]);
    if (from->throttled)
        memcpy(to->throttled, from->throttled, sizeof(bool) * n);
    return 0;
}

static int copy_group(const struct gv_profile_group *from, struct gv_profile_group *to)
{
    *to = *from;
    to->nvariants = 0;
    to->variants = calloc((size_t)from->nvariants + 1, sizeof(*to->variants));
    for (int v = 0; v < from->nvariants && to->variants; v++) {
        const struct gv_profile_variant *x = &from->variants[v];
        struct gv_profile_variant *y = &to->variants[to->nvariants++];
        *y = *x;
        y->nruns = 0;
        y->runs = calloc((size_t)x->nruns + 1, sizeof(*y->runs));
        for (int r = 0; r < x->nruns && y->runs; r++)
            if (copy_run(&x->runs[r], &y->runs[y->nruns++]))
                return -1;
        if (!y->runs)
            return -1;
    }
    return to->variants ? 0 : -1;
}

static int
copy_groups(const struct gv_profile_group *from, int n, struct gv_profile_group **to, int *count)
{
    *count = 0;
    *to = calloc((size_t)n + 1, sizeof(**to));
    for (int i = 0; i < n && *to; i++)
        if (copy_group(&from[i], &(*to)[(*count)++]))
            return -1;
    return *to ? 0 : -1;
}

/* Our own ring says nothing of other operations; NCCL's groups do. */
static bool measured_all_to_all(const struct gv_calibration *cal)
{
    for (int i = 0; i < cal->ngroups; i++)
        if (cal->groups[i].op == GV_OP_ALL_TO_ALL)
            return true;
    return false;
}

struct gv_profile *gv_calibration_profile(const struct gv_calibration *cal)
{
    struct gv_profile *p = gv_profile_new();
    if (!p)
        return NULL;
    const char *name = cal->options.machine_name ? cal->options.machine_name : cal->machine.host;
    snprintf(p->name, sizeof(p->name), "%.63s", strrchr(name, '/') ? strrchr(name, '/') + 1 : name);
    p->match = cal->options.virtual_machine ? GV_MATCH_SHAPE : GV_MATCH_UUID;
    fill_provenance(cal, &p->provenance);
    snprintf(p->cpu_vendor, sizeof(p->cpu_vendor), "%s", cal->facts.cpu_vendor);
    fill_host(cal, &p->host);
    p->gpus = calloc((size_t)cal->n + 1, sizeof(*p->gpus));
    for (int i = 0; i < cal->n && p->gpus; i++)
        fill_gpu(cal, i, &p->gpus[p->ngpus++]);
    p->policy.operations = measured_all_to_all(cal) ? 0 : GV_OP_BIT(GV_OP_ALL_REDUCE);
    if (p->gpus && !fill_figures(cal, p) && !fill_paths(cal, p) &&
        !copy_groups(cal->groups, cal->ngroups, &p->groups, &p->ngroups))
        return p;
    gv_profile_free(p);
    return NULL;
}

static int
same_machine(const struct gv_calibration *cal, const struct gv_profile *p, struct gv_error *err)
{
    if (p->ngpus != cal->n)
        return gv_error_set(err, "it has %d GPUs, this machine %d", p->ngpus, cal->n);
    for (int i = 0; i < cal->n; i++)
        if (strcmp(p->gpus[i].bus_id, cal->gpus.device[i].bus_id) ||
            strcmp(p->gpus[i].uuid, cal->gpus.device[i].uuid))
            return gv_error_set(
                err, "its GPU %d is %s (%s), here %s (%s)", i, p->gpus[i].bus_id, p->gpus[i].uuid,
                cal->gpus.device[i].bus_id, cal->gpus.device[i].uuid);
    if (cal->gpus.driver[0] && strcmp(p->provenance.driver, cal->gpus.driver))
        return gv_error_set(
            err, "it was measured with driver %s, %s is loaded", p->provenance.driver,
            cal->gpus.driver);
    return 0;
}

static void take_paths(struct gv_calibration *cal, const struct gv_profile *p)
{
    for (int i = 0; i < p->npaths; i++) {
        const struct gv_profile_path *path = &p->paths[i];
        struct gv_pair_state *s =
            &cal->pair[gv_gpuset_first(path->from)][gv_gpuset_first(path->to)];
        s->p2p = path->p2p;
        s->checked = path->p2p != GV_P2P_UNVERIFIED;
        s->write_gbs = path->write_gbs;
        s->read_gbs = path->read_gbs;
        s->both_ways_gbs = path->both_ways_gbs;
        s->latency_us = path->latency_us;
        s->loaded_write_gbs = path->loaded_write_gbs;
        s->host_path_gbs = path->host_path_gbs;
        s->measured = path->write_gbs.count || path->host_path_gbs.count;
        memcpy(s->note, path->note, sizeof(s->note));
    }
}

static bool all_checked(const struct gv_calibration *cal)
{
    for (int a = 0; a < cal->n; a++)
        for (int b = 0; b < cal->n; b++)
            if (a != b && !cal->pair[a][b].checked)
                return false;
    return true;
}

/* Whether what the item would measure is there. */
static bool is_done(const struct gv_calibration *cal, const struct gv_item *item)
{
    const struct gv_probe *p = item->probe;
    if (p == &gv_probe_memory)
        return cal->memory[item->a].copy_gbs.count > 0;
    if (p == &gv_probe_host && item->a >= 0)
        return cal->host_alone[item->a].gpus != 0;
    if (p == &gv_probe_check)
        return all_checked(cal);
    if (p == &gv_probe_paths)
        return cal->pair[item->a][item->b].measured;
    if (p == &gv_probe_loaded)
        return cal->pair[item->a][item->b].loaded_write_gbs.count > 0;
    for (int i = 0; i < cal->nhost_together && p == &gv_probe_host; i++)
        if (cal->host_together[i].gpus == item->gpus)
            return true;
    for (int i = 0; i < cal->ngroups &&
                    (p == &gv_probe_ring || p == &gv_probe_beside || p == &gv_probe_groups);
         i++)
        if (cal->groups[i].gpus == item->gpus && cal->groups[i].loaded == (item->beside != 0))
            return true;
    return false;
}

int gv_calibration_resume(
    struct gv_calibration *cal, const struct gv_profile *p, struct gv_error *err)
{
    if (same_machine(cal, p, err))
        return -1;
    for (int i = 0; i < p->nmemory; i++)
        cal->memory[gv_gpuset_first(p->memory[i].gpus)] = p->memory[i];
    for (int i = 0; i < p->nhost_links; i++) {
        const struct gv_profile_host_link *link = &p->host_links[i];
        if (link->together && cal->nhost_together < GV_MAX_GPUS)
            cal->host_together[cal->nhost_together++] = *link;
        else if (!link->together)
            cal->host_alone[gv_gpuset_first(link->gpus)] = *link;
    }
    take_paths(cal, p);
    snprintf(cal->nccl, sizeof(cal->nccl), "%s", p->provenance.nccl);
    if (copy_groups(p->groups, p->ngroups, &cal->groups, &cal->ngroups))
        return gv_error_set(err, "out of memory");
    for (int i = 0; i < cal->nitems; i++)
        cal->items[i].done |= is_done(cal, &cal->items[i]);
    return 0;
}
