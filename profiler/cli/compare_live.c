#include "profiler/cli/compare_live.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "profiler/cli/collective.h"
#include "profiler/cli/source.h"

struct live {
    const struct gv_compare_input *in;
    struct gv_measuring m;
    struct gv_source *source; /* NULL: only forced variants, no profile */
    struct gv_collective_setup setup;
    char bare[PATH_MAX]; /* a profile of the machine's shape alone; removed at the end */
    struct gv_steer steer[GV_MAX_STEERS];
    int nsteers;
    struct gv_case cases[GV_MAX_CASES];
    int ncases;
    int gpu[GV_MAX_GPUS], ordinal[GV_MAX_GPUS], nranks; /* machine's and CUDA's numbers, by rank */
};

static int
add_case(struct live *l, enum gv_op op, uint64_t bytes, bool in_place, struct gv_error *err)
{
    if (l->ncases == GV_MAX_CASES)
        return gv_error_set(err, "more than %d sizes and operations", GV_MAX_CASES);
    l->cases[l->ncases++] = (struct gv_case){
        .op = op,
        .bytes = bytes,
        .type = l->in->type,
        .redop = l->in->redop,
        .in_place = in_place,
    };
    return 0;
}

static int list_cases(struct live *l, struct gv_error *err)
{
    const struct gv_compare_input *in = l->in;
    for (int op = 0; op < GV_OP_COUNT; op++)
        for (uint64_t b = in->min_bytes; in->ops >> op & 1 && b <= in->max_bytes;) {
            if (add_case(l, (enum gv_op)op, b, false, err) ||
                (in->in_place && op != GV_OP_ALL_TO_ALL &&
                 add_case(l, (enum gv_op)op, b, true, err)))
                return -1;
            uint64_t next = (uint64_t)((double)b * in->factor);
            b = next > b ? next : b + 1;
        }
    return 0;
}

static void add_steer(struct live *l, const char *name, const char *force)
{
    struct gv_steer *steer = &l->steer[l->nsteers++];
    snprintf(steer->name, sizeof(steer->name), "%s", name);
    snprintf(steer->force, sizeof(steer->force), "%s", force);
}

/* GPUs of CUDA and of the machine are told apart by bus id: CUDA may show fewer, in any order. */
static int list_gpus(struct live *l, struct gv_error *err)
{
    static struct gv_gpus gpus; /* large */
    static struct gv_machine machine;
    if (gv_machine_read(gv_sysfs_root(), &machine, err) ||
        gv_gpus_open(&gpus, l->setup.options.cuda, l->setup.options.nvml, err))
        return -1;
    gv_gpuset wanted = l->in->gpus ? l->in->gpus : ~(gv_gpuset)0;
    int each = l->in->ranks_per_gpu > 0 ? l->in->ranks_per_gpu : 1;
    for (int g = 0; g < machine.ngpus; g++) {
        int ordinal = -1;
        for (int i = 0; i < gpus.n; i++)
            if (!strcmp(gpus.device[i].bus_id, machine.gpus[g].bus_id))
                ordinal = i;
        if (!gv_gpuset_has(wanted, g) || (ordinal < 0 && !l->in->gpus))
            continue;
        if (ordinal < 0)
            return gv_error_set(err, "CUDA does not show GPU %d (%s)", g, machine.gpus[g].bus_id);
        for (int k = 0; k < each && l->nranks < GV_MAX_GPUS; k++) {
            l->gpu[l->nranks] = g;
            l->ordinal[l->nranks++] = ordinal;
        }
        wanted &= ~GV_GPU_BIT(g);
    }
    gv_gpus_close(&gpus);
    if (l->in->gpus && wanted)
        return gv_error_set(
            err, "there is no GPU %d; this machine has %d", gv_gpuset_first(wanted), machine.ngpus);
    return l->nranks ? 0 : gv_error_set(err, "there is no GPU to measure on");
}

/* What the plugin must know to carry out a forced plan: the machine's GPUs and NVLinks. */
static int bare_profile(struct live *l, struct gv_error *err)
{
    const char *tmp = getenv("TMPDIR");
    struct gv_calibration_options options = l->m.options;
    options.force = true;
    struct gv_calibration *cal = gv_calibration_open(&options, err);
    struct gv_profile *profile = cal ? gv_calibration_profile(cal) : NULL;
    snprintf(l->bare, sizeof(l->bare), "%.4000s/gv100-XXXXXX.yaml", tmp && *tmp ? tmp : "/tmp");
    int fd = profile ? mkstemps(l->bare, 5) : -1, rc = -1;
    if (fd >= 0) {
        close(fd);
        rc = gv_profile_write(profile, l->bare, err);
    } else {
        l->bare[0] = 0;
        if (profile)
            gv_error_set(err, "no temporary file: %m");
    }
    gv_profile_free(profile);
    gv_calibration_close(cal);
    if (!rc)
        l->setup.options.profile = l->bare;
    return rc;
}

static int find_profile(struct live *l, struct gv_error *err)
{
    if (l->setup.options.unlike_hosts) { /* no plan is made for them */
        l->setup.options.plugin = NULL;
        return 0;
    }
    l->source = gv_source_open(l->in->profile, gv_sysfs_root(), err);
    if (l->source) {
        l->setup.options.profile = l->source->path;
        return 0;
    }
    if (l->in->profile)
        return -1;
    if (l->in->nvariants)
        return bare_profile(l, err);
    l->setup.options.plugin = NULL; /* the default alone, which needs no plugin */
    return 0;
}

static void show_progress(void *data, const char *what, int done, int all)
{
    (void)data;
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[K%3d %%  %s", 100 * done / all, what);
}

static int prepare(struct live *l, struct gv_error *err)
{
    struct gv_collective_options *o = &l->setup.options;
    if (l->in->machine && l->in->ranks_per_gpu > 1)
        return gv_error_set(
            err, "ranks that share a GPU are different hosts to NCCL, which talk over its network "
                 "transport; the virtual NCCL plays one host. On real GPUs --ranks-per-gpu works");
    if (gv_measuring_init(&l->m, l->in->machine, err) ||
        gv_collective_prepare(&l->setup, &l->m, l->in->machine, l->in->nccl, err))
        return -1;
    o->threads = l->in->threads;
    o->unlike_hosts = l->in->ranks_per_gpu > 1;
    o->repeats = l->in->repeats;
    o->iterations = l->in->iterations;
    o->timeout_s = l->in->timeout_s;
    if (l->in->check_some)
        o->check_bytes = l->in->check_bytes;
    o->progress = show_progress;
    add_steer(l, "default", "default");
    if (list_gpus(l, err) || find_profile(l, err))
        return -1;
    if (l->source)
        add_steer(l, "tuned", "");
    for (int i = 0; i < l->in->nvariants && !o->unlike_hosts; i++)
        l->steer[l->nsteers++] = l->in->variants[i];
    return list_cases(l, err);
}

/* CUDA's ordinals become the machine's numbers. */
static void renumber(const struct live *l, struct gv_collective *run)
{
    int machine[GV_MAX_GPUS] = {0};
    for (int i = 0; i < l->nranks; i++)
        machine[l->ordinal[i]] = l->gpu[i];
    for (int i = 0; i < run->nranks; i++)
        run->gpu[i] = machine[run->gpu[i]];
    for (int s = 0; s < run->nsteers; s++)
        for (int i = 0; i < run->wiring[s].nring; i++) {
            struct gv_wiring *w = &run->wiring[s];
            w->ring[i] = machine[w->ring[i]];
            w->edge[i].from = machine[w->edge[i].from];
            w->edge[i].to = machine[w->edge[i].to];
        }
}

static void copy_path(char out[PATH_MAX], const char *path)
{
    if (path && !realpath(path, out))
        snprintf(out, PATH_MAX, "%s", path);
}

/* From any folder; not the file behind a link, since programs are called by their names. */
static void name_witness(struct gv_compared_settings *s, const char *program)
{
    char here[PATH_MAX];
    if (program && program[0] != '/' && getcwd(here, sizeof(here)))
        snprintf(s->witness, sizeof(s->witness), "%.2000s/%.2000s", here, program);
    else
        snprintf(s->witness, sizeof(s->witness), "%s", program ? program : "");
}

/* All that the command must be told again. */
static void note_settings(const struct live *l, struct gv_compared_settings *s)
{
    const struct gv_compare_input *in = l->in;
    if (in->machine && strchr(in->machine, '/'))
        copy_path(s->machine, in->machine);
    else
        snprintf(s->machine, sizeof(s->machine), "%s", in->machine ? in->machine : "");
    snprintf(s->nccl[0], sizeof(s->nccl[0]), "%s", l->setup.nccl);
    name_witness(s, in->witness);
    for (int i = 0; i < in->nvariants; i++)
        memcpy(s->variant[s->nvariants++], in->variants[i].force, sizeof(s->variant[0]));
    s->ops = in->ops;
    s->type = in->type;
    s->redop = in->redop;
    s->min_bytes = in->min_bytes;
    s->max_bytes = in->max_bytes;
    s->check_bytes = in->check_some ? in->check_bytes : 0;
    s->factor = in->factor;
    s->timeout_s = in->timeout_s;
    s->in_place = in->in_place;
    s->threads = in->threads;
    s->repeats = in->repeats;
    s->iterations = in->iterations;
    s->ranks_per_gpu = in->ranks_per_gpu;
}

static void describe(const struct live *l, struct gv_compared *out)
{
    static struct gv_machine machine; /* large */
    time_t now = time(NULL);
    struct tm tm;
    gv_machine_read(gv_sysfs_root(), &machine, NULL);
    snprintf(out->host, sizeof(out->host), "%s", machine.host);
    snprintf(out->driver, sizeof(out->driver), "%s", machine.driver);
    snprintf(out->tool, sizeof(out->tool), "gv100 %s", GV_VERSION);
    if (gmtime_r(&now, &tm))
        strftime(out->date, sizeof(out->date), "%Y-%m-%dT%H:%M:%SZ", &tm);
    if (l->source)
        snprintf(out->profile, sizeof(out->profile), "%s", l->source->path);
    out->profile_hash = l->source ? l->source->profile->hash : 0;
    out->measured = true;
    note_settings(l, &out->settings);
    out->virtual_machine = l->in->machine != NULL;
    out->min_gain = l->source ? l->source->profile->policy.min_gain : 0.03;
    out->max_loss = l->source ? l->source->profile->policy.max_loss : 0.05;
    for (int i = 0; i < l->nranks; i++) {
        int own = l->source ? l->source->to_profile[l->gpu[i]] : -1;
        if (own >= 0)
            snprintf(
                out->model[i], sizeof(out->model[i]), "%s", l->source->profile->gpus[own].model);
        snprintf(out->bus_id[i], sizeof(out->bus_id[i]), "%s", machine.gpus[l->gpu[i]].bus_id);
    }
}

/* Ten digits are more than any clock here has, and all of them are printed: so a printed run is the
 * measured one. */
static double rounded(double value)
{
    char text[32];
    snprintf(text, sizeof(text), "%.10g", value);
    return strtod(text, NULL);
}

static void round_samples(struct gv_collective *run)
{
    for (int i = 0; i < run->nsteers * run->ncases; i++)
        for (int k = 0; k < run->cell[i].count; k++) {
            run->cell[i].time_us[k] = rounded(run->cell[i].time_us[k]);
            run->cell[i].first_us[k] = rounded(run->cell[i].first_us[k]);
        }
}

static int measure(struct live *l, struct gv_compared *out, struct gv_error *err)
{
    int rc = gv_collective_measure(
        &l->setup.options, l->ordinal, l->nranks, l->steer, l->nsteers, l->cases, l->ncases,
        &out->run, err);
    if (isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
    if (rc)
        return -1;
    renumber(l, &out->run);
    round_samples(&out->run);
    describe(l, out);
    gv_compared_rings(
        out, l->source ? l->source->profile : NULL, l->source ? l->source->to_profile : NULL);
    if (gv_compared_judge(out))
        return gv_error_set(err, "out of memory");
    return l->in->witness ? gv_compare_witness(l->in, &l->setup.options, l->ordinal, out, err) : 0;
}

int gv_compare_live(
    const struct gv_compare_input *in, struct gv_compared *out, struct gv_error *err)
{
    struct live *l = calloc(1, sizeof(*l));
    memset(out, 0, sizeof(*out));
    if (!l)
        return gv_error_set(err, "out of memory");
    l->in = in;
    out->job.step_s = NAN;
    /* before the virtual machine adds its own */
    int rc = gv_compared_environment(&out->settings) ? gv_error_set(err, "out of memory")
                                                     : prepare(l, err);
    if (!rc)
        rc = measure(l, out, err);
    if (rc)
        gv_compared_finish(out);
    if (l->bare[0])
        unlink(l->bare);
    gv_source_free(l->source);
    gv_measuring_finish(&l->m);
    free(l);
    return rc;
}
