/* getCollInfo of the real library allocates nothing, takes no lock and makes no system call: shown
 * by counting calls of the functions that would, and by calling it where the kernel kills whoever
 * makes one. The counters are this program's own definitions of those functions, which the loader
 * gives to the library too. */
#include "tests/gv_test.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/hot.h"

enum { SIZES = 4096, CALLS = 100000 };

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1 /* the sanitizer has malloc and the locks for itself */
#else
#define SANITIZED 0
#endif

enum counted { MALLOC, CALLOC, REALLOC, FREE, MUTEX, RWLOCK, ONCE, COUNTED };
static const char *const names[] = {
    "malloc",      "calloc", "realloc", "free", "pthread_mutex_lock", "pthread_rwlock_rdlock",
    "pthread_once"};
static atomic_long counts[COUNTED]; /* calls by anybody */
static atomic_long ours[COUNTED];   /* calls that came from inside the plugin */
static uintptr_t plugin_begin, plugin_end;

#if !SANITIZED
static inline __attribute__((always_inline)) void count(enum counted what)
{
    uintptr_t from = (uintptr_t)__builtin_return_address(0);
    atomic_fetch_add(&counts[what], 1);
    if (from >= plugin_begin && from < plugin_end)
        atomic_fetch_add(&ours[what], 1);
}

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void __libc_free(void *p);

GV_EXPORT void *malloc(size_t size)
{
    count(MALLOC);
    return __libc_malloc(size);
}

GV_EXPORT void *calloc(size_t n, size_t size)
{
    count(CALLOC);
    return __libc_calloc(n, size);
}

GV_EXPORT void *realloc(void *p, size_t size)
{
    count(REALLOC);
    return __libc_realloc(p, size);
}

GV_EXPORT void free(void *p)
{
    count(FREE);
    __libc_free(p);
}

GV_EXPORT int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    static int (*next)(pthread_mutex_t *);
    if (!next)
        next = (int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_lock");
    count(MUTEX);
    return next(mutex);
}

GV_EXPORT int pthread_rwlock_rdlock(pthread_rwlock_t *lock)
{
    static int (*next)(pthread_rwlock_t *);
    if (!next)
        next = (int (*)(pthread_rwlock_t *))dlsym(RTLD_NEXT, "pthread_rwlock_rdlock");
    count(RWLOCK);
    return next(lock);
}

GV_EXPORT int pthread_once(pthread_once_t *once, void (*routine)(void))
{
    static int (*next)(pthread_once_t *, void (*)(void));
    if (!next)
        next = (int (*)(pthread_once_t *, void (*)(void)))dlsym(RTLD_NEXT, "pthread_once");
    count(ONCE);
    return next(once, routine);
}
#endif

static struct gv_hot rows;
static size_t sizes[SIZES];

/* Where the plugin lies in memory. */
static int find_plugin(struct dl_phdr_info *info, size_t size, void *address)
{
    (void)size;
    uintptr_t begin = UINTPTR_MAX, end = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t at = info->dlpi_addr + part->p_vaddr;
        if (part->p_type != PT_LOAD)
            continue;
        begin = at < begin ? at : begin;
        end = at + part->p_memsz > end ? at + part->p_memsz : end;
    }
    if ((uintptr_t)address < begin || (uintptr_t)address >= end)
        return 0;
    plugin_begin = begin;
    plugin_end = end;
    return 1;
}

static int open_rows(void **state)
{
    (void)state;
    void *slot = (void *)(uintptr_t)gv_world_symbol(GV_WORLD_PLUGIN, "ncclTunerPlugin_v5");
    if (!dl_iterate_phdr(find_plugin, slot))
        return -1;
    gv_hot_open(&rows, 256);
    gv_hot_sizes(sizes, SIZES);
    return 0;
}

static int close_rows(void **state)
{
    (void)state;
    gv_hot_close(&rows);
    return 0;
}

static int call(int n)
{
    float costs[GV_HOT_ALGORITHMS * GV_HOT_PROTOCOLS];
    int channels = 0, chosen = 0;
    for (int i = 0; i < n; i++) {
        gv_hot_costs(costs);
        /* Operations beyond those that have rows are asked as well. */
        int func = i % 8 ? GV_OP_ALL_REDUCE : i / 8 % 12;
        rows.tuner->get_coll_info(
            rows.context[i % 2], func, sizes[i % SIZES], 1, (float **)costs, GV_HOT_ALGORITHMS,
            GV_HOT_PROTOCOLS, 0, &channels);
        for (int k = 0; k < GV_HOT_ALGORITHMS * GV_HOT_PROTOCOLS; k++)
            chosen += costs[k] == 0;
    }
    return chosen;
}

static void nothing_is_allocated_or_locked(void **state)
{
    (void)state;
    if (SANITIZED)
        skip();
    /* The plugin's own calls are counted while it is set up, or the rest would say nothing. */
    static const enum counted used[] = {MALLOC, CALLOC, REALLOC, FREE, MUTEX, ONCE};
    long before[COUNTED];
    for (size_t i = 0; i < sizeof(used) / sizeof(used[0]); i++)
        if (!atomic_load(&ours[used[i]]))
            fail_msg("%s was not counted while the plugin was set up", names[used[i]]);
    for (int i = 0; i < COUNTED; i++)
        before[i] = atomic_load(&counts[i]);
    int chosen = call(CALLS);
    for (int i = 0; i < COUNTED; i++)
        if (atomic_load(&counts[i]) != before[i])
            fail_msg("%s was called by getCollInfo", names[i]);
    assert_in_range(chosen, CALLS / 2, CALLS); /* it did its work */
}

/* Only read, write, exit and sigreturn are left; anything else is SIGKILL. */
static void strict(void)
{
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0))
        _exit(errno == EINVAL || errno == EPERM ? 77 : 78);
}

static int status_of_child(void (*body)(void))
{
    int status = 0;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        body();
        syscall(SYS_exit, 0); /* exit_group would be one call too many */
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip(); /* no seccomp here */
    return status;
}

static void call_strictly(void)
{
    strict();
    int chosen = call(CALLS);
    syscall(SYS_exit, chosen < CALLS / 2);
}

static void ask_for_the_pid_strictly(void)
{
    strict();
    syscall(SYS_getpid);
}

static void init_strictly(void)
{
    void *context;
    strict();
    rows.tuner->init(&context, 1, 2, 1, gv_world_logger, NULL, NULL);
}

static void no_system_call_is_made(void **state)
{
    (void)state;
    if (SANITIZED)
        skip();
    static const struct {
        void (*body)(void);
        int signal;
    } table[] = {
        {ask_for_the_pid_strictly, SIGKILL}, /* the trap works */
        {init_strictly, SIGKILL},            /* for the library too */
        {call_strictly, 0},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        int status = status_of_child(table[i].body);
        assert_int_equal(WIFSIGNALED(status) ? WTERMSIG(status) : 0, table[i].signal);
        assert_int_equal(WIFEXITED(status) ? WEXITSTATUS(status) : 0, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_allocated_or_locked),
        cmocka_unit_test(no_system_call_is_made),
    };
    return cmocka_run_group_tests(tests, open_rows, close_rows);
}
