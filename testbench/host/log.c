#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "testbench/host/engine.h"

struct line {
    int tag, rank, level;
    long thread;
    char *text;
};

/* Grows only; readers come when the job is over. */
struct lines {
    pthread_mutex_t lock;
    struct line *at;
    size_t n, cap;
};

static struct lines logged = {.lock = PTHREAD_MUTEX_INITIALIZER};
static struct lines traced = {.lock = PTHREAD_MUTEX_INITIALIZER};
static bool tracing;
static gv_host_step_fn on_step;
static __thread struct gvh_comm *current;
static __thread int thread_tag = -1;

struct gvh_comm *gvh_current(struct gvh_comm *comm)
{
    struct gvh_comm *former = current;
    current = comm;
    return former;
}

int gvh_tag(void)
{
    return current ? current->tag : thread_tag;
}

void gv_host_tag(int tag)
{
    thread_tag = tag;
}

static void add(struct lines *to, int level, const char *fmt, va_list args)
{
    char *text = NULL;
    if (vasprintf(&text, fmt, args) < 0)
        return;
    text[strcspn(text, "\n")] = 0;
    if (to == &logged)
        gvh_print(level, text);
    pthread_mutex_lock(&to->lock);
    if (to->n == to->cap) {
        size_t cap = to->cap ? to->cap * 2 : 256;
        struct line *at = realloc(to->at, cap * sizeof(*at));
        if (!at)
            abort();
        to->at = at;
        to->cap = cap;
    }
    to->at[to->n++] =
        (struct line){gvh_tag(), current ? current->rank : -1, level, syscall(SYS_gettid), text};
    pthread_mutex_unlock(&to->lock);
}

/* NCCL prints by NCCL_DEBUG; here every level is kept, so that a test sees what a user could. */
void gvh_logger_fn(int level, unsigned long flags, const char *file, int line, const char *fmt, ...)
{
    (void)flags, (void)file, (void)line;
    va_list args;
    va_start(args, fmt);
    add(&logged, level, fmt, args);
    va_end(args);
}

void gvh_trace(const char *fmt, ...)
{
    if (!__atomic_load_n(&tracing, __ATOMIC_RELAXED))
        return;
    va_list args;
    va_start(args, fmt);
    add(&traced, 0, fmt, args);
    va_end(args);
}

void gv_host_trace(bool on)
{
    __atomic_store_n(&tracing, on, __ATOMIC_RELAXED);
}

void gv_host_log_each(gv_host_log_fn each, void *user)
{
    pthread_mutex_lock(&logged.lock);
    for (size_t i = 0; i < logged.n; i++) {
        const struct line *l = &logged.at[i];
        each(user, l->tag, l->rank, l->level, l->text);
    }
    pthread_mutex_unlock(&logged.lock);
}

void gv_host_trace_each(gv_host_trace_fn each, void *user)
{
    pthread_mutex_lock(&traced.lock);
    for (size_t i = 0; i < traced.n; i++) {
        const struct line *l = &traced.at[i];
        each(user, l->tag, l->rank, l->thread, l->text);
    }
    pthread_mutex_unlock(&traced.lock);
}

int gvh_fail(struct gvh_comm *comm, int result, const char *fmt, ...)
{
    char text[256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    gvh_logger_fn(GVH_LOG_WARN, GVH_INIT, __FILE__, __LINE__, "%s", text);
    if (comm && !comm->error[0])
        snprintf(comm->error, sizeof(comm->error), "%s", text);
    return result;
}

void gv_host_on_step(gv_host_step_fn fn)
{
    on_step = fn;
}

void gvh_step(const char *step)
{
    if (on_step)
        on_step(step, gvh_tag(), current ? current->rank : -1);
}

const char *gvh_result_name(int result)
{
    static const char *const names[] = {
        "no error",
        "unhandled cuda error",
        "unhandled system error",
        "internal error",
        "invalid argument",
        "invalid usage",
        "remote process exited or there was a network error",
        "NCCL operation in progress",
    };
    return result >= 0 && result < 8 ? names[result] : "unknown result code";
}
