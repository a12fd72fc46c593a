/* Buffers and events of the method in use. */
#include <string.h>

#include "handoff/handoff.h"

#define PIECE_MOST ((size_t)4 << 20) /* pieces overlap: small enough to be many */
#define PIECE_LEAST ((size_t)64 << 10)
#define PINNED (GV_CU_HOST_PORTABLE | GV_CU_HOST_DEVICEMAP)

gv_cu_result gv_handoff_on(struct gv_handoff *h, int side)
{
    return h->gpus.cuda.ctx_set(h->gpus.device[side].ctx);
}

static gv_cu_result device_buffer(struct gv_handoff *h, int side, gv_cu_ptr *out)
{
    gv_handoff_on(h, side);
    return h->gpus.cuda.mem_alloc(out, h->bytes);
}

/* Its device address is asked for at the destination, whose kernels read there; addresses are
 * unified, so it is the source's as well. */
static gv_cu_result host_buffer(struct gv_handoff *h, struct gv_slot *slot)
{
    gv_handoff_on(h, 1);
    gv_cu_result rc = h->gpus.cuda.host_alloc(&slot->host, h->bytes, PINNED);
    return rc ? rc : h->gpus.cuda.host_pointer(&slot->host_at, slot->host, 0);
}

static gv_cu_result make_slot(struct gv_handoff *h, struct gv_slot *slot)
{
    switch (h->method) {
    case GV_HANDOFF_HOST_MAPPED:
        return host_buffer(h, slot);
    case GV_HANDOFF_PEER_READ:
        return device_buffer(h, 0, &slot->at_source);
    default:
        return device_buffer(h, 1, &slot->at_destination);
    }
}

static gv_cu_result pin_pieces(struct gv_handoff *h, size_t bytes)
{
    gv_cu_result rc = gv_handoff_on(h, 0);
    for (int i = 0; i < h->nslots * GV_PIECES && !rc; i++)
        rc = h->gpus.cuda.host_alloc(&h->slots[i / GV_PIECES].piece[i % GV_PIECES], bytes, PINNED);
    return rc;
}

static void free_pieces(struct gv_handoff *h)
{
    gv_handoff_on(h, 0);
    for (int i = 0; i < h->nslots * GV_PIECES; i++) {
        void **piece = &h->slots[i / GV_PIECES].piece[i % GV_PIECES];
        if (*piece)
            h->gpus.cuda.host_free(*piece);
        *piece = NULL;
    }
}

/* Where little can be pinned, pieces become smaller: slower, the same bytes. */
static gv_cu_result make_pieces(struct gv_handoff *h)
{
    size_t bytes = h->bytes < PIECE_MOST ? h->bytes : PIECE_MOST;
    for (;; bytes /= 2) {
        h->piece_bytes = bytes &= ~(size_t)15;
        gv_cu_result rc = pin_pieces(h, bytes);
        if (!rc)
            return 0;
        free_pieces(h);
        if (rc != GV_CU_OUT_OF_MEMORY || bytes / 2 < PIECE_LEAST)
            return rc;
    }
}

gv_cu_result gv_buffers_make(struct gv_handoff *h)
{
    gv_cu_result rc = h->method == GV_HANDOFF_HOST_STAGED ? make_pieces(h) : 0;
    for (int i = 0; i < h->nslots && !rc; i++)
        rc = make_slot(h, &h->slots[i]);
    if (rc)
        gv_buffers_free(h);
    return rc;
}

static void free_slot(struct gv_handoff *h, struct gv_slot *slot)
{
    const struct gv_cuda *cuda = &h->gpus.cuda;
    gv_handoff_on(h, 0);
    if (slot->at_source)
        cuda->mem_free(slot->at_source);
    gv_handoff_on(h, 1);
    if (slot->at_destination)
        cuda->mem_free(slot->at_destination);
    if (slot->host)
        cuda->host_free(slot->host);
    slot->at_source = slot->at_destination = slot->host_at = 0;
    slot->host = NULL;
}

void gv_buffers_free(struct gv_handoff *h)
{
    for (int i = 0; i < GV_SLOTS; i++) {
        free_slot(h, &h->slots[i]);
        free_slot(h, &h->left[i]);
    }
    free_pieces(h);
}

void gv_buffers_leave(struct gv_handoff *h)
{
    for (int i = 0; i < GV_SLOTS; i++) {
        struct gv_slot *slot = &h->slots[i];
        h->left[i].at_source = slot->at_source;
        h->left[i].at_destination = slot->at_destination;
        slot->at_source = slot->at_destination = 0;
    }
}

static gv_cu_result make_mark(struct gv_handoff *h, int side, struct gv_mark *mark)
{
    gv_handoff_on(h, side);
    return h->gpus.cuda.event_create(&mark->event, GV_CU_EVENT_NO_TIMING);
}

/* An event belongs to the device whose stream records it; any stream may wait for it. */
gv_cu_result gv_events_make(struct gv_handoff *h)
{
    gv_cu_result rc = 0;
    for (int i = 0; i < h->nslots && !rc; i++) {
        rc = make_mark(h, 0, &h->slots[i].sent);
        rc = rc ? rc : make_mark(h, 1, &h->slots[i].done);
        for (int k = 0; k < GV_PIECES && !rc; k++) {
            rc = make_mark(h, 0, &h->slots[i].filled[k]);
            rc = rc ? rc : make_mark(h, 1, &h->slots[i].emptied[k]);
        }
    }
    return rc;
}

static void free_mark(struct gv_handoff *h, int side, struct gv_mark *mark)
{
    gv_handoff_on(h, side);
    if (mark->event)
        h->gpus.cuda.event_destroy(mark->event);
    mark->event = NULL;
}

void gv_events_free(struct gv_handoff *h)
{
    for (int i = 0; i < h->nslots; i++) {
        free_mark(h, 0, &h->slots[i].sent);
        free_mark(h, 1, &h->slots[i].done);
        for (int k = 0; k < GV_PIECES; k++) {
            free_mark(h, 0, &h->slots[i].filled[k]);
            free_mark(h, 1, &h->slots[i].emptied[k]);
        }
    }
}
