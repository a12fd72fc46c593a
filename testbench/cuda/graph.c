/* Streams that wait for events, capture, and graphs. A graph is a set of lanes (a captured stream,
 * or a node that was added by hand), each a list of operations in order, tied by the graph's own
 * events. A replay runs every lane as a stream of its own, after what the launching stream had
 * queued and before what it queues next. */
#include <stdlib.h>
#include <string.h>

#include "profiler/gpu/gv_cuda_graph.h"
#include "testbench/cuda/gv_virtual.h"

#define EXPORT __attribute__((visibility("default")))
#define INVALID 1
#define INVALIDATED 901
#define UNJOINED 904
#define ISOLATION 905
#define CAPTURED_EVENT 907
#define LANES 64

#define CU_X(field, symbol, args) gv_cu_result gv_v_##field args __asm__(symbol) EXPORT;
GV_CUDA_GRAPH_FUNCTIONS(CU_X)
#undef CU_X

extern __thread struct gv_vgpu *gv_virtual_current;

/* EVENT and WAIT name an event of the graph by `want`. */
struct lane {
    int gpu, node; /* node: its event, -1 for a captured stream */
    struct gv_vstream *captured;
    struct gv_vop *ops;
    int nops;
    struct gv_vstream replay;
};

struct gv_vgraph {
    uint64_t id;
    struct lane lanes[LANES];
    int nlanes, nevents;
    bool spoilt;
    struct gv_vevent *events; /* of the replays */
    struct gv_vevent begin, end[LANES];
};

static uint64_t graphs; /* numbers captures, under the world's lock */

static struct gv_vgraph *new_graph(void)
{
    struct gv_vgraph *g = calloc(1, sizeof(*g));
    if (!g)
        abort();
    g->id = ++graphs;
    return g;
}

static struct lane *new_lane(struct gv_vgraph *g, int gpu)
{
    if (g->nlanes == LANES)
        abort();
    struct lane *lane = &g->lanes[g->nlanes++];
    lane->gpu = gpu;
    lane->node = -1;
    return lane;
}

static void add(struct lane *lane, const struct gv_vop *op)
{
    struct gv_vop *grown = realloc(lane->ops, sizeof(*grown) * (size_t)(lane->nops + 1));
    if (!grown)
        abort();
    lane->ops = grown;
    lane->ops[lane->nops++] = *op;
}

static struct lane *lane_of(struct gv_vgraph *g, const struct gv_vstream *stream)
{
    for (int i = 0; i < g->nlanes; i++)
        if (g->lanes[i].captured == stream)
            return &g->lanes[i];
    return NULL;
}

bool gv_capture_take(struct gv_vstream *stream, const struct gv_vop *like)
{
    struct gv_vgraph *g = stream->capture;
    struct gv_vop op = *like;
    if (!g)
        return false;
    if (op.kind == GV_VOP_EVENT) {
        op.event->capture = g->id;
        op.event->capture_event = g->nevents;
        op.want = (unsigned long)g->nevents++;
        op.event = NULL;
    }
    add(lane_of(g, stream), &op);
    return true;
}

void gv_capture_spoil(struct gv_vstream *stream)
{
    if (stream->capture)
        stream->capture->spoilt = true;
}

/* The capture of that number, unless it has ended. */
static struct gv_vgraph *under_way(uint64_t id)
{
    for (struct gv_vstream *s = gv_world()->streams; s; s = s->next)
        if (s->capture && s->capture->id == id)
            return s->capture;
    return NULL;
}

static gv_cu_result wait_captured(struct gv_vstream *s, const struct gv_vevent *event)
{
    struct gv_vgraph *g = under_way(event->capture);
    struct gv_vop op = {.kind = GV_VOP_WAIT, .want = (unsigned long)event->capture_event};
    if (event->capture && !g)
        return CAPTURED_EVENT;
    if (!g || (s->capture && s->capture != g))
        return ISOLATION;
    if (!s->capture) {
        s->capture = g;
        new_lane(g, s->gpu)->captured = s;
    }
    add(lane_of(g, s), &op);
    return 0;
}

static void queue_copy_of(struct gv_world *w, struct gv_vstream *s, const struct gv_vop *like)
{
    struct gv_vop *op = malloc(sizeof(*op));
    if (!op)
        abort();
    *op = *like;
    gv_virtual_queue(w, s, op);
}

static void queue_wait(struct gv_world *w, struct gv_vstream *s, struct gv_vevent *event)
{
    struct gv_vop op = {.kind = GV_VOP_WAIT, .event = event, .want = event->recorded};
    queue_copy_of(w, s, &op);
}

static void queue_record(struct gv_world *w, struct gv_vstream *s, struct gv_vevent *event)
{
    struct gv_vop op = {.kind = GV_VOP_EVENT, .event = event};
    event->recorded++;
    queue_copy_of(w, s, &op);
}

gv_cu_result gv_v_stream_wait(gv_cu_stream stream, gv_cu_event what, unsigned flags)
{
    struct gv_vstream *s = (struct gv_vstream *)stream;
    struct gv_vevent *event = (struct gv_vevent *)what;
    gv_cu_result rc = 0;
    (void)flags;
    gv_world_lock();
    if (event->capture || s->capture)
        rc = wait_captured(s, event);
    else
        queue_wait(gv_world(), s, event);
    gv_world_unlock();
    return rc;
}

gv_cu_result gv_v_ctx_get(gv_cu_ctx *ctx)
{
    *ctx = (gv_cu_ctx)gv_virtual_current;
    return 0;
}

gv_cu_result gv_v_capture_begin(gv_cu_stream stream, int mode)
{
    struct gv_vstream *s = (struct gv_vstream *)stream;
    (void)mode;
    if (s->capture)
        return INVALID;
    gv_world_lock();
    s->capture = new_graph();
    new_lane(s->capture, s->gpu)->captured = s;
    gv_world_unlock();
    return 0;
}

static bool waited_for(const struct gv_vgraph *g, unsigned long event)
{
    for (int i = 0; i < g->nlanes; i++)
        for (int k = 0; k < g->lanes[i].nops; k++)
            if (g->lanes[i].ops[k].kind == GV_VOP_WAIT && g->lanes[i].ops[k].want == event)
                return true;
    return false;
}

/* Every stream that joined must have been joined back. */
static bool joined(const struct gv_vgraph *g)
{
    for (int i = 1; i < g->nlanes; i++) {
        const struct lane *lane = &g->lanes[i];
        const struct gv_vop *last = &lane->ops[lane->nops - 1];
        if (last->kind != GV_VOP_EVENT || !waited_for(g, last->want))
            return false;
    }
    return true;
}

gv_cu_result gv_v_capture_end(gv_cu_stream stream, gv_cu_graph *out)
{
    struct gv_vgraph *g = ((struct gv_vstream *)stream)->capture;
    *out = NULL;
    if (!g)
        return INVALID;
    for (int i = 0; i < g->nlanes; i++)
        if (g->lanes[i].captured) {
            g->lanes[i].captured->capture = NULL;
            g->lanes[i].captured = NULL;
        }
    gv_cu_result rc = g->spoilt ? INVALIDATED : joined(g) ? 0 : UNJOINED;
    if (rc) {
        gv_v_graph_destroy((gv_cu_graph)g);
        return rc;
    }
    *out = (gv_cu_graph)g;
    return 0;
}

gv_cu_result gv_v_capture_info(gv_cu_stream stream, int *status, uint64_t *id)
{
    const struct gv_vgraph *g = ((struct gv_vstream *)stream)->capture;
    *status = !g ? GV_CU_CAPTURING_NOT : g->spoilt ? GV_CU_CAPTURE_INVALIDATED : GV_CU_CAPTURING;
    *id = g ? g->id : 0;
    return 0;
}

gv_cu_result gv_v_capture_mode(int *mode)
{
    static __thread int now = GV_CU_CAPTURE_GLOBAL;
    int before = now;
    now = *mode;
    *mode = before;
    return 0;
}

gv_cu_result gv_v_graph_create(gv_cu_graph *out, unsigned flags)
{
    (void)flags;
    gv_world_lock();
    *out = (gv_cu_graph)new_graph();
    gv_world_unlock();
    return 0;
}

gv_cu_result gv_v_graph_destroy(gv_cu_graph graph)
{
    struct gv_vgraph *g = (struct gv_vgraph *)graph;
    for (int i = 0; i < g->nlanes; i++)
        free(g->lanes[i].ops);
    free(g->events);
    free(g);
    return 0;
}

/* A node is its lane; it waits for those before it, and what comes after waits for its event. */
static gv_cu_result add_node(
    gv_cu_node *out, struct gv_vgraph *g, const gv_cu_node *after, size_t nafter, int gpu,
    const struct gv_vop *op)
{
    struct lane *lane = new_lane(g, gpu);
    for (size_t i = 0; i < nafter; i++) {
        const struct lane *before = (const struct lane *)after[i];
        struct gv_vop wait = {.kind = GV_VOP_WAIT, .want = (unsigned long)before->node};
        add(lane, &wait);
    }
    if (op)
        add(lane, op);
    lane->node = g->nevents++;
    struct gv_vop record = {.kind = GV_VOP_EVENT, .want = (unsigned long)lane->node};
    add(lane, &record);
    *out = (gv_cu_node)lane;
    return 0;
}

gv_cu_result gv_v_graph_add_copy(
    gv_cu_node *out, gv_cu_graph graph, const gv_cu_node *after, size_t nafter,
    const struct gv_cu_copy *copy, gv_cu_ctx ctx)
{
    struct gv_vop op = {
        .kind = GV_VOP_COPY,
        .to = copy->to_device,
        .from = copy->from_device,
        .bytes = copy->width,
    };
    const struct gv_world *w = gv_world();
    if (!gv_virtual_find(w, op.to) || !gv_virtual_find(w, op.from) || copy->height != 1 ||
        copy->depth != 1 || copy->to_type != GV_CU_MEMORY_UNIFIED ||
        copy->from_type != GV_CU_MEMORY_UNIFIED)
        return INVALID;
    return add_node(
        out, (struct gv_vgraph *)graph, after, nafter, ((struct gv_vgpu *)ctx)->index, &op);
}

gv_cu_result
gv_v_graph_add_empty(gv_cu_node *out, gv_cu_graph graph, const gv_cu_node *after, size_t nafter)
{
    return add_node(out, (struct gv_vgraph *)graph, after, nafter, 0, NULL);
}

/* The executable is a copy, so the graph may go. */
gv_cu_result gv_v_graph_instantiate(gv_cu_exec *out, gv_cu_graph graph, unsigned long long flags)
{
    const struct gv_vgraph *g = (const struct gv_vgraph *)graph;
    (void)flags;
    gv_world_lock();
    struct gv_world *w = gv_world();
    struct gv_vgraph *exec = new_graph();
    exec->nlanes = g->nlanes;
    exec->nevents = g->nevents;
    exec->events = calloc((size_t)g->nevents + 1, sizeof(*exec->events));
    for (int i = 0; i < g->nlanes; i++) {
        struct lane *lane = &exec->lanes[i];
        lane->gpu = g->lanes[i].gpu;
        for (int k = 0; k < g->lanes[i].nops; k++)
            add(lane, &g->lanes[i].ops[k]);
        lane->replay.gpu = lane->gpu;
        lane->replay.next = w->streams;
        w->streams = &lane->replay;
    }
    gv_world_unlock();
    *out = (gv_cu_exec)exec;
    return 0;
}

static void
replay_op(struct gv_world *w, struct gv_vgraph *exec, struct gv_vstream *s, const struct gv_vop *op)
{
    if (op->kind == GV_VOP_EVENT)
        queue_record(w, s, &exec->events[op->want]);
    else if (op->kind == GV_VOP_WAIT) {
        /* Reached once more than before this replay, whichever lane is queued first. */
        struct gv_vop wait = *op;
        wait.event = &exec->events[op->want];
        wait.want = exec->begin.recorded;
        queue_copy_of(w, s, &wait);
    } else
        queue_copy_of(w, s, op);
}

gv_cu_result gv_v_graph_launch(gv_cu_exec graph, gv_cu_stream stream)
{
    struct gv_vgraph *exec = (struct gv_vgraph *)graph;
    gv_world_lock();
    struct gv_world *w = gv_world();
    gv_cu_result rc = gv_virtual_current ? gv_virtual_current->sticky : 201;
    if (!rc)
        queue_record(w, (struct gv_vstream *)stream, &exec->begin);
    for (int i = 0; i < exec->nlanes && !rc; i++) {
        struct lane *lane = &exec->lanes[i];
        queue_wait(w, &lane->replay, &exec->begin);
        for (int k = 0; k < lane->nops; k++)
            replay_op(w, exec, &lane->replay, &lane->ops[k]);
        queue_record(w, &lane->replay, &exec->end[i]);
    }
    for (int i = 0; i < exec->nlanes && !rc; i++)
        queue_wait(w, (struct gv_vstream *)stream, &exec->end[i]);
    gv_world_unlock();
    return rc;
}

/* Where its GPU was lost, operations are left that point here; then it stays. */
gv_cu_result gv_v_exec_destroy(gv_cu_exec graph)
{
    struct gv_vgraph *exec = (struct gv_vgraph *)graph;
    gv_world_lock();
    struct gv_world *w = gv_world();
    bool busy = false;
    for (int i = 0; i < exec->nlanes; i++)
        busy |= exec->lanes[i].replay.head != NULL;
    for (struct gv_vstream **at = &w->streams; *at && !busy;) {
        bool ours = false;
        for (int i = 0; i < exec->nlanes; i++)
            ours |= *at == &exec->lanes[i].replay;
        if (ours)
            *at = (*at)->next;
        else
            at = &(*at)->next;
    }
    gv_world_unlock();
    return busy ? 0 : gv_v_graph_destroy((gv_cu_graph)exec);
}
