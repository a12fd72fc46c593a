/* ncclGroupStart to ncclGroupEnd: which thread runs what. */
#include <stdlib.h>

#include "testbench/host/engine.h"

#define MAX_JOBS 256
#define MAX_TASKS 8192

struct group {
    struct gvh_comm *jobs[MAX_JOBS];
    int njobs, ntasks, error;
    struct gvh_task tasks[MAX_TASKS];
};

static __thread int depth;
static __thread struct group *group; /* of the outermost ncclGroupStart */

int gvh_group_start(void)
{
    if (depth++ == 0)
        group = calloc(1, sizeof(*group));
    return group ? GVH_SUCCESS : GVH_SYSTEM_ERROR;
}

int gvh_launch(struct gvh_comm *comm)
{
    if (depth == 0)
        return gvh_init_rank(comm);
    if (group->njobs == MAX_JOBS)
        return GVH_INTERNAL_ERROR;
    group->jobs[group->njobs++] = comm;
    return GVH_SUCCESS;
}

/* A call outside a group is a group of its own. */
int gvh_task(struct gvh_comm *comm, const struct gvh_call *call)
{
    int rc = gvh_group_start();
    if (rc)
        return rc;
    if (group->ntasks < MAX_TASKS)
        group->tasks[group->ntasks++] = (struct gvh_task){comm, *call};
    else
        group->error = GVH_INTERNAL_ERROR;
    return gvh_group_end();
}

struct job {
    struct group *group;
    struct gvh_comm *comm;
    pthread_t thread;
    int result;
};

/* A job that fails ends the others of its group. */
static void *run_job(void *user)
{
    struct job *job = user;
    job->result = gvh_init_rank(job->comm);
    for (int i = 0; job->result && i < job->group->njobs; i++)
        __atomic_store_n(job->group->jobs[i]->abort, 1, __ATOMIC_RELEASE);
    return NULL;
}

static int run_threads(struct group *g)
{
    struct job jobs[MAX_JOBS];
    int rc = GVH_SUCCESS;

    for (int i = 0; i < g->njobs; i++) {
        jobs[i] = (struct job){g, g->jobs[i], 0, 0};
        if (pthread_create(&jobs[i].thread, NULL, run_job, &jobs[i]))
            abort();
    }
    for (int i = 0; i < g->njobs; i++) {
        pthread_join(jobs[i].thread, NULL);
        rc = rc ? rc : jobs[i].result;
    }
    return rc;
}

static int run_jobs(struct group *g)
{
    if (g->njobs == 1 && gvh_release()->sole_job_inline)
        return gvh_init_rank(g->jobs[0]);
    return g->njobs ? run_threads(g) : GVH_SUCCESS;
}

/* Whom a caller of a non-blocking call asks: the communicator, or the parent of one to come. */
static void mark(struct group *g, int result)
{
    for (int i = 0; i < g->njobs; i++)
        if (g->jobs[i]->parent && !g->jobs[i]->parent->blocking)
            __atomic_store_n(&g->jobs[i]->parent->result, result, __ATOMIC_RELEASE);
    for (int i = 0; i < g->ntasks; i++)
        if (!g->tasks[i].comm->blocking)
            __atomic_store_n(&g->tasks[i].comm->result, result, __ATOMIC_RELEASE);
}

static int run(struct group *g)
{
    int device = gvh_get_device();
    int rc = g->error ? g->error : run_jobs(g);
    if (!rc && g->ntasks)
        rc = gvh_perform(g->tasks, g->ntasks);
    gvh_set_device(device);
    mark(g, rc);
    free(g);
    return rc;
}

static void *run_detached(void *user)
{
    run(user);
    return NULL;
}

static bool is_nonblocking(const struct group *g)
{
    if (g->njobs)
        return !g->jobs[0]->blocking;
    return g->ntasks && !g->tasks[0].comm->blocking;
}

int gvh_group_end(void)
{
    pthread_t thread;
    struct group *g = group;

    if (depth == 0)
        return GVH_INVALID_USAGE;
    if (--depth > 0)
        return GVH_SUCCESS;
    group = NULL;
    if (!is_nonblocking(g))
        return run(g);
    for (int i = 0; i < g->njobs; i++)
        __atomic_store_n(&g->jobs[i]->result, GVH_IN_PROGRESS, __ATOMIC_RELEASE);
    mark(g, GVH_IN_PROGRESS);
    if (pthread_create(&thread, NULL, run_detached, g))
        abort();
    pthread_detach(thread);
    return GVH_IN_PROGRESS;
}

int ncclGroupStart(void)
{
    return gvh_group_start();
}

int ncclGroupEnd(void)
{
    return gvh_group_end();
}
