/* The same for the command: see glibc_floor.c. glibc 2.34 gave __libc_start_main a new version, to
 * which a program leaves its constructors; older ones expect a function that calls them, and every
 * later one still honours it. pow and its like got new versions with 2.29, the affinity of threads
 * with 2.32 and 2.34. */
#define HIDDEN __attribute__((visibility("hidden")))
#if defined(__x86_64__)
#define BASE "GLIBC_2.2.5"
#else
#define BASE "GLIBC_2.17"
#endif

typedef void (*constructor)(int, char **, char **);
extern const constructor __preinit_array_start[] HIDDEN, __preinit_array_end[] HIDDEN;
extern const constructor __init_array_start[] HIDDEN, __init_array_end[] HIDDEN;
extern void _init(void);

static void call_constructors(int argc, char **argv, char **envp)
{
    for (const constructor *c = __preinit_array_start; c < __preinit_array_end; c++)
        (*c)(argc, argv, envp);
    _init();
    for (const constructor *c = __init_array_start; c < __init_array_end; c++)
        (*c)(argc, argv, envp);
}

int old_start(
    int (*main)(int, char **, char **), int argc, char **argv, constructor init, void (*fini)(void),
    void (*rtld_fini)(void), void *stack_end);
__asm__(".symver old_start,__libc_start_main@" BASE);

HIDDEN int __libc_start_main(
    int (*main)(int, char **, char **), int argc, char **argv, constructor init, void (*fini)(void),
    void (*rtld_fini)(void), void *stack_end);

int __libc_start_main(
    int (*main)(int, char **, char **), int argc, char **argv, constructor init, void (*fini)(void),
    void (*rtld_fini)(void), void *stack_end)
{
    return old_start(
        main, argc, argv, init ? init : call_constructors, fini, rtld_fini, stack_end);
}

#if defined(__x86_64__)
#define AFFINITY "GLIBC_2.3.4"
#else
#define AFFINITY BASE
#endif
#define OLD(name, symbol, version) __asm__(".symver " #name "," symbol "@" version)

typedef unsigned long size;
double old_pow(double, double);
double old_exp(double);
double old_log(double);
double old_exp2(double);
double old_log2(double);
int old_setaffinity(unsigned long, size, const void *);
int old_getaffinity(unsigned long, size, void *);
OLD(old_pow, "pow", BASE);
OLD(old_exp, "exp", BASE);
OLD(old_log, "log", BASE);
OLD(old_exp2, "exp2", BASE);
OLD(old_log2, "log2", BASE);
OLD(old_setaffinity, "pthread_setaffinity_np", AFFINITY);
OLD(old_getaffinity, "pthread_getaffinity_np", AFFINITY);

HIDDEN double pow(double x, double y);
HIDDEN double exp(double x);
HIDDEN double log(double x);
HIDDEN double exp2(double x);
HIDDEN double log2(double x);
HIDDEN int pthread_setaffinity_np(unsigned long thread, size n, const void *cpus);
HIDDEN int pthread_getaffinity_np(unsigned long thread, size n, void *cpus);

double pow(double x, double y)
{
    return old_pow(x, y);
}

double exp(double x)
{
    return old_exp(x);
}

double log(double x)
{
    return old_log(x);
}

double exp2(double x)
{
    return old_exp2(x);
}

double log2(double x)
{
    return old_log2(x);
}

int pthread_setaffinity_np(unsigned long thread, size n, const void *cpus)
{
    return old_setaffinity(thread, n, cpus);
}

int pthread_getaffinity_np(unsigned long thread, size n, void *cpus)
{
    return old_getaffinity(thread, n, cpus);
}
