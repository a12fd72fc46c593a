/* The stage hand-off over both paths, A against B, as part of a step: what it takes, what the step
 * takes, what any transport could gain, and whether the direct path does. Uses libgv-handoff
 * itself, so what is measured is what a program gets. */
#ifndef GV_HANDOFF_AB_H
#define GV_HANDOFF_AB_H

#include <signal.h>
#include <stdbool.h>

#include "handoff/gv_handoff.h"
#include "profiler/probe/gv_meter.h"

/* The direct path gains where a step is shorter by this part and above the noise (the policy's
 * min_gain); it loses where a step is longer by the lesser one, which two runs of one binary do not
 * differ by. */
#define GV_AB_GAIN_LEAST 0.03
#define GV_AB_LOSS_LEAST 0.01
/* Samples of each way. Two ways that do not differ have inner ranges apart by chance in 21 % of
 * runs with 5 samples, 2.9 % with 7, 0.3 % with 9 (orderings counted). */
#define GV_AB_SAMPLES 9
/* A link that moves this part of what it can is saturated (97 % in the published report). */
#define GV_AB_SATURATED 0.95

struct gv_ab_options {
    int from, to; /* in PCI order */
    size_t bytes;
    double compute_us; /* of a step, half on each GPU; 0: the hand-off is all */
    int steps;         /* in a sample; 0: as many as last 0.1 s, at most 20 */
    int samples;       /* warm ones, 5 to GV_MAX_SAMPLES; 0: GV_AB_SAMPLES */
    bool host_traffic; /* both GPUs pull from host memory meanwhile */
    bool graph;        /* steps are captured once and replayed */
    const volatile sig_atomic_t *stop;
    void (*log)(void *data, const char *line);
    const char *cuda_path, *nvml_path;
};

/* One way, measured. Steps depend on each other: the next begins when the consumer is done. */
struct gv_ab_way {
    enum gv_handoff_method method;
    bool ran, right;              /* right: a pattern arrived bit for bit, before and after */
    char why[256];                /* why it did not run */
    int steps;                    /* in a sample */
    double cold_us, cold_step_us; /* the first, after set-up */
    struct gv_figure handoff_us, step_us; /* the hand-off: until a kernel of the consumer could have
                                             the data; read in place, the reading is in it */
    double step_samples[GV_MAX_SAMPLES];
};

/* The host link of one of the two GPUs. */
struct gv_ab_link {
    int gpu;
    struct gv_figure to_device_gbs, to_host_gbs,
        together_gbs;                              /* together: both GPUs pull at once */
    double together_use, traffic_gbs, traffic_use; /* use: part of what it does alone; NAN */
    bool saturated;
};

enum gv_ab_verdict { GV_AB_NO_PEER, GV_AB_TIE, GV_AB_GAIN, GV_AB_LOSS };

struct gv_ab {
    struct gv_ab_options options;
    struct gv_ab_way ways[GV_HANDOFF_METHODS]; /* by method */
    enum gv_handoff_method host, peer; /* the ways that are compared, ANY: none: mapped and copy,
                                          unless the other way of the path gains */
    struct gv_ab_link links[2];
    int nlinks;   /* 1: the same GPU twice */
    double share; /* of the step over the host path that its hand-off takes */
    double gain;  /* part of that step that the direct path saves, < 0: loses; NAN */
    bool above_noise;
    enum gv_ab_verdict verdict;
    char sentence[400];
};

/* Measures. 0, or -1 with `err`: the machine cannot be measured (a GPU that is not there, was lost,
 * no memory, stopped). A path that cannot be used is no error. */
int gv_ab_run(
    struct gv_gpus *gpus, const struct gv_ab_options *options, struct gv_ab *out,
    struct gv_error *err);

/* From the figures: the faster ways, share, verdict, sentence. */
void gv_ab_judge(struct gv_ab *ab);

const char *gv_ab_verdict_name(enum gv_ab_verdict verdict);

/* "14.44 s", "143.1 ms", "85.2 us", "-". Returns `out`. */
const char *gv_ab_duration(double us, char out[24]);

#endif
