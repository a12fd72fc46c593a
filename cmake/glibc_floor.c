/* Lets what is built on a new system run on glibc 2.28 (manylinux_2_28), as old training containers
 * have it. Each function here stands for a symbol that a newer glibc gave a new version, and calls
 * the version that has been there all along; hidden, so that no other library sees it. Nothing is
 * included: the headers would rename what is declared here. tests/cli/test_glibc.sh reads the
 * versions that the products need.
 *
 * glibc 2.32: pthread_sigmask moved into libc; 2.33: stat and its like became functions; 2.34:
 * libdl and libpthread moved into libc (the link names both, for a loader that still needs
 * them); 2.36: arc4random; 2.38: strtol and sscanf of C23. */
#include <stdarg.h>

#if defined(__x86_64__)
#define BASE "GLIBC_2.2.5"
#define C99 "GLIBC_2.7"
#define STAT_VERSION 1
#elif defined(__aarch64__)
#define BASE "GLIBC_2.17"
#define C99 "GLIBC_2.17"
#define STAT_VERSION 0
#else
#error "the oldest symbol versions of this architecture are not known here"
#endif

#define HIDDEN __attribute__((visibility("hidden")))
/* `name` is the symbol `symbol` of that version of glibc. */
#define OLD(name, symbol, version) __asm__(".symver " #name "," symbol "@" version)

typedef unsigned long size;
struct stat;

int old_xstat(int, const char *, struct stat *);
int old_lxstat(int, const char *, struct stat *);
int old_fxstat(int, int, struct stat *);
int old_fxstatat(int, int, const char *, struct stat *, int);
OLD(old_xstat, "__xstat", BASE);
OLD(old_lxstat, "__lxstat", BASE);
OLD(old_fxstat, "__fxstat", BASE);
#if defined(__x86_64__)
OLD(old_fxstatat, "__fxstatat", "GLIBC_2.4");
#else
OLD(old_fxstatat, "__fxstatat", BASE);
#endif

HIDDEN int stat(const char *path, struct stat *out);
HIDDEN int lstat(const char *path, struct stat *out);
HIDDEN int fstat(int fd, struct stat *out);
HIDDEN int fstatat(int fd, const char *path, struct stat *out, int flags);

int stat(const char *path, struct stat *out)
{
    return old_xstat(STAT_VERSION, path, out);
}

int lstat(const char *path, struct stat *out)
{
    return old_lxstat(STAT_VERSION, path, out);
}

int fstat(int fd, struct stat *out)
{
    return old_fxstat(STAT_VERSION, fd, out);
}

int fstatat(int fd, const char *path, struct stat *out, int flags)
{
    return old_fxstatat(STAT_VERSION, fd, path, out, flags);
}

/* With 64-bit offsets, which are the only ones here. */
HIDDEN int stat64(const char *path, struct stat *out);
HIDDEN int lstat64(const char *path, struct stat *out);
HIDDEN int fstat64(int fd, struct stat *out);

int stat64(const char *path, struct stat *out)
{
    return old_xstat(STAT_VERSION, path, out);
}

int lstat64(const char *path, struct stat *out)
{
    return old_lxstat(STAT_VERSION, path, out);
}

int fstat64(int fd, struct stat *out)
{
    return old_fxstat(STAT_VERSION, fd, out);
}

/* The caller counts for dlopen and dlsym; it is the same file either way. */
void *old_dlopen(const char *, int);
void *old_dlsym(void *, const char *);
int old_dlclose(void *);
char *old_dlerror(void);
int old_dladdr(const void *, void *);
int old_dladdr1(const void *, void *, void **, int);
OLD(old_dlopen, "dlopen", BASE);
OLD(old_dlsym, "dlsym", BASE);
OLD(old_dlclose, "dlclose", BASE);
OLD(old_dlerror, "dlerror", BASE);
OLD(old_dladdr, "dladdr", BASE);
#if defined(__x86_64__)
OLD(old_dladdr1, "dladdr1", "GLIBC_2.3.3");
#else
OLD(old_dladdr1, "dladdr1", BASE);
#endif

HIDDEN void *dlopen(const char *file, int mode);
HIDDEN void *dlsym(void *handle, const char *name);
HIDDEN int dlclose(void *handle);
HIDDEN char *dlerror(void);
HIDDEN int dladdr(const void *address, void *info);
HIDDEN int dladdr1(const void *address, void *info, void **extra, int flags);

void *dlopen(const char *file, int mode)
{
    return old_dlopen(file, mode);
}

void *dlsym(void *handle, const char *name)
{
    return old_dlsym(handle, name);
}

int dlclose(void *handle)
{
    return old_dlclose(handle);
}

char *dlerror(void)
{
    return old_dlerror();
}

int dladdr(const void *address, void *info)
{
    return old_dladdr(address, info);
}

int dladdr1(const void *address, void *info, void **extra, int flags)
{
    return old_dladdr1(address, info, extra, flags);
}

int old_key_create(unsigned *, void (*)(void *));
int old_key_delete(unsigned);
int old_setspecific(unsigned, const void *);
void *old_getspecific(unsigned);
int old_once(int *, void (*)(void));
int old_create(unsigned long *, const void *, void *(*)(void *), void *);
int old_join(unsigned long, void **);
int old_sigmask(int, const void *, void *);
int old_setclock(void *, int);
OLD(old_key_create, "pthread_key_create", BASE);
OLD(old_key_delete, "pthread_key_delete", BASE);
OLD(old_setspecific, "pthread_setspecific", BASE);
OLD(old_getspecific, "pthread_getspecific", BASE);
OLD(old_once, "pthread_once", BASE);
OLD(old_create, "pthread_create", BASE);
OLD(old_join, "pthread_join", BASE);
OLD(old_sigmask, "pthread_sigmask", BASE);
#if defined(__x86_64__)
OLD(old_setclock, "pthread_condattr_setclock", "GLIBC_2.3.3");
#else
OLD(old_setclock, "pthread_condattr_setclock", BASE);
#endif

HIDDEN int pthread_key_create(unsigned *key, void (*destructor)(void *));
HIDDEN int pthread_key_delete(unsigned key);
HIDDEN int pthread_setspecific(unsigned key, const void *value);
HIDDEN void *pthread_getspecific(unsigned key);
HIDDEN int pthread_once(int *control, void (*routine)(void));
HIDDEN int
pthread_create(unsigned long *thread, const void *attr, void *(*start)(void *), void *arg);
HIDDEN int pthread_join(unsigned long thread, void **result);
HIDDEN int pthread_sigmask(int how, const void *set, void *before);
HIDDEN int pthread_condattr_setclock(void *attributes, int clock);

int pthread_key_create(unsigned *key, void (*destructor)(void *))
{
    return old_key_create(key, destructor);
}

int pthread_key_delete(unsigned key)
{
    return old_key_delete(key);
}

int pthread_setspecific(unsigned key, const void *value)
{
    return old_setspecific(key, value);
}

void *pthread_getspecific(unsigned key)
{
    return old_getspecific(key);
}

int pthread_once(int *control, void (*routine)(void))
{
    return old_once(control, routine);
}

int pthread_create(unsigned long *thread, const void *attr, void *(*start)(void *), void *arg)
{
    return old_create(thread, attr, start, arg);
}

int pthread_join(unsigned long thread, void **result)
{
    return old_join(thread, result);
}

int pthread_sigmask(int how, const void *set, void *before)
{
    return old_sigmask(how, set, before);
}

int pthread_condattr_setclock(void *attributes, int clock)
{
    return old_setclock(attributes, clock);
}

/* expat salts its hash tables with this; getrandom is glibc 2.25's. */
long getrandom(void *, size, unsigned);
HIDDEN void arc4random_buf(void *out, size n);

void arc4random_buf(void *out, size n)
{
    for (char *at = out; n;) {
        long got = getrandom(at, n, 0);
        if (got > 0) {
            at += got;
            n -= (size)got;
        }
    }
}

long old_strtol(const char *, char **, int);
unsigned long old_strtoul(const char *, char **, int);
long long old_strtoll(const char *, char **, int);
unsigned long long old_strtoull(const char *, char **, int);
int old_vsscanf(const char *, const char *, va_list);
OLD(old_strtol, "strtol", BASE);
OLD(old_strtoul, "strtoul", BASE);
OLD(old_strtoll, "strtoll", BASE);
OLD(old_strtoull, "strtoull", BASE);
OLD(old_vsscanf, "__isoc99_vsscanf", C99);

HIDDEN long __isoc23_strtol(const char *text, char **end, int base);
HIDDEN unsigned long __isoc23_strtoul(const char *text, char **end, int base);
HIDDEN long long __isoc23_strtoll(const char *text, char **end, int base);
HIDDEN unsigned long long __isoc23_strtoull(const char *text, char **end, int base);
HIDDEN int __isoc23_sscanf(const char *text, const char *format, ...);

long __isoc23_strtol(const char *text, char **end, int base)
{
    return old_strtol(text, end, base);
}

unsigned long __isoc23_strtoul(const char *text, char **end, int base)
{
    return old_strtoul(text, end, base);
}

long long __isoc23_strtoll(const char *text, char **end, int base)
{
    return old_strtoll(text, end, base);
}

unsigned long long __isoc23_strtoull(const char *text, char **end, int base)
{
    return old_strtoull(text, end, base);
}

int __isoc23_sscanf(const char *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = old_vsscanf(text, format, args);
    va_end(args);
    return n;
}
