#include <math.h>
#include <string.h>

#include "profiler/cli/cli.h"
#include "profiler/cli/import.h"

static void set(json_t *o, const char *key, json_t *value)
{
    json_object_set_new(o, key, value);
}

/* Text of a file need not be UTF-8. */
static void set_text(json_t *o, const char *key, const char *text)
{
    char plain[GV_ERROR_TEXT];
    size_t n = 0;
    json_t *value = *text ? json_string(text) : json_null();
    for (; !value && text[n] && n < sizeof(plain) - 1; n++)
        plain[n] = (unsigned char)text[n] < 128 ? text[n] : '?';
    plain[n] = 0;
    set(o, key, value ? value : json_string(plain));
}

static void set_number(json_t *o, const char *key, double value)
{
    if (!isnan(value))
        set(o, key, json_real(value));
}

static void set_known(json_t *o, const char *key, int value)
{
    if (value >= 0)
        set(o, key, json_integer(value));
}

static json_t *gpu_json(const struct gv_import_gpu *g)
{
    json_t *o = json_object();
    char hex[8];
    set(o, "index", json_integer(g->index));
    set(o, "line", json_integer(g->line));
    if (*g->model)
        set_text(o, "model", g->model);
    if (*g->bus_id)
        set_text(o, "bus_id", g->bus_id);
    set_known(o, "bus", g->bus);
    if (*g->uuid)
        set_text(o, "uuid", g->uuid);
    if (*g->island)
        set_text(o, "island", g->island);
    snprintf(hex, sizeof(hex), "0x%04x", g->pci_device);
    if (g->pci_device)
        set_text(o, "pci_device", hex);
    set_known(o, "numa_node", g->numa_node);
    set_known(o, "sm", g->sm);
    set_known(o, "memory_mib", g->memory_mib);
    set_known(o, "link_gen", g->link_gen);
    set_known(o, "link_width", g->link_width);
    return o;
}

static json_t *pair_json(const struct gv_import_pair *p)
{
    json_t *o = json_object();
    set(o, "from", json_integer(p->from));
    set(o, "to", json_integer(p->to));
    set(o, "line", json_integer(p->line));
    if (*p->smi_class)
        set_text(o, "smi_class", p->smi_class);
    if (p->nccl_class != GV_PATH_UNKNOWN)
        set_text(o, "nccl_class", gv_path_class_name(p->nccl_class));
    if (p->nvlinks)
        set(o, "nvlinks", json_integer(p->nvlinks));
    if (p->refused)
        set_text(o, "p2p", "refused");
    set_number(o, "write_gbs", p->write_gbs);
    set_number(o, "read_gbs", p->read_gbs);
    set_number(o, "both_ways_gbs", p->both_ways_gbs);
    set_number(o, "latency_us", p->latency_us);
    set_number(o, "host_path_gbs", p->host_path_gbs);
    return o;
}

static json_t *single_json(const struct gv_import_single *s)
{
    json_t *o = json_object();
    set(o, "gpu", json_integer(s->gpu));
    set(o, "line", json_integer(s->line));
    set_number(o, "copy_gbs", s->copy_gbs);
    set_number(o, "to_device_gbs", s->to_device_gbs);
    set_number(o, "to_host_gbs", s->to_host_gbs);
    return o;
}

static json_t *sample_json(const struct gv_import_sample *s)
{
    json_t *o = json_object();
    set_text(o, "op", gv_op_name(s->op));
    set(o, "bytes", json_integer((json_int_t)s->bytes));
    set(o, "busbw_gbs", json_real(s->busbw_gbs));
    set_number(o, "algbw_gbs", s->algbw_gbs);
    set_text(o, "edit", gv_edit_name(s->edit));
    if (s->algorithm != GV_ALGO_ANY)
        set_text(o, "algorithm", gv_algo_name(s->algorithm));
    if (s->protocol != GV_PROTO_ANY)
        set_text(o, "protocol", gv_proto_name(s->protocol));
    if (s->channels)
        set(o, "channels", json_integer(s->channels));
    if (s->gpus)
        set(o, "gpus", gv_json_gpus(s->gpus));
    set(o, "line", json_integer(s->line));
    return o;
}

static json_t *ring_json(const struct gv_import_ring *r)
{
    json_t *o = json_object(), *order = json_array();
    for (int i = 0; i < r->n; i++)
        json_array_append_new(order, json_integer(r->order[i]));
    set(o, "order", order);
    set(o, "line", json_integer(r->line));
    return o;
}

static void set_size(json_t *o, const char *key, uint64_t bytes)
{
    if (bytes <= INT64_MAX)
        set(o, key, json_integer((json_int_t)bytes));
}

/* What a row leaves open ("any", NCCL's own) is left out. */
static json_t *choice_json(const struct gv_import_choice *c)
{
    json_t *o = json_object();
    set_text(o, "op", gv_op_name(c->row.op));
    set_size(o, "min_bytes", c->row.min_bytes);
    if (c->row.max_bytes)
        set_size(o, "max_bytes", c->row.max_bytes);
    set_text(o, "algorithm", gv_algo_name(c->row.algorithm));
    set_text(o, "protocol", gv_proto_name(c->row.protocol));
    if (c->row.channels)
        set(o, "channels", json_integer(c->row.channels));
    set_known(o, "nodes", c->row.nodes);
    set_known(o, "ranks", c->row.ranks);
    set_known(o, "pipe_ops", c->row.pipe_ops);
    set_known(o, "registered", c->row.registered);
    set(o, "line", json_integer(c->line));
    return o;
}

static json_t *note_json(const struct gv_import_note *n)
{
    json_t *o = json_object();
    set(o, "line", json_integer(n->line));
    set_text(o, "text", n->text);
    return o;
}

static json_t *source_json(const struct gv_import_source *s)
{
    json_t *o = json_object();
    json_t *gpus = json_array(), *pairs = json_array(), *singles = json_array();
    json_t *samples = json_array(), *rings = json_array(), *notes = json_array();
    json_t *tuner = json_array();
    for (int i = 0; i < s->ngpus; i++)
        json_array_append_new(gpus, gpu_json(&s->gpus[i]));
    for (int i = 0; i < s->npairs; i++)
        json_array_append_new(pairs, pair_json(&s->pairs[i]));
    for (int i = 0; i < s->nsingles; i++)
        json_array_append_new(singles, single_json(&s->singles[i]));
    for (int i = 0; i < s->nsamples; i++)
        json_array_append_new(samples, sample_json(&s->samples[i]));
    for (int i = 0; i < s->nrings; i++)
        json_array_append_new(rings, ring_json(&s->rings[i]));
    for (int i = 0; i < s->nchoices; i++)
        json_array_append_new(tuner, choice_json(&s->choices[i]));
    for (int i = 0; i < s->nnotes; i++)
        json_array_append_new(notes, note_json(&s->notes[i]));
    set_text(o, "file", s->path);
    set_text(o, "format", gv_import_format_name(s->format));
    set_text(o, "nccl", s->nccl);
    set(o, "gpus", gpus);
    set(o, "pairs", pairs);
    set(o, "singles", singles);
    set(o, "samples", samples);
    set(o, "rings", rings);
    set(o, "tuner", tuner);
    set(o, "notes", notes);
    return o;
}

static json_t *profile_json(const struct gv_profile *p)
{
    json_t *profile = p ? json_object() : json_null();
    if (!p)
        return profile;
    set_text(profile, "name", p->name);
    set_text(profile, "provenance", gv_provenance_name(p->provenance.kind));
    set_text(profile, "match", gv_match_name(p->match));
    set(profile, "gpus", json_integer(p->ngpus));
    set(profile, "paths", json_integer(p->npaths));
    set(profile, "groups", json_integer(p->ngroups));
    set(profile, "tuner", json_integer(p->ntuner));
    return profile;
}

json_t *gv_import_json(const struct gv_import *im, const struct gv_profile *p, const char *written)
{
    json_t *o = json_object(), *sources = json_array();
    for (int i = 0; i < im->nsources; i++)
        json_array_append_new(sources, source_json(&im->sources[i]));
    set(o, "refused", json_null());
    set(o, "written", written ? json_string(written) : json_null());
    set(o, "profile", profile_json(p));
    set(o, "sources", sources);
    return o;
}

json_t *gv_import_refused_json(const struct gv_error *err)
{
    json_t *o = json_object(), *e = json_object();
    set_text(e, "file", err->file);
    set(e, "line", err->line ? json_integer(err->line) : json_null());
    set(e, "column", err->column ? json_integer(err->column) : json_null());
    set_text(e, "text", err->text);
    set(o, "refused", e);
    set(o, "written", json_null());
    return o;
}
