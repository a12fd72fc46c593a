#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "testbench/vnccl/vnccl.h"

/* Two rooms for each rank, used in turn: a rank enters the next meeting only after it has read what
 * the last one brought, so the room before that is free again. */
struct gvv_shared {
    unsigned char *at;
    int nranks;
    unsigned turn;
};

size_t gvv_room(void)
{
    const char *text = getenv("GV_VIRTUAL_CAP");
    size_t room = text && *text ? strtoull(text, NULL, 10) : (size_t)64 << 10;
    return room & ~(size_t)4095;
}

struct gvv_shared *gvv_shared(struct gvh_comm *comm)
{
    char path[PATH_MAX];
    const char *dir = getenv("GV_HOST_DIR");
    struct gvv_shared *s = comm->moved;
    if (s)
        return s;
    size_t size = 2 * gvv_room() * (size_t)comm->nranks;
    snprintf(path, sizeof(path), "%s/data-%016lx", dir ? dir : "/tmp", (unsigned long)comm->key);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return NULL;
    void *at = ftruncate(fd, (off_t)size)
                   ? MAP_FAILED
                   : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    s = at == MAP_FAILED ? NULL : calloc(1, sizeof(*s));
    if (!s)
        return NULL;
    s->at = at;
    s->nranks = comm->nranks;
    return comm->moved = s;
}

unsigned char *gvv_slot(struct gvv_shared *s, int rank)
{
    return s->at + (2 * (size_t)rank + s->turn % 2) * gvv_room();
}

/* One clock for all GPUs of a process: the first of its ranks moves it, the others find it moved.
 */
int gvv_end(struct gvh_comm *comm, void *stream, double us)
{
    static struct {
        uint64_t key;
        unsigned turns;
    } passed[256]; /* by communicator; the oldest is forgotten, its ranks have long gone */
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static int n;
    struct gvv_shared *s = comm->moved;
    int i = 0, rc = 0;
    pthread_mutex_lock(&lock);
    while (i < 256 && passed[i].key != comm->key)
        i++;
    if (i == 256) {
        i = n++ % 256;
        passed[i].key = comm->key;
        passed[i].turns = 0;
    }
    s->turn++;
    if (passed[i].turns < s->turn) {
        passed[i].turns = s->turn;
        rc = gvv_pass(stream, us);
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

int gvv_meet(struct gvh_comm *comm, double *us)
{
    double all[GVH_MAX_RANKS];
    char why[128];
    int rc = gvh_boot_gather(&comm->boot, us, sizeof(*us), all, why);
    if (rc)
        return gvh_fail(comm, rc, "a call of this communicator: %s", why);
    *us = all[0];
    return GVH_SUCCESS;
}

struct gvv_ends gvv_ends(size_t bytes, size_t room)
{
    size_t half = room / 2 & ~(size_t)15;
    if (bytes <= 2 * half)
        return (struct gvv_ends){bytes, 0, bytes};
    return (struct gvv_ends){half, half, bytes};
}

void gvv_pack(unsigned char *room, const void *piece, struct gvv_ends e)
{
    memcpy(room, piece, e.head);
    memcpy(room + e.head, (const unsigned char *)piece + e.bytes - e.tail, e.tail);
}

void gvv_unpack(void *piece, const unsigned char *room, struct gvv_ends e)
{
    memcpy(piece, room, e.head);
    memcpy((unsigned char *)piece + e.bytes - e.tail, room + e.head, e.tail);
}
