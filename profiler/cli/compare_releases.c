/* Two NCCLs against each other: every repeat of one is followed by one of the other. */
#include <stdlib.h>
#include <string.h>

#include "profiler/cli/compare_live.h"

static void append_cell(struct gv_cell *to, const struct gv_cell *from)
{
    for (int i = 0; i < from->count && to->count < GV_MAX_REPEATS; i++) {
        to->time_us[to->count] = from->time_us[i];
        to->first_us[to->count] = from->first_us[i];
        to->throttled[to->count++] = from->throttled[i];
    }
    to->wrong += from->wrong;
    to->bound = from->bound;
    if (from->error[0] && !to->error[0])
        memcpy(to->error, from->error, sizeof(to->error));
}

/* Variants of the `which`th NCCL. */
static void append(struct gv_compared *all, const struct gv_compared *one, int which)
{
    char version[16];
    int n = one->run.nsteers;
    gv_nccl_format(one->run.nccl_version, version);
    for (int s = 0; s < n; s++) {
        int at = which * n + s;
        for (int k = 0; k < one->run.ncases; k++)
            append_cell(gv_cell_of(&all->run, at, k), gv_cell_of(&one->run, s, k));
        if (all->run.steer[at].name[0])
            continue; /* the first repeat said it */
        all->run.steer[at] = one->run.steer[s];
        snprintf(
            all->run.steer[at].name, sizeof(all->run.steer[at].name), "%s %.255s", version,
            one->run.steer[s].name);
        all->run.wiring[at] = one->run.wiring[s];
        all->ring[at] = one->ring[s];
    }
}

/* Everything that both have in common, and room for twice the variants. */
static int begin(struct gv_compared *all, struct gv_compared *one, struct gv_error *err)
{
    int n = 2 * one->run.nsteers;
    if (n > GV_MAX_STEERS)
        return gv_error_set(err, "more than %d variants", GV_MAX_STEERS / 2);
    *all = *one;
    one->settings.nenvironment = 0; /* `all` has it */
    all->rows = NULL;
    all->nrows = all->base = 0;
    all->run.nsteers = n;
    memset(all->run.steer, 0, sizeof(all->run.steer));
    all->run.cell = calloc((size_t)(n * one->run.ncases), sizeof(*all->run.cell));
    return all->run.cell ? 0 : gv_error_set(err, "out of memory");
}

int gv_compare_releases(
    const struct gv_compare_input *in, const char *const nccl[2], struct gv_compared *out,
    struct gv_error *err)
{
    struct gv_compared *one = calloc(1, sizeof(*one));
    struct gv_compare_input each = *in;
    int rc = one ? 0 : gv_error_set(err, "out of memory");
    memset(out, 0, sizeof(*out));
    each.repeats = 1;
    for (int i = 0; !rc && i < 2 * in->repeats; i++) {
        each.nccl = nccl[i % 2];
        rc = gv_compare_live(&each, one, err);
        if (rc)
            break;
        if (i == 0)
            rc = begin(out, one, err);
        if (!rc && one->run.nsteers * 2 != out->run.nsteers)
            rc = gv_error_set(err, "the two NCCLs were not measured alike");
        if (!rc) {
            append(out, one, i % 2);
            memcpy(out->settings.nccl[i % 2], one->settings.nccl[0], sizeof(one->settings.nccl[0]));
        }
        gv_compared_finish(one);
    }
    free(one);
    out->settings.repeats = in->repeats;
    if (!rc && gv_compared_judge(out))
        rc = gv_error_set(err, "out of memory");
    if (rc)
        gv_compared_finish(out);
    return rc;
}
