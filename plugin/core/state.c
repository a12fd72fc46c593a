#include "plugin/core/gv_state.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/gv_hash.h"
#include "config/gv_stamp.h"
#include "plugin/core/gv_driver.h"
#include "plugin/core/gv_env.h"
#include "plugin/core/gv_locks.h"
#include "plugin/core/gv_log.h"
#include "plugin/policy/gv_policy.h"

/* Written by load() under pthread_once, constant afterwards. Lives until the process ends: the
 * library is never unloaded. */
static struct gv_state the_state;
static pthread_once_t once = PTHREAD_ONCE_INIT;
struct gv_learnt gv_learnt;

static void warn(const char *what, const struct gv_error *err)
{
    char text[GV_ERROR_TEXT + GV_ERROR_FILE + 32];
    gv_log_once(
        GV_LOG_WARN, "%s%s; NCCL keeps its default", what,
        gv_error_format(err, text, sizeof(text)));
}

static void take_stamp(struct gv_state *s, const struct gv_stamp *stamp)
{
    for (int a = 0; a < s->machine.ngpus; a++) {
        for (int b = 0; b < s->machine.ngpus; b++) {
            int from = s->to_profile[a], to = s->to_profile[b];
            if (a == b || from < 0 || to < 0)
                continue;
            enum gv_p2p state = stamp->pair[a][b];
            if (state == GV_P2P_VERIFIED)
                s->verified[from] |= GV_GPU_BIT(to);
            else if (state == GV_P2P_CORRUPT || state == GV_P2P_HUNG || state == GV_P2P_ONE_WAY)
                s->bad[from] |= GV_GPU_BIT(to);
        }
    }
}

static void load_verification(struct gv_state *s)
{
    s->own_word = gv_profile_own_word(s->profile, &s->machine);
    if (s->own_word)
        return;
    static struct gv_stamp stamp; /* 40 KiB: too much for a caller's small stack; used once, here */
    struct gv_error err = {0};
    if (gv_stamp_find(&s->machine, &stamp, &err))
        warn("", &err);
    else
        take_stamp(s, &stamp);
}

static int load_profile(struct gv_state *s, struct gv_error *err)
{
    char path[PATH_MAX];
    s->profile = gv_profile_find(&s->machine, s->to_profile, path, err);
    if (!s->profile)
        return -1;
    if (s->profile->provenance.kind == GV_VIRTUAL && !s->machine.replayed)
        return gv_error_at(
            err, path, 0, 0,
            "this profile comes from a virtual machine and says nothing about this one; run 'gv100 "
            "calibrate'");
    for (int i = 0; i < GV_MAX_GPUS; i++)
        s->to_machine[i] = -1;
    for (int i = 0; i < s->machine.ngpus; i++)
        if (s->to_profile[i] >= 0)
            s->to_machine[s->to_profile[i]] = i;
    return 0;
}

static void load_operations(struct gv_state *s)
{
    const char *text = secure_getenv("GV100_OPERATIONS");
    struct gv_error err;
    if (text && *text && gv_ops_parse(text, &s->operations, &err))
        warn("GV100_OPERATIONS: ", &err);
}

static uint64_t hash_state(const struct gv_state *s)
{
    uint64_t h = gv_hash_u64(GV_HASH_START, s->profile->hash);
    h = gv_hash_bytes(h, s->verified, sizeof(s->verified));
    h = gv_hash_bytes(h, s->bad, sizeof(s->bad));
    h = gv_hash_u64(h, s->operations);
    return gv_hash_u64(h, s->own_word);
}

static void load(void)
{
    struct gv_state *s = &the_state;
    struct gv_error err = {0};
    gv_locks_survive_fork();
    for (int i = 0; i < GV_MAX_GPUS; i++)
        s->to_profile[i] = -1;
    const char *off = gv_env_get("GV100_DISABLE");
    if (off && !strcmp(off, "1")) {
        s->disabled = true;
        return;
    }
    if (gv_machine_read(gv_sysfs_root(), &s->machine, &err) || load_profile(s, &err)) {
        warn("", &err);
        return;
    }
    s->tree = gv_tree_base(NULL, gv_sysfs_root(), &err);
    if (!s->tree)
        warn("no topology to start from: ", &err);
    load_verification(s);
    load_operations(s);
    s->answer_nvb = !gv_profile_nvlink_chains(s->profile);
    s->hash = hash_state(s);
    s->usable = true;
}

const struct gv_state *gv_state(void)
{
    pthread_once(&once, load);
    return &the_state;
}

int gv_state_gpu(const struct gv_state *state, const char *bus_id)
{
    for (int i = 0; i < state->machine.ngpus; i++)
        if (!strcmp(state->machine.gpus[i].bus_id, bus_id))
            return i;
    return -1;
}

int gv_state_current_gpu(void)
{
    char bus_id[20];
    return gv_driver_current(NULL, bus_id) ? gv_state_gpu(gv_state(), bus_id) : -1;
}

int gv_state_ordinal_gpu(int ordinal)
{
    char bus_id[20];
    return gv_driver_ordinal(ordinal, bus_id) ? gv_state_gpu(gv_state(), bus_id) : -1;
}
