/* libgv-handoff: one activation buffer per step, from the GPU of one stage to the GPU of the next.
 *
 * Two paths carry it. The host path goes through pinned host memory and works between any two GPUs;
 * it is the default and the fallback. The peer path goes from GPU to GPU and is used only where it
 * was asked for (GV_HANDOFF_PEER), or where the machine's profile holds a measured, verified gain
 * (GV_HANDOFF_AUTO; `gv100 handoff --save` measures it). Before the peer path is used, the driver
 * is asked both ways, peer access is enabled (already enabled is fine), and a data check must pass:
 * both GPUs' kernels resident, then a pattern through the very buffers of the hand-off.
 *
 * Any failure of the peer path, when it is made or later, falls back to the host path once, with
 * the reason (gv_handoff_state) and one line to `log`. The bytes that arrive are the same either
 * way.
 *
 *     gv_handoff *h;
 *     struct gv_handoff_options o = {.struct_bytes = sizeof(o), .source = 0, .destination = 1,
 *                                    .bytes = n};
 *     if (gv_handoff_create(&o, &h, text, sizeof(text))) ...
 *     for each step:
 *         stage_0(..., buffer, stream_0);
 *         gv_handoff_send(h, buffer, stream_0, stream_1, &at);
 *         stage_1(at, ..., stream_1);
 *         gv_handoff_done(h, stream_1);
 *     gv_handoff_destroy(h);
 *
 * Streams, graphs and nodes are the driver's; those of the CUDA runtime (cudaStream_t, ...) are the
 * same types. Stream 0 (NULL) cannot be used. The library retains both devices' primary contexts,
 * as the runtime does, and leaves the calling thread's current context as it was. Needs a driver
 * with CUDA 11.4 or newer; it is opened at run time. One thread at a time per hand-off. Graphs with
 * one hand-off in them must not run at the same time as each other, nor as its sends on streams. */
#ifndef GV_HANDOFF_H
#define GV_HANDOFF_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define GV_HANDOFF_API __attribute__((visibility("default")))
#else
#define GV_HANDOFF_API
#endif

struct CUstream_st;
struct CUgraph_st;
struct CUgraphNode_st;

typedef struct gv_handoff gv_handoff;

enum gv_handoff_mode {
    GV_HANDOFF_HOST, /* the default: all zero options ask for it */
    GV_HANDOFF_PEER,
    GV_HANDOFF_AUTO
};

/* How bytes move. The first of each path is what GV_HANDOFF_ANY means where the profile says
 * nothing better. */
enum gv_handoff_method {
    GV_HANDOFF_ANY,
    GV_HANDOFF_HOST_MAPPED, /* written into mapped pinned memory, which the destination's kernels
                               read in place */
    GV_HANDOFF_HOST_STAGED, /* copied to pinned memory, then to a buffer of the destination, in
                               pieces that overlap */
    GV_HANDOFF_PEER_COPY,   /* copied into a buffer of the destination */
    GV_HANDOFF_PEER_READ,   /* left on the source; the destination's kernels read it there */
    GV_HANDOFF_METHODS
};

enum gv_handoff_result {
    GV_HANDOFF_OK = 0,
    GV_HANDOFF_INVALID = -1,   /* an argument; nothing was done */
    GV_HANDOFF_RECAPTURE = -2, /* the path changed under a capture, which is no longer valid: end it
                                  and capture again */
    GV_HANDOFF_FAILED = -3     /* no path is left, or a device was lost */
};

struct gv_handoff_options {
    size_t struct_bytes;     /* sizeof(struct gv_handoff_options) of the caller */
    int source, destination; /* CUDA ordinals as this process sees them. The same GPU twice is
                                allowed (the peer path is then a copy inside it) */
    size_t bytes;            /* of each buffer; at least 16, a multiple of 16 */
    enum gv_handoff_mode mode;
    enum gv_handoff_method method; /* ANY, or one of the mode's path; with AUTO only ANY */
    int slots; /* buffers used in turn, 1 to 8: how many sends may be on their way; 0: 2 */
    const char *profile; /* AUTO: the profile's file; NULL: looked up as the plugin does */
    const char *driver;  /* NULL: libcuda.so.1 */
    void (*log)(void *data, const char *line); /* NULL: stderr */
    void *log_data;
};

/* What is in use, and why. Texts belong to the hand-off and live until it is destroyed. */
struct gv_handoff_state {
    enum gv_handoff_method method;
    int peer;            /* 1: the peer path */
    int fell_back;       /* 1: the peer path was left, and stays left */
    int failed;          /* 1: no path is left */
    unsigned generation; /* grows when addresses change: graphs built before must be built anew */
    const char *reason;  /* one sentence */
    uint64_t sends;
};

/* Makes the buffers and chooses the path. Returns 0 and `*out`; else `text` (may be NULL) says what
 * and what to do. That the peer path cannot be used is no error. */
GV_HANDOFF_API int gv_handoff_create(
    const struct gv_handoff_options *options, gv_handoff **out, char *text, size_t text_bytes);

/* Waits for the hand-off's own streams alone: the caller's work must be over. NULL is fine. */
GV_HANDOFF_API void gv_handoff_destroy(gv_handoff *h);

/* Queues one hand-off: after what `producer` (a stream of the source) has queued, `bytes` from
 * `from` (memory of the source, or NULL: the producer wrote them to gv_handoff_target itself), and
 * `consumer` (a stream of the destination) waits for it. Never waits on the host. `*at` is where
 * the consumer reads, good until gv_handoff_done of this send, and changes from send to send. Where
 * the producer is being captured, the hand-off becomes part of that graph and the consumer joins
 * the capture; the caller joins it back. */
GV_HANDOFF_API int gv_handoff_send(
    gv_handoff *h, const void *from, struct CUstream_st *producer, struct CUstream_st *consumer,
    void **at);

/* The consumer has queued all that reads the last send: its buffer may be used again after that.
 * Without it a buffer is used again as soon as its turn comes. */
GV_HANDOFF_API int gv_handoff_done(gv_handoff *h, struct CUstream_st *consumer);

/* Where the producer may write the next send's bytes itself, so that nothing is copied before the
 * path's own transport: host memory (mapped), or a buffer of the source. Call it before each send.
 * A stream's producer must be ordered after the send that used this buffer before (slots ago). */
GV_HANDOFF_API int gv_handoff_target(gv_handoff *h, void **out);

/* Adds one hand-off to a graph that is being built: after the nodes `after`, `from` as for send.
 * The consumer's nodes depend on `*node` and read at `*at`. A buffer is used again `slots` nodes
 * later: make that node depend on the consumer's. */
GV_HANDOFF_API int gv_handoff_add_node(
    gv_handoff *h, struct CUgraph_st *graph, struct CUgraphNode_st *const *after, size_t nafter,
    const void *from, struct CUgraphNode_st **node, void **at);

/* Tells that a replay, or any wait for work with this hand-off in it, ended with the CUDA error
 * `cuda_error`. Peer path: falls back; returns GV_HANDOFF_RECAPTURE, and the graph is to be built
 * again (the step too). A device that was lost, or the host path: GV_HANDOFF_FAILED. */
GV_HANDOFF_API int gv_handoff_failed(gv_handoff *h, int cuda_error);

/* Sends a pattern through the path in use on streams of its own and compares it on the destination.
 * Waits for it. Returns 0 with the number of 16-byte units that arrived wrong. */
GV_HANDOFF_API int gv_handoff_verify(gv_handoff *h, uint64_t *wrong);

GV_HANDOFF_API void gv_handoff_query(const gv_handoff *h, struct gv_handoff_state *out);

/* "host, mapped", "host, staged", "peer copy", "peer read". */
GV_HANDOFF_API const char *gv_handoff_method_name(enum gv_handoff_method method);

#ifdef __cplusplus
}
#endif

#endif
