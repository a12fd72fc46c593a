/* Inside the library only. */
#ifndef GV_HANDOFF_INSIDE_H
#define GV_HANDOFF_INSIDE_H

#include "base/gv_error.h"
#include "handoff/gv_handoff.h"
#include "profiler/gpu/gv_cuda_graph.h"
#include "profiler/gpu/gv_gpus.h"

#define GV_SLOTS 8
#define GV_PIECES 2

/* An event, and where it was recorded last: a wait in another capture would be an error. */
struct gv_mark {
    gv_cu_event event;
    bool recorded;
    uint64_t capture; /* 0: outside of any */
};

struct gv_slot {
    gv_cu_ptr at_source, at_destination; /* device buffers, 0 where the method has none */
    void *host;                          /* mapped memory, NULL likewise */
    gv_cu_ptr host_at;
    struct gv_mark sent, done;
    void *piece[GV_PIECES]; /* staged: pinned memory of piece_bytes */
    struct gv_mark filled[GV_PIECES], emptied[GV_PIECES];
};

struct gv_handoff {
    struct gv_gpus gpus; /* [0] the source, [1] the destination */
    struct gv_cuda_graph graph;
    size_t bytes;
    int nslots, next, last; /* last: slot of the last send, -1 before */
    enum gv_handoff_method method, host_method;
    struct gv_slot slots[GV_SLOTS];
    size_t piece_bytes;
    bool enabled[2]; /* by us: source > destination, and the way back */
    bool fell_back, failed, logged;
    unsigned generation;
    uint64_t sends;
    char reason[GV_ERROR_TEXT];
    void (*log)(void *data, const char *line);
    void *log_data;
    /* Buffers of a path that was left: work may still use them. */
    struct gv_slot left[GV_SLOTS];
};

static inline bool gv_is_peer(enum gv_handoff_method m)
{
    return m == GV_HANDOFF_PEER_COPY || m == GV_HANDOFF_PEER_READ;
}

gv_cu_result gv_handoff_on(struct gv_handoff *h, int side); /* makes a side's context current */

/* buffers.c: buffers and events of h->method. 0, or the driver's error with what was made released.
 */
gv_cu_result gv_buffers_make(struct gv_handoff *h);
void gv_buffers_free(struct gv_handoff *h);
/* Keeps the present buffers until destroy and starts without any. */
void gv_buffers_leave(struct gv_handoff *h);
gv_cu_result gv_events_make(struct gv_handoff *h);
void gv_events_free(struct gv_handoff *h);

/* peer.c: access both ways, enabled, data checked. 0, or -1 with `err`: why not. */
int gv_peer_set_up(struct gv_handoff *h, struct gv_error *err);
void gv_peer_undo(struct gv_handoff *h);

/* path.c */
int gv_host_set_up(struct gv_handoff *h, enum gv_handoff_method wanted, struct gv_error *err);
/* Leaves the peer path for good. 0, or GV_HANDOFF_FAILED. */
int gv_fall_back(struct gv_handoff *h, const char *why);
int gv_lost(struct gv_handoff *h, const char *why);
void gv_handoff_say(struct gv_handoff *h, const char *line);

/* auto.c: whether the profile of this machine has a verified gain for the pair and the size, and
 * the methods that were measured best (ANY: not known). `why` gets a sentence. */
bool gv_auto_peer(
    struct gv_handoff *h, const char *profile, enum gv_handoff_method *peer,
    enum gv_handoff_method *host, char *why, size_t size);

#endif
