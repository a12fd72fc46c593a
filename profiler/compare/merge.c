/* Two comparisons as one. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/collective/gv_release.h"
#include "profiler/compare/gv_compare.h"

struct merging {
    const struct gv_compared *in[2];
    const char *const *paths;
    struct gv_compared *out;
    struct gv_error *err;
    int match[GV_MAX_CASES]; /* of the first one's case in the second, -1 none */
};

void gv_compared_note(struct gv_compared *c, const char *fmt, ...)
{
    va_list args;
    if (c->nnotes == GV_MAX_NOTES)
        return;
    va_start(args, fmt);
    vsnprintf(c->note[c->nnotes++], sizeof(c->note[0]), fmt, args);
    va_end(args);
}

static const char *gpus_of(const struct gv_compared *c, char out[256])
{
    gv_gpuset set = 0;
    for (int i = 0; i < c->run.nranks; i++)
        set |= GV_GPU_BIT(c->run.gpu[i]);
    return gv_gpuset_format(set, out, 256);
}

/* What makes two runs incomparable is an error of the second file. */
static int check_same(const struct merging *m)
{
    const struct gv_compared *a = m->in[0], *b = m->in[1];
    const char *file = m->paths[1], *other = m->paths[0];
    char first[256], second[256];
    if (a->norigins > 1 || b->norigins > 1)
        return gv_error_at(
            m->err, a->norigins > 1 ? other : file, 0, 0,
            "is put together from two files already; name those");
    if (a->virtual_machine != b->virtual_machine)
        return gv_error_at(
            m->err, file, 0, 0, "is of a %s machine, %.200s of a %s one",
            b->virtual_machine ? "virtual" : "real", other,
            a->virtual_machine ? "virtual" : "real");
    bool same = a->run.nranks == b->run.nranks;
    for (int i = 0; same && i < a->run.nranks; i++)
        same = a->run.gpu[i] == b->run.gpu[i];
    if (!same)
        return gv_error_at(
            m->err, file, 0, 0, "is of GPUs %.60s (%d ranks), %.200s of %.60s (%d ranks)",
            gpus_of(b, second), b->run.nranks, other, gpus_of(a, first), a->run.nranks);
    for (int i = 0; i < a->run.nranks; i++)
        if (a->bus_id[i][0] && b->bus_id[i][0] && strcmp(a->bus_id[i], b->bus_id[i]))
            return gv_error_at(
                m->err, file, 0, 0,
                "is of another kind of machine: GPU %d is at %s there, at %s in %.200s",
                a->run.gpu[i], b->bus_id[i], a->bus_id[i], other);
    for (int i = 0; i < a->run.nranks; i++)
        if (a->model[i][0] && b->model[i][0] && strcmp(a->model[i], b->model[i]))
            return gv_error_at(
                m->err, file, 0, 0,
                "is of another kind of machine: GPU %d is a %.60s there, a %.60s in %.200s",
                a->run.gpu[i], b->model[i], a->model[i], other);
    if (a->run.nsteers + b->run.nsteers > GV_MAX_STEERS)
        return gv_error_at(m->err, file, 0, 0, "more than %d variants together", GV_MAX_STEERS);
    return 0;
}

static bool same_case(const struct gv_case *a, const struct gv_case *b)
{
    return a->op == b->op && a->bytes == b->bytes && a->type == b->type &&
           a->in_place == b->in_place && (a->redop == b->redop || !gv_op_reduces(a->op));
}

/* "AllReduce, AllToAll of float sum, 64K to 1G". */
static const char *range_of(const struct gv_compared *c, char out[160])
{
    unsigned ops = 0;
    uint64_t low = UINT64_MAX, high = 0;
    out[0] = 0;
    for (int k = 0; k < c->run.ncases; k++) {
        const struct gv_case *what = &c->run.cases[k];
        if (!(ops & GV_OP_BIT(what->op)))
            snprintf(
                out + strlen(out), 160 - strlen(out), "%s%s", ops ? ", " : "",
                gv_op_name(what->op));
        ops |= GV_OP_BIT(what->op);
        low = what->bytes < low ? what->bytes : low;
        high = what->bytes > high ? what->bytes : high;
    }
    snprintf(
        out + strlen(out), 160 - strlen(out), " of %s %s, %llu to %llu bytes",
        gv_type_name(c->run.cases[0].type), gv_redop_name(c->run.cases[0].redop),
        (unsigned long long)low, (unsigned long long)high);
    return out;
}

static int match_cases(struct merging *m)
{
    const struct gv_collective *a = &m->in[0]->run, *b = &m->in[1]->run;
    char first[160], second[160];
    int n = 0;
    for (int k = 0; k < a->ncases; k++) {
        m->match[k] = -1;
        for (int j = 0; j < b->ncases; j++)
            if (same_case(&a->cases[k], &b->cases[j]))
                m->match[k] = j;
        n += m->match[k] >= 0;
    }
    if (!n)
        return gv_error_at(
            m->err, m->paths[1], 0, 0, "has %.150s; %.150s has %.150s: no case in common",
            range_of(m->in[1], second), m->paths[0], range_of(m->in[0], first));
    if (n < a->ncases)
        gv_compared_note(
            m->out, "%d of %d cases are in %.120s alone and left out.", a->ncases - n, a->ncases,
            m->paths[0]);
    if (n < b->ncases)
        gv_compared_note(
            m->out, "%d of %d cases are in %.120s alone and left out.", b->ncases - n, b->ncases,
            m->paths[1]);
    return 0;
}

static bool
same_environment(const struct gv_compared_settings *a, const struct gv_compared_settings *b)
{
    if (a->nenvironment != b->nenvironment)
        return false;
    for (int i = 0; i < a->nenvironment; i++) {
        bool found = false;
        for (int j = 0; j < b->nenvironment; j++)
            found |= !strcmp(a->environment[i], b->environment[j]);
        if (!found)
            return false;
    }
    return true;
}

static void note_settings(const struct merging *m)
{
    const struct gv_compared_settings *a = &m->in[0]->settings, *b = &m->in[1]->settings;
    struct gv_compared *out = m->out;
    if (!m->in[0]->measured || !m->in[1]->measured)
        return;
    if (a->iterations != b->iterations || a->threads != b->threads ||
        a->check_bytes != b->check_bytes || a->ranks_per_gpu != b->ranks_per_gpu)
        gv_compared_note(
            out, "Not measured alike: iterations, threads, ranks a GPU or the check differ.");
    if (!same_environment(a, b))
        gv_compared_note(out, "Other variables of NCCL, CUDA or the plugin were set.");
}

static void note_differences(const struct merging *m)
{
    const struct gv_compared *a = m->in[0], *b = m->in[1];
    struct gv_compared *out = m->out;
    char first[16], second[16];
    gv_compared_note(
        out,
        "The two were not measured in turn: what drifted between them counts as a difference.");
    for (int i = 0; i < 2; i++)
        if (m->in[i]->norigins)
            gv_compared_note(
                out, "Of %.150s, a profile: its samples, and what its policy decides.",
                m->paths[i]);
    if (strcmp(a->host, b->host))
        gv_compared_note(out, "Two hosts of one kind: %.60s and %.60s.", a->host, b->host);
    if (strcmp(a->driver, b->driver))
        gv_compared_note(out, "Two drivers: %s and %s.", a->driver, b->driver);
    if (a->run.nccl_version != b->run.nccl_version)
        gv_compared_note(
            out, "Two releases of NCCL: %s and %s.", gv_nccl_format(a->run.nccl_version, first),
            gv_nccl_format(b->run.nccl_version, second));
    if (a->min_gain != b->min_gain || a->max_loss != b->max_loss)
        gv_compared_note(
            out, "Thresholds differ; those of %.120s count: gain from %.3g %%, loss bound %.3g %%.",
            m->paths[0], 100 * a->min_gain, 100 * a->max_loss);
    note_settings(m);
}

/* The file's name without folder and ending, as far as it fits. */
static void label_of(const char *path, char out[16])
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t n = strcspn(name, ".");
    snprintf(out, 16, "%.*s", n < 14 ? (int)n : 14, name);
}

static void label(struct merging *m)
{
    struct gv_compared_origin *to = m->out->origin;
    label_of(m->paths[0], to[0].label);
    label_of(m->paths[1], to[1].label);
    if (to[0].label[0] && to[1].label[0] && strcmp(to[0].label, to[1].label))
        return;
    strcpy(to[0].label, "first");
    strcpy(to[1].label, "second");
}

static int add_origin(struct merging *m, int i)
{
    const struct gv_compared *from = m->in[i];
    struct gv_compared_origin *to = &m->out->origin[i];
    struct gv_str command = {0};
    snprintf(to->file, sizeof(to->file), "%s", m->paths[i]);
    snprintf(to->host, sizeof(to->host), "%.64s", from->host);
    snprintf(to->driver, sizeof(to->driver), "%s", from->driver);
    snprintf(to->date, sizeof(to->date), "%s", from->date);
    gv_nccl_format(from->run.nccl_version, to->nccl);
    to->profile = from->norigins && from->origin[0].profile;
    if (from->measured) {
        gv_compared_command(from, &command);
        to->command = command.failed ? NULL : command.data;
    }
    m->out->norigins = i + 1;
    return command.failed ? gv_error_set(m->err, "out of memory") : 0;
}

/* Variants of the `i`th, from `at` on. */
static void add_variants(struct merging *m, int i, int at)
{
    const struct gv_compared *from = m->in[i];
    struct gv_compared *out = m->out;
    for (int s = 0; s < from->run.nsteers; s++) {
        int to = at + s, next = 0;
        out->run.steer[to] = from->run.steer[s];
        snprintf(
            out->run.steer[to].name, sizeof(out->run.steer[to].name), "%s %.240s",
            out->origin[i].label, from->run.steer[s].name);
        out->run.wiring[to] = from->run.wiring[s];
        out->ring[to] = from->ring[s];
        for (int k = 0; k < m->in[0]->run.ncases; k++)
            if (m->match[k] >= 0)
                *gv_cell_of(&out->run, to, next++) =
                    *gv_cell_of(&from->run, s, i ? m->match[k] : k);
    }
}

static int add_witness(struct merging *m, int i, int at)
{
    const struct gv_compared *from = m->in[i];
    struct gv_compared *out = m->out;
    if (!from->nwitness)
        return 0;
    struct gv_witness *grown =
        realloc(out->witness, sizeof(*grown) * (size_t)(out->nwitness + from->nwitness));
    if (!grown)
        return gv_error_set(m->err, "out of memory");
    out->witness = grown;
    memcpy(out->witness_program, from->witness_program, sizeof(out->witness_program));
    for (int w = 0; w < from->nwitness; w++) {
        out->witness[out->nwitness] = from->witness[w];
        out->witness[out->nwitness++].steer += at;
    }
    return 0;
}

static int fill(struct merging *m)
{
    const struct gv_compared *a = m->in[0], *b = m->in[1];
    struct gv_compared *out = m->out;
    out->run.nsteers = a->run.nsteers + b->run.nsteers;
    for (int k = 0; k < a->run.ncases; k++)
        if (m->match[k] >= 0)
            out->run.cases[out->run.ncases++] = a->run.cases[k];
    out->run.cell = calloc((size_t)(out->run.nsteers * out->run.ncases), sizeof(*out->run.cell));
    if (!out->run.cell)
        return gv_error_set(m->err, "out of memory");
    label(m);
    add_variants(m, 0, 0);
    add_variants(m, 1, a->run.nsteers);
    for (int i = 0; i < 2; i++)
        if (add_origin(m, i) || add_witness(m, i, i ? a->run.nsteers : 0))
            return -1;
    out->base = a->base;
    return 0;
}

static void fill_head(struct merging *m)
{
    const struct gv_compared *a = m->in[0], *b = m->in[1];
    struct gv_compared *out = m->out;
    bool same = !strcmp(a->host, b->host);
    snprintf(
        out->host, sizeof(out->host), "%.60s%s%.60s", a->host, same ? "" : " and ",
        same ? "" : b->host);
    snprintf(out->driver, sizeof(out->driver), "%s", a->driver);
    snprintf(out->tool, sizeof(out->tool), "%s", a->tool);
    snprintf(out->date, sizeof(out->date), "%.31s and %.31s", a->date, b->date);
    const struct gv_compared *known = b->profile[0] ? b : a;
    memcpy(out->profile, known->profile, sizeof(out->profile));
    out->profile_hash = known->profile_hash;
    out->virtual_machine = a->virtual_machine;
    out->thin = a->thin || b->thin;
    out->min_gain = a->min_gain;
    out->max_loss = a->max_loss;
    for (int i = 0; i < a->run.nranks; i++) {
        memcpy(out->model[i], a->model[i][0] ? a->model[i] : b->model[i], sizeof(out->model[i]));
        memcpy(
            out->bus_id[i], a->bus_id[i][0] ? a->bus_id[i] : b->bus_id[i], sizeof(out->bus_id[i]));
    }
    out->run.nranks = a->run.nranks;
    memcpy(out->run.gpu, a->run.gpu, sizeof(out->run.gpu));
    out->run.nccl_version = a->run.nccl_version;
    memcpy(out->run.nccl_path, a->run.nccl_path, sizeof(out->run.nccl_path));
}

int gv_compared_merge(
    const struct gv_compared *a, const struct gv_compared *b, const char *const paths[2],
    struct gv_compared *out, struct gv_error *err)
{
    struct merging *m = calloc(1, sizeof(*m));
    memset(out, 0, sizeof(*out));
    out->job.step_s = NAN;
    if (!m)
        return gv_error_set(err, "out of memory");
    *m = (struct merging){.in = {a, b}, .paths = paths, .out = out, .err = err};
    int rc = check_same(m);
    if (!rc) {
        fill_head(m);
        note_differences(m);
        rc = match_cases(m) || fill(m) ? -1 : 0;
    }
    free(m);
    if (!rc && gv_compared_judge(out))
        rc = gv_error_set(err, "out of memory");
    if (rc)
        gv_compared_finish(out);
    return rc;
}
