#include "profiler/cli/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/cli/bundle_open.h"

static void numbered_as_profile(struct gv_source *s)
{
    s->ngpus = s->profile->ngpus;
    for (int i = 0; i < s->ngpus && i < GV_MAX_GPUS; i++)
        s->to_profile[i] = s->from_profile[i] = i;
}

static void numbered_as_machine(struct gv_source *s)
{
    s->ngpus = s->machine.ngpus;
    for (int i = 0; i < s->ngpus; i++)
        if (s->to_profile[i] >= 0)
            s->from_profile[s->to_profile[i]] = i;
}

static int read_profile(struct gv_source *s, const char *name, struct gv_error *err)
{
    if (gv_profile_resolve(name, s->path, err))
        return -1;
    s->profile = gv_profile_read(s->path, err);
    return s->profile ? 0 : -1;
}

static int read_machine(struct gv_source *s, const char *sysfs, struct gv_error *err)
{
    if (gv_machine_read(sysfs ? sysfs : gv_sysfs_root(), &s->machine, err))
        return -1;
    s->has_machine = true;
    s->verified = !gv_stamp_find(&s->machine, &s->stamp, &s->no_stamp);
    return 0;
}

/* No GPU here. GV100_PROFILE still names a profile to look at; it is none for this machine then. */
static int without_gpus(struct gv_source *s, const char *sysfs, struct gv_error *err)
{
    const char *name = getenv("GV100_PROFILE");
    if (!name || !*name)
        return gv_error_at(
            err, sysfs, 0, 0,
            "no NVIDIA GPU here; name a profile (--profile 4028) or another machine (--machine "
            "FOLDER)");
    s->has_machine = s->verified = false;
    if (read_profile(s, name, err))
        return -1;
    numbered_as_profile(s);
    return 0;
}

static int find_profile(struct gv_source *s, struct gv_error *err)
{
    s->profile = gv_profile_find(&s->machine, s->to_profile, s->path, err);
    return s->profile ? 0 : -1;
}

static int
open_both(struct gv_source *s, const char *profile, const char *machine, struct gv_error *err)
{
    if (profile && read_profile(s, profile, err))
        return -1;
    if (profile && !machine) {
        numbered_as_profile(s);
        return 0;
    }
    if (read_machine(s, machine, err))
        return -1;
    if (!profile && !s->machine.ngpus)
        return without_gpus(s, machine ? machine : gv_sysfs_root(), err);
    if (profile ? gv_profile_matches(s->profile, &s->machine, s->to_profile, err)
                : find_profile(s, err))
        return -1;
    numbered_as_machine(s);
    s->own_word = gv_profile_own_word(s->profile, &s->machine);
    return 0;
}

static void tidy_path(struct gv_source *s)
{
    char real[PATH_MAX];
    if (realpath(s->path, real))
        memcpy(s->path, real, sizeof(s->path));
}

struct gv_source *gv_source_open(const char *profile, const char *machine, struct gv_error *err)
{
    struct gv_source *s = calloc(1, sizeof(*s));
    if (!s) {
        gv_error_set(err, "out of memory");
        return NULL;
    }
    for (int i = 0; i < GV_MAX_GPUS; i++)
        s->to_profile[i] = s->from_profile[i] = -1;
    char sysfs[PATH_MAX], bundled[PATH_MAX] = "";
    bool bundle = gv_is_bundle(machine);
    if (bundle && gv_bundle_open(machine, sysfs, bundled, err)) {
        gv_source_free(s);
        return NULL;
    }
    if (bundle && !profile && bundled[0])
        profile = bundled;
    if (open_both(s, profile, bundle ? sysfs : machine, err)) {
        gv_source_free(s);
        return NULL;
    }
    tidy_path(s);
    return s;
}

void gv_source_free(struct gv_source *source)
{
    if (!source)
        return;
    gv_profile_free(source->profile);
    free(source);
}

int gv_source_gpus(
    const struct gv_source *source, gv_gpuset gpus, gv_gpuset *out, struct gv_error *err)
{
    gv_gpuset set = 0;
    for (gv_gpuset rest = gpus; rest; rest &= rest - 1) {
        int gpu = gv_gpuset_first(rest);
        if (gpu >= source->ngpus)
            return gv_error_set(
                err, "there is no GPU %d; %s has GPUs 0-%d", gpu,
                source->has_machine ? "this machine" : "the profile", source->ngpus - 1);
        if (source->to_profile[gpu] < 0)
            return gv_error_set(
                err, "GPU %d (%s) is not in the profile; measure the machine anew", gpu,
                gv_source_bus_id(source, gpu));
        set |= GV_GPU_BIT(source->to_profile[gpu]);
    }
    *out = set;
    return 0;
}

gv_gpuset gv_source_shown(const struct gv_source *source, gv_gpuset profile_gpus)
{
    gv_gpuset set = 0;
    for (gv_gpuset rest = profile_gpus; rest; rest &= rest - 1) {
        int gpu = source->from_profile[gv_gpuset_first(rest)];
        if (gpu >= 0)
            set |= GV_GPU_BIT(gpu);
    }
    return set;
}

const char *gv_source_bus_id(const struct gv_source *source, int gpu)
{
    if (source->has_machine)
        return source->machine.gpus[gpu].bus_id;
    return source->profile->gpus[gpu].bus_id;
}

static enum gv_p2p stamped(const struct gv_source *source, int a, int b)
{
    int i = source->from_profile[a], j = source->from_profile[b];
    return source->verified && i >= 0 && j >= 0 ? source->stamp.pair[i][j] : GV_P2P_UNVERIFIED;
}

void gv_source_bad(const struct gv_source *source, gv_gpuset bad[GV_MAX_GPUS])
{
    memset(bad, 0, sizeof(bad[0]) * GV_MAX_GPUS);
    for (int a = 0; a < source->profile->ngpus; a++)
        for (int b = 0; b < source->profile->ngpus; b++) {
            enum gv_p2p state = stamped(source, a, b);
            if (state == GV_P2P_CORRUPT || state == GV_P2P_HUNG || state == GV_P2P_ONE_WAY)
                bad[a] |= GV_GPU_BIT(b);
        }
}

bool gv_source_pair_verified(const struct gv_source *source, int a, int b)
{
    return stamped(source, a, b) == GV_P2P_VERIFIED && stamped(source, b, a) == GV_P2P_VERIFIED;
}
