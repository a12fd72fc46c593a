/* The registry's folder where the system is full, has dead ranks' files, or gives ids again. */
#include <dirent.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plugin/registry/entry.h"
#include "tests/torture/system.h"

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
    struct gv_drive_result r =
        gv_drive_communicator(drive, &gv_system_plugin, id, gv_system_gpus, false);
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
        MUST(files == 0 || files == GV_SYSTEM_RANKS);
        planned += files == GV_SYSTEM_RANKS;
    }
    atomic_store(&filler.stop, true);
    pthread_join(thread, NULL);
    free_all();
    printf(
        "filling meanwhile: %d of %d communicators had a plan, the others NCCL's default\n",
        planned, n);
    MUST(planned < n);
}

int gv_system_full(void)
{
    if (!small_tmpfs())
        return GV_SYSTEM_SKIPPED;
    gv_system_begin();
    char registry[128];
    snprintf(registry, sizeof(registry), "%s/registry", shm);
    setenv("GV100_SHM_DIR", registry, 1);
    setenv("NCCL_PROTO", "Simple", 1);
    struct gv_drive *drive = gv_drive_new(GV_SYSTEM_RANKS);
    MUST(files_of(drive, 1) == GV_SYSTEM_RANKS);
    fill(0);
    MUST(files_of(drive, 2) == 0);
    free_all();
    MUST(files_of(drive, 3) == GV_SYSTEM_RANKS);
    fill(1); /* the one page that two ranks need */
    MUST(files_of(drive, 4) == GV_SYSTEM_RANKS);
    free_all();
    hole(registry);
    meanwhile(drive, 300);
    gv_registry_sweep(registry, 10000);
    MUST(files_of(drive, 9) == GV_SYSTEM_RANKS);
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

int gv_system_stale(int n)
{
    gv_system_begin();
    const char *folder = gv_world_registry();
    make_stale(folder, n);
    double start = gv_system_now_s();
    gv_system_commit(1, 1);
    double first = gv_system_now_s() - start;
    int left = count_entries(folder);
    start = gv_system_now_s();
    gv_system_commit(1, 2);
    printf(
        "%d stale entries: first communicator %.0f ms, then %.1f ms; %d swept\n", n, first * 1e3,
        (gv_system_now_s() - start) * 1e3, n - left);
    /* a sweep looks at some thousand files and no more, so that no job pays for what others left */
    MUST(n - left >= (n < 4000 ? n : 4000) && n - left <= 4096);
    MUST(first < GV_SYSTEM_LATE_S);
    /* an old key that comes again is a new generation, not the dead ranks' */
    gv_system_commit(1, 100 + (uint64_t)n);
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

int gv_system_pids(void)
{
    gv_system_begin();
    const char *folder = gv_world_registry();
    pid_t dead = dead_rank(folder, 42), living = child_with(dead);
    if (!living)
        return GV_SYSTEM_SKIPPED;
    MUST(living == dead && count_entries(folder) == 1);
    /* Whoever has the number is not the one who has the lock. */
    MUST(gv_registry_sweep(folder, 100) == 1 && !count_entries(folder));
    MUST(dead_rank(folder, 43));
    gv_system_commit(20, 1000); /* its sweep comes first */
    MUST(!kill(living, 0) && !count_entries(folder));
    kill(living, SIGKILL);
    waitpid(living, NULL, 0);
    return 0;
}
