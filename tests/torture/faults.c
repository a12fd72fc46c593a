#include "tests/torture/faults.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static enum gv_fault wanted;
static long at;
static bool sticky;
static atomic_long seen[GV_FAULTS], live;
static _Thread_local bool here;

void gv_faults_set(enum gv_fault kind, long n, bool stays)
{
    wanted = kind;
    at = n;
    sticky = stays;
    for (int i = 0; i < GV_FAULTS; i++)
        atomic_store(&seen[i], 0);
    atomic_store(&live, 0);
}

long gv_faults_seen(enum gv_fault kind)
{
    return atomic_load(&seen[kind]);
}

long gv_faults_live(void)
{
    return atomic_load(&live);
}

void gv_faults_here(bool on)
{
    here = on;
}

const char *gv_fault_name(enum gv_fault kind)
{
    static const char *const names[GV_FAULTS] = {"memory", "open",     "read",  "write", "mmap",
                                                 "stat",   "allocate", "lock",  "memfd", "folder",
                                                 "rename", "sync",     "dlopen"};
    return names[kind];
}

/* Whether the call that is being made has to fail, with `code` in errno. */
static bool fails(enum gv_fault kind, int code)
{
    if (!here)
        return false;
    long n = atomic_fetch_add(&seen[kind], 1) + 1;
    if (kind != wanted || !at || (sticky ? n < at : n != at))
        return false;
    errno = code;
    return true;
}

#define REAL(name) ((__typeof__(&name))real(#name))

static void *real(const char *name)
{
    bool was = here;
    here = false;
    void *function = dlsym(RTLD_NEXT, name);
    here = was;
    if (!function)
        abort();
    return function;
}

/* glibc's own entries: dlsym itself allocates. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);
void __libc_free(void *block);

static void *counted(void *block, long change)
{
    if (here && block)
        atomic_fetch_add(&live, change);
    return block;
}

void *malloc(size_t size)
{
    return fails(GV_FAULT_MEMORY, ENOMEM) ? NULL : counted(__libc_malloc(size), 1);
}

void *calloc(size_t n, size_t size)
{
    return fails(GV_FAULT_MEMORY, ENOMEM) ? NULL : counted(__libc_calloc(n, size), 1);
}

void *realloc(void *old, size_t size)
{
    return fails(GV_FAULT_MEMORY, ENOMEM) ? NULL : counted(__libc_realloc(old, size), !old);
}

void free(void *block)
{
    __libc_free(counted(block, -1));
}

static mode_t mode_of(int flags, va_list ap)
{
    return flags & (O_CREAT | __O_TMPFILE) ? (mode_t)va_arg(ap, int) : 0;
}

int open(const char *path, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    mode_t mode = mode_of(flags, ap);
    va_end(ap);
    return fails(GV_FAULT_OPEN, EMFILE) ? -1 : REAL(open)(path, flags, mode);
}

int openat(int dir, const char *path, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    mode_t mode = mode_of(flags, ap);
    va_end(ap);
    return fails(GV_FAULT_OPEN, EMFILE) ? -1 : REAL(openat)(dir, path, flags, mode);
}

FILE *fopen(const char *path, const char *mode)
{
    return fails(GV_FAULT_OPEN, EMFILE) ? NULL : REAL(fopen)(path, mode);
}

DIR *opendir(const char *path)
{
    return fails(GV_FAULT_OPEN, EMFILE) ? NULL : REAL(opendir)(path);
}

DIR *fdopendir(int fd)
{
    return fails(GV_FAULT_OPEN, ENOMEM) ? NULL : REAL(fdopendir)(fd);
}

ssize_t read(int fd, void *out, size_t n)
{
    return fails(GV_FAULT_READ, EIO) ? -1 : REAL(read)(fd, out, n);
}

struct dirent *readdir(DIR *dir)
{
    return fails(GV_FAULT_READ, EIO) ? NULL : REAL(readdir)(dir);
}

ssize_t write(int fd, const void *data, size_t n)
{
    return fails(GV_FAULT_WRITE, ENOSPC) ? -1 : REAL(write)(fd, data, n);
}

void *mmap(void *where, size_t n, int prot, int flags, int fd, off_t offset)
{
    return fails(GV_FAULT_MMAP, ENOMEM) ? MAP_FAILED
                                        : REAL(mmap)(where, n, prot, flags, fd, offset);
}

int stat(const char *path, struct stat *out)
{
    return fails(GV_FAULT_STAT, EIO) ? -1 : REAL(stat)(path, out);
}

int lstat(const char *path, struct stat *out)
{
    return fails(GV_FAULT_STAT, EIO) ? -1 : REAL(lstat)(path, out);
}

int fstat(int fd, struct stat *out)
{
    return fails(GV_FAULT_STAT, EIO) ? -1 : REAL(fstat)(fd, out);
}

int fstatat(int dir, const char *path, struct stat *out, int flags)
{
    return fails(GV_FAULT_STAT, EIO) ? -1 : REAL(fstatat)(dir, path, out, flags);
}

/* The names of the same calls up to glibc 2.32. */
int __xstat(int version, const char *path, struct stat *out);
int __lxstat(int version, const char *path, struct stat *out);
int __fxstat(int version, int fd, struct stat *out);
int __fxstatat(int version, int dir, const char *path, struct stat *out, int flags);

int __xstat(int version, const char *path, struct stat *out)
{
    return fails(GV_FAULT_STAT, EIO) ? -1 : REAL(__xstat)(version, path, out);
}

int __lxstat(int version, const char *path, struct stat *out)
{
    return fails(GV_FAULT_STAT, EIO) ? -1 : REAL(__lxstat)(version, path, out);
}

int __fxstat(int version, int fd, struct stat *out)
{
    return fails(GV_FAULT_STAT, EIO) ? -1 : REAL(__fxstat)(version, fd, out);
}

int __fxstatat(int version, int dir, const char *path, struct stat *out, int flags)
{
    return fails(GV_FAULT_STAT, EIO) ? -1 : REAL(__fxstatat)(version, dir, path, out, flags);
}

int posix_fallocate(int fd, off_t offset, off_t n)
{
    return fails(GV_FAULT_ALLOCATE, ENOSPC) ? ENOSPC : REAL(posix_fallocate)(fd, offset, n);
}

int flock(int fd, int what)
{
    return fails(GV_FAULT_LOCK, ENOLCK) ? -1 : REAL(flock)(fd, what);
}

int memfd_create(const char *name, unsigned flags)
{
    return fails(GV_FAULT_MEMFD, EMFILE) ? -1 : REAL(memfd_create)(name, flags);
}

int fcntl(int fd, int what, ...)
{
    va_list ap;
    va_start(ap, what);
    void *arg = va_arg(ap, void *);
    va_end(ap);
    return fails(GV_FAULT_MEMFD, EPERM) ? -1 : REAL(fcntl)(fd, what, arg);
}

int mkdir(const char *path, mode_t mode)
{
    return fails(GV_FAULT_FOLDER, ENOSPC) ? -1 : REAL(mkdir)(path, mode);
}

char *realpath(const char *path, char *out)
{
    return fails(GV_FAULT_FOLDER, EIO) ? NULL : REAL(realpath)(path, out);
}

int rename(const char *from, const char *to)
{
    return fails(GV_FAULT_RENAME, EIO) ? -1 : REAL(rename)(from, to);
}

int mkostemp(char *name, int flags)
{
    return fails(GV_FAULT_RENAME, ENOSPC) ? -1 : REAL(mkostemp)(name, flags);
}

int fchmod(int fd, mode_t mode)
{
    return fails(GV_FAULT_RENAME, EPERM) ? -1 : REAL(fchmod)(fd, mode);
}

int fsync(int fd)
{
    return fails(GV_FAULT_SYNC, EIO) ? -1 : REAL(fsync)(fd);
}

void *dlopen(const char *name, int flags)
{
    return fails(GV_FAULT_DLOPEN, 0) ? NULL : REAL(dlopen)(name, flags);
}
