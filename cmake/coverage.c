/* A process that ends by _exit leaves no counts behind, and a child that a test starts often ends so.
 * Every program and library of a build with GV_COVERAGE has its own counters; they are written out
 * here for all of the process. */
#include <dlfcn.h>
#include <stddef.h>

#define VISIBLE __attribute__((visibility("default")))

struct units {
    int n;
    void (*dump[64])(void);
};

void __gcov_dump(void);
void __real__exit(int status) __attribute__((noreturn));
void __wrap__exit(int status) __attribute__((noreturn));

/* The program's own is found by all. */
extern struct units gv_coverage_units;
VISIBLE struct units gv_coverage_units;
extern int gv_coverage_unit; /* named by the linker, so that this file is in every unit */
int gv_coverage_unit;

static struct units *all(void)
{
    struct units *found = dlsym(RTLD_DEFAULT, "gv_coverage_units");
    return found ? found : &gv_coverage_units;
}

static __attribute__((constructor)) void join(void)
{
    struct units *units = all();
    if (units->n < 64)
        units->dump[units->n++] = __gcov_dump;
}

void __wrap__exit(int status)
{
    const struct units *units = all();
    for (int i = 0; i < units->n; i++)
        units->dump[i]();
    __real__exit(status);
}
