/* How a figure is taken: work is queued behind a gate on each stream, released together, timed by
 * the device, and repeated until the spread is small. */
#ifndef GV_METER_H
#define GV_METER_H

#include <signal.h>
#include <stdbool.h>

#include "config/gv_profile.h"
#include "kernels/gv_kernel_args.h"
#include "profiler/gpu/gv_gpus.h"

#define GV_MAX_WORKS 64
#define GV_MAX_SAMPLES 32

enum gv_work_kind { GV_WORK_KERNEL, GV_WORK_COPY };

/* One stream's part of a measurement: `repeat` launches of a kernel or copies, one after the
 * other. */
struct gv_work {
    int gpu, stream;
    enum gv_work_kind kind;
    gv_cu_function function; /* KERNEL */
    unsigned grid, block;
    union {
        struct gv_memory_args memory;
        struct gv_pattern_args pattern;
        struct gv_pair_args pair;
        struct gv_pingpong_args pingpong;
        struct gv_ring_args ring;
    } args;
    gv_cu_ptr to, from; /* COPY: device, peer or host memory */
    size_t copy_bytes;
    gv_cu_ptr clear; /* device memory set to zero before each sample */
    size_t clear_words;
    void *clear_host; /* the same for host memory */
    size_t clear_host_bytes;
    int repeat;
    double bytes; /* that count as moved by one repeat */
};

/* us[s][w] is the time of work w in sample s, all its repeats together. */
struct gv_samples {
    int count, nworks;
    double us[GV_MAX_SAMPLES][GV_MAX_WORKS];
    bool throttled[GV_MAX_SAMPLES];
    unsigned long long throttle_reasons; /* all that were seen */
};

struct gv_meter {
    struct gv_gpus *gpus;
    unsigned *gate; /* mapped host memory, one word */
    unsigned gate_value;
    gv_cu_event begin[GV_MAX_GPUS][GV_DEVICE_STREAMS], end[GV_MAX_GPUS][GV_DEVICE_STREAMS];
    int warmups, min_samples, max_samples;
    bool unwatched;    /* throttling is not asked for */
    double spread;     /* (max - min) / median of the total time that ends the repeats */
    double deadline_s; /* wall time for one sample */
    const volatile sig_atomic_t *stop; /* set by Ctrl-C; may be NULL */
    bool stopped, timed_out;           /* why the last run failed */
    gv_cu_result last;                 /* of the driver call that failed */
};

/* Default settings: 1 warm-up, 5 to 20 samples, 2 % spread, 30 s. Devices must be started before
 * they appear in a work. Returns 0, or -1 with `err`. */
int gv_meter_init(struct gv_meter *meter, struct gv_gpus *gpus, struct gv_error *err);
void gv_meter_finish(struct gv_meter *meter);

/* Takes samples of all `works` at once. Each (gpu, stream) may stand in one work only. Returns 0;
 * or -1 with `err`: a failed driver call (meter->last), a sample that did not end before the
 * deadline, or a stop (meter->stopped). */
int gv_meter_run(
    struct gv_meter *meter, const struct gv_work *works, int nworks, struct gv_samples *out,
    struct gv_error *err);

/* GB/s of work w over the samples (w -1: all bytes over the longest time), throttled samples left
 * out where there are others. `repeat` and `bytes` are those of `works`. */
struct gv_figure gv_meter_gbs(const struct gv_samples *samples, const struct gv_work *works, int w);

/* Microseconds per `per` units of work 0 (a latency: rounds times two). */
struct gv_figure gv_meter_us(const struct gv_samples *samples, double per);

/* A figure of `n` values; n 0 gives the unknown figure. */
struct gv_figure gv_figure_of(const double *values, int n);
struct gv_figure gv_figure_unknown(void);

#endif
