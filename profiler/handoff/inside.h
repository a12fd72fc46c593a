/* Inside this folder only. */
#ifndef GV_HANDOFF_AB_INSIDE_H
#define GV_HANDOFF_AB_INSIDE_H

#include <pthread.h>

#include "profiler/gpu/gv_cuda_graph.h"
#include "profiler/handoff/gv_handoff_ab.h"

/* What all ways share: the two stages' streams, what they compute with, how a sample is timed. */
struct gv_bench {
    const struct gv_ab_options *o;
    struct gv_gpus *gpus;
    struct gv_cuda_graph graph;
    struct gv_meter meter;
    struct gv_side {
        int gpu;
        gv_cu_stream stream, traffic;
        gv_cu_ptr words; /* [0] what a spin waits for, [16..] where a read would write */
        gv_cu_function gate, read;
        void *host;       /* pinned: where the traffic comes from */
        gv_cu_ptr pulled; /* where it goes */
        int copies;       /* of a sample */
        gv_cu_event begin, end;
        double gbs, loaded_gbs; /* alone, and with the other one at work */
    } side[2];
    gv_cu_ptr from; /* the producer's buffer */
    unsigned *gate; /* mapped */
    unsigned gate_value;
    gv_cu_event begin, end, turn; /* turn: the consumer is done, the next step may begin */
    struct gv_opener *opener;     /* while a sample is queued */
};

/* A driver's queues are finite: a call that finds one full returns only when the GPU has taken
 * something, which it cannot behind a closed gate (two H200, driver 13: 16 steps of 320 MiB in
 * staged pieces). So the gate is opened when all is queued, or when whoever queues has not come on
 * for 20 ms; from then on the GPU has a full queue to work at. */
struct gv_opener {
    const struct gv_bench *bench;
    unsigned value, beats;
    bool running, queued;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t change;
};
void gv_opener_start(struct gv_opener *o, const struct gv_bench *b);
void gv_opener_beat(struct gv_opener *o); /* at each thing that was queued */
void gv_opener_finish(struct gv_opener *o);

int gv_bench_init(
    struct gv_bench *b, const struct gv_ab_options *o, struct gv_gpus *gpus, struct gv_error *err);
void gv_bench_finish(struct gv_bench *b);
int gv_bench_fail(struct gv_bench *b, gv_cu_result rc, struct gv_error *err, const char *what);

/* Traffic of one sample on a side, between its events, behind the gate. */
int gv_traffic_queue(struct gv_bench *b, int side, struct gv_error *err);
/* So much of it that it lasts as long as a sample of `us`. */
void gv_traffic_fit(struct gv_bench *b, double us);

int gv_gate_queue(struct gv_bench *b, int side, gv_cu_stream stream, struct gv_error *err);

/* steps.c: a way's figures. */
int gv_way_measure(
    struct gv_bench *b, struct gv_ab *ab, enum gv_handoff_method method, struct gv_error *err);
/* links.c */
int gv_links_measure(struct gv_bench *b, struct gv_ab *ab, struct gv_error *err);

#endif
