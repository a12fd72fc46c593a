/* Ranks that come late, die, or abort. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "testbench/host/worker.h"

static struct gvh_work *work_of_hook;
static __thread int thread_gpu = -1;

void gvh_fault_gpu(int gpu)
{
    thread_gpu = gpu;
}

static void sleep_ms(int ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, NULL);
}

static void abort_path(const struct gvh_job *job, int c, char *out, size_t size)
{
    snprintf(out, size, "%s/abort-%d", job->dir, c);
}

static bool meets(const struct gvh_fault *fault, int gpu, const char *step)
{
    return fault->gpu >= 0 && fault->gpu == gpu && !strcmp(fault->step, step);
}

/* The GPU of a rank: init may run in a thread that NCCL made. */
static int gpu_of(const struct gvh_job *job, int tag, int rank)
{
    if (tag >= 0 && rank >= 0 && tag < job->ncomms && rank < job->comms[tag].n)
        return job->comms[tag].gpus[rank];
    return thread_gpu;
}

static void on_step(const char *step, int tag, int rank)
{
    const struct gvh_job *job = work_of_hook->job;
    int gpu = gpu_of(job, tag, rank);
    char path[PATH_MAX + 32];

    if (meets(&job->die, gpu, step)) {
        if (job->mode == GVH_PROCESSES)
            kill(getpid(), SIGKILL);
        pthread_exit(NULL);
    }
    if (meets(&job->abort, gpu, step)) {
        abort_path(job, tag, path, sizeof(path));
        FILE *file = fopen(path, "w");
        if (file)
            fclose(file);
        sleep_ms(50);
    }
}

void gvh_fault_setup(struct gvh_work *work)
{
    work_of_hook = work;
    gv_host_on_step(on_step);
}

void gvh_fault_late(const struct gvh_work *work, int gpu)
{
    if (work->job->late.gpu == gpu)
        sleep_ms(work->job->late.ms);
}

struct watch {
    pthread_t thread;
    struct gvh_made *made;
    char path[PATH_MAX + 32];
    bool stop;
};

static void *run_watch(void *user)
{
    struct watch *watch = user;
    while (!__atomic_load_n(&watch->stop, __ATOMIC_ACQUIRE)) {
        ncclComm_t comm = __atomic_load_n(&watch->made->comm, __ATOMIC_ACQUIRE);
        if (comm && !access(watch->path, F_OK)) {
            watch->made->aborted = true;
            ncclCommAbort(comm);
            return NULL;
        }
        sleep_ms(1);
    }
    return NULL;
}

void *gvh_fault_watch(struct gvh_work *work, int c, struct gvh_made *made)
{
    struct watch *watch;
    if (work->job->abort.gpu < 0 || !(watch = calloc(1, sizeof(*watch))))
        return NULL;
    watch->made = made;
    abort_path(work->job, c, watch->path, sizeof(watch->path));
    if (pthread_create(&watch->thread, NULL, run_watch, watch))
        abort();
    return watch;
}

void gvh_fault_unwatch(void *user)
{
    struct watch *watch = user;
    if (!watch)
        return;
    __atomic_store_n(&watch->stop, true, __ATOMIC_RELEASE);
    pthread_join(watch->thread, NULL);
    free(watch);
}
