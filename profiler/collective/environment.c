/* What the workers see: the plugin brought in as for a job, NCCL's log in a file, nothing of a
 * steering that was left behind. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profiler/collective/crew.h"

extern char **environ;

/* From this release on NCCL asks an env plugin for everything; before, only a preload can answer.
 */
#define ENV_PLUGIN_SINCE 22807

/* Ours alone, whatever the caller has. */
static const char *const replaced[] = {
    "GV100_FORCE", "GV100_FORCE_BY",    "GV100_DISABLE",     "GV100_SHM_DIR",   "GV100_LOG",
    "NCCL_DEBUG",  "NCCL_DEBUG_FILE",   "NCCL_DEBUG_SUBSYS", "NCCL_ENV_PLUGIN", "LD_PRELOAD",
    "NCCL_HOSTID", "GV100_SINGLE_NODE", "NCCL_TUNER_PLUGIN"};

static bool is(const char *entry, const char *name)
{
    size_t n = strlen(name);
    return !strncmp(entry, name, n) && entry[n] == '=';
}

static bool kept(const char *entry, const struct gv_collective_options *o)
{
    for (size_t i = 0; i < sizeof(replaced) / sizeof(replaced[0]); i++)
        if (is(entry, replaced[i]))
            return false;
    return !(o->profile && is(entry, "GV100_PROFILE"));
}

struct list {
    char **at;
    int n;
    bool failed;
};

static void add(struct list *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void add(struct list *l, const char *fmt, ...)
{
    va_list args;
    char **grown = realloc(l->at, sizeof(*l->at) * (size_t)(l->n + 2));
    if (!grown) {
        l->failed = true;
        return;
    }
    l->at = grown;
    va_start(args, fmt);
    if (vasprintf(&l->at[l->n], fmt, args) < 0) {
        l->at[l->n] = NULL;
        l->failed = true;
    }
    va_end(args);
    l->n += l->at[l->n] != NULL;
    l->at[l->n] = NULL;
}

static void add_plugin(struct list *l, const struct gv_collective_options *o)
{
    const char *before = getenv("LD_PRELOAD");
    bool preload = !o->nccl_version || o->nccl_version < ENV_PLUGIN_SINCE;
    bool slot = !o->nccl_version || o->nccl_version >= ENV_PLUGIN_SINCE;
    if (o->plugin && preload)
        add(l, "LD_PRELOAD=%s%s%s", o->plugin, before && *before ? ":" : "", before ? before : "");
    else if (before && *before)
        add(l, "LD_PRELOAD=%s", before);
    if (o->plugin && slot)
        add(l, "NCCL_ENV_PLUGIN=%s", o->plugin);
}

static void add_common(struct list *l, const struct gv_collective_options *o, const char *dir)
{
    for (char **e = environ; *e; e++)
        if (kept(*e, o))
            add(l, "%s", *e);
    add_plugin(l, o);
    if (o->profile)
        add(l, "GV100_PROFILE=%s", o->profile);
    add(l, "GV100_FORCE_BY=%ld", (long)getpid());
    add(l, "GV100_SINGLE_NODE=1");
    add(l, "GV100_WORK_DIR=%s", dir);
    add(l, "GV100_SHM_DIR=%s/registry", dir);
    add(l, "GV100_LOG=%s/decisions", dir);
}

static char **finish(struct list *l)
{
    if (!l->failed)
        return l->at;
    gv_collective_environment_free(l->at);
    return NULL;
}

char **gv_crew_environment(const struct gv_crew *crew, int member)
{
    struct list l = {0};
    add_common(&l, crew->options, crew->dir);
    add(&l, "NCCL_DEBUG=INFO");
    add(&l, "NCCL_DEBUG_SUBSYS=INIT,GRAPH,P2P,SHM,NET,ENV");
    add(&l, "NCCL_DEBUG_FILE=%s/nccl-%d", crew->dir, member);
    if (crew->options->unlike_hosts)
        add(&l, "NCCL_HOSTID=gv100-%ld-%d", (long)getpid(), member);
    return finish(&l);
}

char **gv_collective_environment(
    const struct gv_collective_options *options, const char *dir, const char *force)
{
    struct list l = {0};
    add_common(&l, options, dir);
    add(&l, "GV100_FORCE=%s", force);
    return finish(&l);
}

void gv_collective_environment_free(char **environment)
{
    for (char **e = environment; e && *e; e++)
        free(*e);
    free(environment);
}
