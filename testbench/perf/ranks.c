#include <pthread.h>
#include <stdlib.h>

#include "testbench/perf/perf.h"

enum step { OPEN, INIT, RUN, DESTROY };

struct local {
    struct gv_rank rank;
    pthread_t thread;
    struct gv_ran ran;
    struct gv_error err;
    int rc;
};

static struct {
    struct gv_worker_setup setup;
    struct gv_worker_run run;
    struct gv_nccl_id id;
    struct local local[GV_MAX_GPUS];
    enum step step;
} all; /* one communicator a process */

static void *work(void *user)
{
    struct local *l = user;
    if (l->rank.ctx)
        l->rank.gpus->cuda.ctx_set(l->rank.ctx); /* a new thread has none */
    if (all.step == OPEN)
        l->rc = gv_rank_open(&l->rank, &l->err);
    else if (all.step == INIT)
        l->rc = gv_rank_init(&l->rank, &all.id, &l->err);
    else if (all.step == RUN)
        l->rc = gv_rank_run(&l->rank, &all.run, &l->ran, &l->err);
    else
        l->rc = gv_rank_destroy(&l->rank, &l->err);
    if (!l->rc)
        return NULL;
    printf("Test NCCL failure: rank %d: %s\n", l->rank.rank, l->err.text); /* others may wait */
    fflush(stdout);
    _Exit(3);
}

static void together(enum step step)
{
    all.step = step;
    for (int i = 0; i < all.setup.nranks; i++)
        if (pthread_create(&all.local[i].thread, NULL, work, &all.local[i]))
            abort();
    for (int i = 0; i < all.setup.nranks; i++)
        pthread_join(all.local[i].thread, NULL);
}

int perf_open(struct perf *p, struct gv_error *err)
{
    if (gv_gpus_open(&p->gpus, NULL, NULL, err) || gv_nccl_open(&p->nccl, NULL, err))
        return -1;
    if (p->ngpus > p->gpus.n)
        return gv_error_set(
            err, "Invalid number of GPUs: %d requested but only %d were found.", p->ngpus,
            p->gpus.n);
    all.setup = (struct gv_worker_setup){
        .nranks = p->ngpus,
        .nlocal = p->ngpus,
        .buffer_bytes = p->max_bytes,
        .check_bytes = 4096, /* of a virtual buffer only the ends are moved */
        .staging_bytes = (size_t)64 << 10,
    };
    for (int i = 0; i < p->ngpus; i++)
        all.local[i].rank = (struct gv_rank){
            .nccl = &p->nccl, .gpus = &p->gpus, .setup = &all.setup, .rank = i, .gpu = i};
    together(OPEN);
    p->gpus.cuda.ctx_set(all.local[0].rank.ctx);
    gv_nccl_result rc = p->nccl.get_id(&all.id);
    if (rc)
        return gv_nccl_fail(&p->nccl, rc, "ncclGetUniqueId", err);
    together(INIT);
    return 0;
}

int perf_run(struct perf *p, const struct gv_case *what, struct gv_ran *out, struct gv_error *err)
{
    (void)err;
    all.run =
        (struct gv_worker_run){.what = *what, .iterations = p->iterations, .warmups = p->warmups};
    together(RUN);
    *out = (struct gv_ran){.time_us = 0};
    for (int i = 0; i < p->ngpus; i++) {
        out->time_us += all.local[i].ran.time_us / p->ngpus;
        out->wrong += all.local[i].ran.wrong;
    }
    return 0;
}

int perf_close(struct perf *p, struct gv_error *err)
{
    (void)p, (void)err;
    together(DESTROY);
    return 0;
}
