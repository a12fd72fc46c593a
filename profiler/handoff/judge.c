/* From figures to a verdict in one sentence. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/handoff/gv_handoff_ab.h"

const char *gv_ab_verdict_name(enum gv_ab_verdict verdict)
{
    static const char *const names[] = {"no peer", "tie", "gain", "loss"};
    return names[verdict];
}

const char *gv_ab_duration(double us, char out[24])
{
    if (!isfinite(us))
        snprintf(out, 24, "-");
    else if (us >= 1e6)
        snprintf(out, 24, "%.3f s", us * 1e-6);
    else if (us >= 1e3)
        snprintf(out, 24, "%.4g ms", us * 1e-3);
    else
        snprintf(out, 24, "%.3g us", us);
    return out;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Second to last but one; under four samples all (the policy's rule 1). */
static void inner(const struct gv_ab_way *way, double *low, double *high)
{
    double v[GV_MAX_SAMPLES];
    int n = way->step_us.count;
    memcpy(v, way->step_samples, sizeof(v));
    qsort(v, (size_t)n, sizeof(v[0]), ascending);
    *low = v[n < 4 ? 0 : 1];
    *high = v[n < 4 ? n - 1 : n - 2];
}

static bool apart(const struct gv_ab_way *a, const struct gv_ab_way *b)
{
    double al, ah, bl, bh;
    inner(a, &al, &ah);
    inner(b, &bl, &bh);
    return ah < bl || bh < al;
}

static double saved(const struct gv_ab_way *a, const struct gv_ab_way *b)
{
    return 1 - b->step_us.median / a->step_us.median;
}

/* The first one, unless the second gains. */
static enum gv_handoff_method
choose(const struct gv_ab *ab, enum gv_handoff_method a, enum gv_handoff_method b)
{
    const struct gv_ab_way *x = &ab->ways[a], *y = &ab->ways[b];
    if (x->ran && x->right && y->ran && y->right)
        return saved(x, y) >= GV_AB_GAIN_LEAST && apart(x, y) ? b : a;
    return x->ran && x->right ? a : y->ran && y->right ? b : GV_HANDOFF_ANY;
}

static void say_none(struct gv_ab *ab)
{
    const struct gv_ab_way *copy = &ab->ways[GV_HANDOFF_PEER_COPY];
    snprintf(
        ab->sentence, sizeof(ab->sentence), "No direct path: %.250s; the host path stays.",
        copy->ran && !copy->right ? "the bytes arrive wrong" : copy->why);
}

static enum gv_ab_verdict judge(double gain, bool above_noise)
{
    if (above_noise && gain >= GV_AB_GAIN_LEAST)
        return GV_AB_GAIN;
    return above_noise && -gain >= GV_AB_LOSS_LEAST ? GV_AB_LOSS : GV_AB_TIE;
}

static void say(struct gv_ab *ab, const struct gv_ab_way *host, const struct gv_ab_way *peer)
{
    char a[24], b[24];
    const char *way = gv_handoff_method_name(ab->peer);
    const char *than = ab->gain < 0 ? "longer" : "shorter";
    gv_ab_duration(host->step_us.median, a);
    gv_ab_duration(peer->step_us.median, b);
    if (ab->verdict == GV_AB_TIE)
        snprintf(
            ab->sentence, sizeof(ab->sentence),
            "A tie end to end, %s: by %s a step is %.2g %% %s (%s against %s through the host, of "
            "which the hand-off is %.2f %%); the host path stays.",
            ab->above_noise ? "above the noise but too little to count" : "within the noise", way,
            100 * fabs(ab->gain), than, b, a, 100 * ab->share);
    else
        snprintf(
            ab->sentence, sizeof(ab->sentence),
            "A %s end to end, above the noise: by %s a step is %.1f %% %s (%s against %s through "
            "the host); %s.",
            gv_ab_verdict_name(ab->verdict), way, 100 * fabs(ab->gain), than, b, a,
            ab->verdict == GV_AB_LOSS ? "the host path stays" : "the direct path pays");
}

static void judge_links(struct gv_ab *ab)
{
    for (int i = 0; i < ab->nlinks; i++) {
        struct gv_ab_link *link = &ab->links[i];
        double use = isnan(link->traffic_use) ? link->together_use : link->traffic_use;
        link->saturated = use >= GV_AB_SATURATED;
    }
}

void gv_ab_judge(struct gv_ab *ab)
{
    ab->host = choose(ab, GV_HANDOFF_HOST_MAPPED, GV_HANDOFF_HOST_STAGED);
    ab->peer = choose(ab, GV_HANDOFF_PEER_COPY, GV_HANDOFF_PEER_READ);
    const struct gv_ab_way *host = &ab->ways[ab->host], *peer = &ab->ways[ab->peer];
    ab->share = ab->host ? host->handoff_us.median / host->step_us.median : NAN;
    ab->gain = NAN;
    ab->above_noise = false;
    ab->verdict = GV_AB_NO_PEER;
    judge_links(ab);
    if (!ab->host)
        snprintf(
            ab->sentence, sizeof(ab->sentence),
            "The host path brings wrong bytes: trust nothing here.");
    else if (!ab->peer)
        say_none(ab);
    if (!ab->host || !ab->peer)
        return;
    ab->gain = saved(host, peer);
    ab->above_noise = apart(host, peer);
    ab->verdict = judge(ab->gain, ab->above_noise);
    say(ab, host, peer);
}
