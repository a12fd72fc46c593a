#include <math.h>
#include <string.h>

#include "profiler/cli/cli.h"
#include "profiler/cli/log.h"

static void set(json_t *object, const char *key, json_t *value)
{
    json_object_set_new(object, key, value);
}

/* Bytes of a log need not be UTF-8; what is none becomes "?". */
static json_t *text_or_null(const char *text)
{
    if (!*text)
        return json_null();
    json_t *value = json_string(text);
    if (value)
        return value;
    char plain[400];
    size_t n = 0;
    for (; text[n] && n < sizeof(plain) - 1; n++)
        plain[n] = (unsigned char)text[n] < 128 ? text[n] : '?';
    plain[n] = 0;
    return json_string(plain);
}

static json_t *known(int value)
{
    return value < 0 ? json_null() : json_integer(value);
}

static json_t *rank_json(const struct gv_log_view *v, const struct gv_nlog_rank *rank, int index)
{
    json_t *o = json_object();
    set(o, "rank", json_integer(index));
    set(o, "host", text_or_null(rank->host));
    set(o, "pid", known(rank->pid));
    set(o, "cuda_dev", known(rank->cuda_dev));
    set(o, "nvml_dev", known(rank->nvml_dev));
    set(o, "bus_id", text_or_null(rank->bus_id));
    if (v->profile)
        set(o, "gpu", known(gv_log_gpu(v->profile, rank)));
    return o;
}

static json_t *
edge_json(const struct gv_log_view *v, const struct gv_nlog_comm *c, const struct gv_nlog_edge *e)
{
    json_t *o = json_object();
    set(o, "from", json_integer(e->from));
    set(o, "to", json_integer(e->to));
    set(o, "transport", json_string(gv_nlog_transport_name(e->transport)));
    set(o, "via", text_or_null(e->via));
    set(o, "channels", json_integer(__builtin_popcountll(e->channels)));
    set(o, "ring", c->nrings ? json_boolean(e->ring) : json_null());
    set(o, "line", json_integer(e->line));
    if (v->profile)
        set(o, "gbs", gv_json_number(gv_log_edge_gbs(v->profile, c, e)));
    return o;
}

static json_t *ring_json(const struct gv_nlog_ring *ring)
{
    json_t *o = json_object(), *order = json_array();
    for (int i = 0; i < ring->n; i++)
        json_array_append_new(order, json_integer(ring->order[i]));
    set(o, "order", order);
    set(o, "channels", json_integer(__builtin_popcountll(ring->channels)));
    return o;
}

static json_t *slowest_json(const struct gv_log_view *v, const struct gv_nlog_comm *c)
{
    double gbs;
    const struct gv_nlog_edge *e = gv_log_slowest(v->profile, c, &gbs);
    return e ? edge_json(v, c, e) : json_null();
}

static json_t *counts_json(const struct gv_nlog_comm *c)
{
    int by[GV_NLOG_TRANSPORTS];
    json_t *o = json_object();
    gv_nlog_count(c, by);
    for (int t = 0; t < GV_NLOG_TRANSPORTS; t++)
        set(o, gv_nlog_transport_name(t), json_integer(by[t]));
    return o;
}

static json_t *comm_json(const struct gv_log_view *v, const struct gv_nlog_comm *c)
{
    json_t *o = json_object(), *ranks = json_array(), *rings = json_array(), *edges = json_array();
    for (int i = 0; i < c->slots; i++)
        if (c->ranks[i].seen)
            json_array_append_new(ranks, rank_json(v, &c->ranks[i], i));
    for (int i = 0; i < c->nrings; i++)
        json_array_append_new(rings, ring_json(&c->rings[i]));
    for (int i = 0; i < c->nedges; i++)
        json_array_append_new(edges, edge_json(v, c, &c->edges[i]));
    set(o, "id", text_or_null(c->id));
    set(o, "line", json_integer(c->line));
    set(o, "nranks", known(c->nranks));
    set(o, "nnodes", known(c->nnodes));
    set(o, "channels", known(c->channels));
    set(o, "transport", json_string(gv_log_transport(c)));
    set(o, "edges_by_transport", counts_json(c));
    set(o, "ranks", ranks);
    set(o, "rings", rings);
    set(o, "edges", edges);
    if (v->profile)
        set(o, "slowest", slowest_json(v, c));
    return o;
}

static json_t *notes_json(const struct gv_nlog_notes *notes)
{
    json_t *list = json_array();
    for (int i = 0; i < notes->n; i++) {
        json_t *o = json_object();
        set(o, "line", json_integer(notes->list[i].line));
        set(o, "communicator",
            notes->list[i].comm < 0 ? json_null() : json_integer(notes->list[i].comm));
        set(o, "text", text_or_null(notes->list[i].text));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *paths_json(const struct gv_nlog *log)
{
    json_t *list = json_array();
    for (int i = 0; i < log->npaths; i++) {
        json_t *o = json_object();
        set(o, "from", json_string(log->paths[i].from));
        set(o, "to", json_string(log->paths[i].to));
        set(o, "class", json_string(log->paths[i].class));
        set(o, "hops", json_integer(log->paths[i].hops));
        set(o, "model_gbs", gv_json_number(log->paths[i].model_gbs));
        set(o, "line", json_integer(log->paths[i].line));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *tuner_json(const struct gv_nlog *log)
{
    char text[400];
    json_t *o = json_object();
    set(o, "in_use",
        log->tuner == GV_NLOG_TUNER_UNKNOWN ? json_null()
                                            : json_boolean(log->tuner == GV_NLOG_TUNER_PLUGIN));
    set(o, "name", text_or_null(log->tuner_name));
    set(o, "text", json_string(gv_log_tuner(log, text)));
    return o;
}

static json_t *change_json(const struct gv_nlog_change *c)
{
    char text[200];
    json_t *o = json_object(), *moves = json_array();
    for (int b = 0; b < GV_NLOG_TRANSPORTS; b++)
        for (int a = 0; a < GV_NLOG_TRANSPORTS; a++) {
            if (a == b || !c->moved[b][a])
                continue;
            json_t *m = json_object();
            set(m, "from", json_string(gv_nlog_transport_name(b)));
            set(m, "to", json_string(gv_nlog_transport_name(a)));
            set(m, "edges", json_integer(c->moved[b][a]));
            json_array_append_new(moves, m);
        }
    set(o, "communicator", json_integer(c->after));
    set(o, "before", json_integer(c->before));
    set(o, "edges", json_integer(c->edges));
    set(o, "moved", moves);
    set(o, "same_ring", c->rings_known ? json_boolean(c->same_ring) : json_null());
    set(o, "text", text_or_null(gv_log_moved(c, text)));
    return o;
}

static json_t *against_json(const struct gv_log_view *v)
{
    static struct gv_nlog_change changes[256];
    json_t *o = json_object(), *list = json_array();
    int n = gv_nlog_compare(v->against, v->log, changes, 256);
    for (int i = 0; i < n; i++)
        json_array_append_new(list, change_json(&changes[i]));
    set(o, "file", text_or_null(v->against_path));
    set(o, "nccl", text_or_null(v->against->nccl));
    set(o, "tuner", tuner_json(v->against));
    set(o, "changes", list);
    return o;
}

json_t *gv_log_json(const struct gv_log_view *v)
{
    json_t *o = json_object(), *comms = json_array();
    for (int i = 0; i < v->log->ncomms; i++)
        json_array_append_new(comms, comm_json(v, &v->log->comms[i]));
    set(o, "file", text_or_null(v->path));
    set(o, "nccl", text_or_null(v->log->nccl));
    set(o, "tuner", tuner_json(v->log));
    set(o, "decisions", notes_json(&v->log->ours));
    set(o, "settings", notes_json(&v->log->settings));
    set(o, "warnings", notes_json(&v->log->warnings));
    set(o, "plugins", notes_json(&v->log->plugins));
    set(o, "communicators", comms);
    set(o, "paths", paths_json(v->log));
    set(o, "cut_line", v->log->cut_line ? json_integer(v->log->cut_line) : json_null());
    if (v->against)
        set(o, "against", against_json(v));
    return o;
}
