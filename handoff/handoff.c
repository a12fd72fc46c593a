/* From options to a hand-off, and back. */
#include "handoff/handoff.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check(const struct gv_handoff_options *o, struct gv_error *err)
{
    if (o->struct_bytes != sizeof(*o))
        return gv_error_set(
            err, "struct_bytes is %zu, this library's is %zu: compile against its own header",
            o->struct_bytes, sizeof(*o));
    if (o->bytes < 16 || o->bytes % 16)
        return gv_error_set(err, "bytes is %zu: a multiple of 16 is needed", o->bytes);
    if (o->slots < 0 || o->slots > GV_SLOTS)
        return gv_error_set(err, "slots is %d: 1 to %d are possible", o->slots, GV_SLOTS);
    if (o->mode < GV_HANDOFF_HOST || o->mode > GV_HANDOFF_AUTO || o->method < GV_HANDOFF_ANY ||
        o->method >= GV_HANDOFF_METHODS)
        return gv_error_set(err, "mode or method is none that this library knows");
    if (o->method != GV_HANDOFF_ANY &&
        (o->mode == GV_HANDOFF_AUTO || gv_is_peer(o->method) != (o->mode == GV_HANDOFF_PEER)))
        return gv_error_set(
            err, "method \"%s\" is not of the mode's path", gv_handoff_method_name(o->method));
    return 0;
}

/* CUDA pads and capitalises as the release likes: "0000:1A:00.0". */
static void lower(char *text)
{
    for (; *text; text++)
        *text = (char)tolower((unsigned char)*text);
}

static int open_device(struct gv_handoff *h, int side, int ordinal, struct gv_error *err)
{
    const struct gv_cuda *cuda = &h->gpus.cuda;
    struct gv_device *d = &h->gpus.device[side];
    int count = 0;
    gv_cu_result rc = cuda->device_count(&count);
    if (!rc && (ordinal < 0 || ordinal >= count))
        return gv_error_set(err, "there is no GPU %d; this process sees %d", ordinal, count);
    if (!rc)
        rc = cuda->device_get(&d->device, ordinal);
    if (!rc)
        rc = cuda->device_bus_id(d->bus_id, sizeof(d->bus_id), d->device);
    if (rc)
        return gv_cuda_fail(cuda, rc, err, "a GPU cannot be opened");
    lower(d->bus_id);
    return 0;
}

/* gv_device_start speaks of a device by its place in the list; afterwards it is its ordinal. */
static int start(struct gv_handoff *h, const struct gv_handoff_options *o, struct gv_error *err)
{
    h->gpus.n = 2;
    if (gv_cuda_load(&h->gpus.cuda, o->driver, err) ||
        gv_cuda_graph_open(&h->gpus.cuda, &h->graph, err))
        return -1;
    gv_cu_ctx before = NULL;
    h->graph.ctx_get(&before);
    for (int side = 0; side < 2; side++) {
        int ordinal = side ? o->destination : o->source;
        h->gpus.device[side].index = ordinal;
        if (open_device(h, side, ordinal, err) || gv_device_start(&h->gpus, side, err))
            return -1;
    }
    gv_cu_result rc = gv_events_make(h);
    h->gpus.cuda.ctx_set(before);
    return rc ? gv_cuda_fail(&h->gpus.cuda, rc, err, "no event") : 0;
}

static int choose(struct gv_handoff *h, const struct gv_handoff_options *o, struct gv_error *err)
{
    enum gv_handoff_method peer = GV_HANDOFF_PEER_COPY;
    struct gv_error refused = {0};
    bool wanted = o->mode == GV_HANDOFF_PEER;
    snprintf(
        h->reason, sizeof(h->reason), "%s",
        wanted ? "asked for, and the data check passed" : "the host path is the default");
    if (o->mode == GV_HANDOFF_AUTO)
        wanted = gv_auto_peer(h, o->profile, &peer, &h->host_method, h->reason, sizeof(h->reason));
    if (o->method != GV_HANDOFF_ANY)
        *(gv_is_peer(o->method) ? &peer : &h->host_method) = o->method;
    if (!wanted) {
        if (o->mode == GV_HANDOFF_HOST)
            h->reason[0] = 0; /* what is said of pinned memory, if anything */
        int rc = gv_host_set_up(h, h->host_method, err);
        if (!h->reason[0])
            snprintf(h->reason, sizeof(h->reason), "the host path is the default");
        return rc;
    }
    h->method = peer;
    if (!gv_peer_set_up(h, &refused))
        return 0;
    if (h->fell_back) /* in the check itself, and that line is written */
        return h->failed ? gv_error_set(err, "%s", h->reason) : 0;
    gv_peer_undo(h);
    if (!gv_fall_back(h, refused.text))
        return 0;
    return gv_error_set(err, "%s", h->reason);
}

static int create(struct gv_handoff *h, const struct gv_handoff_options *o, struct gv_error *err)
{
    gv_cu_ctx before = NULL;
    h->bytes = o->bytes;
    h->nslots = o->slots ? o->slots : 2;
    h->last = -1;
    h->host_method = GV_HANDOFF_HOST_MAPPED;
    h->log = o->log;
    h->log_data = o->log_data;
    if (start(h, o, err))
        return -1;
    h->graph.ctx_get(&before);
    int rc = choose(h, o, err);
    h->gpus.cuda.ctx_set(before);
    return rc;
}

int gv_handoff_create(
    const struct gv_handoff_options *o, struct gv_handoff **out, char *text, size_t text_bytes)
{
    struct gv_error err = {0};
    struct gv_handoff *h = calloc(1, sizeof(*h));
    int rc = !o || !out || check(o, &err) ? GV_HANDOFF_INVALID : 0;
    if (!h) {
        gv_error_set(&err, "out of memory");
        rc = GV_HANDOFF_FAILED;
    }
    if (!rc && create(h, o, &err))
        rc = GV_HANDOFF_FAILED;
    if (rc && text)
        snprintf(text, text_bytes, "%s", err.text);
    if (rc)
        gv_handoff_destroy(h);
    if (out)
        *out = rc ? NULL : h;
    return rc;
}

/* The contexts are the process's own: what was made in them goes one by one. */
static void stop(struct gv_handoff *h, int side)
{
    struct gv_device *d = &h->gpus.device[side];
    const struct gv_cuda *cuda = &h->gpus.cuda;
    if (!d->ctx)
        return;
    cuda->ctx_set(d->ctx);
    for (int i = 0; i < GV_DEVICE_STREAMS; i++)
        if (d->stream[i])
            cuda->stream_destroy(d->stream[i]);
    if (d->module)
        cuda->module_unload(d->module);
}

void gv_handoff_destroy(struct gv_handoff *h)
{
    gv_cu_ctx before = NULL;
    if (!h)
        return;
    if (h->graph.ctx_get) {
        h->graph.ctx_get(&before);
        gv_buffers_free(h);
        gv_events_free(h);
        gv_peer_undo(h);
        stop(h, 0);
        stop(h, 1);
        h->gpus.cuda.ctx_set(before);
        for (int side = 0; side < 2; side++)
            if (h->gpus.device[side].ctx)
                h->gpus.cuda.ctx_release(h->gpus.device[side].device);
    }
    free(h);
}

void gv_handoff_query(const struct gv_handoff *h, struct gv_handoff_state *out)
{
    *out = (struct gv_handoff_state){
        .method = h->method,
        .peer = gv_is_peer(h->method),
        .fell_back = h->fell_back,
        .failed = h->failed,
        .generation = h->generation,
        .reason = h->reason,
        .sends = h->sends,
    };
}
