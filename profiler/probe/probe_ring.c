/* Ring AllReduce of the groups by our own kernels: as NCCL would do it by default (host memory
 * where an edge crosses the host bridge), and with P2P on those edges, sample by sample in turn;
 * alone, and beside another group of the plan, since a host runs more than one job. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/probe/variants.h"

/* One group under measurement. */
struct trial {
    struct gv_calibration *cal;
    const struct gv_item *item;
    struct gv_ring_variant v[2], beside;
    int n;
    bool has_beside;
    struct gv_error *err;
};

static int groups_of(const struct gv_calibration *cal, gv_gpuset out[GV_MAX_GPUS])
{
    if (!cal->options.ngroups)
        return gv_shape_groups(cal, out);
    memcpy(out, cal->options.groups, sizeof(out[0]) * (size_t)cal->options.ngroups);
    return cal->options.ngroups;
}

static void plan(struct gv_calibration *cal, const struct gv_probe *self)
{
    gv_gpuset groups[GV_MAX_GPUS];
    int n = cal->options.nccl ? 0 : groups_of(cal, groups); /* NCCL itself is better */
    char text[256];
    for (int i = 0; i < n; i++)
        gv_plan_add(
            cal, self, -1, -1, groups[i], cal->options.quick ? 1 : 9, 8, "ring AllReduce over %s",
            gv_gpuset_format(groups[i], text, sizeof(text)));
}

/* Whether an edge of the group's ring crosses the host bridge: only there is something to decide.
 */
static bool crosses(const struct gv_calibration *cal, gv_gpuset group)
{
    int ring[GV_MAX_GPUS], n = gv_shape_ring(cal, group, ring);
    for (int i = 0; i < n; i++)
        if (cal->path_class[ring[i]][ring[(i + 1) % n]] == GV_PATH_PHB)
            return true;
    return false;
}

/* The largest group that shares no GPU with `group`; 0: there is none. */
static gv_gpuset largest_beside(const gv_gpuset *groups, int n, gv_gpuset group)
{
    gv_gpuset best = 0;
    for (int i = 0; i < n; i++)
        if (!(groups[i] & group) && gv_gpuset_count(groups[i]) > gv_gpuset_count(best))
            best = groups[i];
    return best;
}

static void plan_beside(struct gv_calibration *cal, const struct gv_probe *self)
{
    gv_gpuset groups[GV_MAX_GPUS];
    int n = cal->options.nccl ? 0 : groups_of(cal, groups);
    char text[256], rest[256];
    for (int i = 0; i < n && !cal->options.quick; i++) {
        gv_gpuset other = largest_beside(groups, n, groups[i]);
        if (!other || !crosses(cal, groups[i]))
            continue;
        gv_plan_add(
            cal, self, -1, -1, groups[i], 12, 5, "ring AllReduce over %s beside %s",
            gv_gpuset_format(groups[i], text, sizeof(text)),
            gv_gpuset_format(other, rest, sizeof(rest)));
        cal->items[cal->nitems - 1].beside = other;
    }
}

static bool steady(const struct gv_meter *m, const struct gv_ring_variant *v)
{
    struct gv_figure f = gv_figure_of(v->samples, v->count);
    return v->count >= m->min_samples && f.max - f.min <= m->spread * f.median;
}

/* A ring that gives wrong sums, or none, is no figure; P2P that it turned on is not trusted any
 * more, whatever the check of the pair said. */
static void distrust(
    struct gv_calibration *cal, const struct gv_item *item, struct gv_ring_variant *v,
    const struct gv_error *why)
{
    v->broken = true;
    gv_warn(
        cal, "%s, %s: %s; not recorded", item->label,
        v->edit == GV_EDIT_P2P_LEVEL ? "with P2P across the host bridge" : "as by default",
        why->text);
    for (int i = 0; i < v->ring.n; i++) {
        int a = v->ring.gpu[i], b = v->ring.gpu[(i + 1) % v->ring.n];
        if (v->ring.shm[i] || gv_shape_default_p2p(cal, a, b))
            continue;
        cal->pair[a][b].p2p = cal->pair[b][a].p2p = GV_P2P_UNVERIFIED;
        snprintf(
            cal->pair[a][b].note, sizeof(cal->pair[a][b].note), "an AllReduce over it was wrong");
        memcpy(cal->pair[b][a].note, cal->pair[a][b].note, sizeof(cal->pair[b][a].note));
    }
}

static int verify(struct trial *t)
{
    for (int i = 0; i < t->n; i++) {
        int rc = gv_ring_verify(&t->cal->meter, &t->v[i].setup, t->err);
        if (rc < 0)
            return -1;
        if (rc)
            distrust(t->cal, t->item, &t->v[i], t->err);
    }
    return 0;
}

static int one_sample(struct trial *t, struct gv_ring_variant *v)
{
    int rc = gv_ring_sample(
        &t->cal->meter, &v->setup, t->has_beside ? &t->beside.setup : NULL, &v->samples[v->count],
        &v->throttled[v->count], t->err);
    if (rc < 0)
        return -1;
    if (rc)
        distrust(t->cal, t->item, v, t->err);
    v->any_throttled |= v->throttled[v->count];
    v->count++;
    return 0;
}

/* Default and forced in turn, so that a drift of the machine touches both alike. */
static int measure(struct trial *t)
{
    const struct gv_meter *m = &t->cal->meter;
    int most = m->max_samples < GV_MAX_SAMPLES ? m->max_samples : GV_MAX_SAMPLES;
    bool all = false;
    if (verify(t))
        return -1;
    for (int s = 0; s < most && !all; s++) {
        all = true;
        for (int i = 0; i < t->n; i++) {
            if (t->v[i].broken)
                continue;
            if (one_sample(t, &t->v[i]))
                return -1;
            all &= t->v[i].broken || steady(m, &t->v[i]);
        }
    }
    return 0;
}

static size_t ring_bytes(const struct gv_calibration *cal)
{
    size_t most = cal->options.quick ? (size_t)128 << 20 : (size_t)1 << 30;
    size_t bytes = cal->options.memory_bytes / 3;
    return bytes > most ? most : bytes & ~(size_t)0xfffff;
}

/* Makes one ring, with buffers half as large as long as there is no room for them. */
static int make_ring(struct trial *t, struct gv_ring_variant *v, size_t bytes)
{
    for (;;) {
        v->ring.bytes = bytes;
        t->cal->meter.last = 0;
        if (!gv_ring_init(&t->cal->meter, &v->ring, NULL, &v->setup, t->err))
            return 0;
        if (t->cal->meter.last != GV_CU_OUT_OF_MEMORY || bytes <= (size_t)1 << 20)
            return -1;
        bytes /= 2;
    }
}

static int set_up(struct trial *t)
{
    struct gv_meter *m = &t->cal->meter;
    if (make_ring(t, &t->v[0], ring_bytes(t->cal)))
        return -1;
    t->v[1].ring.bytes = t->v[0].ring.bytes;
    if (t->n > 1 && gv_ring_init(m, &t->v[1].ring, &t->v[0].setup, &t->v[1].setup, t->err))
        goto failed;
    if (t->has_beside && make_ring(t, &t->beside, t->v[0].ring.bytes))
        goto failed_beside;
    return 0;
failed_beside:
    if (t->n > 1)
        gv_ring_finish(m, &t->v[1].setup, false);
failed:
    gv_ring_finish(m, &t->v[0].setup, true);
    return -1;
}

static void finish(struct trial *t)
{
    if (t->has_beside)
        gv_ring_finish(&t->cal->meter, &t->beside.setup, true);
    for (int i = t->n - 1; i >= 0; i--)
        gv_ring_finish(&t->cal->meter, &t->v[i].setup, i == 0);
}

static int do_trial(struct trial *t)
{
    bool any = false;
    if (set_up(t)) {
        if (t->cal->meter.last != GV_CU_OUT_OF_MEMORY)
            return -1;
        gv_warn_memory(t->cal, t->item->gpus | t->item->beside, (size_t)16 << 20);
        return 0;
    }
    int rc = measure(t);
    finish(t);
    for (int i = 0; i < t->n && !rc; i++) {
        any |= !t->v[i].broken;
        if (t->v[i].any_throttled)
            gv_warn(t->cal, "%s: a GPU throttled; those samples are marked", t->item->label);
    }
    if (!rc && any && gv_ring_keep(t->cal, t->item, t->v, t->n))
        rc = gv_error_set(t->err, "out of memory");
    return rc;
}

static int run(struct gv_calibration *cal, const struct gv_item *item, struct gv_error *err)
{
    struct gv_ring ring = {0};
    struct gv_ring_variant others[2];
    struct trial *t = calloc(1, sizeof(*t));
    if (!t)
        return gv_error_set(err, "out of memory");
    t->cal = cal;
    t->item = item;
    t->err = err;
    ring.n = gv_shape_ring(cal, item->gpus, ring.gpu);
    t->n = gv_ring_variants(cal, &ring, t->v);
    if (item->beside) {
        ring.n = gv_shape_ring(cal, item->beside, ring.gpu);
        gv_ring_variants(cal, &ring, others);
        t->beside = others[0];
        t->has_beside = true;
    }
    int rc = do_trial(t);
    free(t);
    return rc;
}

const struct gv_probe gv_probe_ring = {
    "ring", "ring", "2 buffers and a FIFO on each GPU", "GB/s busbw", "more", plan, run,
};

const struct gv_probe gv_probe_beside = {
    "beside", "ring", "2 buffers and a FIFO on each GPU", "GB/s busbw", "more", plan_beside, run,
};
