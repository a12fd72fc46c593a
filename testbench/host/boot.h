/* How ranks find each other: a shared file that all ranks of a communicator map, threads and
 * processes alike. */
#ifndef GV_HOST_BOOT_H
#define GV_HOST_BOOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GVH_BOOT_SLOT 512

struct gvh_boot_file;

struct gvh_boot {
    struct gvh_boot_file *file;
    int rank, nranks,
        nlocal; /* ranks from nlocal on are on pretended other nodes: never waited for */
    unsigned round;
    int *abort; /* atomically */
};

/* The process as all others of the job can name it. */
int gvh_process(void);

/* Maps the file for communicator `id` below GV_HOST_DIR. 0 or a result. */
int gvh_boot_open(struct gvh_boot *boot, uint64_t id, int rank, int nranks, int nlocal, int *abort);

/* All-gather of `size` bytes (GVH_BOOT_SLOT at most): all[rank] of each local rank. Ends early with
 * a result if the communicator is aborted, a rank failed or died (the real one waits for a failed
 * rank without end; the text says which), or GV_HOST_TIMEOUT_MS passed. `why` has 128 bytes. */
int gvh_boot_gather(struct gvh_boot *boot, const void *mine, size_t size, void *all, char *why);

/* Tells the others that this rank gave up. */
void gvh_boot_give_up(struct gvh_boot *boot, int result);
void gvh_boot_close(struct gvh_boot *boot);

#endif
