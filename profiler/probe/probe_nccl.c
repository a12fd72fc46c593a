/* The groups under NCCL itself: its default, and the plans that the policy could choose, in turn.
 * AllReduce decides; AllToAll is measured beside it, since a transport holds for all operations. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profiler/collective/gv_collective.h"
#include "profiler/collective/gv_statistics.h"
#include "profiler/probe/gv_calibration.h"

#define CHECK_BYTES ((size_t)64 << 20) /* of a buffer; `compare` checks every byte */
#define REPEATS 5
#define FEW_REPEATS 3 /* quick, and algorithms with protocols: what the policy needs at least */

static struct gv_collective_options options_of(const struct gv_calibration *cal, int repeats)
{
    struct gv_collective_options o = *cal->options.nccl;
    o.stop = cal->options.stop;
    o.repeats = repeats;
    if (!o.check_bytes)
        o.check_bytes = CHECK_BYTES;
    return o;
}

static uint64_t most_bytes(const struct gv_calibration *cal)
{
    return cal->options.memory_bytes / 2;
}

/* Seconds on real GPUs, also for a virtual machine. */
static double seconds_for(const struct gv_calibration *cal, gv_gpuset group, int nvariants)
{
    struct gv_case cases[GV_MAX_CASES];
    struct gv_steer steers[GV_MAX_STEERS];
    bool quick = cal->options.quick;
    int n = gv_gpuset_count(group), k = gv_collective_cases(quick, most_bytes(cal), cases);
    struct gv_collective_options o = options_of(cal, quick ? FEW_REPEATS : REPEATS);
    double gbs = gv_estimate_ring_gbs(cal, group), seconds = gv_collective_start_s();
    o.virtual_driver = false;
    o.check_bytes = CHECK_BYTES;
    seconds += gv_collective_seconds(&o, n, nvariants, cases, k, gbs);
    o.repeats = 1;
    seconds += gv_collective_seconds(&o, n, 1, cases, 1, gbs); /* the look at the default */
    o.repeats = FEW_REPEATS;
    k = gv_collective_tuning_cases(cases);
    int tunings = gv_collective_tunings("", steers) * (nvariants > 1 ? 2 : 1);
    return quick ? seconds : seconds + gv_collective_seconds(&o, n, tunings, cases, k, gbs);
}

/* Groups that there is a choice for stay longer in a budget. */
static void plan(struct gv_calibration *cal, const struct gv_probe *self)
{
    gv_gpuset by_shape[GV_MAX_GPUS];
    const gv_gpuset *groups = cal->options.groups;
    int n = cal->options.ngroups;
    char text[256];
    if (!cal->options.nccl)
        return;
    if (!n) {
        n = gv_shape_groups(cal, by_shape);
        groups = by_shape;
    }
    for (int i = 0; i < n; i++) {
        int nvariants = gv_estimate_variants(cal, groups[i]);
        gv_plan_add(
            cal, self, -1, -1, groups[i], seconds_for(cal, groups[i], nvariants),
            nvariants > 1 ? 8 : 5, "NCCL over %s", gv_gpuset_format(groups[i], text, sizeof(text)));
    }
}

/* What the plugin needs to carry out forced plans: the profile as far as it is known. */
static int
write_profile(const struct gv_profile *profile, char *path, size_t size, struct gv_error *err)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(path, size, "%.3000s/gv100-XXXXXX.yaml", tmp && *tmp ? tmp : "/tmp");
    int fd = mkstemps(path, 5);
    if (fd < 0) {
        path[0] = 0;
        return gv_error_set(err, "no temporary file for the plugin: %m");
    }
    close(fd);
    return gv_profile_write(profile, path, err);
}

struct measuring {
    struct gv_calibration *cal;
    struct gv_collective_options options;
    const struct gv_profile *profile;
    gv_gpuset gpus;
    int list[GV_MAX_GPUS], n;
    char best[256]; /* the edit that gained most, as GV100_FORCE; "": none gained */
};

/* One case of a failed variant is told for all of them. */
static void warn_of_errors(const struct measuring *m, const struct gv_collective *c)
{
    char text[256];
    gv_gpuset_format(m->gpus, text, sizeof(text));
    for (int s = 0; s < c->nsteers; s++)
        for (int k = 0; k < c->ncases; k++) {
            const struct gv_cell *cell = gv_cell_of(c, s, k);
            if (cell->wrong)
                gv_warn(
                    m->cal, "NCCL over %s, %s: %s has wrong results, no figure of it is kept", text,
                    c->steer[s].name, gv_op_name(c->cases[k].op));
            if (cell->error[0])
                gv_warn(m->cal, "NCCL over %s, %s: %.300s", text, c->steer[s].name, cell->error);
        }
}

static int measure(
    const struct measuring *m, const struct gv_steer *steers, int nsteers,
    const struct gv_case *cases, int ncases, struct gv_collective *c, struct gv_error *err)
{
    if (gv_collective_measure(&m->options, m->list, m->n, steers, nsteers, cases, ncases, c, err))
        return -1;
    warn_of_errors(m, c);
    return 0;
}

/* The default's ring and transports first: they say which variants there are. */
static int look(struct measuring *m, struct gv_collective *c, struct gv_error *err)
{
    struct gv_steer base[GV_MAX_STEERS];
    struct gv_case small = {.op = GV_OP_ALL_REDUCE, .bytes = 1 << 20, .type = GV_TYPE_FLOAT};
    struct gv_collective_options once = m->options;
    int n = gv_collective_variants(m->profile, NULL, m->gpus, base);
    once.repeats = 1;
    return gv_collective_measure(&once, m->list, m->n, base, n, &small, 1, c, err);
}

static int keep(struct measuring *m, const struct gv_collective *c, struct gv_error *err)
{
    if (gv_collective_groups(c, &m->cal->groups, &m->cal->ngroups))
        return gv_error_set(err, "out of memory");
    if (c->nccl_version)
        snprintf(
            m->cal->nccl, sizeof(m->cal->nccl), "%d.%d.%d", c->nccl_version / 10000,
            c->nccl_version / 100 % 100, c->nccl_version % 100);
    return 0;
}

/* The edit of the highest median at the largest AllReduce, where that is above the default's. */
static void find_best(struct measuring *m, const struct gv_collective *c)
{
    double best_us = INFINITY;
    int k = 0;
    for (int i = 0; i < c->ncases; i++)
        if (c->cases[i].op == GV_OP_ALL_REDUCE && c->cases[i].bytes > c->cases[k].bytes)
            k = i;
    for (int s = 0; s < c->nsteers; s++) {
        const struct gv_cell *cell = gv_cell_of(c, s, k);
        double us = cell->wrong ? NAN : gv_median(cell->time_us, cell->count);
        if (!(us < best_us))
            continue;
        best_us = us;
        snprintf(
            m->best, sizeof(m->best), "%s",
            strcmp(c->steer[s].force, "default") ? c->steer[s].force : "");
    }
}

static int measure_plans(struct measuring *m, struct gv_error *err)
{
    struct gv_steer steers[GV_MAX_STEERS];
    struct gv_case cases[GV_MAX_CASES];
    struct gv_collective *c = calloc(1, sizeof(*c)), *first = calloc(1, sizeof(*first));
    int rc = c && first ? look(m, first, err) : gv_error_set(err, "out of memory");
    if (!rc) {
        int n = gv_collective_variants(m->profile, first, m->gpus, steers);
        int k = gv_collective_cases(m->cal->options.quick, most_bytes(m->cal), cases);
        rc = measure(m, steers, n, cases, k, c, err);
    }
    if (!rc)
        rc = keep(m, c, err);
    if (!rc)
        rc = gv_suspects_check(m->cal, &m->options, c, err);
    if (!rc)
        find_best(m, c);
    if (c)
        gv_collective_finish(c);
    if (first)
        gv_collective_finish(first);
    free(c);
    free(first);
    return rc;
}

/* Algorithms and protocols under NCCL's default or under an edit, for the sizes at which the choice
 * is not plain: NCCL chooses by bandwidths that it assumes, so it may choose badly under either. */
static int measure_tunings(struct measuring *m, const char *edit, struct gv_error *err)
{
    struct gv_steer steers[GV_MAX_STEERS];
    struct gv_case cases[GV_MAX_CASES];
    struct gv_collective *c = calloc(1, sizeof(*c));
    m->options.repeats = FEW_REPEATS;
    int n = gv_collective_tunings(edit, steers), k = gv_collective_tuning_cases(cases);
    int rc = c ? measure(m, steers, n, cases, k, c, err) : gv_error_set(err, "out of memory");
    if (!rc)
        rc = keep(m, c, err);
    if (c)
        gv_collective_finish(c);
    free(c);
    return rc;
}

static int measure_group(struct measuring *m, struct gv_error *err)
{
    m->options.session = gv_collective_open(&m->options, m->list, m->n, most_bytes(m->cal), err);
    if (!m->options.session)
        return -1;
    int rc = measure_plans(m, err);
    if (!rc && !m->cal->options.quick)
        rc = measure_tunings(m, "", err);
    if (!rc && !m->cal->options.quick && m->best[0])
        rc = measure_tunings(m, m->best, err);
    gv_collective_close(m->options.session);
    m->options.session = NULL;
    return rc;
}

static int run(struct gv_calibration *cal, const struct gv_item *item, struct gv_error *err)
{
    char path[4096] = "", text[256];
    struct gv_error why = {0};
    struct gv_profile *profile = gv_calibration_profile(cal);
    struct measuring m = {
        .cal = cal,
        .options = options_of(cal, cal->options.quick ? FEW_REPEATS : REPEATS),
        .profile = profile,
        .gpus = item->gpus};
    if (!profile)
        return gv_error_set(err, "out of memory");
    m.options.profile = path;
    for (gv_gpuset rest = item->gpus; rest; rest &= rest - 1)
        m.list[m.n++] = gv_gpuset_first(rest);
    int rc = write_profile(profile, path, sizeof(path), err);
    if (!rc && measure_group(&m, &why))
        gv_warn(
            cal, "NCCL over %s was not measured: %.300s",
            gv_gpuset_format(item->gpus, text, sizeof(text)), why.text);
    if (path[0])
        unlink(path);
    gv_profile_free(profile);
    if (!rc && cal->options.stop && *cal->options.stop)
        rc = gv_error_set(err, "stopped");
    return rc;
}

const struct gv_probe gv_probe_groups = {
    "nccl", "nccl", "libnccl.so.2 and the plugin", "GB/s busbw", "more", plan, run,
};
