/* gv-nccl-callers: a program whose libraries use NCCLs of their own.
 *
 *   gv-nccl-callers [--together] [--all] [--global=N] LIBRARY:RELEASE:GPUS...
 *
 * Opens each library (made of caller.c; a name in this build's lib/host) with RTLD_LOCAL, its NCCL
 * playing RELEASE, and has it make a communicator of GPUS; --together: all at the same time, --all:
 * by ncclCommInitAll, --global: library N (from 0) with RTLD_GLOBAL. Made to run in the job's
 * environment of gv-nccl-host --exec. */
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/gv_gpuset.h"
#include "testbench/host/caller.h"

#define MOST 4

struct caller {
    char name[64], release[32];
    int gpus[GV_MAX_GPUS], n;
    bool all;
    void (*run)(const char *name, const int *gpus, int n, bool all);
    pthread_t thread;
};

static int parse(struct caller *c, const char *arg)
{
    char gpus[128];
    if (sscanf(arg, "%63[^:]:%31[^:]:%127s", c->name, c->release, gpus) != 3)
        return -1;
    c->n = gv_gpulist_parse(gpus, c->gpus, NULL);
    return c->n > 0 ? 0 : -1;
}

static int load(struct caller *c, int scope)
{
    char self[PATH_MAX] = "", path[PATH_MAX + 128];
    if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
        return -1;
    *strrchr(self, '/') = 0;
    snprintf(path, sizeof(path), "%s/../lib/host/%s.so", self, c->name);
    setenv("GV_HOST_RELEASE", c->release, 1); /* read when its NCCL is loaded */
    void *lib = dlopen(path, RTLD_NOW | scope);
    if (lib)
        c->run = (void (*)(const char *, const int *, int, bool))dlsym(lib, "gv_caller_run");
    if (!c->run)
        fprintf(stderr, "gv-nccl-callers: %s\n", dlerror());
    return c->run ? 0 : -1;
}

static void *run(void *user)
{
    const struct caller *c = user;
    c->run(c->name, c->gpus, c->n, c->all);
    return NULL;
}

int main(int argc, char **argv)
{
    struct caller callers[MOST] = {0};
    bool together = false, all = false;
    int n = 0, global = -1;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--together"))
            together = true;
        else if (!strcmp(argv[i], "--all"))
            all = true;
        else if (!strncmp(argv[i], "--global=", 9))
            global = atoi(argv[i] + 9);
        else if (n == MOST || parse(&callers[n++], argv[i]))
            return 2;
    }
    for (int i = 0; i < n; i++) {
        callers[i].all = all;
        if (load(&callers[i], i == global ? RTLD_GLOBAL : RTLD_LOCAL))
            return 2;
    }
    for (int i = 0; i < n; i++) {
        if (pthread_create(&callers[i].thread, NULL, run, &callers[i]))
            return 2;
        if (!together)
            pthread_join(callers[i].thread, NULL);
    }
    for (int i = 0; together && i < n; i++)
        pthread_join(callers[i].thread, NULL);
    return 0;
}
