/* The registry's own sources, compiled once more so that every operation on what ranks share is one
 * step of a scheduler (force-included by CMake): atomics, futexes, and calls that others can see
 * the effect of. Ranks are coroutines of one thread, so an order of steps is a list of choices that
 * can be gone through exhaustively and repeated. */
#ifndef GV_STEPS_H
#define GV_STEPS_H

#include <dirent.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Hands over to the scheduler; the step that follows is done when it comes back. */
void gv_step(void);
/* The same, but somebody else goes first if anybody can. */
void gv_step_aside(void);

int gv_step_open(int dir, const char *path, int flags, unsigned mode);
int gv_step_close(int fd);
DIR *gv_step_fdopendir(int fd);
void *gv_step_mmap(size_t size, int prot, int flags, int fd);
int gv_step_munmap(void *where, size_t size);
/* No room for the first few of a run (gv_orders_no_room). */
int gv_step_allocate(int fd, size_t size);
void *gv_step_calloc(size_t n, size_t size);
void gv_step_free(void *what);
/* Time stands still until nobody can go on. */
int gv_step_clock(struct timespec *out);
long gv_step_futex(_Atomic uint32_t *word, int what, uint32_t value, const struct timespec *most);

#ifdef GV_STEPS_INSIDE
#define SEQ memory_order_seq_cst
#undef atomic_load
#undef atomic_store
#undef atomic_fetch_add
#undef atomic_compare_exchange_strong
#define atomic_load(p) (gv_step(), atomic_load_explicit(p, SEQ))
#define atomic_store(p, v) (gv_step(), atomic_store_explicit(p, v, SEQ))
#define atomic_fetch_add(p, v) (gv_step(), atomic_fetch_add_explicit(p, v, SEQ))
#define atomic_compare_exchange_strong(p, e, d)                                                    \
    (gv_step(), atomic_compare_exchange_strong_explicit(p, e, d, SEQ, SEQ))
#define open(path, flags) gv_step_open(AT_FDCWD, path, flags, 0)
#define GV_OPENAT(dir, path, flags, mode, ...) gv_step_open(dir, path, flags, mode)
#define openat(...) GV_OPENAT(__VA_ARGS__, 0, 0)
#define close(fd) gv_step_close(fd)
#define fdopendir(fd) gv_step_fdopendir(fd)
#define mmap(where, size, prot, flags, fd, offset) gv_step_mmap(size, prot, flags, fd)
#define munmap(where, size) gv_step_munmap(where, size)
#define calloc(n, size) gv_step_calloc(n, size)
#define free(what) gv_step_free(what)
#define flock(fd, what) (gv_step(), flock(fd, what))
#define fstatat(dir, path, out, flags) (gv_step(), fstatat(dir, path, out, flags))
#define lstat(path, out) (gv_step(), lstat(path, out))
#define unlink(path) (gv_step(), unlink(path))
#define unlinkat(dir, path, flags) (gv_step(), unlinkat(dir, path, flags))
#define posix_fallocate(fd, at, size) gv_step_allocate(fd, size)
#define nanosleep(time, left) gv_step_aside()
#define clock_gettime(clock, out) gv_step_clock(out)
#define syscall(number, word, what, value, most, ...) gv_step_futex(word, what, value, most)
#endif

#endif
