#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "testbench/cuda/gv_virtual.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void gv_world_lock(void)
{
    pthread_mutex_lock(&lock);
}

void gv_world_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

bool gv_fault_on(const struct gv_world *w, enum gv_fault_kind kind, int from, int to)
{
    for (int i = 0; i < w->faults.npairs; i++) {
        const struct gv_fault_pair *p = &w->faults.pairs[i];
        if (p->kind == kind && p->from == from && p->to == to)
            return true;
    }
    return false;
}

/* As the driver reads it: a list of ordinals or UUIDs; the first word that is none ends it. */
static void read_visible(struct gv_world *w)
{
    const char *text = getenv("CUDA_VISIBLE_DEVICES");
    int n = w->fabric.machine.ngpus;
    char list[4096], *save = NULL;
    if (!text) {
        for (int i = 0; i < n; i++)
            w->visible[w->nvisible++] = i;
        return;
    }
    snprintf(list, sizeof(list), "%s", text);
    for (char *word = strtok_r(list, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
        char *end;
        long ordinal = strtol(word, &end, 10);
        int found = *word && !*end && ordinal >= 0 && ordinal < n ? (int)ordinal : -1;
        for (int i = 0; i < n && found < 0; i++)
            if (!strncasecmp(word, "GPU-", 4) &&
                !strncasecmp(w->fabric.machine.gpus[i].uuid, word, strlen(word)))
                found = i;
        if (found < 0 || w->nvisible == n)
            return;
        w->visible[w->nvisible++] = found;
    }
}

static void apply_faults(struct gv_world *w)
{
    for (int i = 0; i < w->fabric.machine.ngpus; i++) {
        const struct gv_fault_gpu *fault = &w->faults.gpu[i];
        if (fault->link_width)
            w->fabric.gpu[i].link_width = fault->link_width;
        if (fault->throttle > 0)
            w->fabric.gpu[i].memory_gbs *= fault->throttle;
        w->gpu[i].index = i;
    }
    w->random = w->faults.seed * 0x9e3779b97f4a7c15ull + 0x2545f4914f6cdd1dull;
}

static struct gv_world *make(void)
{
    const char *machine = getenv("GV_VIRTUAL_MACHINE"), *faults = getenv("GV_VIRTUAL_FAULTS");
    const char *cap = getenv("GV_VIRTUAL_CAP");
    struct gv_world *w = calloc(1, sizeof(*w));
    struct gv_error err = {0};
    char text[1024];

    if (!w)
        return NULL;
    int rc = machine ? gv_fabric_read(machine, &w->fabric, &err)
                     : gv_error_set(&err, "GV_VIRTUAL_MACHINE is not set");
    if (!rc && faults && *faults)
        rc = gv_faults_read(faults, w->fabric.machine.ngpus, &w->faults, &err);
    if (rc) {
        fprintf(stderr, "virtual driver: %s\n", gv_error_format(&err, text, sizeof(text)));
        free(w);
        return NULL;
    }
    sem_init(&w->back, 0, 0);
    w->cap_bytes = cap && *cap ? strtoull(cap, NULL, 10) : 64 << 10;
    apply_faults(w);
    read_visible(w);
    return w;
}

struct gv_world *gv_world(void)
{
    static struct gv_world *world; /* one a process, as a driver */
    static bool tried;
    if (!tried) {
        tried = true;
        world = make();
    }
    return world;
}
