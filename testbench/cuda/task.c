/* Twins that wait for others. Each has a thread for its stack, and one runs at a time: whoever
 * waits hands the turn back to the clock, so a run is the same every time. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "testbench/cuda/gv_virtual.h"

struct gv_task {
    struct gv_world *world;
    struct gv_vop *op;
    sem_t go;
    struct gv_task *next;
};

static void take_turn(sem_t *turn)
{
    while (sem_wait(turn))
        ;
}

static void load(struct gv_twin_env *env, gv_u64 at, void *to, size_t bytes)
{
    struct gv_world *w = env->world;
    gv_virtual_load(w, w->running->stream->gpu, at, to, bytes);
}

static void store(struct gv_twin_env *env, gv_u64 at, const void *from, size_t bytes)
{
    struct gv_world *w = env->world;
    gv_virtual_store(w, w->running->stream->gpu, at, from, bytes);
}

static bool reached(const struct gv_vop *op)
{
    return __atomic_load_n((const uint32_t *)(uintptr_t)op->wait_at, __ATOMIC_SEQ_CST) >=
           op->wait_value;
}

static bool wait(struct gv_twin_env *env, gv_u64 at, gv_u32 value, gv_u64 timeout_ns)
{
    struct gv_world *w = env->world;
    struct gv_vop *op = w->running;
    gv_u32 now;
    load(env, at, &now, sizeof(now));
    if (w->gpu[op->stream->gpu].sticky)
        return false;
    op->wait_at = at;
    op->wait_value = value;
    op->timeout_ns = timeout_ns;
    op->timed_out = false;
    while (!reached(op) && !op->timed_out) {
        struct gv_task *task = op->task;
        op->waiting = true;
        sem_post(&w->back);
        take_turn(&task->go);
    }
    op->waiting = false;
    return !op->timed_out;
}

static void *serve(void *data)
{
    struct gv_task *task = data;
    for (;;) {
        take_turn(&task->go);
        task->op->twin->run(&task->op->env, task->op->args);
        task->op->ran = true;
        sem_post(&task->world->back);
    }
    return NULL;
}

static struct gv_task *new_task(struct gv_world *w)
{
    struct gv_task *task = calloc(1, sizeof(*task));
    pthread_t thread;
    pthread_attr_t attr;
    sigset_t all, old;
    if (!task)
        abort();
    task->world = w;
    sem_init(&task->go, 0, 0);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, 512 << 10);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* signals are the command's */
    if (pthread_create(&thread, &attr, serve, task))
        abort();
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    return task;
}

static void begin(struct gv_world *w, struct gv_vop *op)
{
    op->env.world = w;
    op->env.load = load;
    op->env.store = store;
    op->env.wait = wait;
    op->env.cap16 = w->cap_bytes / 16;
    if (!op->twin->waits)
        return;
    op->task = w->free_tasks ? w->free_tasks : new_task(w);
    w->free_tasks = op->task->next;
    op->task->op = op;
}

/* A gate needs no stack: it is open or not. */
static bool run_gate(struct gv_vop *op)
{
    const struct gv_gate_args *a = (const void *)op->args;
    if (a->value == ~0u) { /* no counter reaches it: the clock has its timeout as a duration */
        op->ran = true;
        return true;
    }
    op->wait_at = a->flag;
    op->wait_value = a->value;
    op->ran = reached(op);
    return op->ran;
}

bool gv_task_run(struct gv_world *w, struct gv_vop *op)
{
    if (op->is_gate)
        return !op->ran && run_gate(op);
    if (op->ran || (op->waiting && !op->timed_out && !reached(op)))
        return false;
    if (!op->env.world)
        begin(w, op);
    w->running = op;
    if (op->task) {
        sem_post(&op->task->go);
        take_turn(&w->back);
    } else {
        op->twin->run(&op->env, op->args);
        op->ran = true;
    }
    w->running = NULL;
    if (op->ran)
        gv_task_finish(w, op);
    return true;
}

void gv_task_finish(struct gv_world *w, struct gv_vop *op)
{
    if (!op->task)
        return;
    op->task->next = w->free_tasks;
    w->free_tasks = op->task;
    op->task = NULL;
}
