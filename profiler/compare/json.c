/* The comparison as JSON: every sample, under nccl-tests' own names. */
#include <math.h>
#include <string.h>

#include "profiler/collective/gv_release.h"
#include "profiler/compare/number.h"
#include "profiler/compare/parts.h"

static json_t *numbers(const double *values, int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(list, gv_json_number(values[i]));
    return list;
}

static json_t *integers(const int *values, int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(list, json_integer(values[i]));
    return list;
}

static json_t *throttled(const struct gv_cell *cell)
{
    json_t *list = json_array();
    for (int i = 0; i < cell->count; i++)
        if (cell->throttled[i])
            json_array_append_new(list, json_integer(i));
    return list;
}

static json_t *edges(const struct gv_compared_ring *ring)
{
    json_t *list = json_array();
    for (int i = 0; i < ring->n; i++) {
        const struct gv_compared_edge *e = &ring->edge[i];
        json_array_append_new(
            list, json_pack(
                      "{s:i, s:i, s:o, s:o, s:o}", "from", e->from, "to", e->to, "path",
                      gv_json_text(e->path), "transport", gv_json_text(e->transport), "gbs",
                      gv_json_number(e->gbs)));
    }
    return list;
}

static json_t *variant(const struct gv_compared *c, int s)
{
    const struct gv_wiring *w = &c->run.wiring[s];
    const struct gv_compared_ring *ring = &c->ring[s];
    char version[16];
    return json_pack(
        "{s:o, s:o, s:s, s:o, s:o, s:i, s:{s:o, s:o, s:i}}", "name",
        gv_json_text(c->run.steer[s].name), "force", gv_json_text(c->run.steer[s].force), "nccl",
        gv_nccl_format(w->nccl_version, version), "decided", gv_json_text(w->decided),
        "plugin_transport", gv_json_text(w->plugin_transport), "channels", w->channels, "ring",
        "order", integers(w->ring, w->nring), "edges", edges(ring), "slowest", ring->slowest);
}

/* What names a case, as nccl-tests does. */
static json_t *case_json(const struct gv_case *what)
{
    return json_pack(
        "{s:s, s:I, s:s, s:s, s:b}", "operation", gv_op_name(what->op), "size",
        (json_int_t)what->bytes, "type", gv_type_name(what->type), "redop",
        gv_op_reduces(what->op) ? gv_redop_name(what->redop) : "none", "in_place", what->in_place);
}

static json_t *result(const struct gv_compared *c, int s, int k)
{
    const struct gv_cell *cell = gv_cell_of(&c->run, s, k);
    struct gv_compared_side side = gv_compared_side_of(c, s, k);
    json_t *out = case_json(&c->run.cases[k]);
    json_object_update_new(
        out, json_pack(
                 "{s:o, s:o, s:o, s:o, s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "variant",
                 gv_json_text(c->run.steer[s].name), "time", gv_json_number(side.time_us), "alg_bw",
                 gv_json_number(side.algbw_gbs), "bus_bw", gv_json_number(side.busbw_gbs), "nwrong",
                 (json_int_t)cell->wrong, "bound", gv_json_number(cell->bound), "first_time",
                 gv_json_number(side.first_us), "times", numbers(cell->time_us, cell->count),
                 "first_times", numbers(cell->first_us, cell->count), "throttled", throttled(cell),
                 "error", gv_json_text(cell->error)));
    return out;
}

static json_t *side_json(const struct gv_compared_side *side)
{
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:i}", "time", gv_json_number(side->time_us), "alg_bw",
        gv_json_number(side->algbw_gbs), "bus_bw", gv_json_number(side->busbw_gbs), "bus_bw_low",
        gv_json_number(side->busbw.low), "bus_bw_high", gv_json_number(side->busbw.high), "count",
        side->busbw.count);
}

static json_t *row_json(const struct gv_compared *c, const struct gv_compared_row *row)
{
    json_t *out = case_json(&c->run.cases[row->k]);
    json_object_update_new(
        out, json_pack(
                 "{s:o, s:o, s:o, s:o, s:o, s:[oo], s:s}", "base",
                 gv_json_text(c->run.steer[c->base].name), "variant",
                 gv_json_text(c->run.steer[row->other].name), "base_result", side_json(&row->base),
                 "variant_result", side_json(&row->tuned), "gain", gv_json_number(row->gain),
                 "gain_interval", gv_json_number(row->interval.low),
                 gv_json_number(row->interval.high), "verdict", gv_judgement(row->verdict)));
    return out;
}

static json_t *bus_ids(const struct gv_compared *c)
{
    json_t *list = json_array();
    for (int i = 0; i < c->run.nranks; i++)
        json_array_append_new(list, gv_json_text(c->bus_id[i]));
    return list;
}

static json_t *models(const struct gv_compared *c)
{
    json_t *list = json_array();
    for (int i = 0; i < c->run.nranks; i++)
        json_array_append_new(list, gv_json_text(c->model[i]));
    return list;
}

static json_t *witness(const struct gv_compared *c)
{
    json_t *list = json_array();
    if (!c->witness_program[0]) {
        json_decref(list);
        return json_null();
    }
    for (int i = 0; i < c->nwitness; i++) {
        const struct gv_witness *w = &c->witness[i];
        json_array_append_new(
            list, json_pack(
                      "{s:o, s:s, s:I, s:b, s:o, s:o}", "variant",
                      gv_json_text(c->run.steer[w->steer].name), "operation", gv_op_name(w->op),
                      "size", (json_int_t)w->bytes, "in_place", w->in_place, "alg_bw",
                      gv_json_number(w->algbw_gbs), "bus_bw", gv_json_number(w->busbw_gbs)));
    }
    return json_pack("{s:o, s:o}", "program", gv_json_text(c->witness_program), "results", list);
}

static json_t *notes(const struct gv_compared *c)
{
    json_t *list = json_array();
    for (int i = 0; i < c->nnotes; i++)
        json_array_append_new(list, gv_json_text(c->note[i]));
    return list;
}

json_t *gv_compared_json(const struct gv_compared *c)
{
    char version[16], hash[20];
    json_t *variants = json_array(), *results = json_array(), *rows = json_array();
    for (int s = 0; s < c->run.nsteers; s++) {
        json_array_append_new(variants, variant(c, s));
        for (int k = 0; k < c->run.ncases; k++)
            json_array_append_new(results, result(c, s, k));
    }
    for (int i = 0; i < c->nrows; i++)
        json_array_append_new(rows, row_json(c, &c->rows[i]));
    snprintf(hash, sizeof(hash), "%016llx", (unsigned long long)c->profile_hash);
    return json_pack(
        "{s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:b, s:{s:o, s:s}, s:o, s:s, s:f, s:f, s:o, "
        "s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
        "gv100_compare", GV_COMPARED_SCHEMA, "loaded", gv_json_text(c->loaded), "settings",
        gv_settings_json(c), "origins", gv_origins_json(c), "host", gv_json_text(c->host), "driver",
        gv_json_text(c->driver), "date", gv_json_text(c->date), "tool", gv_json_text(c->tool),
        "virtual", c->virtual_machine, "thin", c->thin, "nccl", "path",
        gv_json_text(c->run.nccl_path), "version", gv_nccl_format(c->run.nccl_version, version),
        "profile", gv_json_text(c->profile), "profile_hash", c->profile_hash ? hash : "",
        "min_gain", c->min_gain, "max_loss", c->max_loss, "notes", notes(c), "models", models(c),
        "gpus", integers(c->run.gpu, c->run.nranks), "bus_ids", bus_ids(c), "base",
        gv_json_text(c->run.steer[c->base].name), "variants", variants, "results", results,
        "comparisons", rows, "witness", witness(c), "job", gv_compared_job_json(c));
}
