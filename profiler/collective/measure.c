/* Variants in turn within each repeat, every one in a communicator of its own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/collective/crew.h"
#include "profiler/collective/gv_busbw.h"

struct measuring {
    const struct gv_collective_options *options;
    struct gv_collective *c;
    struct gv_crew *crew;
    bool lost[GV_MAX_STEERS]; /* the variant cannot even make a communicator */
};

static double step_timeout_s(const struct gv_collective_options *o, uint64_t bytes, int calls)
{
    double least = o->timeout_s > 0 ? o->timeout_s : 60;
    /* 50 MB/s is slower than any transport that is worth measuring; checks take as long again. */
    return least + 2 * (double)calls * (double)bytes / 50e6;
}

static void
plan_calls(const struct gv_collective_options *o, uint64_t bytes, struct gv_worker_run *run)
{
    run->iterations = o->iterations;
    if (!run->iterations && o->virtual_driver)
        run->iterations = 2;
    else if (!run->iterations)
        run->iterations = bytes <= 1 << 20     ? 50
                          : bytes <= 64 << 20  ? 20
                          : bytes <= 512 << 20 ? 5
                                               : 3;
    /* The cold call, which came before, warms up what is large. */
    run->warmups = o->virtual_driver ? 1 : bytes > 64 << 20 ? 0 : 5;
}

static int stop_here(const struct measuring *m)
{
    return m->options->stop && *m->options->stop;
}

static void keep(struct gv_cell *cell, const struct gv_ran *ran)
{
    int i = cell->count;
    if (i == GV_MAX_REPEATS)
        return;
    cell->time_us[i] = ran->time_us;
    cell->first_us[i] = ran->first_us;
    cell->throttled[i] = ran->throttled;
    cell->wrong += ran->wrong;
    cell->bound = ran->bound;
    cell->count++;
}

/* A communicator for the variant, with workers that are there. */
static int connect(struct measuring *m, int s, struct gv_error *err)
{
    const struct gv_collective_options *o = m->options;
    if (gv_crew_start(m->crew, err))
        return -1;
    m->c->nccl_version = m->crew->nccl_version;
    double timeout_s = o->timeout_s > 0 ? o->timeout_s : 60;
    return gv_crew_communicator(m->crew, m->c->steer[s].force, timeout_s, err);
}

static void lose(struct measuring *m, int s, const struct gv_error *err)
{
    m->lost[s] = true;
    for (int k = 0; k < m->c->ncases; k++) {
        struct gv_cell *cell = gv_cell_of(m->c, s, k);
        if (!cell->error[0])
            snprintf(cell->error, sizeof(cell->error), "%.319s", err->text);
    }
}

/* One case in the communicator that is there. -1: the workers are gone, the cell says why. */
static int run_case(struct measuring *m, int s, int k)
{
    static struct gv_request request; /* large */
    struct gv_cell *cell = gv_cell_of(m->c, s, k);
    struct gv_ran ran;
    struct gv_error err = {0};
    request = (struct gv_request){.ask = GV_ASK_RUN, .run.what = m->c->cases[k]};
    uint64_t bytes = m->c->cases[k].bytes;
    plan_calls(m->options, bytes, &request.run);
    int calls = request.run.iterations + request.run.warmups + 1;
    if (gv_crew_ask(m->crew, &request, step_timeout_s(m->options, bytes, calls), &ran, &err)) {
        snprintf(cell->error, sizeof(cell->error), "%.319s", err.text);
        return -1;
    }
    keep(cell, &ran);
    return 0;
}

/* A plan that was asked for and not followed must not be measured as if it had been. */
static int check_steer(struct measuring *m, int s)
{
    const struct gv_steer *steer = &m->c->steer[s];
    struct gv_wiring *wiring = &m->c->wiring[s];
    struct gv_error err = {0};
    if (!steer->force[0] || !strcmp(steer->force, "default"))
        return 0;
    if (!strncmp(wiring->decided, "forced", 6))
        return 0;
    gv_error_set(
        &err, "the plugin did not follow '%.100s': %.200s", steer->force,
        wiring->decided[0] ? wiring->decided
                           : "it was not asked (is it loaded, and has it a "
                             "profile of this machine?)");
    for (int k = 0; k < m->c->ncases; k++)
        gv_cell_of(m->c, s, k)->count = 0;
    lose(m, s, &err);
    return -1;
}

static void destroy(struct measuring *m, int s, bool first)
{
    static struct gv_request request; /* large */
    struct gv_error err = {0};
    struct gv_wiring again;
    double timeout_s = m->options->timeout_s > 0 ? m->options->timeout_s : 60;
    request = (struct gv_request){.ask = GV_ASK_DESTROY};
    gv_crew_ask(m->crew, &request, timeout_s, NULL, &err);
    gv_crew_read_logs(m->crew, first ? &m->c->wiring[s] : &again);
}

/* All cases of one variant once. After a failure the others go on in a new communicator. */
static int round_of(struct measuring *m, int s, int repeat, struct gv_error *err)
{
    int tries = 0, k = 0;
    while (k < m->c->ncases && !stop_here(m)) {
        if (gv_cell_of(m->c, s, k)->error[0]) {
            k++;
            continue;
        }
        if (connect(m, s, err)) {
            if (repeat == 0 && tries == 0 && s == 0)
                return -1; /* not even the first communicator: nothing can be measured */
            lose(m, s, err);
            return 0;
        }
        tries++;
        int rc = 0;
        for (; k < m->c->ncases && !rc && !stop_here(m); k++)
            if (!gv_cell_of(m->c, s, k)->error[0])
                rc = run_case(m, s, k);
        if (m->crew->n)
            destroy(m, s, repeat == 0);
        else
            gv_crew_read_logs(m->crew, &m->c->wiring[s]);
    }
    return 0;
}

static int run_all(struct measuring *m, struct gv_error *err)
{
    const struct gv_collective_options *o = m->options;
    int repeats = o->repeats < GV_MAX_REPEATS ? o->repeats : GV_MAX_REPEATS;
    for (int r = 0; r < repeats; r++)
        for (int s = 0; s < m->c->nsteers; s++) {
            if (stop_here(m))
                return gv_error_set(err, "stopped");
            if (m->lost[s])
                continue;
            if (o->progress)
                o->progress(
                    o->progress_data, m->c->steer[s].name, r * m->c->nsteers + s,
                    repeats * m->c->nsteers);
            if (round_of(m, s, r, err))
                return -1;
            if (r == 0)
                check_steer(m, s);
        }
    return 0;
}

static int prepare(
    struct gv_collective *c, const int *gpus, int nranks, const struct gv_steer *steers,
    int nsteers, const struct gv_case *cases, int ncases, struct gv_error *err)
{
    memset(c, 0, sizeof(*c));
    if (nranks < 1 || nranks > GV_MAX_GPUS || nsteers < 1 || nsteers > GV_MAX_STEERS ||
        ncases < 1 || ncases > GV_MAX_CASES)
        return gv_error_set(
            err, "%d ranks, %d variants, %d cases: more than can be measured at a time", nranks,
            nsteers, ncases);
    memcpy(c->gpu, gpus, sizeof(int) * (size_t)nranks);
    c->nranks = nranks;
    memcpy(c->steer, steers, sizeof(*steers) * (size_t)nsteers);
    c->nsteers = nsteers;
    for (int k = 0; k < ncases; k++) {
        c->cases[k] = cases[k];
        c->cases[k].bytes =
            gv_op_bytes(cases[k].op, nranks, cases[k].bytes, gv_type_bytes(cases[k].type));
        if (!c->cases[k].bytes)
            return gv_error_set(
                err,
                "%s of %llu bytes over %d ranks: less than one element, or 16 bytes a piece, for "
                "each; take a greater size or other operations",
                gv_op_name(cases[k].op), (unsigned long long)cases[k].bytes, nranks);
    }
    c->ncases = ncases;
    c->cell = calloc((size_t)(nsteers * ncases), sizeof(*c->cell));
    return c->cell ? 0 : gv_error_set(err, "out of memory");
}

static size_t largest(const struct gv_case *cases, int ncases)
{
    size_t most = 0;
    for (int k = 0; k < ncases; k++)
        most = cases[k].bytes > most ? cases[k].bytes : most;
    return most;
}

struct gv_collective_session {
    struct gv_collective_options options;
    struct gv_crew crew;
};

struct gv_collective_session *gv_collective_open(
    const struct gv_collective_options *options, const int *gpus, int nranks, uint64_t bytes,
    struct gv_error *err)
{
    struct gv_collective_session *s = calloc(1, sizeof(*s));
    if (!s) {
        gv_error_set(err, "out of memory");
        return NULL;
    }
    s->options = *options;
    if (!gv_crew_init(&s->crew, &s->options, gpus, nranks, bytes, err))
        return s;
    free(s);
    return NULL;
}

void gv_collective_close(struct gv_collective_session *s)
{
    if (s)
        gv_crew_finish(&s->crew);
    free(s);
}

/* With the workers of the session, or with some of its own. */
static int run_with_crew(struct measuring *m, struct gv_error *err)
{
    const struct gv_collective_options *o = m->options;
    struct gv_collective_session *own = NULL;
    if (!o->session) {
        own =
            gv_collective_open(o, m->c->gpu, m->c->nranks, largest(m->c->cases, m->c->ncases), err);
        if (!own)
            return -1;
    }
    m->crew = own ? &own->crew : &o->session->crew;
    int rc = run_all(m, err);
    gv_collective_close(own);
    return rc;
}

int gv_collective_measure(
    const struct gv_collective_options *options, const int *gpus, int nranks,
    const struct gv_steer *steers, int nsteers, const struct gv_case *cases, int ncases,
    struct gv_collective *out, struct gv_error *err)
{
    struct measuring *m = calloc(1, sizeof(*m));
    int rc = prepare(out, gpus, nranks, steers, nsteers, cases, ncases, err);
    if (!m || rc) {
        free(m);
        return rc ? rc : gv_error_set(err, "out of memory");
    }
    m->options = options;
    m->c = out;
    snprintf(
        out->nccl_path, sizeof(out->nccl_path), "%.511s",
        options->nccl ? options->nccl : "libnccl.so.2");
    rc = run_with_crew(m, err);
    for (int s = 0; s < nsteers; s++)
        out->wiring[s].nccl_version = out->nccl_version;
    free(m);
    return rc;
}

void gv_collective_finish(struct gv_collective *c)
{
    free(c->cell);
    c->cell = NULL;
}

/* Guesses that no measurement stands behind, on the high side: processes with a context on each
 * GPU, and a communicator's life. */
#define START_S 2.5
#define COMMUNICATOR_S 0.5
#define CALL_US 50

double gv_collective_start_s(void)
{
    return START_S;
}

double gv_collective_seconds(
    const struct gv_collective_options *options, int nranks, int nsteers,
    const struct gv_case *cases, int ncases, double busbw_gbs)
{
    double seconds = COMMUNICATOR_S;
    for (int k = 0; k < ncases; k++) {
        struct gv_worker_run run;
        uint64_t bytes = cases[k].bytes, checked = options->check_bytes;
        plan_calls(options, bytes, &run);
        double us = gv_busbw_time_us(cases[k].op, nranks, bytes, busbw_gbs);
        seconds += (1 + run.warmups + run.iterations) * (us + CALL_US) * 1e-6;
        if (!checked || checked > bytes)
            checked = bytes;
        seconds += 3 * (double)checked / busbw_gbs * 1e-9; /* two buffers filled, one read back */
    }
    return options->repeats * nsteers * seconds;
}
