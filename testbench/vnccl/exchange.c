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

void gvv_turn(struct gvv_shared *s)
{
    s->turn++;
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
