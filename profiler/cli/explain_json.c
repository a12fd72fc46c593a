/* The decision as a script reads it. Keys are never left out: what is not known is null. */
#include <math.h>

#include "profiler/cli/cli.h"
#include "profiler/cli/explain.h"

static int shown(const struct gv_explained *x, int gpu)
{
    return x->source->from_profile[gpu];
}

static json_t *transport_json(enum gv_transport t)
{
    if (t == GV_TRANSPORT_P2P)
        return json_string("P2P");
    return t == GV_TRANSPORT_SHM ? json_string("SHM") : json_null();
}

static json_t *edge_json(const struct gv_explained *x, const struct gv_ring_edge *e)
{
    json_t *o = json_object();
    json_object_set_new(o, "from", json_integer(shown(x, e->from)));
    json_object_set_new(o, "to", json_integer(shown(x, e->to)));
    json_object_set_new(o, "path", json_string(gv_path_class_name(e->path)));
    json_object_set_new(o, "transport", transport_json(e->transport));
    json_object_set_new(o, "default", transport_json(gv_default_transport(x, e->from, e->to)));
    json_object_set_new(o, "gbs", gv_json_number(e->gbs));
    return o;
}

static json_t *ring_json(const struct gv_explained *x)
{
    const struct gv_plan *p = &x->plan;
    json_t *o = json_object(), *order = json_array(), *edges = json_array();
    for (int i = 0; i < p->nring; i++) {
        json_array_append_new(order, json_integer(shown(x, p->ring[i])));
        if (p->nring > 1)
            json_array_append_new(edges, edge_json(x, &p->edges[i]));
    }
    json_object_set_new(o, "order", order);
    json_object_set_new(o, "measured", json_boolean(p->ring_measured));
    json_object_set_new(o, "edges", edges);
    bool known = p->slowest >= 0 && p->slowest < p->nring && p->nring > 1;
    json_object_set_new(o, "slowest", known ? edge_json(x, &p->edges[p->slowest]) : json_null());
    return o;
}

/* A bridge joins all pairs under it: from and to name its first and last GPU. */
static json_t *edit_json(const struct gv_explained *x, const struct gv_edit *e)
{
    json_t *o = json_object();
    json_object_set_new(o, "kind", json_string(gv_edit_name(e->kind)));
    if (e->kind == GV_EDIT_BRIDGE) {
        gv_gpuset set = gv_source_shown(x->source, e->gpus);
        int last = set ? 63 - __builtin_clzll(set) : -1;
        json_object_set_new(o, "from", json_integer(gv_gpuset_first(set)));
        json_object_set_new(o, "to", json_integer(last));
        json_object_set_new(o, "gpus", gv_json_gpus(set));
        return o;
    }
    json_object_set_new(o, "from", json_integer(shown(x, e->from)));
    json_object_set_new(o, "to", json_integer(shown(x, e->to)));
    if (e->kind == GV_EDIT_LEND)
        json_object_set_new(o, "count", e->count ? json_integer(e->count) : json_null());
    return o;
}

static json_t *rows_json(const struct gv_plan *p)
{
    json_t *list = json_array();
    for (int i = 0; i < p->nrows; i++) {
        const struct gv_tuner_row *r = &p->rows[i];
        json_t *o = json_object();
        json_object_set_new(o, "operation", json_string(gv_op_name(r->op)));
        json_object_set_new(o, "min_bytes", json_integer((json_int_t)r->min_bytes));
        /* JSON has no larger integer; "no end" is null */
        json_object_set_new(
            o, "max_bytes",
            r->max_bytes > INT64_MAX ? json_null() : json_integer((json_int_t)r->max_bytes));
        json_object_set_new(o, "algorithm", json_string(gv_algo_name(r->algorithm)));
        json_object_set_new(o, "protocol", json_string(gv_proto_name(r->protocol)));
        json_object_set_new(o, "channels", json_integer(r->channels));
        json_object_set_new(o, "gain", gv_json_number(r->gain));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *run_json(const struct gv_profile_run *r)
{
    json_t *o = json_object(), *list = json_array();
    for (int i = 0; i < r->count; i++)
        json_array_append_new(list, json_real(r->busbw_gbs[i]));
    json_object_set_new(o, "run", json_string(r->name));
    json_object_set_new(o, "busbw_gbs", list);
    return o;
}

static json_t *measured_json(const struct gv_explained *x)
{
    if (!x->group)
        return json_null();
    json_t *o = json_object(), *variants = json_array();
    for (int i = 0; i < x->group->nvariants; i++) {
        const struct gv_profile_variant *v = &x->group->variants[i];
        json_t *one = json_object(), *runs = json_array();
        for (int r = 0; r < v->nruns; r++)
            json_array_append_new(runs, run_json(&v->runs[r]));
        json_object_set_new(one, "edit", json_string(gv_edit_name(v->edit)));
        json_object_set_new(one, "runs", runs);
        json_array_append_new(variants, one);
    }
    json_object_set_new(o, "operation", json_string(gv_op_name(x->group->op)));
    json_object_set_new(o, "bytes", json_integer((json_int_t)x->group->bytes));
    json_object_set_new(o, "loaded", json_boolean(x->group->loaded));
    json_object_set_new(o, "default_busbw_gbs", gv_json_number(gv_explained_busbw(x, false)));
    json_object_set_new(o, "tuned_busbw_gbs", gv_json_number(gv_explained_busbw(x, true)));
    json_object_set_new(o, "variants", variants);
    return o;
}

static json_t *bus_ids_json(const struct gv_explained *x, gv_gpuset set)
{
    json_t *list = json_array();
    for (gv_gpuset rest = set; rest; rest &= rest - 1) {
        const char *bus = gv_source_bus_id(x->source, gv_gpuset_first(rest));
        json_array_append_new(list, bus[0] ? json_string(bus) : json_null());
    }
    return list;
}

static json_t *proof_json(const struct gv_explained *x)
{
    static const char *const states[] = {"not needed", "no machine", "no", "yes"};
    json_t *o = json_object();
    json_object_set_new(o, "state", json_string(states[x->proof]));
    json_object_set_new(o, "text", json_string(x->proof_text));
    return o;
}

json_t *gv_explain_json(const struct gv_explained *x)
{
    const struct gv_plan *p = &x->plan;
    char list[256];
    gv_gpuset set = gv_source_shown(x->source, x->gpus);
    json_t *o = json_object(), *edits = json_array();
    for (int i = 0; i < p->nedits; i++)
        json_array_append_new(edits, edit_json(x, &p->edits[i]));
    json_object_set_new(o, "profile", json_string(x->source->profile->name));
    json_object_set_new(o, "gpus", gv_json_gpus(set));
    json_object_set_new(o, "gpu_list", json_string(gv_gpuset_format(set, list, sizeof(list))));
    json_object_set_new(o, "bus_ids", bus_ids_json(x, set));
    json_object_set_new(o, "transport", json_string(gv_transport_name(p->transport)));
    json_object_set_new(o, "edits", edits);
    json_object_set_new(o, "nvb_disable", json_boolean(p->nvb_disable));
    json_object_set_new(o, "veto_ll128", json_boolean(p->veto_ll128));
    json_object_set_new(o, "level_pxb", json_boolean(p->level_pxb));
    json_object_set_new(o, "evidence", json_string(gv_evidence_name(p->evidence)));
    json_object_set_new(o, "thin", json_boolean(p->thin));
    json_object_set_new(o, "gain", gv_json_number(p->gain));
    json_object_set_new(o, "reason", json_string(p->reason));
    json_object_set_new(o, "ring", ring_json(x));
    json_object_set_new(o, "rows", rows_json(p));
    json_object_set_new(o, "measured", measured_json(x));
    json_object_set_new(o, "verified", proof_json(x));
    return o;
}
