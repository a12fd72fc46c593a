/* What a system does to a job, with the real plugin in it:
 *
 *   gv-torture-system clock         the wall clock jumps by days at every look at it
 *   gv-torture-system signals       signals without SA_RESTART arrive all the time, in every thread
 *   gv-torture-system full          a tmpfs of a few pages fills up before, between and while ranks
 *                                   register (a mount namespace of its own: root)
 *   gv-torture-system stale N       N entries whose ranks are dead, and one rank that comes
 *   gv-torture-system pid           a dead rank's process id belongs to another process (root)
 *   gv-torture-system leave N       processes that end in five ways while threads are inside, N
 * each gv-torture-system secure PATH   one rank in a process that may run with another user's
 * rights
 *
 * 0 where all is as it must be, 77 where this system does not let it be tried. */
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plugin/core/gv_comm.h"
#include "testbench/host/gv_fakecuda.h"
#include "tests/torture/system.h"

#define VISIBLE __attribute__((visibility("default")))

const int gv_system_gpus[GV_SYSTEM_RANKS] = {0, 5};
struct gv_world gv_system_world;
struct gv_drive_plugin gv_system_plugin;

void gv_system_begin(void)
{
    gv_system_plugin = gv_inside_begin(&gv_system_world);
}

/* --- clocks --- */

static atomic_bool jumping;
static atomic_uint looks;

/* A day forward, ten back, and so on; never twice the same. */
static long jump(void)
{
    unsigned n = atomic_fetch_add(&looks, 1);
    long days = (n % 2 ? -10 : 1) * (long)(1 + n % 500);
    return atomic_load(&jumping) ? days * 86400 + 12345 : 0;
}

/* These stand before libc's for the whole process: the plugin's calls come here. */
VISIBLE int clock_gettime(clockid_t clock, struct timespec *out)
{
    int rc = (int)syscall(SYS_clock_gettime, clock, out);
    if (!rc && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI))
        out->tv_sec += jump();
    return rc;
}

VISIBLE time_t time(time_t *out)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    if (out)
        *out = t.tv_sec;
    return t.tv_sec;
}

VISIBLE int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
    struct timespec t;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &t);
    *out = (struct timeval){t.tv_sec, t.tv_nsec / 1000};
    return 0;
}

double gv_system_now_s(void)
{
    struct timespec t;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* --- what is tried under clocks and signals --- */

void gv_system_commit(int n, uint64_t id)
{
    struct gv_drive *drive = gv_drive_new(GV_SYSTEM_RANKS);
    for (int i = 0; i < n; i++) {
        struct gv_drive_result r =
            gv_drive_communicator(drive, &gv_system_plugin, id + (uint64_t)i, gv_system_gpus, !i);
        MUST(r.files == GV_SYSTEM_RANKS && r.contexts == GV_SYSTEM_RANKS);
    }
    gv_drive_free(drive);
}

static void *register_and_stay(void *done)
{
    void *ctx;
    gv_fakecuda_set_device(gv_system_gpus[1]);
    MUST(!gv_system_plugin.net->init(&ctx, 77, NULL, gv_world_logger, NULL));
    pthread_barrier_wait(done);
    pthread_barrier_wait(done);
    return NULL;
}

/* A rank whose neighbour has registered and does not go on: it waits its time, no more, no less. */
static void wait_in_vain(void)
{
    pthread_t other;
    pthread_barrier_t done;
    void *ctx;
    pthread_barrier_init(&done, NULL, 2);
    MUST(!pthread_create(&other, NULL, register_and_stay, &done));
    pthread_barrier_wait(&done);
    gv_fakecuda_set_device(gv_system_gpus[0]);
    MUST(!gv_system_plugin.net->init(&ctx, 77, NULL, gv_world_logger, NULL));
    double start = gv_system_now_s();
    MUST(!gv_system_plugin.env->get_env("NCCL_TOPO_FILE"));
    double took = gv_system_now_s() - start;
    printf("waited %.2f s of %.2f\n", took, GV_DECIDE_WAIT_MS / 1e3);
    MUST(took > GV_DECIDE_WAIT_MS / 1e3 - 0.1 && took < GV_DECIDE_WAIT_MS / 1e3 + GV_SYSTEM_LATE_S);
    gv_system_plugin.env->get_env("NCCL_GRAPH_FILE");
    pthread_barrier_wait(&done);
    pthread_join(other, NULL);
    pthread_barrier_destroy(&done);
}

/* The plugin itself asked for the time: what it logged is far from the truth. */
static void time_was_wrong(const char *log)
{
    char line[2048];
    long long told = 0;
    FILE *f = fopen(log, "r");
    MUST(f);
    while (fgets(line, sizeof(line), f)) {
        const char *at = strstr(line, "\"time\":");
        MUST(at);
        told = atoll(at + strlen("\"time\":"));
    }
    fclose(f);
    struct timespec t;
    syscall(SYS_clock_gettime, CLOCK_REALTIME, &t);
    MUST(told && llabs(told - t.tv_sec) > 3600);
}

static int clocks(void)
{
    char log[256];
    gv_system_begin();
    snprintf(log, sizeof(log), "%s/log", gv_system_world.dir);
    setenv("GV100_LOG", log, 1);
    atomic_store(&jumping, true);
    gv_system_commit(20, 1000);
    wait_in_vain();
    gv_system_commit(20, 2000);
    time_was_wrong(log);
    atomic_store(&jumping, false);
    return 0;
}

/* --- signals --- */

static atomic_ulong arrived;
static atomic_bool quiet;

static void on_signal(int number)
{
    (void)number;
    atomic_fetch_add(&arrived, 1);
}

static void *pelt(void *unused)
{
    long self = syscall(SYS_gettid);
    (void)unused;
    while (!atomic_load(&quiet)) {
        DIR *tasks = opendir("/proc/self/task");
        MUST(tasks);
        for (struct dirent *item; (item = readdir(tasks));)
            if (atol(item->d_name) > 0 && atol(item->d_name) != self)
                syscall(SYS_tgkill, getpid(), (pid_t)atol(item->d_name), SIGUSR1);
        closedir(tasks);
        usleep(100);
    }
    return NULL;
}

static int signals(void)
{
    pthread_t thread;
    struct sigaction action = {.sa_handler = on_signal}; /* no SA_RESTART */
    gv_system_begin();
    sigaction(SIGUSR1, &action, NULL);
    MUST(!pthread_create(&thread, NULL, pelt, NULL));
    setenv("NCCL_PROTO", "Simple", 1); /* every communicator decides anew */
    gv_system_commit(100, 1000);
    unsigned long before = atomic_load(&arrived);
    wait_in_vain();
    printf("%lu signals, %lu while waiting\n", atomic_load(&arrived), arrived - before);
    MUST(atomic_load(&arrived) > before + 100);
    atomic_store(&quiet, true);
    pthread_join(thread, NULL);
    return 0;
}

/* --- ends --- */

static void *make_for_ever(void *first)
{
    struct gv_drive *drive = gv_drive_new(GV_SYSTEM_RANKS);
    for (uint64_t id = (uint64_t)(uintptr_t)first;; id++)
        gv_drive_communicator(drive, &gv_system_plugin, id, gv_system_gpus, false);
    return NULL;
}

static void *tune_for_ever(void *unused)
{
    void *ctx = NULL;
    float costs[7][3], *rows = costs[0];
    (void)unused;
    gv_fakecuda_set_device(gv_system_gpus[0]);
    gv_system_plugin.tuner->init(&ctx, 7, 1, 1, gv_world_logger, NULL, NULL);
    for (;;) {
        int channels = 0;
        for (int i = 0; i < 21; i++)
            rows[i] = 1;
        gv_system_plugin.tuner->get_coll_info(
            ctx, 4, 1 << 20, 1, (float **)costs, 7, 3, 0, &channels);
        gv_system_plugin.env->get_env("NCCL_TOPO_FILE");
        gv_system_plugin.env->get_env("NCCL_ALGO");
    }
    return NULL;
}

static void *end_from_here(void *unused)
{
    (void)unused;
    usleep(20000);
    exit(0);
}

static void end(int how)
{
    pthread_t thread;
    MUST(!pthread_create(&thread, NULL, make_for_ever, (void *)(uintptr_t)1000));
    for (int i = 0; i < 3; i++)
        MUST(!pthread_create(&thread, NULL, tune_for_ever, NULL));
    usleep(20000);
    if (how == 0)
        exit(0);
    if (how == 1)
        _exit(0);
    if (how == 2)
        quick_exit(0);
    MUST(!pthread_create(&thread, NULL, end_from_here, NULL));
    if (how == 3)
        pthread_exit(NULL);
    for (;;)
        gv_system_plugin.env->get_env("NCCL_PROTO");
}

static int leave(int n)
{
    gv_system_begin();
    for (int i = 0; i < 5 * n; i++) {
        int status;
        pid_t child = fork();
        MUST(child >= 0);
        if (!child) {
            gv_system_world.dir[0] = 0;
            alarm(20);
            end(i % 5);
        }
        MUST(waitpid(child, &status, 0) == child);
        if (status)
            fprintf(stderr, "end %d: %#x\n", i % 5, (unsigned)status);
        MUST(!status);
    }
    return 0;
}

/* --- another user's rights --- */

/* Does what NCCL would, in the environment as it is, and says whether libc believes it. */
static int secure(const char *path)
{
    void *ctx = NULL;
    gv_system_plugin = gv_inside_slots(gv_inside_open(path));
    MUST(!gv_system_plugin.env->init(2, 28, 9, "", gv_world_logger));
    gv_fakecuda_set_device(0);
    MUST(!gv_system_plugin.net->init(&ctx, 99, NULL, gv_world_logger, NULL));
    gv_system_plugin.env->get_env("NCCL_TOPO_FILE");
    gv_system_plugin.env->get_env("NCCL_GRAPH_FILE");
    MUST(!gv_system_plugin.tuner->init(&ctx, 99, 1, 1, gv_world_logger, NULL, NULL));
    MUST(!gv_system_plugin.tuner->finalize(ctx));
    puts(getauxval(AT_SECURE) ? "secure" : "usual");
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "", *value = argc > 2 ? argv[2] : "0";
    int rc = 2;
    if (!strcmp(what, "clock"))
        rc = clocks();
    else if (!strcmp(what, "signals"))
        rc = signals();
    else if (!strcmp(what, "full"))
        rc = gv_system_full();
    else if (!strcmp(what, "stale"))
        rc = gv_system_stale(atoi(value));
    else if (!strcmp(what, "pid"))
        rc = gv_system_pids();
    else if (!strcmp(what, "leave"))
        rc = leave(atoi(value));
    else if (!strcmp(what, "secure"))
        return secure(value);
    if (gv_system_world.dir[0])
        gv_world_close(&gv_system_world);
    return rc;
}