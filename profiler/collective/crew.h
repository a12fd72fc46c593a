/* The workers of one measurement, as the command sees them: started, asked, and ended within a
 * bound whatever they do. */
#ifndef GV_COLLECTIVE_CREW_H
#define GV_COLLECTIVE_CREW_H

#include <sys/types.h>

#include "profiler/collective/wire.h"

struct gv_member {
    pid_t pid;
    int fd;
    int first_rank, nlocal;
    bool answered;
    char step[GV_MAX_GPUS][96]; /* [nlocal], the last one told */
    long log_at;                /* how far its NCCL log was read */
};

struct gv_crew {
    const struct gv_collective_options *options;
    int gpu[GV_MAX_GPUS], nranks;
    size_t buffer_bytes;
    struct gv_member member[GV_MAX_GPUS];
    int n; /* members alive; 0: none was started or all were ended */
    int nccl_version;
    char dir[PATH_MAX]; /* temporary, holds logs and the registry of these workers */
    long decisions_at;
};

/* Makes the temporary folder; no process yet. */
int gv_crew_init(
    struct gv_crew *crew, const struct gv_collective_options *options, const int *gpus, int nranks,
    size_t buffer_bytes, struct gv_error *err);
/* Ends what is left, removes the folder. */
void gv_crew_finish(struct gv_crew *crew);

/* Starts the workers and sets them up, if they are not there. 0, or -1 with `err`. */
int gv_crew_start(struct gv_crew *crew, struct gv_error *err);

/* Asks all members the same and waits for all answers, `timeout_s` at most. Where one fails, dies
 * or says nothing in time, all are ended, `err` names rank, GPU and last step, and -1 is returned.
 * `ran` (may be NULL) receives the mean time and the most of everything else. */
int gv_crew_ask(
    struct gv_crew *crew, const struct gv_request *request, double timeout_s, struct gv_ran *ran,
    struct gv_error *err);

/* A new communicator: id from the first member, then INIT. `force` as GV100_FORCE. */
int gv_crew_communicator(
    struct gv_crew *crew, const char *force, double timeout_s, struct gv_error *err);

/* Kills all members and removes what they left in /dev/shm. */
void gv_crew_end(struct gv_crew *crew);

/* What NCCL and the plugin logged since the last call; `wiring` in GPU numbers. */
void gv_crew_read_logs(struct gv_crew *crew, struct gv_wiring *wiring);

/* environment.c: the environment of a worker, for gv_collective_environment_free; NULL: out of
 * memory. */
char **gv_crew_environment(const struct gv_crew *crew, int member);

#endif
