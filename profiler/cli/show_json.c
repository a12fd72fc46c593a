#include <math.h>

#include "profiler/cli/cli.h"
#include "profiler/cli/show.h"

static json_t *text(const char *value)
{
    return value[0] ? json_string(value) : json_null();
}

static json_t *whole(int value)
{
    return value < 0 ? json_null() : json_integer(value);
}

static json_t *figure(const struct gv_figure *f)
{
    if (!f->count)
        return json_null();
    json_t *o = json_object();
    json_object_set_new(o, "median", gv_json_number(f->median));
    json_object_set_new(o, "min", gv_json_number(f->min));
    json_object_set_new(o, "max", gv_json_number(f->max));
    json_object_set_new(o, "count", json_integer(f->count));
    return o;
}

static json_t *pci_id(const struct gv_profile_gpu *g)
{
    char id[16];
    snprintf(id, sizeof(id), "%04x:%04x", g->pci_vendor, g->pci_device);
    return g->pci_vendor ? json_string(id) : json_null();
}

static json_t *gpu(const struct gv_profile_gpu *g)
{
    json_t *o = json_object();
    json_object_set_new(o, "index", json_integer(g->index));
    json_object_set_new(o, "model", text(g->model));
    json_object_set_new(o, "pci_id", pci_id(g));
    json_object_set_new(o, "bus_id", text(g->bus_id));
    json_object_set_new(o, "uuid", text(g->uuid));
    json_object_set_new(o, "memory_mib", whole(g->memory_mib));
    json_object_set_new(o, "numa_node", whole(g->numa_node));
    json_object_set_new(o, "island", text(g->island));
    json_object_set_new(o, "sm", whole(g->sm));
    json_object_set_new(o, "link_gen", whole(g->link_gen));
    json_object_set_new(o, "link_width", whole(g->link_width));
    json_object_set_new(o, "power_limit_w", whole(g->power_limit_w));
    json_object_set_new(o, "app_core_mhz", whole(g->app_core_mhz));
    json_object_set_new(o, "max_core_mhz", whole(g->max_core_mhz));
    json_object_set_new(o, "memory_mhz", whole(g->memory_mhz));
    return o;
}

static json_t *provenance(const struct gv_profile_provenance *p)
{
    json_t *o = json_object();
    json_object_set_new(o, "kind", json_string(gv_provenance_name(p->kind)));
    json_object_set_new(o, "date", text(p->date));
    json_object_set_new(o, "source", text(p->source));
    json_object_set_new(o, "driver", text(p->driver));
    json_object_set_new(o, "cuda", text(p->cuda));
    json_object_set_new(o, "nccl", text(p->nccl));
    json_object_set_new(o, "nccl_tests", text(p->nccl_tests));
    json_object_set_new(o, "tool", text(p->tool));
    json_object_set_new(o, "kernel", text(p->kernel));
    json_object_set_new(o, "container", text(p->container));
    return o;
}

static json_t *memory(const struct gv_profile_memory *m)
{
    json_t *o = json_object();
    json_object_set_new(o, "gpus", gv_json_gpus(m->gpus));
    json_object_set_new(o, "theoretical_gbs", gv_json_number(m->theoretical_gbs));
    json_object_set_new(o, "copy_gbs", figure(&m->copy_gbs));
    json_object_set_new(o, "read_gbs", figure(&m->read_gbs));
    json_object_set_new(o, "write_gbs", figure(&m->write_gbs));
    json_object_set_new(o, "triad_gbs", figure(&m->triad_gbs));
    json_object_set_new(o, "note", text(m->note));
    return o;
}

static json_t *host_link(const struct gv_profile_host_link *h)
{
    json_t *o = json_object();
    json_object_set_new(o, "gpus", gv_json_gpus(h->gpus));
    json_object_set_new(o, "together", json_boolean(h->together));
    json_object_set_new(o, "root_port", text(h->root_port));
    json_object_set_new(o, "to_device_gbs", figure(&h->to_device_gbs));
    json_object_set_new(o, "to_host_gbs", figure(&h->to_host_gbs));
    return o;
}

static json_t *path(const struct gv_profile_path *p)
{
    json_t *o = json_object();
    json_object_set_new(o, "from", gv_json_gpus(p->from));
    json_object_set_new(o, "to", gv_json_gpus(p->to));
    json_object_set_new(o, "both_directions", json_boolean(p->both_directions));
    json_object_set_new(o, "nccl_class", json_string(gv_path_class_name(p->nccl_class)));
    json_object_set_new(o, "smi_class", text(p->smi_class));
    json_object_set_new(o, "nvlinks", json_integer(p->nvlinks));
    json_object_set_new(o, "p2p", json_string(gv_p2p_name(p->p2p)));
    json_object_set_new(o, "write_gbs", figure(&p->write_gbs));
    json_object_set_new(o, "read_gbs", figure(&p->read_gbs));
    json_object_set_new(o, "both_ways_gbs", figure(&p->both_ways_gbs));
    json_object_set_new(o, "loaded_write_gbs", figure(&p->loaded_write_gbs));
    json_object_set_new(o, "latency_us", figure(&p->latency_us));
    json_object_set_new(o, "host_path_gbs", figure(&p->host_path_gbs));
    json_object_set_new(o, "acs", text(p->acs));
    json_object_set_new(o, "note", text(p->note));
    return o;
}

static json_t *host(const struct gv_profile_host *h)
{
    return json_pack(
        "{s:o, s:o, s:o, s:o}", "cpu_model", text(h->cpu_model), "iommu", text(h->iommu), "shm_mib",
        h->shm_mib < 0 ? json_null() : json_integer(h->shm_mib), "peers",
        h->peers < 0 ? json_null() : json_integer(h->peers));
}

static json_t *run(const struct gv_profile_run *r)
{
    json_t *o = json_object(), *list = json_array();
    for (int i = 0; i < r->count; i++)
        json_array_append_new(list, json_real(r->busbw_gbs[i]));
    json_object_set_new(o, "name", json_string(r->name));
    json_object_set_new(o, "busbw_gbs", list);
    json_object_set_new(o, "algbw_gbs", gv_json_number(r->algbw_gbs));
    if (r->throttled) {
        json_t *marks = json_array();
        for (int i = 0; i < r->count; i++)
            json_array_append_new(marks, json_boolean(r->throttled[i]));
        json_object_set_new(o, "throttled", marks);
    }
    return o;
}

static json_t *pairs(const int (*list)[2], int n)
{
    json_t *out = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(out, json_pack("[ii]", list[i][0], list[i][1]));
    return out;
}

static json_t *variant(const struct gv_profile_variant *v)
{
    json_t *o = json_object(), *runs = json_array();
    double low, high;
    int count;
    double median = gv_variant_median(v, &low, &high, &count);
    for (int i = 0; i < v->nruns; i++)
        json_array_append_new(runs, run(&v->runs[i]));
    json_object_set_new(o, "edit", json_string(gv_edit_name(v->edit)));
    json_object_set_new(o, "lend", pairs(v->lend, v->nlend));
    json_object_set_new(o, "algorithm", json_string(gv_algo_name(v->algorithm)));
    json_object_set_new(o, "protocol", json_string(gv_proto_name(v->protocol)));
    json_object_set_new(o, "channels", v->channels ? json_integer(v->channels) : json_null());
    json_object_set_new(
        o, "busbw_gbs",
        json_pack(
            "{s:o, s:o, s:o, s:i}", "median", gv_json_number(median), "min", gv_json_number(low),
            "max", gv_json_number(high), "count", count));
    json_object_set_new(o, "runs", runs);
    return o;
}

static json_t *group(const struct gv_profile_group *g)
{
    json_t *o = json_object(), *ring = json_array(), *variants = json_array();
    for (int i = 0; i < g->nring; i++)
        json_array_append_new(ring, json_integer(g->ring[i]));
    for (int i = 0; i < g->nvariants; i++)
        json_array_append_new(variants, variant(&g->variants[i]));
    json_object_set_new(o, "gpus", gv_json_gpus(g->gpus));
    json_object_set_new(o, "operation", json_string(gv_op_name(g->op)));
    json_object_set_new(o, "bytes", json_integer((json_int_t)g->bytes));
    json_object_set_new(o, "loaded", json_boolean(g->loaded));
    json_object_set_new(o, "ring", ring);
    json_object_set_new(
        o, "shm_edges", g->shm_edges_known ? pairs(g->shm_edges, g->nshm_edges) : json_null());
    json_object_set_new(o, "variants", variants);
    return o;
}

static json_t *policy(const struct gv_profile_policy *p)
{
    json_t *o = json_object(), *ops = json_array();
    for (int op = 0; op < GV_OP_COUNT; op++)
        if (p->operations & GV_OP_BIT(op))
            json_array_append_new(ops, json_string(gv_op_name(op)));
    json_object_set_new(o, "min_gain", json_real(p->min_gain));
    json_object_set_new(o, "max_loss", json_real(p->max_loss));
    json_object_set_new(o, "operations", ops);
    return o;
}

/* One list for each section. */
#define LIST(o, key, make, items, n)                                                               \
    do {                                                                                           \
        json_t *list_ = json_array();                                                              \
        for (int i_ = 0; i_ < (n); i_++)                                                           \
            json_array_append_new(list_, make(&(items)[i_]));                                      \
        json_object_set_new(o, key, list_);                                                        \
    } while (0)

json_t *gv_show_json(const struct gv_profile *p, const char *path_name)
{
    json_t *o = json_object();
    json_object_set_new(o, "profile", json_string(p->name));
    json_object_set_new(o, "file", json_string(path_name));
    json_object_set_new(o, "match", json_string(gv_match_name(p->match)));
    json_object_set_new(o, "cpu_vendor", text(p->cpu_vendor));
    json_object_set_new(o, "provenance", provenance(&p->provenance));
    json_object_set_new(o, "host", host(&p->host));
    LIST(o, "gpus", gpu, p->gpus, p->ngpus);
    LIST(o, "memory", memory, p->memory, p->nmemory);
    LIST(o, "host_links", host_link, p->host_links, p->nhost_links);
    LIST(o, "paths", path, p->paths, p->npaths);
    LIST(o, "groups", group, p->groups, p->ngroups);
    LIST(o, "handoffs", gv_show_handoff_json, p->handoffs, p->nhandoffs);
    LIST(o, "tuner", gv_show_tuner_json, p->tuner, p->ntuner);
    json_object_set_new(o, "policy", policy(&p->policy));
    return o;
}
