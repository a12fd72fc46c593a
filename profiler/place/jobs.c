/* A list of jobs on one machine: every division is looked at, by the GPUs that are taken. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/place/gv_place.h"

struct candidate {
    uint32_t set; /* packed */
    double value; /* its figure over the best one's, less a hair for its rank */
};

struct job {
    struct gv_group_place *list;
    struct candidate *candidates;
    int n;
};

struct search {
    int ngpus, njobs;
    struct job job[GV_PLACE_JOBS];
    double *best; /* [njobs + 1][1 << ngpus]: the greatest sum with these GPUs taken; < 0 none */
    int *choice;  /* [njobs + 1][1 << ngpus]: the last job's candidate */
};

static double figure(const struct gv_request *r, const struct gv_group_place *g)
{
    double value = g->busbw_gbs;
    if (r->work == GV_WORK_MEMORY || r->gpus == 1)
        value = g->copy_gbs;
    if (r->work == GV_WORK_INDEPENDENT)
        value = 1 - g->worth / r->gpus;
    return isnan(value) ? 0 : value;
}

static uint32_t packed(gv_gpuset gpus, gv_gpuset all)
{
    uint32_t out = 0;
    for (int i = 0; all; all &= all - 1, i++)
        if (gpus & (all & -all))
            out |= 1u << i;
    return out;
}

static int prepare(
    const struct gv_place *place, const struct gv_request *r, gv_gpuset all, struct job *job,
    struct gv_error *err)
{
    struct gv_error why;
    job->n = gv_place_rank(place, r, all, &job->list, &why);
    if (job->n < 0)
        return gv_error_set(err, "job %.31s: %.400s", r->name, why.text);
    job->candidates = malloc((size_t)job->n * sizeof(*job->candidates));
    if (!job->candidates)
        return gv_error_set(err, "out of memory");
    double top = figure(r, &job->list[0]);
    for (int i = 0; i < job->n; i++) {
        double share = top > 0 ? figure(r, &job->list[i]) / top : 1;
        job->candidates[i] = (struct candidate){
            packed(job->list[i].gpus, all), share - 1e-6 * job->list[i].rank / job->n};
    }
    return 0;
}

static void extend(struct search *s, int j)
{
    size_t states = (size_t)1 << s->ngpus;
    const double *from = s->best + (size_t)j * states;
    double *to = s->best + (size_t)(j + 1) * states;
    int *choice = s->choice + (size_t)(j + 1) * states;
    const struct job *job = &s->job[j];
    for (size_t taken = 0; taken < states; taken++) {
        if (from[taken] < 0)
            continue;
        for (int i = 0; i < job->n; i++) {
            const struct candidate *c = &job->candidates[i];
            if (c->set & taken)
                continue;
            double sum = from[taken] + c->value;
            size_t now = taken | c->set;
            if (sum > to[now]) {
                to[now] = sum;
                choice[now] = i;
            }
        }
    }
}

static int solve(struct search *s, struct gv_group_place *out, struct gv_error *err)
{
    size_t states = (size_t)1 << s->ngpus, end = 0;
    s->best = malloc((size_t)(s->njobs + 1) * states * sizeof(*s->best));
    s->choice = malloc((size_t)(s->njobs + 1) * states * sizeof(*s->choice));
    if (!s->best || !s->choice)
        return gv_error_set(err, "out of memory");
    for (size_t i = 0; i < (size_t)(s->njobs + 1) * states; i++)
        s->best[i] = -1;
    s->best[0] = 0;
    for (int j = 0; j < s->njobs; j++)
        extend(s, j);
    const double *last = s->best + (size_t)s->njobs * states;
    for (size_t i = 0; i < states; i++)
        if (last[i] > last[end])
            end = i;
    if (last[end] < 0)
        return gv_error_set(err, "the jobs do not fit on this machine together");
    for (int j = s->njobs; j > 0; j--) {
        int i = s->choice[(size_t)j * states + end];
        out[j - 1] = s->job[j - 1].list[i];
        end &= ~(size_t)s->job[j - 1].candidates[i].set;
    }
    return 0;
}

int gv_place_jobs(
    const struct gv_place *place, const struct gv_request *jobs, int n, gv_gpuset free_gpus,
    struct gv_group_place *out, struct gv_error *err)
{
    struct search s = {.ngpus = gv_gpuset_count(free_gpus), .njobs = n};
    int asked = 0, rc = 0;
    for (int i = 0; i < n; i++)
        asked += jobs[i].gpus;
    if (s.ngpus > GV_PLACE_JOBS_GPUS)
        return gv_error_set(
            err, "jobs are divided among %d GPUs at most, %d are free; narrow it with --within",
            GV_PLACE_JOBS_GPUS, s.ngpus);
    if (asked > s.ngpus)
        return gv_error_set(err, "the jobs ask for %d GPUs, %d are free", asked, s.ngpus);
    for (int i = 0; i < n && !rc; i++)
        rc = prepare(place, &jobs[i], free_gpus, &s.job[i], err);
    if (!rc)
        rc = solve(&s, out, err);
    for (int i = 0; i < n; i++) {
        free(s.job[i].list);
        free(s.job[i].candidates);
    }
    free(s.best);
    free(s.choice);
    return rc;
}
