#include "testbench/host/boot.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "testbench/host/engine.h"

struct slot {
    unsigned round; /* how many gathers this rank has entered */
    int pid;        /* 0: not there yet */
    int failed;     /* result it gave up with */
    char data[2][GVH_BOOT_SLOT];
};

struct gvh_boot_file {
    struct slot slot[GVH_MAX_RANKS];
    unsigned meetings; /* a futex: moves when all are there */
};

/* A failed rank's group may still abort the others; only then is it a hang. */
#define GRACE_MS 300
/* How often a rank that waits looks whether it waits in vain. */
#define LOOK_MS 20

int gvh_boot_open(
    struct gvh_boot *boot, uint64_t id, int rank, int nranks, int nlocal, int *abort_flag)
{
    char path[PATH_MAX];
    const char *dir = getenv("GV_HOST_DIR");
    snprintf(path, sizeof(path), "%s/boot-%016lx", dir ? dir : "/tmp", (unsigned long)id);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    *boot = (struct gvh_boot){NULL, rank, nranks, nlocal, 0, abort_flag};
    if (fd < 0)
        return GVH_SYSTEM_ERROR;
    void *map = MAP_FAILED;
    if (!ftruncate(fd, sizeof(struct gvh_boot_file)))
        map = mmap(NULL, sizeof(struct gvh_boot_file), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (map == MAP_FAILED)
        return GVH_SYSTEM_ERROR;
    boot->file = map;
    __atomic_store_n(&boot->file->slot[rank].pid, gvh_process(), __ATOMIC_RELEASE);
    return 0;
}

/* Not getpid: ranks may live in PID namespaces of their own, /proc is the first one's. */
int gvh_process(void)
{
    char text[32];
    ssize_t n = readlink("/proc/self", text, sizeof(text) - 1);
    text[n > 0 ? n : 0] = 0;
    return n > 0 ? atoi(text) : (int)getpid();
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e3 + t.tv_nsec * 1e-6;
}

static double timeout_ms(void)
{
    const char *text = getenv("GV_HOST_TIMEOUT_MS");
    double ms = text ? atof(text) : 0;
    return ms > 0 ? ms : 60000;
}

/* True for a process that is no more, or only waits to be reaped. */
static bool dead(int pid)
{
    char path[64], line[512];
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return true;
    ssize_t n = read(fd, line, sizeof(line) - 1);
    close(fd);
    line[n > 0 ? n : 0] = 0;
    const char *state = strrchr(line, ')');
    return state && state[1] && (state[2] == 'Z' || state[2] == 'X');
}

/* Why the rank will never come, or 0. */
static int lost(const struct slot *slot, int rank, double waited, char *why)
{
    int failed = __atomic_load_n(&slot->failed, __ATOMIC_ACQUIRE);
    int pid = __atomic_load_n(&slot->pid, __ATOMIC_ACQUIRE);
    if (failed && waited > GRACE_MS) {
        snprintf(why, 128, "hangs: rank %d gave up with %d and is waited for", rank, failed);
        return GVH_SYSTEM_ERROR;
    }
    if (pid && pid != gvh_process() && dead(pid)) {
        snprintf(why, 128, "rank %d died", rank);
        return GVH_REMOTE_ERROR;
    }
    if (waited > timeout_ms()) {
        snprintf(why, 128, "hangs: rank %d never came", rank);
        return GVH_SYSTEM_ERROR;
    }
    return 0;
}

/* The first local rank that has not entered the round; nlocal: none. */
static int missing(const struct gvh_boot *boot, unsigned round)
{
    int r = 0;
    while (r < boot->nlocal &&
           __atomic_load_n(&boot->file->slot[r].round, __ATOMIC_SEQ_CST) >= round)
        r++;
    return r;
}

/* Whoever finds all of them there wakes the others: they may be threads or processes. */
static void wake(struct gvh_boot *boot)
{
    __atomic_fetch_add(&boot->file->meetings, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &boot->file->meetings, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static int wait_for_all(struct gvh_boot *boot, unsigned round, char *why)
{
    double since = now_ms(), looked = since;
    for (;;) {
        unsigned meetings = __atomic_load_n(&boot->file->meetings, __ATOMIC_SEQ_CST);
        int rank = missing(boot, round);
        if (rank == boot->nlocal)
            return 0;
        if (__atomic_load_n(boot->abort, __ATOMIC_ACQUIRE)) {
            snprintf(why, 128, "aborted");
            return GVH_INTERNAL_ERROR;
        }
        double now = now_ms();
        int rc = now - looked < LOOK_MS ? 0 : lost(&boot->file->slot[rank], rank, now - since, why);
        if (now - looked >= LOOK_MS)
            looked = now;
        if (rc)
            return rc;
        syscall(
            SYS_futex, &boot->file->meetings, FUTEX_WAIT, meetings,
            &(struct timespec){0, LOOK_MS * 1000000L}, NULL, 0);
    }
}

int gvh_boot_gather(struct gvh_boot *boot, const void *mine, size_t size, void *all, char *why)
{
    unsigned round = ++boot->round;
    struct slot *own = &boot->file->slot[boot->rank];

    why[0] = 0;
    memcpy(own->data[round % 2], mine, size);
    __atomic_store_n(&own->round, round, __ATOMIC_SEQ_CST);
    if (missing(boot, round) == boot->nlocal)
        wake(boot);
    int rc = wait_for_all(boot, round, why);
    for (int r = 0; !rc && all && r < boot->nlocal; r++)
        memcpy((char *)all + (size_t)r * size, boot->file->slot[r].data[round % 2], size);
    return rc;
}

void gvh_boot_give_up(struct gvh_boot *boot, int result)
{
    if (boot->file)
        __atomic_store_n(&boot->file->slot[boot->rank].failed, result, __ATOMIC_RELEASE);
}

void gvh_boot_close(struct gvh_boot *boot)
{
    if (boot->file)
        munmap(boot->file, sizeof(*boot->file));
    boot->file = NULL;
}
