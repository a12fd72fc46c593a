/* The worker process: a thread for each of its ranks, and requests from the command one at a time.
 * A rank that fails ends the process: NCCL gives nothing back after an error. */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "profiler/collective/rank.h"

struct local {
    struct gv_rank rank;
    pthread_t thread;
    struct gv_ran ran;
    struct gv_error err;
    int rc;
};

static struct {
    struct gv_worker_setup setup;
    struct gv_request request;
    struct gv_gpus gpus; /* large */
    struct gv_nccl_table nccl;
    struct local local[GV_MAX_GPUS];
} w; /* one worker a process */

static void say(const struct gv_answer *answer)
{
    while (send(GV_WORKER_FD, answer, sizeof(*answer), MSG_NOSIGNAL) < 0 && errno == EINTR)
        ;
}

void gv_worker_step(int rank, const char *fmt, ...)
{
    struct gv_answer step = {.kind = GV_ANSWER_STEP, .rank = rank};
    va_list args;
    va_start(args, fmt);
    vsnprintf(step.text, sizeof(step.text), fmt, args);
    va_end(args);
    say(&step);
}

static int fail(int rank, const struct gv_error *err)
{
    struct gv_answer answer = {.kind = GV_ANSWER_FAILED, .rank = rank};
    snprintf(answer.text, sizeof(answer.text), "%.399s", err->text);
    say(&answer);
    return 3;
}

static void *work(void *user)
{
    struct local *l = user;
    struct gv_rank *r = &l->rank;
    const struct gv_request *request = &w.request;
    l->err = (struct gv_error){0};
    l->rc = r->ctx ? r->gpus->cuda.ctx_set(r->ctx) : 0; /* a new thread has none */
    if (request->ask == GV_ASK_SETUP)
        l->rc = gv_rank_open(r, &l->err);
    else if (request->ask == GV_ASK_INIT)
        l->rc = gv_rank_init(r, &request->id, &l->err);
    else if (request->ask == GV_ASK_RUN)
        l->rc = gv_rank_run(r, &request->run, &l->ran, &l->err);
    else
        l->rc = gv_rank_destroy(r, &l->err);
    if (l->rc)
        fail(r->rank, &l->err); /* at once: other ranks may wait for this one without end */
    return NULL;
}

/* All ranks of this process do what was asked. -1 where one failed and said so. */
static int all_ranks(void)
{
    int n = w.setup.nlocal, rc = 0;
    if (n == 1) {
        work(&w.local[0]);
        return w.local[0].rc ? -1 : 0;
    }
    for (int i = 0; i < n; i++)
        if (pthread_create(&w.local[i].thread, NULL, work, &w.local[i]))
            abort();
    for (int i = 0; i < n; i++) {
        pthread_join(w.local[i].thread, NULL);
        rc |= w.local[i].rc;
    }
    return rc ? -1 : 0;
}

/* GV100_FORCE as the command wants it: a buffer of ours in the environment, changed only while no
 * communicator is alive, so that no thread of NCCL's reads it meanwhile. */
static void set_force(const char *text)
{
    static char variable[sizeof("GV100_FORCE=") + sizeof(w.request.force)] = "GV100_FORCE=";
    static int put;
    snprintf(variable + strlen("GV100_FORCE="), sizeof(w.request.force), "%s", text);
    if (!put++)
        putenv(variable);
}

static int set_up(void)
{
    struct gv_error err = {0};
    w.setup = w.request.setup;
    const char *cuda = w.setup.cuda[0] ? w.setup.cuda : NULL;
    const char *nvml = w.setup.nvml[0] ? w.setup.nvml : NULL;
    gv_worker_step(-1, "opening the CUDA driver");
    if (gv_gpus_open(&w.gpus, cuda, nvml, &err))
        return fail(-1, &err);
    gv_worker_step(-1, "opening NCCL");
    if (gv_nccl_open(&w.nccl, w.setup.nccl, &err))
        return fail(-1, &err);
    for (int i = 0; i < w.setup.nlocal; i++)
        w.local[i].rank = (struct gv_rank){
            .nccl = &w.nccl,
            .gpus = &w.gpus,
            .setup = &w.setup,
            .rank = w.setup.first_rank + i,
            .gpu = w.setup.gpu[i],
        };
    return all_ranks() ? 3 : 0;
}

static void merge(struct gv_ran *out)
{
    *out = w.local[0].ran;
    for (int i = 1; i < w.setup.nlocal; i++) {
        const struct gv_ran *ran = &w.local[i].ran;
        out->time_us += ran->time_us;
        out->first_us = ran->first_us > out->first_us ? ran->first_us : out->first_us;
        out->wrong += ran->wrong;
        out->bound = ran->bound > out->bound ? ran->bound : out->bound;
        out->throttled |= ran->throttled;
    }
    out->time_us /= w.setup.nlocal;
}

static int get_id(struct gv_answer *answer)
{
    struct gv_error err = {0};
    gv_worker_step(-1, "ncclGetUniqueId");
    w.gpus.cuda.ctx_set(w.local[0].rank.ctx);
    gv_nccl_result rc = w.nccl.get_id(&answer->id);
    if (!rc)
        return 0;
    gv_nccl_fail(&w.nccl, rc, "ncclGetUniqueId", &err);
    return fail(-1, &err);
}

static int serve(void)
{
    struct gv_answer answer = {.kind = GV_ANSWER_DONE, .rank = -1};
    int rc = 0;
    if (w.request.ask == GV_ASK_INIT)
        set_force(w.request.force);
    if (w.request.ask == GV_ASK_SETUP)
        rc = set_up();
    else if (w.request.ask == GV_ASK_ID)
        rc = get_id(&answer);
    else
        rc = all_ranks() ? 3 : 0;
    if (rc)
        return rc;
    answer.version = w.nccl.version;
    if (w.request.ask == GV_ASK_RUN)
        merge(&answer.ran);
    say(&answer);
    return 0;
}

int gv_collective_worker(void)
{
    for (;;) {
        ssize_t n = recv(GV_WORKER_FD, &w.request, sizeof(w.request), 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n != (ssize_t)sizeof(w.request))
            return n == 0 ? 0 : 2; /* the command is gone, or this is no worker's start */
        if (w.request.ask == GV_ASK_QUIT)
            return 0;
        int rc = serve();
        if (rc)
            return rc;
    }
}
