/* Pairs whose check was right and over which NCCL is wrong. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/collective/gv_collective.h"
#include "profiler/probe/gv_calibration.h"

struct suspects {
    bool used[GV_MAX_GPUS][GV_MAX_GPUS], cleared[GV_MAX_GPUS][GV_MAX_GPUS]; /* [lower][higher] */
};

static bool any_wrong(const struct gv_collective *c, int steer)
{
    bool wrong = false;
    for (int k = 0; k < c->ncases; k++)
        wrong |= gv_cell_of(c, steer, k)->wrong > 0;
    return wrong;
}

/* Ring edges on P2P of what was wrong, and of what was right. */
static bool find_suspects(const struct gv_collective *c, struct suspects *s)
{
    bool any = false;
    for (int i = 0; i < c->nsteers; i++) {
        bool wrong = any_wrong(c, i), right = !wrong && gv_cell_of(c, i, 0)->count;
        any |= wrong;
        for (int e = 0; e < c->wiring[i].nring; e++) {
            const struct gv_wire *w = &c->wiring[i].edge[e];
            int a = w->from < w->to ? w->from : w->to, b = w->from < w->to ? w->to : w->from;
            if (strncmp(w->transport, "P2P", 3))
                continue;
            s->used[a][b] |= wrong;
            s->cleared[a][b] |= right;
        }
    }
    return any;
}

static void steers_for(const struct gv_calibration *cal, int a, int b, struct gv_steer out[2])
{
    memset(out, 0, 2 * sizeof(*out));
    snprintf(out[0].name, sizeof(out[0].name), "P2P");
    snprintf(
        out[0].force, sizeof(out[0].force), "%s",
        gv_shape_default_p2p(cal, a, b) ? "default" : "bridge");
    snprintf(out[1].name, sizeof(out[1].name), "host memory");
    snprintf(out[1].force, sizeof(out[1].force), "separate %d-%d", a, b);
}

/* 1: wrong over P2P and right through host memory, 0: not so, -1: nothing can be measured. */
static int is_wrong(
    struct gv_calibration *cal, const struct gv_collective_options *options, int a, int b,
    struct gv_error *err)
{
    const int gpus[2] = {a, b};
    struct gv_steer steers[2];
    struct gv_case what = {.op = GV_OP_ALL_REDUCE, .bytes = 16 << 20, .type = GV_TYPE_INT32};
    struct gv_collective_options o = *options;
    struct gv_collective *c = calloc(1, sizeof(*c));
    if (!c)
        return gv_error_set(err, "out of memory");
    o.session = NULL; /* its workers are another communicator's */
    o.repeats = 1;
    steers_for(cal, a, b, steers);
    int rc = gv_collective_measure(&o, gpus, 2, steers, 2, &what, 1, c, err);
    if (!rc)
        rc = gv_cell_of(c, 0, 0)->wrong > 0 && gv_cell_of(c, 1, 0)->count &&
             !gv_cell_of(c, 1, 0)->wrong;
    gv_collective_finish(c);
    free(c);
    return rc;
}

static void mark(struct gv_calibration *cal, int a, int b, enum gv_p2p state, const char *note)
{
    cal->pair[a][b].p2p = cal->pair[b][a].p2p = state;
    snprintf(cal->pair[a][b].note, sizeof(cal->pair[a][b].note), "%s", note);
    snprintf(cal->pair[b][a].note, sizeof(cal->pair[b][a].note), "%s", note);
    gv_warn(
        cal, "GPU %d and %d: P2P is %s (%s); it will not be used%s", a, b, gv_p2p_name(state), note,
        state == GV_P2P_CORRUPT ? ", and NCCL will be kept from it" : "");
}

int gv_suspects_check(
    struct gv_calibration *cal, const struct gv_collective_options *options,
    const struct gv_collective *found, struct gv_error *err)
{
    struct suspects *s = calloc(1, sizeof(*s));
    int guilty = 0, rc = s ? 0 : gv_error_set(err, "out of memory");
    bool any = s && find_suspects(found, s);
    for (int a = 0; a < cal->n && any && rc >= 0; a++)
        for (int b = a + 1; b < cal->n && rc >= 0; b++) {
            if (!s->used[a][b] || s->cleared[a][b])
                continue;
            rc = is_wrong(cal, options, a, b, err);
            guilty += rc > 0;
            if (rc > 0)
                mark(
                    cal, a, b, GV_P2P_CORRUPT,
                    "its check is right, NCCL's AllReduce over it is wrong");
        }
    for (int a = 0; a < cal->n && any && !guilty && rc >= 0; a++)
        for (int b = a + 1; b < cal->n; b++)
            if (s->used[a][b] && !s->cleared[a][b])
                mark(cal, a, b, GV_P2P_UNVERIFIED, "NCCL was wrong over a ring that holds it");
    free(s);
    return rc < 0 ? -1 : 0;
}
