/* One entry's file: found or made, locked, mapped. */
#include "plugin/registry/entry.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A rank that finds its file swept away, or decided, tries again; more often than this only if
 * something fights us. */
#define TRIES 64
/* Generations of one key that may be alive together. */
#define GENERATIONS 1024

/* Whether all of its memory is there. Where it is not, and tmpfs is full, the first write to it
 * would raise SIGBUS. */
static bool has_room(const struct stat *st)
{
    return st->st_size >= (off_t)sizeof(struct gv_shared) && st->st_blocks * 512 >= st->st_size;
}

static int check_file(int fd, const char *name, struct gv_error *err)
{
    struct stat st;
    if (fstat(fd, &st))
        return gv_error_set(err, "cannot look at registry entry %s: %s", name, strerror(errno));
    if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077))
        return gv_error_set(
            err, "registry entry %s is not a private file of this user; remove it", name);
    if (st.st_size > (off_t)sizeof(struct gv_shared))
        return gv_error_set(err, "registry entry %s has another size; remove it", name);
    int rc = has_room(&st) ? 0 : posix_fallocate(fd, 0, sizeof(struct gv_shared));
    if (rc)
        return gv_error_set(
            err, "no room for registry entry %s: %s; free or enlarge /dev/shm", name, strerror(rc));
    return 0;
}

/* The lock is shared among the ranks; only a sweeper holds it alone, and for an instant. */
static int lock_shared(int fd)
{
    for (int i = 0; i < 100; i++) {
        if (!flock(fd, LOCK_SH | LOCK_NB))
            return 0;
        if (errno != EWOULDBLOCK && errno != EINTR)
            return -1;
        nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    }
    return -1;
}

/* Whether the name still leads to the file that is open as `fd`. */
static bool still_there(int dirfd, const char *name, int fd)
{
    struct stat by_name, by_fd;
    return !fstatat(dirfd, name, &by_name, AT_SYMLINK_NOFOLLOW) && !fstat(fd, &by_fd) &&
           by_name.st_ino == by_fd.st_ino && by_name.st_dev == by_fd.st_dev;
}

static struct gv_shared *map(int fd, const char *name, struct gv_error *err)
{
    struct gv_shared *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (shared == MAP_FAILED) {
        gv_error_set(err, "cannot map registry entry %s: %s", name, strerror(errno));
        return NULL;
    }
    uint32_t none = 0;
    if (!atomic_compare_exchange_strong(&shared->magic, &none, GV_REGISTRY_MAGIC) &&
        none != GV_REGISTRY_MAGIC) {
        munmap(shared, sizeof(*shared));
        gv_error_set(err, "registry entry %s comes from another version of this plugin", name);
        return NULL;
    }
    return shared;
}

/* 0: open and locked; 1: try the same name again; -1: error. */
static int
try_open(int dirfd, const char *name, struct gv_registry_entry *entry, struct gv_error *err)
{
    int fd = openat(dirfd, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
    if (fd < 0)
        return gv_error_set(
            err, "cannot open registry entry %s: %s; free or enlarge /dev/shm", name,
            strerror(errno));
    if (check_file(fd, name, err))
        goto close_fd;
    if (lock_shared(fd)) {
        gv_error_set(
            err,
            errno == EWOULDBLOCK ? "registry entry %s stays locked by another program"
                                 : "registry entry %s cannot be locked: %s",
            name, strerror(errno));
        goto close_fd;
    }
    if (!still_there(dirfd, name, fd)) {
        close(fd);
        return 1;
    }
    entry->shared = map(fd, name, err);
    if (!entry->shared)
        goto close_fd;
    entry->fd = fd;
    return 0;
close_fd:
    close(fd);
    return -1;
}

int gv_entry_open(
    const char *folder, uint64_t key, struct gv_registry_entry *entry, struct gv_error *err)
{
    int dirfd = gv_folder_open(folder, err);
    if (dirfd < 0)
        return -1;
    int generation = 0, rc = 1;
    for (int tries = 0; rc == 1 && tries < TRIES && generation < GENERATIONS; tries++) {
        char name[40];
        snprintf(name, sizeof(name), "c-%016" PRIx64 "-%d", key, generation);
        rc = try_open(dirfd, name, entry, err);
        if (rc)
            continue;
        snprintf(entry->path, sizeof(entry->path), "%s/%s", folder, name);
        if (atomic_load(&entry->shared->word) == GV_OPEN)
            break;
        gv_entry_close(entry);
        generation++;
        tries = 0;
        rc = 1;
    }
    close(dirfd);
    if (rc == 1)
        return gv_error_set(
            err, "registry entry of communicator %016" PRIx64 " keeps vanishing", key);
    return rc;
}

void gv_entry_close(struct gv_registry_entry *entry)
{
    munmap(entry->shared, sizeof(*entry->shared));
    /* Alone now? Then nobody can be waiting for this file, and it goes. */
    if (!flock(entry->fd, LOCK_EX | LOCK_NB)) {
        struct stat by_name, by_fd;
        if (!lstat(entry->path, &by_name) && !fstat(entry->fd, &by_fd) &&
            by_name.st_ino == by_fd.st_ino)
            unlink(entry->path);
    }
    close(entry->fd);
    entry->shared = NULL;
    entry->fd = -1;
}
