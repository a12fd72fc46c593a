/* The world behind the stand-ins for libcuda.so.1 and libnvidia-ml.so.1: GPUs whose memory is this
 * process's, kernels' C twins, of which one runs at a time, and a clock that the fabric model
 * moves. One world a process, as a real driver has one; every entry point holds its lock. Times are
 * microseconds of virtual time. */
#ifndef GV_VIRTUAL_H
#define GV_VIRTUAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <semaphore.h>

#include "base/gv_error.h"
#include "kernels/gv_twin.h"
#include "profiler/gpu/gv_cuda.h"
#include "testbench/fabric/gv_fabric.h"

#define GV_VIRTUAL_PAIRS 64

/* What is wrong with the machine; read from $GV_VIRTUAL_FAULTS (README.md has the keys). */
struct gv_faults {
    double noise; /* every duration is off by up to this part, evenly */
    uint64_t seed;
    struct gv_fault_pair {
        enum gv_fault_kind {
            GV_FAULT_CORRUPT,
            GV_FAULT_HUNG,
            GV_FAULT_DEAD,
            GV_FAULT_ONE_WAY,
            GV_FAULT_NO_ENABLE,
            GV_FAULT_NCCL
        } kind;
        int from, to;
    } pairs[GV_VIRTUAL_PAIRS];
    int npairs;
    struct gv_fault_gpu {
        int ecc_after, lost_after; /* launches; 0 never */
        int free_mib;              /* 0: as the board has */
        int link_width;            /* 0: as the machine says */
        double throttle;           /* 0: none; else the speed that is left */
        unsigned user_pid;         /* 0: none */
        bool mig;
    } gpu[GV_MAX_GPUS];
    int pinned_mib;   /* 0: no limit; < 0: none */
    int peer_copies;  /* > 0: after so many, copies between GPUs are refused */
    int cuda_version; /* 0: 13000 */
    int init;         /* what cuInit answers */
    int queue;        /* > 0: a stream takes so many operations, then its caller waits */
    bool control;     /* the path through host memory is corrupt as well */
};

struct gv_alloc {
    uint64_t at;
    size_t bytes;
    int gpu; /* -1: host memory */
};

struct gv_vop;

struct gv_vgpu {
    int index, launches;
    size_t used;
    bool peer[GV_MAX_GPUS];
    int npeers;
    gv_cu_result sticky;
};

struct gv_vstream {
    int gpu, queued;
    struct gv_vop *head, *tail;
    struct gv_vgraph *capture; /* operations go into it, not into the stream */
    struct gv_vstream *next;
};

struct gv_vevent {
    int gpu;   /* whose context was current when it was made */
    double at; /* < 0: not reached */
    unsigned long recorded, reached;
    uint64_t capture; /* recorded last in this capture, as its event there; 0: in none */
    int capture_event;
};

/* One or several operations that move bytes together. */
struct gv_job {
    struct gv_vop *member[GV_MAX_GPUS];
    int n, expected;
    uint64_t couple;
    struct gv_flow flow;
    double left_bytes, delay_us, rate;
    bool active, done, dead, ring;
    struct gv_job *next;
};

struct gv_vop {
    enum gv_vop_kind { GV_VOP_KERNEL, GV_VOP_COPY, GV_VOP_SET, GV_VOP_EVENT, GV_VOP_WAIT } kind;
    struct gv_vstream *stream;
    struct gv_vop *next;
    bool started, ran; /* ran: its effect on memory is done */
    const struct gv_twin *twin;
    struct gv_twin_env env;
    unsigned char args[128];
    uint64_t to, from;
    size_t bytes;
    uint32_t value;
    struct gv_vevent *event;
    unsigned long want; /* WAIT: until the event was reached so often */
    struct gv_job *job;
    struct gv_task *task; /* of a twin that waits */
    bool waiting, timed_out, is_gate;
    uint64_t wait_at;
    uint32_t wait_value;
    uint64_t timeout_ns;
};

struct gv_world {
    struct gv_fabric fabric;
    struct gv_faults faults;
    int visible[GV_MAX_GPUS], nvisible; /* by CUDA_VISIBLE_DEVICES */
    struct gv_vgpu gpu[GV_MAX_GPUS];
    struct gv_alloc *allocs;
    int nallocs, alloc_capacity;
    size_t pinned;
    int peer_copies;
    struct gv_vstream *streams;
    struct gv_job *jobs;
    double now_us;
    uint64_t random, cap_bytes;
    struct gv_vop *running;
    struct gv_task *free_tasks;
    sem_t back; /* a task gives the turn back */
};

/* The machine of $GV_VIRTUAL_MACHINE with its faults; made at the first call. NULL with the error
 * on stderr where the files are bad. */
struct gv_world *gv_world(void);
void gv_world_lock(void);
void gv_world_unlock(void);

int gv_faults_read(const char *path, int ngpus, struct gv_faults *out, struct gv_error *err);
bool gv_fault_on(const struct gv_world *world, enum gv_fault_kind kind, int from, int to);

/* memory.c */
gv_cu_result gv_virtual_alloc(struct gv_world *w, int gpu, size_t bytes, uint64_t *out);
gv_cu_result gv_virtual_free(struct gv_world *w, uint64_t at);
const struct gv_alloc *gv_virtual_find(const struct gv_world *w, uint64_t at);
/* Bytes as a kernel on `gpu` writes or reads them, faults applied. A bad address makes the GPU's
 * context unusable (error 700). */
void gv_virtual_store(struct gv_world *w, int gpu, uint64_t at, const void *from, size_t bytes);
void gv_virtual_load(struct gv_world *w, int gpu, uint64_t at, void *to, size_t bytes);

/* task.c: runs, or goes on with, the op's twin until it ends or waits. True: something happened. */
bool gv_task_run(struct gv_world *w, struct gv_vop *op);
void gv_task_finish(struct gv_world *w, struct gv_vop *op);

/* job.c */
void gv_job_start(struct gv_world *w, struct gv_vop *op);
void gv_job_drop(struct gv_world *w, struct gv_vop *op);
/* A factor about 1, by the faults' noise. */
double gv_virtual_noise(struct gv_world *w);

/* graph.c: takes an operation for a stream that is being captured (true), or leaves it. */
bool gv_capture_take(struct gv_vstream *stream, const struct gv_vop *op);
/* A call that failed makes the capture invalid. */
void gv_capture_spoil(struct gv_vstream *stream);

/* clock.c: queues, and moves time until `stream` is empty (NULL: all are). 0, or NOT_READY where
 * nothing can go on. */
void gv_virtual_queue(struct gv_world *w, struct gv_vstream *stream, struct gv_vop *op);
/* As a real driver: a call that finds the queue full waits until the GPU has taken something. A
 * graph's operations need no room. */
void gv_virtual_room(struct gv_world *w, const struct gv_vstream *stream);
gv_cu_result gv_virtual_advance(struct gv_world *w, const struct gv_vstream *stream);

#endif
