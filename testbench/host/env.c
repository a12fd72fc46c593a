/* How NCCL reads its settings: configuration files into the environment, an env plugin in front of
 * it (from 2.28.7), numbers cached once per process. */
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "testbench/host/engine.h"

static struct {
    pthread_once_t once;
    int result;
    void *lib;
    const struct gvh_env_v1 *plugin; /* name, finalize and get_env are alike in v1 and v2 */
} env = {.once = PTHREAD_ONCE_INIT};

/* NAME=VALUE a line, '#' starts a comment line; what is set already stays. */
static void read_conf(const char *path)
{
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t size = 0;
    if (!file)
        return;
    gvh_trace("conf %s", path);
    while (getline(&line, &size, file) > 0) {
        line[strcspn(line, "\n")] = 0;
        char *equals = strchr(line, '=');
        if (line[0] == '#' || !equals)
            continue;
        *equals = 0;
        setenv(line, equals + 1, 0);
    }
    free(line);
    fclose(file);
}

/* `room` is where the entry may lie: another NCCL of this process may ask at the same time. */
static const char *home(char *room, size_t size)
{
    const char *folder = gvh_release()->home_variable ? getenv("HOME") : NULL;
    struct passwd user, *found = NULL;
    if (folder && *folder)
        return folder;
    getpwuid_r(getuid(), &user, room, size, &found);
    return found ? user.pw_dir : NULL;
}

static void read_confs(void)
{
    const char *named = gvh_release()->conf_variable ? getenv("NCCL_CONF_FILE") : NULL;
    char path[4096], room[2048];
    const char *folder = named && *named ? NULL : home(room, sizeof(room));
    if (named && *named)
        read_conf(named);
    if (folder) {
        snprintf(path, sizeof(path), "%s/.nccl.conf", folder);
        read_conf(path);
    }
    read_conf("/etc/nccl.conf");
}

static void env_finalize(void)
{
    if (!env.plugin || !env.plugin->finalize)
        return;
    gvh_trace("env.finalize");
    env.plugin->finalize();
    env.plugin = NULL;
    gvh_close(GVH_LIB_ENV, env.lib);
}

/* Newest version first. The symbol, or NULL. */
static const void *find_symbol(void *lib, int *version)
{
    for (int v = gvh_release()->env_newest; v >= 1; v--) {
        char name[32];
        snprintf(name, sizeof(name), "ncclEnvPlugin_v%d", v);
        const void *symbol = gvh_symbol(lib, name);
        *version = v;
        if (symbol)
            return symbol;
    }
    return NULL;
}

static int call_init(const void *symbol, int version)
{
    int r = gvh_release()->version;
    uint8_t major = (uint8_t)(r / 10000), minor = (uint8_t)(r / 100 % 100),
            patch = (uint8_t)(r % 100);
    gvh_trace("env.init v%d", version);
    if (version == 1)
        return ((const struct gvh_env_v1 *)symbol)->init(major, minor, patch, "");
    return ((const struct gvh_env_v2 *)symbol)->init(major, minor, patch, "", gvh_logger_fn);
}

static void load_plugin(void)
{
    const char *name = getenv("NCCL_ENV_PLUGIN");
    const void *symbol;
    int version = 0;

    gvh_trace("getenv NCCL_ENV_PLUGIN");
    if (name)
        GVH_INFO("NCCL_ENV_PLUGIN set by environment to %s", name);
    if (name && !strcasecmp(name, "none"))
        return;
    if (!(env.lib = gvh_open(GVH_LIB_ENV, name, GVH_NAME_PATHS)))
        return;
    if (!(symbol = find_symbol(env.lib, &version))) {
        GVH_INFO("External env plugin %s is unsupported", gvh_open_path(GVH_LIB_ENV));
        gvh_close(GVH_LIB_ENV, env.lib);
        return;
    }
    GVH_INFO("ENV/Plugin: Using %s (v%d)", *(const char *const *)symbol, version);
    env.result = call_init(symbol, version);
    if (env.result)
        return;
    env.plugin = symbol;
    atexit(env_finalize);
}

static void env_once(void)
{
    read_confs();
    if (gvh_release()->env_newest)
        load_plugin();
}

int gvh_env_init(void)
{
    pthread_once(&env.once, env_once);
    return env.result;
}

/* What the plugin answered last for each name. NCCL may go on reading such a string until it asks
 * for the same name again, so it must not change before. */
static struct {
    pthread_mutex_t lock;
    struct answer {
        const char *name, *given;
        char *copy;
    } at[256];
    int n;
} answers = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void keep_answer(const char *name, const char *given)
{
    int i = 0;
    pthread_mutex_lock(&answers.lock);
    while (i < answers.n && strcmp(answers.at[i].name, name))
        i++;
    if (i < (int)(sizeof(answers.at) / sizeof(answers.at[0]))) {
        answers.n = i == answers.n ? i + 1 : answers.n;
        free(answers.at[i].copy);
        answers.at[i] = (struct answer){name, given, given ? strdup(given) : NULL};
    }
    pthread_mutex_unlock(&answers.lock);
}

int gvh_check_answers(struct gvh_comm *comm)
{
    const char *changed = NULL;
    pthread_mutex_lock(&answers.lock);
    for (int i = 0; i < answers.n; i++)
        if (answers.at[i].copy && strcmp(answers.at[i].given, answers.at[i].copy))
            changed = answers.at[i].name;
    pthread_mutex_unlock(&answers.lock);
    return changed
               ? gvh_fail(
                     comm, GVH_INTERNAL_ERROR,
                     "the env plugin changed its answer for %s before it was asked again", changed)
               : GVH_SUCCESS;
}

const char *gvh_getenv(const char *name)
{
    gvh_env_init();
    gvh_trace("getenv %s", name);
    if (!env.plugin)
        return getenv(name);
    const char *given = env.plugin->get_env(name);
    keep_answer(name, given);
    return given;
}

/* Values read once per process. NCCL holds one lock while it asks, so a plugin must not call back.
 */
struct once {
    const char *name;
    char *text; /* NULL: not set */
};

static struct {
    pthread_mutex_t lock;
    struct once at[256];
    int n;
} cache = {.lock = PTHREAD_MUTEX_INITIALIZER};

const char *gvh_getenv_once(const char *name)
{
    int i = 0;
    pthread_mutex_lock(&cache.lock);
    while (i < cache.n && strcmp(cache.at[i].name, name))
        i++;
    if (i == cache.n && i < (int)(sizeof(cache.at) / sizeof(cache.at[0]))) {
        const char *text = gvh_getenv(name);
        cache.at[cache.n++] = (struct once){name, text ? strdup(text) : NULL};
    }
    const char *text = cache.at[i].text;
    pthread_mutex_unlock(&cache.lock);
    return text;
}

int64_t gvh_param(const char *name, int64_t otherwise)
{
    const char *text = gvh_getenv_once(name);
    if (!text || !*text)
        return otherwise;
    errno = 0;
    long long value = strtoll(text, NULL, 0);
    if (errno) {
        GVH_INFO("Invalid value %s for %s, using default.", text, name);
        return otherwise;
    }
    return value;
}
