#include "plugin/core/gv_force.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/gv_hash.h"

#define WORD 32

const char *gv_force_text(void)
{
    const char *text = secure_getenv(GV_FORCE_VARIABLE), *by = secure_getenv(GV_FORCE_BY_VARIABLE);
    if (!text || !*text || !by || strtol(by, NULL, 10) != (long)getppid())
        return NULL;
    return text;
}

uint64_t gv_force_key(void)
{
    const char *text = gv_force_text();
    return text ? gv_hash_bytes(GV_HASH_START, text, strlen(text)) | 1 : 0;
}

struct forced {
    const struct gv_state *state;
    gv_gpuset gpus;
    struct gv_plan *plan;
    enum gv_edit_kind kind; /* of the pairs that follow */
    int count;              /* NVLinks of lent entries */
    struct gv_tuner_row row;
};

static int gpu_of(const struct forced *f, long machine_gpu)
{
    int gpu =
        machine_gpu >= 0 && machine_gpu < GV_MAX_GPUS ? f->state->to_profile[machine_gpu] : -1;
    return gv_gpuset_has(f->gpus, gpu) ? gpu : -1;
}

static int add_edit(struct forced *f, const struct gv_edit *edit, struct gv_error *err)
{
    if (f->plan->nedits == GV_MAX_EDITS)
        return gv_error_set(err, GV_FORCE_VARIABLE ": more than %d edits", GV_MAX_EDITS);
    f->plan->edits[f->plan->nedits++] = *edit;
    return 0;
}

static int take_pair(struct forced *f, const char *word, struct gv_error *err)
{
    int a, b, used = 0;
    if (sscanf(word, "%d-%d%n", &a, &b, &used) != 2 || word[used])
        return gv_error_set(err, GV_FORCE_VARIABLE ": '%s' is not known", word);
    struct gv_edit edit = {.kind = f->kind, .from = gpu_of(f, a), .to = gpu_of(f, b)};
    if (f->kind != GV_EDIT_LEND && f->kind != GV_EDIT_SEPARATE)
        return gv_error_set(
            err, GV_FORCE_VARIABLE ": '%s' follows neither lend nor separate", word);
    if (edit.from < 0 || edit.to < 0 || a == b)
        return gv_error_set(err, GV_FORCE_VARIABLE ": '%s' is no pair of this communicator", word);
    return add_edit(f, &edit, err);
}

static int
take_number(const char *word, const char *value, int most, int *out, struct gv_error *err)
{
    char *end;
    long n = strtol(value, &end, 10);
    if (end == value || *end || n < 1 || n > most)
        return gv_error_set(err, GV_FORCE_VARIABLE ": '%s' is not between 1 and %d", word, most);
    *out = (int)n;
    return 0;
}

static int take_setting(struct forced *f, const char *word, const char *value, struct gv_error *err)
{
    int n = 0;
    if (!strncmp(word, "count=", 6))
        return take_number(word, value, 36, &f->count, err);
    if (!strncmp(word, "channels=", 9))
        return take_number(word, value, 64, &f->row.channels, err);
    if (!strncmp(word, "algorithm=", 10)) {
        n = gv_algo_from_name(value);
        f->row.algorithm = (enum gv_algo)n;
    } else if (!strncmp(word, "protocol=", 9)) {
        n = gv_proto_from_name(value);
        f->row.protocol = (enum gv_proto)n;
    } else {
        n = -2;
    }
    return n > -2 ? 0 : gv_error_set(err, GV_FORCE_VARIABLE ": '%s' is not known", word);
}

static int take(struct forced *f, const char *word, struct gv_error *err)
{
    const char *value = strchr(word, '=');
    if (value)
        return take_setting(f, word, value + 1, err);
    const struct gv_edit bridge = {.kind = GV_EDIT_BRIDGE, .from = -1, .to = -1, .gpus = f->gpus};
    if (!strcmp(word, "bridge"))
        return add_edit(f, &bridge, err);
    if (!strcmp(word, "lend"))
        f->kind = GV_EDIT_LEND;
    else if (!strcmp(word, "separate"))
        f->kind = GV_EDIT_SEPARATE;
    else if (strcmp(word, "default") != 0)
        return take_pair(f, word, err);
    return 0;
}

static int take_all(struct forced *f, const char *text, struct gv_error *err)
{
    char word[WORD];
    int used;
    for (; sscanf(text, " %31s%n", word, &used) == 1; text += used)
        if (take(f, word, err))
            return -1;
    return 0;
}

/* A row for every operation that asks a tuner. */
static int add_rows(struct forced *f, struct gv_error *err)
{
    if (f->row.algorithm == GV_ALGO_ANY && f->row.protocol == GV_PROTO_ANY && !f->row.channels)
        return 0;
    f->plan->rows = calloc(GV_OP_ALL_REDUCE + 1, sizeof(*f->plan->rows));
    if (!f->plan->rows)
        return gv_error_set(err, "out of memory");
    for (int op = GV_OP_BROADCAST; op <= GV_OP_ALL_REDUCE; op++) {
        f->row.op = (enum gv_op)op;
        f->plan->rows[f->plan->nrows++] = f->row;
    }
    return 0;
}

/* What follows from the edits, as the policy would set it. */
static void conclude(struct forced *f)
{
    struct gv_plan *plan = f->plan;
    gv_gpuset lent = 0;
    for (int i = 0; i < plan->nedits; i++) {
        struct gv_edit *edit = &plan->edits[i];
        plan->transport = edit->kind == GV_EDIT_SEPARATE ? GV_TRANSPORT_SHM : GV_TRANSPORT_P2P;
        if (edit->kind != GV_EDIT_LEND)
            continue;
        edit->count = f->count;
        gv_gpuset pair = GV_GPU_BIT(edit->from) | GV_GPU_BIT(edit->to);
        plan->nvb_disable |= (lent & pair) != 0;
        plan->veto_ll128 = true;
        lent |= pair;
    }
}

int gv_force_plan(
    const struct gv_state *state, const char *text, gv_gpuset gpus, struct gv_plan *plan,
    struct gv_error *err)
{
    struct forced f = {
        .state = state,
        .gpus = gpus,
        .plan = plan,
        .row = {.max_bytes = UINT64_MAX, .algorithm = GV_ALGO_ANY, .protocol = GV_PROTO_ANY},
    };
    plan->gain = NAN;
    plan->slowest = -1;
    if (take_all(&f, text, err) || add_rows(&f, err))
        return -1;
    conclude(&f);
    snprintf(plan->reason, sizeof(plan->reason), "forced by the measuring tool: %.200s", text);
    return 0;
}
