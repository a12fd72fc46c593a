/* Opens the gate for whoever queues a sample behind it. */
#include <errno.h>
#include <time.h>

#include "profiler/handoff/inside.h"

#define STALL_NS 20000000

static void open_gate(struct gv_opener *o)
{
    __atomic_store_n(o->bench->gate, o->value, __ATOMIC_SEQ_CST);
}

static struct timespec after(long ns)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_nsec += ns;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}

static void *watch(void *data)
{
    struct gv_opener *o = data;
    pthread_mutex_lock(&o->lock);
    for (bool stalled = false; !o->queued && !stalled;) {
        unsigned beats = __atomic_load_n(&o->beats, __ATOMIC_RELAXED);
        struct timespec until = after(STALL_NS);
        int rc = pthread_cond_timedwait(&o->change, &o->lock, &until);
        stalled = rc == ETIMEDOUT && beats == __atomic_load_n(&o->beats, __ATOMIC_RELAXED);
    }
    open_gate(o);
    pthread_mutex_unlock(&o->lock);
    return NULL;
}

void gv_opener_start(struct gv_opener *o, const struct gv_bench *b)
{
    pthread_condattr_t monotonic;
    *o = (struct gv_opener){.bench = b, .value = b->gate_value + 1};
    pthread_mutex_init(&o->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&o->change, &monotonic);
    pthread_condattr_destroy(&monotonic);
    o->running = !pthread_create(&o->thread, NULL, watch, o);
}

void gv_opener_beat(struct gv_opener *o)
{
    __atomic_fetch_add(&o->beats, 1, __ATOMIC_RELAXED);
}

void gv_opener_finish(struct gv_opener *o)
{
    open_gate(o);
    if (o->running) {
        pthread_mutex_lock(&o->lock);
        o->queued = true;
        pthread_cond_signal(&o->change);
        pthread_mutex_unlock(&o->lock);
        pthread_join(o->thread, NULL);
    }
    pthread_cond_destroy(&o->change);
    pthread_mutex_destroy(&o->lock);
}
