/* How a rank makes its communicators, as a program would. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "testbench/host/gv_fakecuda.h"
#include "testbench/host/worker.h"

bool gvh_in(const struct gvh_wanted *comm, int gpu)
{
    for (int i = 0; i < comm->n; i++)
        if (comm->gpus[i] == gpu)
            return true;
    return false;
}

int gvh_ordinal(const struct gvh_job *job, int gpu)
{
    int list[GV_MAX_GPUS];
    int n = job->visible ? gv_gpulist_parse(job->visible, list, NULL) : 0;
    if (!job->visible)
        return gpu;
    for (int i = 0; i < n; i++)
        if (list[i] == gpu)
            return i;
    return -1;
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e3 + t.tv_nsec * 1e-6;
}

static int rank_of(const struct gvh_wanted *comm, int gpu)
{
    int r = 0;
    while (comm->gpus[r] != gpu)
        r++;
    return r;
}

/* The first rank makes the id, the others wait for it, as over a store. */
static int share_id(const struct gvh_job *job, int c, int rank, ncclUniqueId *id)
{
    char path[PATH_MAX + 32], temporary[PATH_MAX + 40];
    snprintf(path, sizeof(path), "%s/id-%d", job->dir, c);
    if (rank == 0) {
        int rc = ncclGetUniqueId(id); /* handed on even if it failed: the others fail alike then */
        snprintf(temporary, sizeof(temporary), "%s.new", path);
        FILE *file = fopen(temporary, "w");
        if (!file)
            return 2;
        fwrite(id, sizeof(*id), 1, file);
        fclose(file);
        return rename(temporary, path) ? 2 : rc;
    }
    double end = now_ms() + (job->timeout_ms ? job->timeout_ms : 60000);
    while (access(path, R_OK)) {
        if (now_ms() > end)
            return 2;
        nanosleep(&(struct timespec){0, 500000}, NULL);
    }
    FILE *file = fopen(path, "r");
    size_t got = file ? fread(id, sizeof(*id), 1, file) : 0;
    if (file)
        fclose(file);
    return got == 1 ? 0 : 2;
}

/* As the release's own NCCL_CONFIG_INITIALIZER: older ones are shorter. */
static ncclConfig_t config_of(const struct gvh_job *job)
{
    int v = job->release.version;
    size_t size = v >= 22800   ? sizeof(ncclConfig_t)
                  : v >= 22700 ? offsetof(ncclConfig_t, nchannels_per_net_peer)
                  : v >= 22500 ? offsetof(ncclConfig_t, comm_name)
                               : offsetof(ncclConfig_t, traffic_class);
    return (ncclConfig_t){
        .size = size,
        .magic = GV_HOST_CONFIG_MAGIC,
        .version = (unsigned)v,
        .blocking = job->nonblocking ? 0 : GV_HOST_UNDEF,
        .cga_cluster_size = GV_HOST_UNDEF,
        .min_ctas = GV_HOST_UNDEF,
        .max_ctas = GV_HOST_UNDEF,
        .split_share = job->share ? 1 : GV_HOST_UNDEF,
        .traffic_class = GV_HOST_UNDEF,
        .collnet_enable = GV_HOST_UNDEF,
        .cta_policy = GV_HOST_UNDEF,
        .shrink_share = job->share ? 1 : GV_HOST_UNDEF,
        .nvls_ctas = GV_HOST_UNDEF,
        .nchannels_per_net_peer = GV_HOST_UNDEF,
        .nvlink_centric_sched = GV_HOST_UNDEF,
    };
}

static int call_init(
    const struct gvh_job *job, const struct gvh_wanted *wanted, ncclUniqueId id, int rank,
    ncclComm_t *out)
{
    ncclConfig_t config = config_of(job);
    int nranks = wanted->n * job->nodes;
    enum gvh_how how = job->how;

    if (how == GVH_HOW_RANK && (job->nonblocking || job->share))
        how = GVH_HOW_CONFIG;
    if (how == GVH_HOW_CONFIG)
        return ncclCommInitRankConfig(out, nranks, id, rank, &config);
    if (how == GVH_HOW_SCALABLE)
        return ncclCommInitRankScalable(out, nranks, rank, 1, &id, &config);
    return ncclCommInitRank(out, nranks, id, rank);
}

/* A non-blocking call is over when its communicator says so. */
static int settle(ncclComm_t comm, int rc)
{
    while (rc == 7 && comm && !ncclCommGetAsyncError(comm, &rc) && rc == 7)
        nanosleep(&(struct timespec){0, 200000}, NULL);
    return rc;
}

static void keep(struct gvh_made *made, int rc, double since)
{
    made->rc = rc;
    made->ms = now_ms() - since;
    if (rc)
        snprintf(
            made->error, sizeof(made->error), "%s",
            made->comm && ncclGetLastError(made->comm)[0] ? ncclGetLastError(made->comm)
                                                          : ncclGetErrorString(rc));
    __atomic_store_n(&made->done, true, __ATOMIC_RELEASE);
}

static void make_new(struct gvh_work *work, int c, int gpu)
{
    const struct gvh_wanted *wanted = &work->job->comms[c];
    struct gvh_made *made = &work->made[c][gpu];
    int rank = rank_of(wanted, gpu);
    ncclUniqueId id = {0};
    int rc = share_id(work->job, c, rank, &id);

    gvh_fault_late(work, gpu);
    double since = now_ms();
    void *watch = gvh_fault_watch(work, c, made);
    if (!rc)
        rc = settle(made->comm, call_init(work->job, wanted, id, rank, &made->comm));
    if (rc == 7)
        rc = settle(made->comm, rc);
    keep(made, rc, since);
    gvh_fault_unwatch(watch);
}

/* The child of this split that the GPU goes to, or -1. */
static int child_of(const struct gvh_job *job, int c, int gpu)
{
    for (int k = c; k < job->ncomms && job->comms[k].step == job->comms[c].step; k++)
        if (gvh_in(&job->comms[k], gpu))
            return k;
    return -1;
}

static void make_split(struct gvh_work *work, int c, int gpu)
{
    const struct gvh_job *job = work->job;
    int child = child_of(job, c, gpu), parent = job->comms[c].parent;
    struct gvh_made unused = {0}, *made = child >= 0 ? &work->made[child][gpu] : &unused;
    ncclComm_t from = work->made[parent][gpu].comm;
    ncclConfig_t config = config_of(job);
    int color = child >= 0 ? job->comms[child].color : -1;
    int key = child >= 0 ? rank_of(&job->comms[child], gpu) : 0;

    gv_host_tag(child >= 0 ? child : parent);
    gvh_fault_late(work, gpu);
    double since = now_ms();
    made->entered = true;
    int rc = work->made[parent][gpu].rc
                 ? 4
                 : ncclCommSplit(from, color, key, &made->comm, job->share ? &config : NULL);
    keep(made, settle(rc == 7 ? from : made->comm, rc), since);
}

static void make_shrink(struct gvh_work *work, int c, int gpu)
{
    const struct gvh_job *job = work->job;
    const struct gvh_wanted *parent = &job->comms[job->comms[c].parent];
    struct gvh_made *made = &work->made[c][gpu];
    ncclComm_t from = work->made[job->comms[c].parent][gpu].comm;
    int gone[GV_MAX_GPUS], n = 0;

    for (int r = 0; r < parent->n; r++)
        if (!gvh_in(&job->comms[c], parent->gpus[r]))
            gone[n++] = r;
    gvh_fault_late(work, gpu);
    double since = now_ms();
    int rc = work->made[job->comms[c].parent][gpu].rc
                 ? 4
                 : ncclCommShrink(from, gone, n, &made->comm, NULL, 0);
    keep(made, settle(rc == 7 ? from : made->comm, rc), since);
}

/* True if communicator c is the first child of its split. */
static bool first_of_split(const struct gvh_job *job, int c)
{
    return c == 0 || job->comms[c - 1].step != job->comms[c].step;
}

void gvh_make(struct gvh_work *work, int c, int gpu)
{
    const struct gvh_wanted *wanted = &work->job->comms[c];
    int ordinal = gvh_ordinal(work->job, gpu);

    gv_fakecuda_set_device(ordinal < 0 ? 0 : ordinal);
    gvh_fault_gpu(gpu);
    gv_host_tag(c);
    if (wanted->origin == GVH_SPLIT) {
        if (first_of_split(work->job, c) && gvh_in(&work->job->comms[wanted->parent], gpu))
            make_split(work, c, gpu);
        return;
    }
    if (!gvh_in(wanted, gpu))
        return;
    work->made[c][gpu].entered = true;
    if (wanted->origin == GVH_SHRINK)
        make_shrink(work, c, gpu);
    else
        make_new(work, c, gpu);
}

void gvh_make_all(struct gvh_work *work, int c)
{
    const struct gvh_wanted *wanted = &work->job->comms[c];
    ncclComm_t comms[GV_MAX_GPUS] = {NULL};
    int devices[GV_MAX_GPUS];

    for (int i = 0; i < wanted->n; i++)
        devices[i] = gvh_ordinal(work->job, wanted->gpus[i]);
    gv_host_tag(c);
    gvh_fault_gpu(wanted->gpus[0]);
    double since = now_ms();
    int rc = ncclCommInitAll(comms, wanted->n, devices);
    for (int i = 0; i < wanted->n; i++) {
        struct gvh_made *made = &work->made[c][wanted->gpus[i]];
        made->comm = comms[i];
        made->entered = true;
        keep(made, rc, since);
    }
}
