/* From the workers' files to one object for each communicator. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testbench/host/job.h"

static const char *const algorithms[] = {
    "TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"};
static const char *const protocols[] = {"LL", "LL128", "SIMPLE"};

static json_t *name_of(const char *const *names, int n, const json_t *number)
{
    json_int_t i = json_is_integer(number) ? json_integer_value(number) : -1;
    return i >= 0 && i < n ? json_string(names[i]) : json_null();
}

/* Every rank of communicator c, from whatever process. The caller owns the array. */
static json_t *all_ranks(json_t *const *roots, int n, int c)
{
    json_t *ranks = json_array();
    for (int i = 0; i < n; i++)
        json_array_extend(ranks, json_array_get(json_object_get(roots[i], "comms"), (size_t)c));
    return ranks;
}

static json_t *rank_of_gpu(json_t *ranks, json_int_t gpu)
{
    size_t i;
    json_t *rank;
    json_array_foreach(
        ranks, i, rank) if (json_integer_value(json_object_get(rank, "gpu")) == gpu) return rank;
    return NULL;
}

/* An edge is what its sender made of it: it may have read another file than the others. */
static char transport_at(json_t *rank, json_int_t gpu)
{
    json_t *ring = json_object_get(rank, "ring");
    const char *letters = json_string_value(json_object_get(rank, "transport"));
    for (size_t i = 0; letters && i < json_array_size(ring) && letters[i]; i++)
        if (json_integer_value(json_array_get(ring, i)) == gpu)
            return letters[i];
    return '?';
}

static json_t *edges_of(json_t *ranks, json_t *ring)
{
    json_t *edges = json_array();
    size_t n = json_array_size(ring);
    for (size_t i = 0; n > 1 && i < n; i++) {
        json_int_t from = json_integer_value(json_array_get(ring, i));
        json_int_t to = json_integer_value(json_array_get(ring, (i + 1) % n));
        char letter = transport_at(rank_of_gpu(ranks, from), from);
        const char *name = letter == 'P'   ? "P2P"
                           : letter == 'S' ? "SHM"
                           : letter == 'N' ? "NET"
                                           : "unknown";
        json_array_append_new(
            edges, json_pack("{s:I,s:I,s:s}", "from", from, "to", to, "transport", name));
    }
    return edges;
}

static bool consistent(json_t *ranks)
{
    json_t *first = json_array_get(ranks, 0), *rank;
    size_t i;
    json_array_foreach(ranks, i, rank) if (
        !json_equal(json_object_get(first, "ring"), json_object_get(rank, "ring")) ||
        !json_equal(
            json_object_get(first, "transport"), json_object_get(rank, "transport"))) return false;
    return true;
}

static bool any_true(json_t *ranks, const char *key)
{
    size_t i;
    json_t *rank;
    json_array_foreach(ranks, i, rank) if (json_is_true(json_object_get(rank, key))) return true;
    return false;
}

/* The first text under `key` that is neither empty nor "ok"; else `otherwise`. */
static const char *first_text(json_t *ranks, const char *key, const char *otherwise)
{
    size_t i;
    json_t *rank;
    json_array_foreach(ranks, i, rank)
    {
        const char *text = json_string_value(json_object_get(rank, key));
        if (text && *text && strcmp(text, "ok"))
            return text;
    }
    return otherwise;
}

static double longest_init(json_t *ranks)
{
    double ms = 0;
    size_t i;
    json_t *rank;
    json_array_foreach(ranks, i, rank)
    {
        double one = json_real_value(json_object_get(rank, "init_ms"));
        ms = one > ms ? one : ms;
    }
    return ms;
}

static json_t *lines_of(json_t *const *roots, int n, const char *key, int c)
{
    json_t *lines = json_array(), *line;
    size_t k;
    for (int i = 0; i < n; i++)
        json_array_foreach(json_object_get(roots[i], key), k, line)
        {
            json_int_t tag = json_integer_value(json_object_get(line, "comm"));
            if (tag == c || (tag < 0 && c == 0))
                json_array_append(lines, line);
        }
    return lines;
}

static json_t *log_texts(json_t *lines)
{
    json_t *texts = json_array(), *line;
    size_t i;
    json_array_foreach(lines, i, line) json_array_append_new(
        texts, json_sprintf(
                   "%s %s", json_string_value(json_object_get(line, "level")),
                   json_string_value(json_object_get(line, "text"))));
    return texts;
}

static int failures(json_t *ranks)
{
    int n = 0;
    size_t i;
    json_t *rank;
    json_array_foreach(ranks, i, rank) n +=
        json_integer_value(json_object_get(rank, "result")) != 0;
    return n;
}

static void add_choice(json_t *out, json_t *rank)
{
    json_object_set_new(
        out, "algorithm", name_of(algorithms, 7, json_object_get(rank, "algorithm")));
    json_object_set_new(out, "protocol", name_of(protocols, 3, json_object_get(rank, "protocol")));
    static const char *const keys[] = {"channels",  "path",          "graph_channels",
                                       "graph_gbs", "ll128_allowed", "approximate",
                                       "comm_id",   "nranks"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (json_object_get(rank, keys[i]))
            json_object_set(out, keys[i], json_object_get(rank, keys[i]));
}

/* What went wrong first: a rank that waited for another one only saw it. */
static const char *cause(json_t *ranks)
{
    size_t i;
    json_t *rank;
    json_array_foreach(ranks, i, rank)
    {
        const char *text = json_string_value(json_object_get(rank, "error"));
        if (text && text[0] && !strstr(text, "gave up with"))
            return text;
    }
    return first_text(ranks, "error", NULL);
}

static void add_error(
    const struct gvh_job *job, int c, json_t *out, json_t *ranks, char (*lost)[64], int *failed)
{
    const char *error = cause(ranks);
    *failed = failures(ranks);
    for (int i = 0; lost && i < job->comms[c].n; i++) {
        int gpu = job->mode == GVH_THREADS ? gv_gpuset_first(job->all) : job->comms[c].gpus[i];
        if (lost[gpu][0] && !error)
            error = lost[gpu];
    }
    if ((int)json_array_size(ranks) < job->comms[c].n) {
        *failed += job->comms[c].n - (int)json_array_size(ranks);
        error = error ? error : "a rank left no result";
    }
    json_object_set_new(out, "failed_ranks", json_integer(*failed));
    json_object_set_new(out, "error", error ? json_string(error) : json_null());
}

static json_t *describe(
    const struct gvh_job *job, json_t *const *roots, int n, int c, char (*lost)[64], int *failed)
{
    char text[256];
    gv_gpuset set = 0;
    json_t *ranks = all_ranks(roots, n, c), *out = json_object();
    json_t *first = rank_of_gpu(ranks, job->comms[c].gpus[0]);
    json_t *ring = first && json_object_get(first, "ring") ? json_object_get(first, "ring") : NULL;

    json_t *gpus = json_array(); /* in rank order */
    for (int i = 0; i < job->comms[c].n; i++) {
        set |= GV_GPU_BIT(job->comms[c].gpus[i]);
        json_array_append_new(gpus, json_integer(job->comms[c].gpus[i]));
    }
    json_object_set_new(out, "comm", json_integer(c));
    json_object_set_new(out, "gpus", gpus);
    json_object_set_new(out, "gpu_list", json_string(gv_gpuset_format(set, text, sizeof(text))));
    json_object_set_new(out, "ring", ring ? json_copy(ring) : json_array());
    json_object_set_new(out, "edges", edges_of(ranks, ring));
    json_object_set_new(out, "topology_file", json_boolean(any_true(ranks, "topology_file")));
    json_object_set_new(out, "consistent", json_boolean(consistent(ranks)));
    add_choice(out, first);
    if (job->alltoall)
        json_object_set_new(out, "alltoall", json_string(first_text(ranks, "alltoall", "ok")));
    json_object_set_new(out, "init_ms", json_real(longest_init(ranks)));
    add_error(job, c, out, ranks, lost, failed);
    json_t *lines = lines_of(roots, n, "log", c);
    json_object_set_new(out, "log", log_texts(lines));
    json_decref(lines);
    if (job->trace)
        json_object_set_new(out, "trace", lines_of(roots, n, "trace", c));
    json_decref(ranks);
    return out;
}

static void print_text(const json_t *comm)
{
    size_t i;
    json_t *edge;
    printf("%-8s ", json_string_value(json_object_get(comm, "gpu_list")));
    json_array_foreach(json_object_get(comm, "edges"), i, edge) printf(
        "%s%lld-%s", i ? "-" : "", json_integer_value(json_object_get(edge, "from")),
        !strcmp(json_string_value(json_object_get(edge, "transport")), "P2P") ? "" : "(SHM)");
    const char *algorithm = json_string_value(json_object_get(comm, "algorithm"));
    const char *protocol = json_string_value(json_object_get(comm, "protocol"));
    const char *error = json_string_value(json_object_get(comm, "error"));
    printf(
        "  %s/%s  %s%s%s\n", algorithm ? algorithm : "-", protocol ? protocol : "-",
        json_is_true(json_object_get(comm, "topology_file")) ? "planned" : "default",
        error ? "  failed: " : "", error ? error : "");
}

int gvh_merge(const struct gvh_job *job, const char *const *files, int nfiles, char (*lost)[64])
{
    json_t *roots[GV_MAX_GPUS];
    int status = 0;

    for (int i = 0; i < nfiles; i++)
        roots[i] = json_load_file(files[i], 0, NULL);
    for (int c = 0; c < job->ncomms; c++) {
        int failed = 0;
        json_t *comm = describe(job, roots, nfiles, c, lost, &failed);
        if (job->json) {
            json_dumpf(comm, stdout, JSON_COMPACT);
            putchar('\n');
        } else {
            print_text(comm);
        }
        const char *exchange = json_string_value(json_object_get(comm, "alltoall"));
        status |= failed > 0 || (exchange && strcmp(exchange, "ok"));
        json_decref(comm);
    }
    for (int i = 0; i < nfiles; i++)
        json_decref(roots[i]);
    return fflush(stdout) ? 2 : status;
}
