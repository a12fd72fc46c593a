/* Inside one process of a job. */
#ifndef GV_HOST_WORKER_H
#define GV_HOST_WORKER_H

#include "testbench/host/gv_host_nccl.h"
#include "testbench/host/job.h"

/* What became of one rank of one communicator. */
struct gvh_made {
    ncclComm_t comm;
    bool wanted;  /* this process has that rank */
    bool entered; /* it called NCCL */
    int rc;       /* -1: the call never came back */
    double ms;    /* of that call */
    char error[256], alltoall[256];
    bool reduced, aborted, done;
};

struct gvh_work {
    const struct gvh_job *job;
    gv_gpuset gpus;                                   /* of this process */
    struct gvh_made made[GVH_MAX_COMMS][GV_MAX_GPUS]; /* [communicator][GPU] */
};

/* make.c: one rank's part in communicator `c`; for a child, in the whole split. */
void gvh_make(struct gvh_work *work, int c, int gpu);
void gvh_make_all(struct gvh_work *work, int c); /* ncclCommInitAll */
bool gvh_in(const struct gvh_wanted *comm, int gpu);
int gvh_ordinal(
    const struct gvh_job *job, int gpu); /* CUDA's number of that GPU; -1: not visible */

/* fault.c */
void gvh_fault_setup(struct gvh_work *work);
void gvh_fault_late(const struct gvh_work *work, int gpu);
/* Aborts `made->comm` from another thread once any rank says so; NULL if no abort is asked for. */
void *gvh_fault_watch(struct gvh_work *work, int c, struct gvh_made *made);
void gvh_fault_unwatch(void *watch);
/* The GPU for which this thread works, for the faults. */
void gvh_fault_gpu(int gpu);

/* record.c */
int gvh_record(const struct gvh_work *work, const char *path);

#endif
