/* The groups under NCCL itself: its default, and the plans that the policy could choose, in turn.
 * AllReduce decides; AllToAll is measured beside it, since a transport holds for all operations. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profiler/collective/gv_collective.h"
#include "profiler/probe/gv_calibration.h"

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
    for (int i = 0; i < n; i++)
        gv_plan_add(
            cal, self, -1, -1, groups[i], cal->options.quick ? 8 : 40, 8, "NCCL over %s",
            gv_gpuset_format(groups[i], text, sizeof(text)));
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

static int measure_plans(struct measuring *m, struct gv_error *err)
{
    struct gv_steer steers[GV_MAX_STEERS];
    struct gv_case cases[GV_MAX_CASES];
    struct gv_collective *c = calloc(1, sizeof(*c)), *first = calloc(1, sizeof(*first));
    uint64_t most = m->cal->options.memory_bytes / 2;
    int rc = c && first ? look(m, first, err) : gv_error_set(err, "out of memory");
    if (!rc) {
        int n = gv_collective_variants(m->profile, first, m->gpus, steers);
        int k = gv_collective_cases(m->cal->options.quick, most, cases);
        rc = measure(m, steers, n, cases, k, c, err);
    }
    if (!rc)
        rc = keep(m, c, err);
    if (c)
        gv_collective_finish(c);
    if (first)
        gv_collective_finish(first);
    free(c);
    free(first);
    return rc;
}

/* Algorithms and protocols, for the sizes at which the choice is not plain; left out where time is
 * short. */
static int measure_tunings(struct measuring *m, struct gv_error *err)
{
    struct gv_steer steers[GV_MAX_STEERS];
    struct gv_case cases[GV_MAX_CASES];
    struct gv_collective *c = calloc(1, sizeof(*c));
    int n = gv_collective_tunings(steers), k = gv_collective_tuning_cases(cases);
    int rc = c ? measure(m, steers, n, cases, k, c, err) : gv_error_set(err, "out of memory");
    if (!rc)
        rc = keep(m, c, err);
    if (c)
        gv_collective_finish(c);
    free(c);
    return rc;
}

static int run(struct gv_calibration *cal, const struct gv_item *item, struct gv_error *err)
{
    char path[4096] = "", text[256];
    struct gv_error why = {0};
    struct gv_profile *profile = gv_calibration_profile(cal);
    struct measuring m = {
        .cal = cal, .options = *cal->options.nccl, .profile = profile, .gpus = item->gpus};
    if (!profile)
        return gv_error_set(err, "out of memory");
    m.options.profile = path;
    m.options.stop = cal->options.stop;
    m.options.repeats = cal->options.quick ? 3 : 5;
    if (!m.options
             .check_bytes) /* the checks of `compare` are whole; here they would take minutes */
        m.options.check_bytes = (size_t)64 << 20;
    for (gv_gpuset rest = item->gpus; rest; rest &= rest - 1)
        m.list[m.n++] = gv_gpuset_first(rest);
    int rc = write_profile(profile, path, sizeof(path), err);
    if (!rc && (measure_plans(&m, &why) || (!cal->options.quick && measure_tunings(&m, &why))))
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
