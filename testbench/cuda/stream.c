/* Work on streams: copies, events, kernels. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "testbench/cuda/entry.h"

static gv_cu_result queue(struct gv_world *w, gv_cu_stream stream, const struct gv_vop *like)
{
    if (gv_capture_take((struct gv_vstream *)stream, like))
        return 0;
    struct gv_vop *op = malloc(sizeof(*op));
    if (!op)
        return GV_CU_OUT_OF_MEMORY;
    *op = *like;
    gv_virtual_room(w, (struct gv_vstream *)stream);
    gv_virtual_queue(w, (struct gv_vstream *)stream, op);
    return 0;
}

static gv_cu_result queue_copy(gv_cu_ptr to, gv_cu_ptr from, size_t bytes, gv_cu_stream stream)
{
    struct gv_vop op = {.kind = GV_VOP_COPY, .to = to, .from = from, .bytes = bytes};
    ENTER_CONTEXT(w)
    const struct gv_alloc *a = gv_virtual_find(w, from), *b = gv_virtual_find(w, to);
    if (!a || !b)
        return leave(INVALID);
    bool peers = a->gpu >= 0 && b->gpu >= 0 && a->gpu != b->gpu;
    if (peers && w->faults.peer_copies && w->peer_copies++ >= w->faults.peer_copies) {
        gv_capture_spoil((struct gv_vstream *)stream);
        return leave(801);
    }
    return leave(queue(w, stream, &op));
}

gv_cu_result gv_v_copy_async(gv_cu_ptr to, gv_cu_ptr from, size_t bytes, gv_cu_stream stream)
{
    return queue_copy(to, from, bytes, stream);
}

gv_cu_result gv_v_copy_dtod(gv_cu_ptr to, gv_cu_ptr from, size_t bytes, gv_cu_stream stream)
{
    return queue_copy(to, from, bytes, stream);
}

gv_cu_result gv_v_copy_htod(gv_cu_ptr to, const void *from, size_t bytes, gv_cu_stream stream)
{
    return queue_copy(to, (uint64_t)(uintptr_t)from, bytes, stream);
}

gv_cu_result gv_v_copy_dtoh(void *to, gv_cu_ptr from, size_t bytes, gv_cu_stream stream)
{
    return queue_copy((uint64_t)(uintptr_t)to, from, bytes, stream);
}

gv_cu_result gv_v_copy_peer(
    gv_cu_ptr to, gv_cu_ctx to_ctx, gv_cu_ptr from, gv_cu_ctx from_ctx, size_t bytes,
    gv_cu_stream stream)
{
    (void)to_ctx, (void)from_ctx;
    return queue_copy(to, from, bytes, stream);
}

gv_cu_result gv_v_set_words(gv_cu_ptr at, unsigned value, size_t count, gv_cu_stream stream)
{
    struct gv_vop op = {.kind = GV_VOP_SET, .to = at, .bytes = 4 * count, .value = value};
    ENTER_CONTEXT(w)
    const struct gv_alloc *a = gv_virtual_find(w, at);
    if (!a)
        return leave(INVALID);
    return leave(queue(w, stream, &op));
}

gv_cu_result gv_v_stream_create(gv_cu_stream *out, unsigned flags)
{
    (void)flags;
    ENTER_CONTEXT(w)
    struct gv_vstream *s = calloc(1, sizeof(*s));
    if (!s)
        return leave(GV_CU_OUT_OF_MEMORY);
    s->gpu = current->index;
    s->next = w->streams;
    w->streams = s;
    *out = (gv_cu_stream)s;
    return leave(0);
}

gv_cu_result gv_v_stream_destroy(gv_cu_stream stream)
{
    ENTER(w)
    struct gv_vstream **at = &w->streams;
    while (*at && *at != (struct gv_vstream *)stream)
        at = &(*at)->next;
    if (*at)
        *at = (*at)->next;
    free(stream);
    return leave(0);
}

gv_cu_result gv_v_stream_query(gv_cu_stream stream)
{
    ENTER(w)
    return leave(gv_virtual_advance(w, (struct gv_vstream *)stream));
}

/* Blocks for good where the work never ends, as the driver does. */
gv_cu_result gv_v_stream_sync(gv_cu_stream stream)
{
    for (;;) {
        gv_cu_result rc = gv_v_stream_query(stream);
        if (rc != GV_CU_NOT_READY)
            return rc;
        usleep(1000);
    }
}

gv_cu_result gv_v_event_create(gv_cu_event *out, unsigned flags)
{
    (void)flags;
    ENTER_CONTEXT(w)
    (void)w;
    struct gv_vevent *event = calloc(1, sizeof(*event));
    if (!event)
        return leave(GV_CU_OUT_OF_MEMORY);
    event->gpu = current->index;
    event->at = -1;
    *out = (gv_cu_event)event;
    return leave(0);
}

gv_cu_result gv_v_event_destroy(gv_cu_event event)
{
    free(event);
    return 0;
}

gv_cu_result gv_v_event_record(gv_cu_event event, gv_cu_stream stream)
{
    struct gv_vop op = {.kind = GV_VOP_EVENT, .event = (struct gv_vevent *)event};
    ENTER_CONTEXT(w)
    if (op.event->gpu != ((struct gv_vstream *)stream)->gpu)
        return leave(INVALID_HANDLE); /* as the driver: both must be of one context */
    op.event->at = -1;
    if (!((struct gv_vstream *)stream)->capture) {
        op.event->recorded++;
        op.event->capture = 0;
    }
    return leave(queue(w, stream, &op));
}

gv_cu_result gv_v_event_elapsed(float *ms, gv_cu_event begin, gv_cu_event end)
{
    const struct gv_vevent *a = (struct gv_vevent *)begin, *b = (struct gv_vevent *)end;
    if (a->at < 0 || b->at < 0)
        return GV_CU_NOT_READY;
    *ms = (float)((b->at - a->at) * 1e-3);
    return 0;
}

/* The module is the PTX; a function is a name in it that has a twin. */
gv_cu_result gv_v_module_load(gv_cu_module *out, const void *image)
{
    ENTER_CONTEXT(w)
    (void)w;
    *out = (gv_cu_module)(uintptr_t)image;
    return leave(strstr(image, ".target sm_70") ? 0 : 200);
}

gv_cu_result gv_v_module_unload(gv_cu_module module)
{
    (void)module;
    return 0;
}

gv_cu_result gv_v_module_function(gv_cu_function *out, gv_cu_module module, const char *name)
{
    char entry[96];
    const struct gv_twin *twin = gv_twin_find(name);
    snprintf(entry, sizeof(entry), ".entry %s(", name);
    if (!twin || !strstr((const char *)module, entry))
        return 500;
    *out = (gv_cu_function)(uintptr_t)twin;
    return 0;
}

gv_cu_result gv_v_launch(
    gv_cu_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
    unsigned block_y, unsigned block_z, unsigned shared_bytes, gv_cu_stream stream, void **params,
    void **extra)
{
    const struct gv_twin *twin = (const struct gv_twin *)function;
    struct gv_vop op = {.kind = GV_VOP_KERNEL, .twin = twin};
    (void)grid_y, (void)grid_z, (void)block_y, (void)block_z, (void)shared_bytes, (void)extra;
    ENTER_CONTEXT(w)
    if (!grid_x || !block_x || block_x > 1024 || twin->args_size > sizeof(op.args) ||
        ((struct gv_vstream *)stream)->gpu != current->index)
        return leave(INVALID);
    op.env.grid = grid_x;
    op.env.block = block_x;
    op.is_gate = !strcmp(twin->name, "gv_gate");
    memcpy(op.args, params[0], twin->args_size);
    return leave(queue(w, stream, &op));
}
