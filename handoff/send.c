/* One hand-off, on streams (captured or not) or as nodes of a graph that is being built. */
#include <stdio.h>
#include <string.h>

#include "handoff/handoff.h"

/* The streams of one send, and the capture that they are in (0: none). */
struct sending {
    struct gv_handoff *h;
    gv_cu_stream producer, consumer;
    uint64_t capture;
};

static gv_cu_result record(struct sending *s, struct gv_mark *mark, gv_cu_stream stream)
{
    mark->recorded = true;
    mark->capture = s->capture;
    return s->h->gpus.cuda.event_record(mark->event, stream);
}

/* What was recorded in another capture, or in none, is ordered by whoever launches the graph. */
static gv_cu_result wait(struct sending *s, const struct gv_mark *mark, gv_cu_stream stream)
{
    if (!mark->recorded || mark->capture != s->capture)
        return 0;
    return s->h->graph.stream_wait(stream, mark->event, 0);
}

#define TRY(call)                                                                                  \
    do {                                                                                           \
        gv_cu_result try_rc = (call);                                                              \
        if (try_rc)                                                                                \
            return try_rc;                                                                         \
    } while (0)

static gv_cu_result copy(struct sending *s, int side, gv_cu_ptr to, gv_cu_ptr from, size_t bytes)
{
    gv_handoff_on(s->h, side);
    return s->h->gpus.cuda.copy_async(to, from, bytes, side ? s->consumer : s->producer);
}

/* The piece is filled when it was emptied, and emptied when it was filled. */
static gv_cu_result staged(struct sending *s, struct gv_slot *slot, gv_cu_ptr from)
{
    struct gv_handoff *h = s->h;
    int k = 0;
    for (size_t at = 0; at < h->bytes; at += h->piece_bytes, k = (k + 1) % GV_PIECES) {
        size_t n = h->bytes - at < h->piece_bytes ? h->bytes - at : h->piece_bytes;
        gv_cu_ptr piece = (gv_cu_ptr)(uintptr_t)slot->piece[k];
        TRY(wait(s, &slot->emptied[k], s->producer));
        TRY(copy(s, 0, piece, from + at, n));
        TRY(record(s, &slot->filled[k], s->producer));
        TRY(wait(s, &slot->filled[k], s->consumer));
        TRY(copy(s, 1, slot->at_destination + at, piece, n));
        TRY(record(s, &slot->emptied[k], s->consumer));
    }
    return 0;
}

static gv_cu_ptr target(const struct gv_handoff *h, const struct gv_slot *slot)
{
    if (h->method == GV_HANDOFF_HOST_MAPPED)
        return slot->host_at;
    return slot->at_source;
}

static gv_cu_ptr place(const struct gv_handoff *h, const struct gv_slot *slot)
{
    if (h->method == GV_HANDOFF_HOST_MAPPED)
        return slot->host_at;
    return h->method == GV_HANDOFF_PEER_READ ? slot->at_source : slot->at_destination;
}

static gv_cu_result move(struct sending *s, struct gv_slot *slot, gv_cu_ptr from)
{
    struct gv_handoff *h = s->h;
    gv_cu_ptr to = place(h, slot);
    TRY(wait(s, &slot->done, s->producer));
    if (h->method == GV_HANDOFF_HOST_STAGED) {
        /* The destination's buffer is written on the consumer's stream. */
        TRY(wait(s, &slot->done, s->consumer));
        return staged(s, slot, from);
    }
    if (from != to)
        TRY(copy(s, 0, to, from, h->bytes));
    TRY(record(s, &slot->sent, s->producer));
    return wait(s, &slot->sent, s->consumer);
}

static int broken(struct gv_handoff *h, gv_cu_result rc)
{
    const char *name = "unknown error";
    char why[160];
    h->gpus.cuda.error_name(rc, &name);
    snprintf(why, sizeof(why), "%s failed with %s", gv_handoff_method_name(h->method), name);
    if (gv_cuda_is_fatal(rc) || !gv_is_peer(h->method))
        return gv_lost(h, why);
    return gv_fall_back(h, why) ? GV_HANDOFF_FAILED : GV_HANDOFF_RECAPTURE;
}

/* NULL: what the producer wrote to the method's own buffer, if it has one. */
static int source_of(struct gv_handoff *h, const void *from, gv_cu_ptr *out)
{
    struct gv_slot *slot = &h->slots[h->next];
    *out = from ? (gv_cu_ptr)(uintptr_t)from : target(h, slot);
    return *out ? 0 : GV_HANDOFF_INVALID;
}

static void sent(struct gv_handoff *h, void **at)
{
    *at = (void *)(uintptr_t)place(h, &h->slots[h->next]);
    h->last = h->next;
    h->next = (h->next + 1) % h->nslots;
    h->sends++;
}

static int send_once(struct sending *s, const void *from, void **at)
{
    struct gv_handoff *h = s->h;
    gv_cu_ptr source;
    int rc = source_of(h, from, &source);
    if (rc)
        return rc;
    gv_cu_result failed = move(s, &h->slots[h->next], source);
    if (failed)
        return broken(h, failed);
    sent(h, at);
    return 0;
}

/* After a failure the same bytes go through the host, unless they lie in a buffer that is only
 * reachable on the path that failed, or the capture is spoilt. */
static int send_again(struct sending *s, const void *from, gv_cu_ptr kept, void **at)
{
    struct gv_handoff *h = s->h;
    int status = GV_CU_CAPTURING_NOT;
    uint64_t id;
    h->graph.capture_info(s->producer, &status, &id);
    if (status == GV_CU_CAPTURE_INVALIDATED)
        return GV_HANDOFF_RECAPTURE;
    int rc = send_once(s, from ? from : (const void *)(uintptr_t)kept, at);
    return rc;
}

int gv_handoff_send(
    struct gv_handoff *h, const void *from, struct CUstream_st *producer,
    struct CUstream_st *consumer, void **at)
{
    gv_cu_ctx before = NULL;
    int status = GV_CU_CAPTURING_NOT;
    if (!h || !producer || !consumer || !at)
        return GV_HANDOFF_INVALID;
    if (h->failed)
        return GV_HANDOFF_FAILED;
    struct sending s = {h, (gv_cu_stream)producer, (gv_cu_stream)consumer, 0};
    h->graph.ctx_get(&before);
    gv_handoff_on(h, 0);
    h->graph.capture_info(s.producer, &status, &s.capture);
    if (status != GV_CU_CAPTURING)
        s.capture = 0;
    gv_cu_ptr kept = target(h, &h->slots[h->next]);
    int rc = send_once(&s, from, at);
    if (rc == GV_HANDOFF_RECAPTURE)
        rc = send_again(&s, from, kept, at);
    h->gpus.cuda.ctx_set(before);
    return rc;
}

int gv_handoff_done(struct gv_handoff *h, struct CUstream_st *consumer)
{
    gv_cu_ctx before = NULL;
    int status = GV_CU_CAPTURING_NOT;
    if (!h || !consumer || h->last < 0)
        return GV_HANDOFF_INVALID;
    if (h->failed)
        return GV_HANDOFF_FAILED;
    struct sending s = {h, NULL, (gv_cu_stream)consumer, 0};
    h->graph.ctx_get(&before);
    gv_handoff_on(h, 1);
    h->graph.capture_info(s.consumer, &status, &s.capture);
    if (status != GV_CU_CAPTURING)
        s.capture = 0;
    gv_cu_result rc = record(&s, &h->slots[h->last].done, s.consumer);
    int result = rc ? broken(h, rc) : 0;
    h->gpus.cuda.ctx_set(before);
    return result;
}

int gv_handoff_target(struct gv_handoff *h, void **out)
{
    if (!h || !out)
        return GV_HANDOFF_INVALID;
    if (h->failed)
        return GV_HANDOFF_FAILED;
    struct gv_slot *slot = &h->slots[h->next];
    gv_cu_ctx before = NULL;
    gv_cu_result rc = 0;
    h->graph.ctx_get(&before);
    if (!target(h, slot)) { /* of use to methods that copy: made when it is asked for */
        int mode = GV_CU_CAPTURE_RELAXED; /* the producer may be captured already */
        h->graph.capture_mode(&mode);
        gv_handoff_on(h, 0);
        rc = h->gpus.cuda.mem_alloc(&slot->at_source, h->bytes);
        h->graph.capture_mode(&mode);
    }
    h->gpus.cuda.ctx_set(before);
    *out = (void *)(uintptr_t)target(h, slot);
    return rc ? GV_HANDOFF_FAILED : 0;
}

static gv_cu_result add_copy(
    struct gv_handoff *h, gv_cu_graph graph, const gv_cu_node *after, size_t n, int side,
    gv_cu_ptr to, gv_cu_ptr from, size_t bytes, gv_cu_node *out)
{
    struct gv_cu_copy c = {
        .from_type = GV_CU_MEMORY_UNIFIED,
        .to_type = GV_CU_MEMORY_UNIFIED,
        .from_device = from,
        .to_device = to,
        .width = bytes,
        .height = 1,
        .depth = 1,
    };
    gv_handoff_on(h, side);
    return h->graph.graph_add_copy(out, graph, after, n, &c, h->gpus.device[side].ctx);
}

/* Down node i waits for down i-1 and for up i-2 (its piece); up i for down i and up i-1. */
static gv_cu_result staged_nodes(
    struct gv_handoff *h, gv_cu_graph graph, const gv_cu_node *after, size_t nafter,
    struct gv_slot *slot, gv_cu_ptr from, gv_cu_node *out)
{
    gv_cu_node down = NULL, up = NULL, emptied[GV_PIECES] = {0};
    int k = 0;
    for (size_t at = 0; at < h->bytes; at += h->piece_bytes, k = (k + 1) % GV_PIECES) {
        size_t n = h->bytes - at < h->piece_bytes ? h->bytes - at : h->piece_bytes;
        gv_cu_ptr piece = (gv_cu_ptr)(uintptr_t)slot->piece[k];
        gv_cu_node before[2] = {down, emptied[k]}, both[2];
        size_t nbefore = !down ? 0 : emptied[k] ? 2 : 1;
        TRY(add_copy(
            h, graph, down ? before : after, down ? nbefore : nafter, 0, piece, from + at, n,
            &down));
        both[0] = down;
        both[1] = up;
        TRY(add_copy(h, graph, both, up ? 2 : 1, 1, slot->at_destination + at, piece, n, &up));
        emptied[k] = up;
    }
    *out = up;
    return 0;
}

static gv_cu_result add_nodes(
    struct gv_handoff *h, gv_cu_graph graph, const gv_cu_node *after, size_t nafter, gv_cu_ptr from,
    gv_cu_node *out)
{
    struct gv_slot *slot = &h->slots[h->next];
    gv_cu_ptr to = place(h, slot);
    if (h->method == GV_HANDOFF_HOST_STAGED)
        return staged_nodes(h, graph, after, nafter, slot, from, out);
    if (from == to)
        return h->graph.graph_add_empty(out, graph, after, nafter);
    return add_copy(h, graph, after, nafter, 0, to, from, h->bytes, out);
}

int gv_handoff_add_node(
    struct gv_handoff *h, struct CUgraph_st *graph, struct CUgraphNode_st *const *after,
    size_t nafter, const void *from, struct CUgraphNode_st **node, void **at)
{
    gv_cu_ctx before = NULL;
    gv_cu_ptr source;
    if (!h || !graph || !node || !at || (nafter && !after))
        return GV_HANDOFF_INVALID;
    if (h->failed)
        return GV_HANDOFF_FAILED;
    h->graph.ctx_get(&before);
    int rc = source_of(h, from, &source);
    for (int tries = 0; tries < 2 && !rc; tries++) {
        gv_cu_result failed = add_nodes(h, graph, after, nafter, source, node);
        if (!failed) {
            sent(h, at);
            break;
        }
        rc = broken(h, failed);
        rc = rc == GV_HANDOFF_RECAPTURE && !tries ? 0 : rc; /* nothing was added: again */
    }
    h->gpus.cuda.ctx_set(before);
    return rc;
}

int gv_handoff_failed(struct gv_handoff *h, int cuda_error)
{
    gv_cu_ctx before = NULL;
    if (!h || !cuda_error)
        return GV_HANDOFF_INVALID;
    if (h->failed)
        return GV_HANDOFF_FAILED;
    h->graph.ctx_get(&before);
    int rc = broken(h, cuda_error);
    h->gpus.cuda.ctx_set(before);
    return rc;
}
