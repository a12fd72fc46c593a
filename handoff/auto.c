/* Mode auto: the peer path only where this machine's profile has a verified gain. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/gv_machine.h"
#include "handoff/handoff.h"

struct found {
    struct gv_profile *profile;
    struct gv_machine machine;
    int map[GV_MAX_GPUS];
};

static int open_profile(struct found *f, const char *path, struct gv_error *err)
{
    char file[PATH_MAX];
    if (gv_machine_read(gv_sysfs_root(), &f->machine, err))
        return -1;
    if (!path)
        f->profile = gv_profile_find(&f->machine, f->map, NULL, err);
    else if (!gv_profile_resolve(path, file, err))
        f->profile = gv_profile_read(file, err);
    if (!f->profile)
        return -1;
    if (path && gv_profile_matches(f->profile, &f->machine, f->map, err))
        return -1;
    if (f->profile->provenance.kind == GV_VIRTUAL && !f->machine.replayed)
        return gv_error_set(err, "the profile is from a virtual machine");
    return 0;
}

static int index_of(const struct found *f, const struct gv_device *d)
{
    for (int i = 0; i < f->machine.ngpus; i++)
        if (!strcmp(f->machine.gpus[i].bus_id, d->bus_id))
            return f->map[i];
    return -1;
}

/* Of the sizes from half to twice as large the nearest: farther off nothing is known. */
static const struct gv_profile_handoff *
nearest(const struct gv_profile *p, int from, int to, uint64_t bytes)
{
    const struct gv_profile_handoff *best = NULL;
    double best_ratio = 2;
    for (int i = 0; i < p->nhandoffs; i++) {
        const struct gv_profile_handoff *x = &p->handoffs[i];
        double ratio = (double)x->bytes / (double)bytes;
        ratio = ratio < 1 ? 1 / ratio : ratio;
        if (x->from != from || x->to != to || ratio > best_ratio || (best && ratio == best_ratio))
            continue;
        best = x;
        best_ratio = ratio;
    }
    return best;
}

static bool gains(const struct gv_profile *p, const struct gv_profile_handoff *x)
{
    return x->verdict == GV_HANDOFF_GAIN && x->host_step_us.count && x->peer_step_us.count &&
           1 - x->peer_step_us.median / x->host_step_us.median >= p->policy.min_gain;
}

static bool verified(const struct gv_profile *p, const struct gv_profile_handoff *x)
{
    return x->data_ok &&
           (x->from == x->to || (gv_profile_p2p(p, x->from, x->to) == GV_P2P_VERIFIED &&
                                 gv_profile_p2p(p, x->to, x->from) == GV_P2P_VERIFIED));
}

/* What the profile says of one pair, in a sentence. */
static bool
decide(const struct gv_profile *p, const struct gv_profile_handoff *x, char *why, size_t size)
{
    if (!x)
        snprintf(why, size, "the profile has no hand-off of about this size for the pair");
    else if (!gains(p, x))
        snprintf(
            why, size, "the profile says %s for the pair%s", gv_handoff_verdict_name(x->verdict),
            x->verdict == GV_HANDOFF_GAIN ? ", but less than min_gain" : "");
    else if (!verified(p, x))
        snprintf(why, size, "the pair's P2P is not verified in the profile");
    else
        snprintf(
            why, size, "the profile says that a step gains %.1f %%",
            100 * (1 - x->peer_step_us.median / x->host_step_us.median));
    return x && gains(p, x) && verified(p, x);
}

static void methods(
    const struct gv_profile_handoff *x, enum gv_handoff_method *peer, enum gv_handoff_method *host)
{
    if (!strcmp(x->peer_method, "read"))
        *peer = GV_HANDOFF_PEER_READ;
    if (!strcmp(x->host_method, "staged"))
        *host = GV_HANDOFF_HOST_STAGED;
}

bool gv_auto_peer(
    struct gv_handoff *h, const char *path, enum gv_handoff_method *peer,
    enum gv_handoff_method *host, char *why, size_t size)
{
    struct found *f = calloc(1, sizeof(*f));
    struct gv_error err = {0};
    bool yes = false;
    if (!f || open_profile(f, path, &err))
        snprintf(why, size, "no profile to go by: %.180s", f ? err.text : "out of memory");
    else {
        int from = index_of(f, &h->gpus.device[0]), to = index_of(f, &h->gpus.device[1]);
        const struct gv_profile_handoff *x =
            from < 0 || to < 0 ? NULL : nearest(f->profile, from, to, h->bytes);
        yes = decide(f->profile, x, why, size);
        if (x)
            methods(x, peer, host);
    }
    if (f)
        gv_profile_free(f->profile);
    free(f);
    return yes;
}
