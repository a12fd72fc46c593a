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
#include <errno.h>
#include <fcntl.h>
#include <dirent.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plugin/core/gv_comm.h"
#include "plugin/registry/entry.h"
#include "testbench/host/gv_fakecuda.h"
#include "tests/torture/inside.h"

#define VISIBLE __attribute__((visibility("default")))

enum { RANKS = 2, SKIPPED = 77, LATE_S = 4 };
static const int gpus[RANKS] = {0, 5}; /* a pair with a plan */

static struct gv_world world;
static struct gv_drive_plugin plugin;

static void begin(void)
{
    plugin = gv_inside_begin(&world);
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

static double now_s(void)
{
    struct timespec t;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* --- what is tried under clocks and signals --- */

static void commit(int n, uint64_t id)
{
    struct gv_drive *drive = gv_drive_new(RANKS);
    for (int i = 0; i < n; i++) {
        struct gv_drive_result r =
            gv_drive_communicator(drive, &plugin, id + (uint64_t)i, gpus, !i);
        MUST(r.files == RANKS && r.contexts == RANKS);
    }
    gv_drive_free(drive);
}

static void *register_and_stay(void *done)
{
    void *ctx;
    gv_fakecuda_set_device(gpus[1]);
    MUST(!plugin.net->init(&ctx, 77, NULL, gv_world_logger, NULL));
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
    gv_fakecuda_set_device(gpus[0]);
    MUST(!plugin.net->init(&ctx, 77, NULL, gv_world_logger, NULL));
    double start = now_s();
    MUST(!plugin.env->get_env("NCCL_TOPO_FILE"));
    double took = now_s() - start;
    printf("waited %.2f s of %.2f\n", took, GV_DECIDE_WAIT_MS / 1e3);
    MUST(took > GV_DECIDE_WAIT_MS / 1e3 - 0.1 && took < GV_DECIDE_WAIT_MS / 1e3 + LATE_S);
    plugin.env->get_env("NCCL_GRAPH_FILE");
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
    begin();
    snprintf(log, sizeof(log), "%s/log", world.dir);
    setenv("GV100_LOG", log, 1);
    atomic_store(&jumping, true);
    commit(20, 1000);
    wait_in_vain();
    commit(20, 2000);
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
    begin();
    sigaction(SIGUSR1, &action, NULL);
    MUST(!pthread_create(&thread, NULL, pelt, NULL));
    setenv("NCCL_PROTO", "Simple", 1); /* every communicator decides anew */
    commit(100, 1000);
    unsigned long before = atomic_load(&arrived);
    wait_in_vain();
    printf("%lu signals, %lu while waiting\n", atomic_load(&arrived), arrived - before);
    MUST(atomic_load(&arrived) > before + 100);
    atomic_store(&quiet, true);
    pthread_join(thread, NULL);
    return 0;
}

/* --- a full tmpfs --- */

static char shm[64];

/* Pages that are free, taken by files of one page each until `keep` are left. */
static void fill(int keep)
{
    static const char page[4096];
    char path[128];
    int n = 0;
    for (;; n++) {
        snprintf(path, sizeof(path), "%s/fill-%d", shm, n);
        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0)
            break;
        ssize_t written = write(fd, page, sizeof(page));
        close(fd);
        if (written != sizeof(page))
            break;
    }
    unlink(path);
    for (int i = 1; i <= keep; i++) {
        snprintf(path, sizeof(path), "%s/fill-%d", shm, n - i);
        unlink(path);
    }
}

static void free_all(void)
{
    char path[128];
    for (int n = 0; n < 200; n++) {
        snprintf(path, sizeof(path), "%s/fill-%d", shm, n);
        unlink(path);
    }
}

static bool small_tmpfs(void)
{
    snprintf(shm, sizeof(shm), "/tmp/gv-torture-full-XXXXXX");
    MUST(mkdtemp(shm));
    if (!unshare(CLONE_NEWNS) && !mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
        !mount("none", shm, "tmpfs", 0, "size=128k,mode=1777"))
        return true;
    rmdir(shm);
    return false;
}

static int files_of(struct gv_drive *drive, uint64_t id)
{
    struct gv_drive_result r = gv_drive_communicator(drive, &plugin, id, gpus, false);
    return r.files;
}

/* A file of the right size without memory behind it, as ftruncate makes: no SIGBUS. */
static void hole(const char *registry)
{
    char path[256];
    struct gv_error err = {0};
    snprintf(path, sizeof(path), "%s/c-%016x-0", registry, 5);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    MUST(fd >= 0 && !ftruncate(fd, sizeof(struct gv_shared)));
    close(fd);
    fill(0);
    MUST(!gv_registry_join(registry, 5, 0, &err) && strstr(err.text, "no room"));
    free_all();
    struct gv_registry_entry *entry = gv_registry_join(registry, 5, 0, &err);
    MUST(entry);
    gv_registry_leave(entry);
}

struct filler {
    atomic_bool stop;
};

static void *fill_and_free(void *arg)
{
    struct filler *filler = arg;
    for (int i = 0; !atomic_load(&filler->stop); i++) {
        fill(i % 3);
        usleep(200);
        free_all();
    }
    return NULL;
}

/* The tmpfs fills up and empties all the time: two ranks have a plan both or neither. */
static void meanwhile(struct gv_drive *drive, int n)
{
    struct filler filler = {0};
    pthread_t thread;
    int planned = 0;
    MUST(!pthread_create(&thread, NULL, fill_and_free, &filler));
    for (int i = 0; i < n; i++) {
        int files = files_of(drive, 5000 + (uint64_t)i);
        MUST(files == 0 || files == RANKS);
        planned += files == RANKS;
    }
    atomic_store(&filler.stop, true);
    pthread_join(thread, NULL);
    free_all();
    printf(
        "filling meanwhile: %d of %d communicators had a plan, the others NCCL's default\n",
        planned, n);
    MUST(planned < n);
}

static int full(void)
{
    if (!small_tmpfs())
        return SKIPPED;
    begin();
    char registry[128];
    snprintf(registry, sizeof(registry), "%s/registry", shm);
    setenv("GV100_SHM_DIR", registry, 1);
    setenv("NCCL_PROTO", "Simple", 1);
    struct gv_drive *drive = gv_drive_new(RANKS);
    MUST(files_of(drive, 1) == RANKS);
    fill(0);
    MUST(files_of(drive, 2) == 0);
    free_all();
    MUST(files_of(drive, 3) == RANKS);
    fill(1); /* the one page that two ranks need */
    MUST(files_of(drive, 4) == RANKS);
    free_all();
    hole(registry);
    meanwhile(drive, 300);
    gv_registry_sweep(registry, 10000);
    MUST(files_of(drive, 9) == RANKS);
    gv_drive_free(drive);
    umount2(shm, MNT_DETACH);
    rmdir(shm);
    return 0;
}

/* --- stale entries --- */

static int count_entries(const char *folder)
{
    int n = 0;
    DIR *dir = opendir(folder);
    MUST(dir);
    for (struct dirent *item; (item = readdir(dir));)
        n += item->d_name[0] == 'c';
    closedir(dir);
    return n;
}

/* Half of them undecided, as of ranks that were killed while they waited. */
static void make_stale(const char *folder, int n)
{
    struct gv_shared content = {.magic = GV_REGISTRY_MAGIC, .claimed = 2, .arrived = 2};
    mkdir(folder, 0700);
    for (int i = 0; i < n; i++) {
        char path[256];
        snprintf(path, sizeof(path), "%s/c-%016x-%d", folder, i / 2 + 100, i % 2);
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        atomic_store(&content.word, i % 2 ? GV_OPEN : GV_COMMITTED);
        MUST(fd >= 0 && write(fd, &content, sizeof(content)) == sizeof(content));
        close(fd);
    }
}

static int stale(int n)
{
    begin();
    const char *folder = gv_world_registry();
    make_stale(folder, n);
    double start = now_s();
    commit(1, 1);
    double first = now_s() - start;
    int left = count_entries(folder);
    start = now_s();
    commit(1, 2);
    printf(
        "%d stale entries: first communicator %.0f ms, then %.1f ms; %d swept\n", n, first * 1e3,
        (now_s() - start) * 1e3, n - left);
    /* a sweep looks at some thousand files and no more, so that no job pays for what others left */
    MUST(n - left >= (n < 4000 ? n : 4000) && n - left <= 4096);
    MUST(first < LATE_S);
    /* an old key that comes again is a new generation, not the dead ranks' */
    commit(1, 100 + (uint64_t)n);
    return 0;
}

/* --- process ids --- */

/* A child with that very process id; 0 where the system refuses. */
static pid_t child_with(pid_t wanted)
{
    pid_t set[] = {wanted};
    struct clone_args args = {
        .exit_signal = SIGCHLD, .set_tid = (uint64_t)(uintptr_t)set, .set_tid_size = 1};
    long pid = syscall(SYS_clone3, &args, sizeof(args));
    if (!pid) {
        for (;;)
            pause();
    }
    return pid < 0 ? 0 : (pid_t)pid;
}

/* Registers and is killed. Its id. */
static pid_t dead_rank(const char *folder, uint64_t key)
{
    int tell[2];
    char byte;
    MUST(!pipe(tell));
    pid_t child = fork();
    MUST(child >= 0);
    if (!child) {
        bool in = gv_registry_join(folder, key, 0, NULL) != NULL;
        MUST(in && write(tell[1], "", 1) == 1);
        for (;;)
            pause();
    }
    MUST(read(tell[0], &byte, 1) == 1);
    kill(child, SIGKILL);
    MUST(waitpid(child, NULL, 0) == child);
    close(tell[0]);
    close(tell[1]);
    return child;
}

static int pids(void)
{
    begin();
    const char *folder = gv_world_registry();
    pid_t dead = dead_rank(folder, 42), living = child_with(dead);
    if (!living)
        return SKIPPED;
    MUST(living == dead && count_entries(folder) == 1);
    /* Whoever has the number is not the one who has the lock. */
    MUST(gv_registry_sweep(folder, 100) == 1 && !count_entries(folder));
    MUST(dead_rank(folder, 43));
    commit(20, 1000); /* its sweep comes first */
    MUST(!kill(living, 0) && !count_entries(folder));
    kill(living, SIGKILL);
    waitpid(living, NULL, 0);
    return 0;
}

/* --- ends --- */

static void *make_for_ever(void *first)
{
    struct gv_drive *drive = gv_drive_new(RANKS);
    for (uint64_t id = (uint64_t)(uintptr_t)first;; id++)
        gv_drive_communicator(drive, &plugin, id, gpus, false);
    return NULL;
}

static void *tune_for_ever(void *unused)
{
    void *ctx = NULL;
    float costs[7][3], *rows = costs[0];
    (void)unused;
    gv_fakecuda_set_device(gpus[0]);
    plugin.tuner->init(&ctx, 7, 1, 1, gv_world_logger, NULL, NULL);
    for (;;) {
        int channels = 0;
        for (int i = 0; i < 21; i++)
            rows[i] = 1;
        plugin.tuner->get_coll_info(ctx, 4, 1 << 20, 1, (float **)costs, 7, 3, 0, &channels);
        plugin.env->get_env("NCCL_TOPO_FILE");
        plugin.env->get_env("NCCL_ALGO");
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
        plugin.env->get_env("NCCL_PROTO");
}

static int leave(int n)
{
    begin();
    for (int i = 0; i < 5 * n; i++) {
        int status;
        pid_t child = fork();
        MUST(child >= 0);
        if (!child) {
            world.dir[0] = 0;
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
    plugin = gv_inside_slots(gv_inside_open(path));
    MUST(!plugin.env->init(2, 28, 9, "", gv_world_logger));
    gv_fakecuda_set_device(0);
    MUST(!plugin.net->init(&ctx, 99, NULL, gv_world_logger, NULL));
    plugin.env->get_env("NCCL_TOPO_FILE");
    plugin.env->get_env("NCCL_GRAPH_FILE");
    MUST(!plugin.tuner->init(&ctx, 99, 1, 1, gv_world_logger, NULL, NULL));
    MUST(!plugin.tuner->finalize(ctx));
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
        rc = full();
    else if (!strcmp(what, "stale"))
        rc = stale(atoi(value));
    else if (!strcmp(what, "pid"))
        rc = pids();
    else if (!strcmp(what, "leave"))
        rc = leave(atoi(value));
    else if (!strcmp(what, "secure"))
        return secure(value);
    if (world.dir[0])
        gv_world_close(&world);
    return rc;
}
