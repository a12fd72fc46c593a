/* Comparisons of what was measured before: runs that were kept, and profiles. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/gv_machine.h"
#include "profiler/cli/compare_live.h"

/* A run is JSON, a profile is YAML or a name. */
static bool is_run(const char *name)
{
    FILE *f = fopen(name, "re");
    int c = f ? getc(f) : EOF;
    while (f && c != EOF && isspace(c))
        c = getc(f);
    if (f)
        fclose(f);
    return c == '{' || c == '[';
}

static gv_gpuset gpus_of(const struct gv_compared *c)
{
    gv_gpuset set = 0;
    for (int i = 0; i < c->run.nranks; i++)
        set |= GV_GPU_BIT(c->run.gpu[i]);
    return set;
}

static int open_run(const char *name, gv_gpuset gpus, struct gv_compared *out, struct gv_error *err)
{
    char has[256], wanted[256];
    if (gv_compared_load(name, out, err))
        return -1;
    gv_gpuset found = gpus_of(out);
    if (!gpus || gpus == found)
        return 0;
    gv_compared_finish(out);
    return gv_error_at(
        err, name, 0, 0, "is of GPUs %.100s, --gpus asks for %.100s",
        gv_gpuset_format(found, has, sizeof(has)), gv_gpuset_format(gpus, wanted, sizeof(wanted)));
}

static int
open_profile(const char *name, gv_gpuset gpus, struct gv_compared *out, struct gv_error *err)
{
    char path[PATH_MAX];
    struct gv_profile *profile =
        gv_profile_resolve(name, path, err) ? NULL : gv_profile_read(path, err);
    int rc = profile ? gv_compared_from_profile(profile, path, gpus, out, err) : -1;
    gv_profile_free(profile);
    return rc;
}

static int open_one(const char *name, gv_gpuset gpus, struct gv_compared *out, struct gv_error *err)
{
    return is_run(name) ? open_run(name, gpus, out, err) : open_profile(name, gpus, out, err);
}

/* Runs first: they say which GPUs a profile is asked for. */
static int open_both(
    const char *const names[2], gv_gpuset gpus, struct gv_compared *both[2], struct gv_error *err)
{
    int first = is_run(names[0]) || !is_run(names[1]) ? 0 : 1;
    if (open_one(names[first], gpus, both[first], err))
        return -1;
    if (!gpus)
        gpus = gpus_of(both[first]);
    int second = 1 - first;
    /* two runs of different GPUs are told as such, by the one that holds both */
    if (!open_one(names[second], is_run(names[second]) ? 0 : gpus, both[second], err))
        return 0;
    gv_compared_finish(both[first]);
    return -1;
}

int gv_compare_saved(
    const char *const *names, int n, gv_gpuset gpus, struct gv_compared *out, struct gv_error *err)
{
    if (n == 1)
        return open_one(names[0], gpus, out, err);
    struct gv_compared *both[2] = {calloc(1, sizeof(*out)), calloc(1, sizeof(*out))};
    int rc =
        both[0] && both[1] ? open_both(names, gpus, both, err) : gv_error_set(err, "out of memory");
    if (!rc) {
        rc = gv_compared_merge(both[0], both[1], names, out, err);
        gv_compared_finish(both[0]);
        gv_compared_finish(both[1]);
    }
    free(both[0]);
    free(both[1]);
    return rc;
}
