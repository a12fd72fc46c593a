/* A worker's findings as a file: for each communicator its ranks, and what was logged and traced.
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "testbench/host/worker.h"

static json_t *ring_of(const struct gv_nccl_eval_out *eval)
{
    json_t *ring = json_array();
    for (int i = 0; i < eval->n; i++)
        json_array_append_new(ring, json_integer(eval->ring[i]));
    return ring;
}

static void add_eval(json_t *rank, const struct gv_nccl_eval_out *eval)
{
    json_object_set_new(rank, "ring", ring_of(eval));
    json_object_set_new(rank, "transport", json_string(eval->n > 1 ? eval->transport : ""));
    json_object_set_new(rank, "path", json_string(gv_nccl_path_name(eval->graph_path)));
    json_object_set_new(rank, "graph_channels", json_integer(eval->graph_channels));
    json_object_set_new(rank, "graph_gbs", json_real(eval->graph_gbs));
    json_object_set_new(rank, "ll128_allowed", json_boolean(eval->ll128_allowed));
    json_object_set_new(rank, "approximate", json_boolean(eval->approximate));
}

static json_t *rank_of(const struct gvh_work *work, int gpu, const struct gvh_made *made)
{
    struct gv_host_result result;
    json_t *rank = json_object();

    json_object_set_new(rank, "gpu", json_integer(gpu));
    json_object_set_new(rank, "result", json_integer(made->rc));
    json_object_set_new(rank, "init_ms", json_real(made->ms));
    json_object_set_new(
        rank, "error",
        json_string(
            made->error[0] ? made->error
            : made->rc < 0 ? "the rank ended in its init"
                           : ""));
    if (work->job->alltoall)
        json_object_set_new(rank, "alltoall", json_string(made->alltoall));
    json_object_set_new(rank, "aborted", json_boolean(made->aborted));
    if (!made->comm)
        return rank;
    gv_host_result(made->comm, &result);
    char id[24];
    snprintf(id, sizeof(id), "%016lx", (unsigned long)result.comm_id);
    json_object_set_new(rank, "comm_id", json_string(id));
    json_object_set_new(rank, "rank", json_integer(result.rank));
    json_object_set_new(rank, "nranks", json_integer(result.nranks));
    json_object_set_new(rank, "topology_file", json_boolean(result.topology_file));
    json_object_set_new(rank, "algorithm", json_integer(result.algorithm));
    json_object_set_new(rank, "protocol", json_integer(result.protocol));
    json_object_set_new(rank, "channels", json_integer(result.channels));
    if (result.eval)
        add_eval(rank, result.eval);
    return rank;
}

static json_t *ranks_of(const struct gvh_work *work, int c)
{
    json_t *ranks = json_array();
    for (int i = 0; i < work->job->comms[c].n; i++) {
        int gpu = work->job->comms[c].gpus[i];
        if (work->made[c][gpu].wanted)
            json_array_append_new(ranks, rank_of(work, gpu, &work->made[c][gpu]));
    }
    return ranks;
}

static void add_log(void *user, int tag, int rank, int level, const char *text)
{
    static const char *const names[] = {"NONE", "VERSION", "WARN", "INFO", "ABORT", "TRACE"};
    const char *name = level >= 0 && level < 6 ? names[level] : "?";
    json_array_append_new(
        user,
        json_pack("{s:i,s:i,s:s,s:s}", "comm", tag, "rank", rank, "level", name, "text", text));
}

static void add_trace(void *user, int tag, int rank, long thread, const char *what)
{
    json_array_append_new(
        user, json_pack(
                  "{s:i,s:i,s:I,s:s}", "comm", tag, "rank", rank, "thread", (json_int_t)thread,
                  "what", what));
}

int gvh_record(const struct gvh_work *work, const char *path)
{
    json_t *root = json_object(), *comms = json_array(), *log = json_array(), *trace = json_array();

    for (int c = 0; c < work->job->ncomms; c++)
        json_array_append_new(comms, ranks_of(work, c));
    gv_host_log_each(add_log, log);
    gv_host_trace_each(add_trace, trace);
    json_object_set_new(root, "comms", comms);
    json_object_set_new(root, "log", log);
    json_object_set_new(root, "trace", trace);
    int rc = json_dump_file(root, path, JSON_COMPACT);
    json_decref(root);
    return rc;
}
