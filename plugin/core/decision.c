#include "plugin/core/gv_decision.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/gv_hash.h"
#include "plugin/core/gv_answer.h"
#include "plugin/core/gv_env.h"
#include "plugin/core/gv_force.h"
#include "plugin/core/make_file.h"
#include "plugin/core/gv_locks.h"

/* Decisions made in this process, newest first by last_used. A training job has a handful. */
#define CACHE 64
static struct gv_decision *cache[CACHE];
static uint64_t clock_ticks;

static bool differs_from_one(const char *name)
{
    const char *value = gv_env_get(name);
    return value && *value && strcmp(value, "1") != 0;
}

void gv_user_settings_read(struct gv_user_settings *out)
{
    static const char *const transport[] = {
        "NCCL_GRAPH_FILE", "NCCL_P2P_LEVEL", "NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE",
        "NCCL_P2P_DIRECT_DISABLE"};
    static const char *const algorithm[] = {"NCCL_ALGO", "NCCL_PROTO"};
    memset(out, 0, sizeof(*out));
    for (size_t i = 0; i < sizeof(transport) / sizeof(transport[0]) && !out->transport; i++)
        if (gv_env_set(transport[i]))
            out->transport = transport[i];
    for (size_t i = 0; i < sizeof(algorithm) / sizeof(algorithm[0]) && !out->algorithm; i++)
        if (gv_env_set(algorithm[i]))
            out->algorithm = algorithm[i];
    if (gv_env_set("NCCL_TOPO_FILE"))
        out->topology = gv_env_get("NCCL_TOPO_FILE");
    out->nvb = differs_from_one("NCCL_NVB_DISABLE");
}

static gv_gpuset to_profile(const struct gv_state *state, gv_gpuset gpus, gv_gpuset *unknown)
{
    gv_gpuset out = 0;
    *unknown = 0;
    for (gv_gpuset rest = gpus; rest; rest &= rest - 1) {
        int gpu = gv_gpuset_first(rest);
        if (state->to_profile[gpu] >= 0)
            out |= GV_GPU_BIT(state->to_profile[gpu]);
        else
            *unknown |= GV_GPU_BIT(gpu);
    }
    return out;
}

/* Drops what the plan wanted and says why. */
static void back_to_default(struct gv_decision *d, const char *fmt, const char *what)
{
    struct gv_plan *plan = &d->plan;
    plan->transport = GV_TRANSPORT_DEFAULT;
    plan->nedits = 0;
    plan->veto_ll128 = plan->nvb_disable = false;
    plan->evidence = GV_EVIDENCE_NONE;
    free(plan->rows);
    plan->rows = NULL;
    plan->nrows = 0;
    snprintf(plan->reason, sizeof(plan->reason), fmt, what);
}

static void respect_user(
    struct gv_decision *d, const struct gv_state *state, const struct gv_user_settings *user)
{
    if (user->transport)
        back_to_default(d, "%s is set by the user and wins", user->transport);
    else if (d->plan.nvb_disable && (user->nvb || !state->answer_nvb))
        back_to_default(
            d, "the plan needs %s, which the user has set otherwise", "NCCL_NVB_DISABLE=1");
    else if (d->plan.nedits && !d->question.transport_in_reach)
        back_to_default(
            d,
            gv_answer_preloaded()
                ? "its transports are NCCL's: it shares its parent's resources, or its init did "
                  "not pass through the preload%s"
                : "transport is not under control in the tuner slot alone; set the variable that "
                  "'%s' prints",
            gv_answer_preloaded() ? "" : "gv100 env");
    if (user->algorithm) {
        free(d->plan.rows);
        d->plan.rows = NULL;
        d->plan.nrows = 0;
    }
}

/* The measuring tool's plan. What cannot be done is said, and stays the default. */
static void force(struct gv_decision *d, const struct gv_state *state, const char *text)
{
    gv_gpuset unknown, gpus = to_profile(state, d->question.gpus, &unknown);
    struct gv_error err = {0};
    gv_gpuset_format(gpus, d->gpus, sizeof(d->gpus));
    if (gv_force_plan(state, text, gpus, &d->plan, &err)) {
        gv_error_format(&err, d->trouble, sizeof(d->trouble));
        back_to_default(d, "%.300s", d->trouble);
    }
}

static void decide(struct gv_decision *d, const struct gv_state *state)
{
    const char *text = d->question.forced ? gv_force_text() : NULL;
    if (text) {
        force(d, state, text);
        return;
    }
    gv_gpuset unknown;
    struct gv_policy_in in = {
        .profile = state->profile,
        .gpus = to_profile(state, d->question.gpus, &unknown),
        .nranks = d->question.nranks,
        .nnodes = d->question.nnodes,
        .one_node = d->question.one_node,
        .operations = state->operations,
        .nccl_version = d->question.nccl_version,
        .verified = state->own_word ? NULL : state->verified,
        .bad = state->own_word ? NULL : state->bad,
    };
    gv_policy_decide(&in, &d->plan);
    gv_gpuset_format(in.gpus, d->gpus, sizeof(d->gpus));
    if (unknown)
        back_to_default(d, "a GPU of the communicator is not in the profile%s", "");
}

static void hash_decision(struct gv_decision *d, const struct gv_state *state)
{
    uint64_t h = gv_hash_u64(state->hash, d->question.gpus);
    h = gv_hash_u64(h, (uint64_t)d->question.nranks);
    h = gv_hash_u64(h, (uint64_t)d->plan.transport);
    h = gv_hash_u64(h, d->question.forced);
    h = gv_hash_u64(h, d->file >= 0);
    for (int i = 0; i < d->plan.nedits; i++) {
        const struct gv_edit *edit = &d->plan.edits[i];
        h = gv_hash_u64(h, (uint64_t)edit->kind);
        h = gv_hash_u64(h, (uint64_t)edit->from << 32 | (uint32_t)edit->to);
        h = gv_hash_u64(h, edit->gpus ^ (uint64_t)edit->count << 56);
    }
    for (int i = 0; i < d->plan.nrows; i++) {
        const struct gv_tuner_row *row = &d->plan.rows[i];
        h = gv_hash_u64(h, (uint64_t)row->op);
        h = gv_hash_u64(h, row->min_bytes);
        h = gv_hash_u64(h, row->max_bytes);
        h = gv_hash_u64(
            h, (uint64_t)(row->algorithm * 64 + row->protocol * 8) ^ (uint64_t)row->channels << 32);
    }
    d->hash = h;
}

/* A rank that cannot have the table must not have the plan either: the others see its hash. */
static void make_table(struct gv_decision *d)
{
    if (!d->plan.nrows && !d->plan.veto_ll128)
        return;
    d->table = gv_table_new(&d->plan);
    if (d->table)
        return;
    back_to_default(d, "%s", "the tuner's table does not fit into memory");
    snprintf(d->trouble, sizeof(d->trouble), "%s", d->plan.reason);
    if (d->file >= 0)
        close(d->file);
    d->file = -1;
}

static struct gv_decision *
decision_new(const struct gv_question *question, const struct gv_user_settings *user)
{
    const struct gv_state *state = gv_state();
    struct gv_decision *d = calloc(1, sizeof(*d));
    if (!d)
        return NULL;
    d->question = *question;
    d->file = -1;
    decide(d, state);
    respect_user(d, state, user);
    if (d->plan.nedits) {
        struct gv_error err = {0};
        d->file = gv_make_file(state, d, user->topology, &err);
        if (d->file < 0) {
            gv_error_format(&err, d->trouble, sizeof(d->trouble));
            back_to_default(d, "the topology file could not be made: %.200s", d->trouble);
        } else {
            snprintf(d->answer, sizeof(d->answer), "/proc/self/fd/%d", d->file);
        }
    }
    make_table(d);
    hash_decision(d, state);
    return d;
}

static void decision_free(struct gv_decision *d)
{
    if (d->file >= 0)
        close(d->file);
    gv_table_free(d->table);
    gv_plan_finish(&d->plan);
    free(d);
}

static bool same_question(const struct gv_question *a, const struct gv_question *b)
{
    return a->gpus == b->gpus && a->nranks == b->nranks && a->nnodes == b->nnodes &&
           a->one_node == b->one_node && a->nccl_version == b->nccl_version &&
           a->transport_in_reach == b->transport_in_reach && a->forced == b->forced;
}

/* Under the lock. The place for a new decision: free, or the one unused for longest; -1 if all are
 * in use. */
static int free_place(void)
{
    int oldest = -1;
    for (int i = 0; i < CACHE; i++) {
        if (!cache[i])
            return i;
        if (!cache[i]->users && (oldest < 0 || cache[i]->last_used < cache[oldest]->last_used))
            oldest = i;
    }
    if (oldest >= 0) {
        decision_free(cache[oldest]);
        cache[oldest] = NULL;
    }
    return oldest;
}

static struct gv_decision *find(const struct gv_question *question)
{
    for (int i = 0; i < CACHE; i++)
        if (cache[i] && same_question(&cache[i]->question, question))
            return cache[i];
    return NULL;
}

struct gv_decision *
gv_decision_get(const struct gv_question *question, const struct gv_user_settings *user)
{
    /* What the user sets rarely changes within a process, and is looked at only while a decision is
     * made: a user's own settings bypass the cache. The lock is held while deciding, so that the
     * ranks of a process do the work once. */
    bool plain = !user->transport && !user->algorithm && !user->topology && !user->nvb;
    struct gv_decision *d = NULL;
    gv_lock(GV_LOCK_DECISIONS);
    if (plain)
        d = find(question);
    if (!d) {
        d = decision_new(question, user);
        int place = d && plain ? free_place() : -1;
        if (place >= 0)
            cache[place] = d;
        else if (d)
            d->users = -1; /* not in the cache: its one user frees it */
    }
    if (d && d->users >= 0) {
        d->users++;
        d->last_used = ++clock_ticks;
    }
    gv_unlock(GV_LOCK_DECISIONS);
    return d;
}

void gv_decision_put(struct gv_decision *d)
{
    if (!d)
        return;
    gv_lock(GV_LOCK_DECISIONS);
    if (d->users < 0)
        decision_free(d);
    else
        d->users--;
    gv_unlock(GV_LOCK_DECISIONS);
}
