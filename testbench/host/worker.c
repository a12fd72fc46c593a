#include "testbench/host/worker.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testbench/host/gv_fakecuda.h"

/* A thread's share: one GPU or all (-1), one communicator or all in their order (-1). */
struct unit {
    struct gvh_work *work;
    int gpu, comm;
    void (*run)(struct unit *);
    pthread_t thread;
};

static void *run_unit(void *user)
{
    struct unit *unit = user;
    unit->run(unit);
    return NULL;
}

static void run_units(struct unit *units, int n)
{
    for (int i = 0; i < n; i++)
        if (pthread_create(&units[i].thread, NULL, run_unit, &units[i]))
            abort();
    for (int i = 0; i < n; i++)
        pthread_join(units[i].thread, NULL);
}

static void make_one(struct unit *u)
{
    if (u->gpu < 0)
        gvh_make_all(u->work, u->comm);
    else
        gvh_make(u->work, u->comm, u->gpu);
}

static void make_in_order(struct unit *u)
{
    for (int c = 0; c < u->work->job->ncomms; c++)
        gvh_make(u->work, c, u->gpu);
}

static void make_children(struct unit *u)
{
    for (int c = 0; c < u->work->job->ncomms; c++)
        if (u->work->job->comms[c].origin != GVH_NEW)
            gvh_make(u->work, c, u->gpu);
}

/* One thread for each GPU of the process. */
static void each_gpu(struct gvh_work *work, void (*run)(struct unit *))
{
    struct unit units[GV_MAX_GPUS];
    int n = 0;
    for (gv_gpuset rest = work->gpus; rest; rest &= rest - 1)
        units[n++] = (struct unit){work, gv_gpuset_first(rest), -1, run, 0};
    run_units(units, n);
}

/* One thread for each rank of each new communicator, all started together. */
static void make_together(struct gvh_work *work)
{
    static struct unit units[GVH_MAX_COMMS * GV_MAX_GPUS];
    int n = 0;
    for (int c = 0; c < work->job->ncomms; c++) {
        const struct gvh_wanted *wanted = &work->job->comms[c];
        if (wanted->origin != GVH_NEW)
            continue;
        if (work->job->how == GVH_HOW_ALL) {
            units[n++] = (struct unit){work, -1, c, make_one, 0};
            continue;
        }
        for (int i = 0; i < wanted->n; i++)
            if (gv_gpuset_has(work->gpus, wanted->gpus[i]))
                units[n++] = (struct unit){work, wanted->gpus[i], c, make_one, 0};
    }
    run_units(units, n);
}

static void make_comms(struct gvh_work *work)
{
    const struct gvh_job *job = work->job;
    if (!job->concurrent && job->how != GVH_HOW_ALL) {
        each_gpu(work, make_in_order);
        return;
    }
    if (job->concurrent) {
        make_together(work);
    } else {
        for (int c = 0; c < job->ncomms; c++)
            if (job->comms[c].origin == GVH_NEW)
                gvh_make_all(work, c);
    }
    each_gpu(work, make_children);
}

static bool usable(const struct gvh_made *made)
{
    return made->wanted && made->comm && !made->rc && !made->aborted;
}

static void wait_done(ncclComm_t comm, int *rc)
{
    while (*rc == 7)
        ncclCommGetAsyncError(comm, rc);
}

static void reduce(struct unit *u)
{
    gv_fakecuda_set_device(gvh_ordinal(u->work->job, u->gpu));
    for (int c = 0; c < u->work->job->ncomms; c++) {
        struct gvh_made *made = &u->work->made[c][u->gpu];
        if (!usable(made))
            continue;
        gv_host_tag(c);
        int rc = ncclAllReduce(NULL, NULL, u->work->job->bytes / 4, 7, 0, made->comm, NULL);
        wait_done(made->comm, &rc);
        made->rc = rc;
        made->reduced = !rc;
        if (rc)
            snprintf(made->error, sizeof(made->error), "%s", ncclGetLastError(made->comm));
    }
}

static void exchange(struct unit *u)
{
    gv_fakecuda_set_device(gvh_ordinal(u->work->job, u->gpu));
    for (int c = 0; c < u->work->job->ncomms; c++) {
        struct gvh_made *made = &u->work->made[c][u->gpu];
        if (!usable(made))
            continue;
        gv_host_tag(c);
        ncclGroupStart();
        for (int r = 0; r < u->work->job->comms[c].n; r++) {
            ncclSend(NULL, 1024, 7, r, made->comm, NULL);
            ncclRecv(NULL, 1024, 7, r, made->comm, NULL);
        }
        int rc = ncclGroupEnd();
        wait_done(made->comm, &rc);
        snprintf(
            made->alltoall, sizeof(made->alltoall), "%s", rc ? ncclGetLastError(made->comm) : "ok");
    }
}

static void destroy(struct unit *u)
{
    for (int c = 0; c < u->work->job->ncomms; c++) {
        struct gvh_made *made = &u->work->made[c][u->gpu];
        if (!made->comm || made->aborted || made->rc < 0)
            continue;
        int state = 0;
        ncclCommGetAsyncError(made->comm, &state);
        if (state == 7) /* its thread is no more */
            continue;
        gv_host_tag(c);
        int rc = made->rc ? ncclCommAbort(made->comm) : ncclCommDestroy(made->comm);
        if (rc && !made->rc) {
            made->rc = rc;
            snprintf(made->error, sizeof(made->error), "destroy: %s", ncclGetErrorString(rc));
        }
    }
}

static void expect(struct gvh_work *work)
{
    for (int c = 0; c < work->job->ncomms; c++)
        for (int i = 0; i < work->job->comms[c].n; i++) {
            int gpu = work->job->comms[c].gpus[i];
            struct gvh_made *made = &work->made[c][gpu];
            made->wanted = gv_gpuset_has(work->gpus, gpu);
            made->rc = -1;
        }
}

static bool failed(const struct gvh_made *made)
{
    bool exchanged = !made->alltoall[0] || !strcmp(made->alltoall, "ok");
    return made->wanted && (made->rc || !exchanged);
}

static bool any_failed(const struct gvh_work *work)
{
    for (int c = 0; c < work->job->ncomms; c++)
        for (int gpu = 0; gpu < GV_MAX_GPUS; gpu++)
            if (failed(&work->made[c][gpu]))
                return true;
    return false;
}

int gvh_work(const struct gvh_job *job, gv_gpuset gpus, const char *out)
{
    static struct gvh_work work;

    work.job = job;
    work.gpus = gpus;
    gv_host_trace(job->trace);
    gvh_fault_setup(&work);
    expect(&work);
    make_comms(&work);
    each_gpu(&work, reduce);
    if (job->alltoall)
        each_gpu(&work, exchange);
    each_gpu(&work, destroy);
    if (gvh_record(&work, out))
        return 2;
    return any_failed(&work);
}
