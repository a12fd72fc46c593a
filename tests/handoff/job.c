/* A program that is split over two GPUs: every step writes other bytes, hands them over by
 * libgv-handoff, and keeps what arrives. Prints one line of JSON: the path, the lines that the
 * library wrote, the bytes that arrived wrong. Runs on the virtual driver and on a real one. */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "handoff/gv_handoff.h"
#include "profiler/gpu/gv_cuda_graph.h"

#define PINNED (GV_CU_HOST_PORTABLE | GV_CU_HOST_DEVICEMAP)
#define MOST_STEPS 16

struct job {
    struct gv_handoff_options o;
    const char *how; /* stream, capture, node */
    int steps, rounds;
    bool enabled; /* the program has peer access on already */
    bool target;  /* the producer writes to the library's own buffer */
    struct gv_cuda cuda;
    struct gv_cuda_graph graph;
    gv_cu_ctx ctx[2];
    gv_cu_stream stream[2];
    gv_cu_event turn;
    gv_cu_ptr from;
    unsigned char *in[MOST_STEPS], *out[MOST_STEPS];
    gv_handoff *h;
    int lines, recaptured;
    char text[512], last[512];
};

/* For a text between quotes. */
static const char *quoted(char *text)
{
    for (char *p = text; *p; p++)
        if (*p == '"')
            *p = '\'';
    return text;
}

static void must(struct job *j, int rc, const char *what)
{
    if (!rc)
        return;
    quoted(j->text);
    quoted(j->last);
    printf(
        "{\"failed\": \"%s\", \"rc\": %d, \"lines\": %d, \"text\": \"%s\"}\n", what, rc, j->lines,
        *j->text ? j->text : j->last);
    exit(3);
}

static void on_line(void *data, const char *line)
{
    struct job *j = data;
    j->lines++;
    snprintf(j->last, sizeof(j->last), "%s", line);
}

static unsigned char byte_of(int round, int step, size_t i)
{
    return (unsigned char)(i * 167 + (i >> 9) * 13 + (size_t)step * 59 + (size_t)round * 101 + 7);
}

static void set_up(struct job *j)
{
    for (int side = 0; side < 2; side++) {
        gv_cu_device device;
        must(j, j->cuda.device_get(&device, side ? j->o.destination : j->o.source), "device");
        must(j, j->cuda.ctx_retain(&j->ctx[side], device), "context");
        must(j, j->cuda.ctx_set(j->ctx[side]), "context");
        must(j, j->cuda.stream_create(&j->stream[side], GV_CU_STREAM_NON_BLOCKING), "stream");
    }
    must(j, j->cuda.event_create(&j->turn, GV_CU_EVENT_NO_TIMING), "event");
    j->cuda.ctx_set(j->ctx[0]);
    must(j, j->cuda.mem_alloc(&j->from, j->o.bytes), "memory");
    for (int i = 0; i < j->steps; i++) {
        void *in = NULL, *out = NULL;
        must(j, j->cuda.host_alloc(&in, j->o.bytes, PINNED), "host memory");
        must(j, j->cuda.host_alloc(&out, j->o.bytes, PINNED), "host memory");
        j->in[i] = in;
        j->out[i] = out;
    }
    if (j->enabled) {
        must(j, j->cuda.peer_enable(j->ctx[1], 0), "peer access");
        j->cuda.ctx_set(j->ctx[1]);
        must(j, j->cuda.peer_enable(j->ctx[0], 0), "peer access");
    }
}

/* One step on streams: the next one's producer waits for this one's consumer. */
static int step(struct job *j, int i)
{
    void *at = NULL, *target = NULL, *from = (void *)(uintptr_t)j->from;
    if (j->target && gv_handoff_target(j->h, &target))
        return GV_HANDOFF_FAILED;
    gv_cu_ptr to = target ? (gv_cu_ptr)(uintptr_t)target : j->from;
    j->cuda.ctx_set(j->ctx[0]);
    gv_cu_result rc =
        j->cuda.copy_async(to, (gv_cu_ptr)(uintptr_t)j->in[i], j->o.bytes, j->stream[0]);
    if (rc)
        return rc;
    int sent = gv_handoff_send(
        j->h, target ? NULL : from, (struct CUstream_st *)j->stream[0],
        (struct CUstream_st *)j->stream[1], &at);
    if (sent)
        return sent;
    j->cuda.ctx_set(j->ctx[1]);
    rc = j->cuda.copy_async(
        (gv_cu_ptr)(uintptr_t)j->out[i], (gv_cu_ptr)(uintptr_t)at, j->o.bytes, j->stream[1]);
    rc = rc ? rc : gv_handoff_done(j->h, (struct CUstream_st *)j->stream[1]);
    rc = rc ? rc : j->cuda.event_record(j->turn, j->stream[1]);
    j->cuda.ctx_set(j->ctx[0]);
    return rc ? rc : j->graph.stream_wait(j->stream[0], j->turn, 0);
}

static gv_cu_result wait_for(struct job *j)
{
    struct timespec pause = {0, 100000};
    for (int tries = 0; tries < 100000; tries++) {
        gv_cu_result rc = 0;
        for (int side = 0; side < 2; side++) {
            j->cuda.ctx_set(j->ctx[side]);
            gv_cu_result one = j->cuda.stream_query(j->stream[side]);
            if (one && one != GV_CU_NOT_READY)
                return one;
            rc = one ? one : rc;
        }
        if (!rc)
            return 0;
        nanosleep(&pause, NULL);
    }
    return GV_CU_NOT_READY;
}

static int by_streams(struct job *j)
{
    for (int i = 0; i < j->steps; i++) {
        int rc = step(j, i);
        if (rc)
            return rc;
    }
    return 0;
}

static int capture(struct job *j, gv_cu_graph *graph)
{
    j->cuda.ctx_set(j->ctx[0]);
    must(j, j->graph.capture_begin(j->stream[0], GV_CU_CAPTURE_RELAXED), "capture");
    int rc = by_streams(j);
    gv_cu_result ended = j->graph.capture_end(j->stream[0], graph);
    return rc ? rc : ended;
}

static gv_cu_node copy_node(
    struct job *j, gv_cu_graph graph, gv_cu_node after, int side, gv_cu_ptr to, const void *from)
{
    struct gv_cu_copy c = {
        .from_type = GV_CU_MEMORY_UNIFIED,
        .to_type = GV_CU_MEMORY_UNIFIED,
        .from_device = (gv_cu_ptr)(uintptr_t)from,
        .to_device = to,
        .width = j->o.bytes,
        .height = 1,
        .depth = 1,
    };
    gv_cu_node node = NULL;
    j->cuda.ctx_set(j->ctx[side]);
    must(j, j->graph.graph_add_copy(&node, graph, &after, after ? 1 : 0, &c, j->ctx[side]), "node");
    return node;
}

static int build(struct job *j, gv_cu_graph *graph)
{
    gv_cu_node last = NULL;
    must(j, j->graph.graph_create(graph, 0), "graph");
    for (int i = 0; i < j->steps; i++) {
        struct CUgraphNode_st *handed = NULL;
        void *at = NULL;
        last = copy_node(j, *graph, last, 0, j->from, j->in[i]);
        int rc = gv_handoff_add_node(
            j->h, (struct CUgraph_st *)*graph, (struct CUgraphNode_st *const *)&last, 1,
            (void *)(uintptr_t)j->from, &handed, &at);
        if (rc)
            return rc;
        last = copy_node(j, *graph, (gv_cu_node)handed, 1, (gv_cu_ptr)(uintptr_t)j->out[i], at);
    }
    return 0;
}

static int replay(struct job *j, gv_cu_exec *exec)
{
    gv_cu_graph graph = NULL;
    int rc = 0;
    if (!*exec) {
        rc = !strcmp(j->how, "node") ? build(j, &graph) : capture(j, &graph);
        rc = rc ? rc : j->graph.graph_instantiate(exec, graph, 0);
        if (graph)
            j->graph.graph_destroy(graph);
    }
    j->cuda.ctx_set(j->ctx[0]);
    return rc ? rc : j->graph.graph_launch(*exec, j->stream[0]);
}

/* All steps once; where a graph is to be built anew, once more. */
static int round_of_steps(struct job *j, gv_cu_exec *exec)
{
    for (int tries = 0; tries < 2; tries++) {
        int rc = strcmp(j->how, "stream") ? replay(j, exec) : by_streams(j);
        gv_cu_result ended = rc ? 0 : wait_for(j);
        if (ended)
            rc = gv_handoff_failed(j->h, ended);
        if (rc != GV_HANDOFF_RECAPTURE)
            return rc;
        j->recaptured++;
        if (*exec)
            j->graph.exec_destroy(*exec);
        *exec = NULL;
    }
    return GV_HANDOFF_RECAPTURE;
}

static unsigned long long run(struct job *j)
{
    gv_cu_exec exec = NULL;
    unsigned long long wrong = 0;
    for (int round = 0; round < j->rounds; round++) {
        for (int i = 0; i < j->steps; i++)
            for (size_t k = 0; k < j->o.bytes; k++) {
                j->in[i][k] = byte_of(round, i, k);
                j->out[i][k] = (unsigned char)~j->in[i][k];
            }
        must(j, round_of_steps(j, &exec), "steps");
        for (int i = 0; i < j->steps; i++)
            for (size_t k = 0; k < j->o.bytes; k++)
                wrong += j->out[i][k] != byte_of(round, i, k);
    }
    if (exec)
        j->graph.exec_destroy(exec);
    return wrong;
}

/* What the program had on must still be on. */
static bool still_enabled(struct job *j)
{
    if (!j->enabled)
        return false;
    j->cuda.ctx_set(j->ctx[0]);
    return j->cuda.peer_enable(j->ctx[1], 0) == GV_CU_PEER_ACCESS_ALREADY_ENABLED;
}

static const char *value(int argc, char **argv, const char *name, const char *silent)
{
    for (int i = 1; i + 1 < argc; i++)
        if (!strcmp(argv[i], name))
            return argv[i + 1];
    return silent;
}

static int number(int argc, char **argv, const char *name, int silent)
{
    const char *text = value(argc, argv, name, NULL);
    return text ? atoi(text) : silent;
}

static void read_options(struct job *j, int argc, char **argv)
{
    const char *mode = value(argc, argv, "--mode", "host");
    j->o = (struct gv_handoff_options){
        .struct_bytes = sizeof(j->o),
        .source = number(argc, argv, "--from", 0),
        .destination = number(argc, argv, "--to", 1),
        .bytes = (size_t)number(argc, argv, "--bytes", 65536),
        .mode = !strcmp(mode, "peer")   ? GV_HANDOFF_PEER
                : !strcmp(mode, "auto") ? GV_HANDOFF_AUTO
                                        : GV_HANDOFF_HOST,
        .method = (enum gv_handoff_method)number(argc, argv, "--method", 0),
        .slots = number(argc, argv, "--slots", 0),
        .profile = value(argc, argv, "--profile", NULL),
        .driver = value(argc, argv, "--driver", NULL),
        .log = on_line,
        .log_data = j,
    };
    j->how = value(argc, argv, "--how", "stream");
    j->steps = number(argc, argv, "--steps", 5);
    j->rounds = number(argc, argv, "--rounds", 2);
    j->enabled = number(argc, argv, "--enabled", 0);
    j->target = number(argc, argv, "--target", 0);
}

int main(int argc, char **argv)
{
    static struct job j;
    struct gv_handoff_state state;
    struct gv_error err = {0};
    size_t before = 0, after = 0, total;
    uint64_t units = 0;
    read_options(&j, argc, argv);
    snprintf(j.text, sizeof(j.text), "%s", "");
    if (gv_cuda_open(&j.cuda, j.o.driver, &err) || gv_cuda_graph_open(&j.cuda, &j.graph, &err)) {
        snprintf(j.text, sizeof(j.text), "%s", err.text);
        must(&j, 1, "driver");
    }
    set_up(&j);
    j.cuda.ctx_set(j.ctx[0]);
    j.cuda.mem_info(&before, &total);
    must(&j, gv_handoff_create(&j.o, &j.h, j.text, sizeof(j.text)), "create");
    unsigned long long wrong = run(&j);
    must(&j, gv_handoff_verify(j.h, &units), "verify");
    gv_handoff_query(j.h, &state);
    printf(
        "{\"method\": \"%s\", \"peer\": %d, \"fell_back\": %d, \"reason\": \"%s\", \"lines\": %d, "
        "\"line\": \"%s\", \"wrong\": %llu, \"units\": %llu, \"recaptured\": %d, \"sends\": %llu",
        gv_handoff_method_name(state.method), state.peer, state.fell_back, state.reason, j.lines,
        j.last, wrong, (unsigned long long)units, j.recaptured, (unsigned long long)state.sends);
    gv_handoff_destroy(j.h);
    j.cuda.ctx_set(j.ctx[0]);
    j.cuda.mem_info(&after, &total);
    printf(
        ", \"leaked\": %lld, \"still_enabled\": %d}\n", (long long)before - (long long)after,
        still_enabled(&j));
    return 0;
}
