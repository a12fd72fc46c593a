#include "plugin/core/gv_answer.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "plugin/core/gv_comm.h"
#include "plugin/core/gv_env.h"
#include "plugin/core/gv_object.h"
#include "plugin/core/gv_proof.h"
#include "plugin/core/gv_state.h"
#include "plugin/policy/gv_policy.h"

static atomic_bool preloaded;

int gv_answer_preloaded(void)
{
    return atomic_load(&preloaded);
}

int gv_answer_names_us(const char *value)
{
    if (!value)
        return false;
    const char *base = strrchr(value, '/');
    base = base ? base + 1 : value;
    return !strcmp(base, "gv100") || !strcmp(base, GV_SONAME) ||
           !strcmp(base, "libnccl-env-gv100.so");
}

/* Whether NCCL's default name would bring a library of the user's. NCCL would open it in the same
 * way. */
static bool can_be_loaded(const char *name, const char *const *symbols)
{
    void *lib = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    if (!lib)
        return false;
    bool theirs = !symbols;
    for (; symbols && *symbols && !theirs; symbols++)
        theirs = dlsym(lib, *symbols) != NULL;
    dlclose(lib);
    return theirs;
}

static const char *const tuner_symbols[] = {
    "ncclTunerPlugin_v6",
    "ncclTunerPlugin_v5",
    "ncclTunerPlugin_v4",
    "ncclTunerPlugin_v3",
    "ncclTunerPlugin_v2",
    "ncclTunerPlugin_v1",
    NULL};

/* Both questions to the loader are asked once for the process. */
static struct {
    pthread_once_t once;
    bool default_tuner, default_net;
} found = {.once = PTHREAD_ONCE_INIT};

/* A tuner of the user's that NCCL would find without being told: the default name, or inside their
 * net plugin (2.21 and later). */
static bool default_tuner_exists(void)
{
    const char *net = gv_env_get("NCCL_NET_PLUGIN");
    if (can_be_loaded("libnccl-tuner.so", NULL))
        return true;
    if (!net || !*net)
        return found.default_net && can_be_loaded("libnccl-net.so", tuner_symbols);
    return !gv_answer_names_us(net) && strcasecmp(net, "none") != 0 &&
           can_be_loaded(net, tuner_symbols);
}

static void look_for_plugins(void)
{
    found.default_net = can_be_loaded("libnccl-net.so", NULL);
    found.default_tuner = default_tuner_exists();
}

static bool tuner_is_ours(const char *user)
{
    pthread_once(&found.once, look_for_plugins);
    return user && *user ? gv_answer_names_us(user) : !found.default_tuner;
}

/* The user's net plugin keeps its slot, so that no communicator is ever announced. */
static atomic_bool net_is_theirs;

/* Then nobody hands us NCCL's logger, and what we do must be said all the same. */
static void tuner_is_theirs(void)
{
    gv_log_once(
        GV_LOG_INFO,
        "another tuner plugin is in use, or none (NCCL_TUNER_PLUGIN, libnccl-tuner.so, or the "
        "net plugin has one): algorithms and protocols are not decided here, %s",
        !gv_state()->usable || atomic_load(&net_is_theirs) ? "and transports are not either"
                                                           : "transports are");
    gv_log_alone();
}

static const char *tuner_plugin(const struct gv_state *state, const void *caller, const char *user)
{
    (void)caller;
    (void)state; /* also where no plan is possible: the tuner slot is where that is said */
    if (tuner_is_ours(user))
        return GV_SONAME;
    tuner_is_theirs();
    return user;
}

const char *gv_answer_net_name(void)
{
    const char *net = gv_env_get("NCCL_NET");
    return net && *net ? net : "gv100";
}

/* The hook takes the place of a net plugin only where none is lost: NCCL goes on to its own nets
 * after it. */
static bool hook_may_be_answered(const char *user)
{
    const char *who, *net = gv_env_get("NCCL_NET"),
                     *count = gv_env_get("NCCL_NET_PLUGIN_REF_COUNT");
    if (net && *net && strcasecmp(net, "IB") != 0 && strcasecmp(net, "Socket") != 0)
        return false;
    /* Counted, the hook would be closed after the first rank and the others would not reach it. */
    if (count && *count && strcmp(count, "0") != 0)
        return false;
    if (gv_proof_environment(&who) == GV_NODES_ONE)
        return true;
    if (user && *user)
        return gv_answer_names_us(user) || !strcasecmp(user, "none");
    pthread_once(&found.once, look_for_plugins);
    return !found.default_net;
}

static const char *net_plugin(const struct gv_state *state, const void *caller, const char *user)
{
    (void)caller;
    /* A rank without a profile registers as well, since the others must know of it, but takes
     * nothing from its user for that. */
    bool theirs = user && *user && !gv_answer_names_us(user);
    if ((state->usable || !theirs) && hook_may_be_answered(user))
        return GV_SONAME;
    atomic_store(&net_is_theirs, true);
    gv_log_once(
        GV_LOG_INFO,
        "the net slot is taken (a net plugin of the user's, NCCL_NET or "
        "NCCL_NET_PLUGIN_REF_COUNT), "
        "so transports stay NCCL's default; GV100_SINGLE_NODE=1 says that no network is needed");
    return user;
}

static const char *topology_file(const struct gv_state *state, const void *caller, const char *user)
{
    (void)state; /* also where no plan is possible: the other ranks wait for this one's word */
    struct gv_comm *comm = gv_comm_of_this_thread(gv_object_of(caller));
    if (!comm)
        return user;
    gv_comm_decide(comm, 0, 0, true);
    if (!tuner_is_ours(gv_env_get("NCCL_TUNER_PLUGIN"))) {
        gv_comm_report(comm); /* elsewhere tuner init does */
        tuner_is_theirs();
    }
    const char *file = gv_comm_file(comm);
    return file ? file : user;
}

/* Asked once per process, so the answer is for the machine as a whole: whether any pair must be
 * kept apart that no file can. */
static const char *p2p_level(const struct gv_state *state, const void *caller, const char *user)
{
    (void)caller;
    if ((user && *user) || !state->usable)
        return user;
    bool level_pxb = gv_policy_level_pxb(state->profile, 0, state->own_word ? NULL : state->bad);
    return level_pxb ? "PXB" : user;
}

/* Two lent links on one GPU would make a path through it; where the machine has no such path of its
 * own the setting changes nothing by itself. */
static const char *nvb_disable(const struct gv_state *state, const void *caller, const char *user)
{
    (void)caller;
    return !(user && *user) && state->usable && state->answer_nvb ? "1" : user;
}

/* The graph comes after the topology: what this thread asks from now on belongs to nobody. */
static const char *graph_file(const struct gv_state *state, const void *caller, const char *user)
{
    (void)caller;
    (void)state;
    gv_comm_disarm();
    return user;
}

static const struct {
    const char *name;
    bool preload; /* answered to the preloaded getenv as well */
    const char *(*answer)(const struct gv_state *state, const void *caller, const char *user);
} answers[] = {
    {"NCCL_TOPO_FILE", true, topology_file},   {"NCCL_GRAPH_FILE", true, graph_file},
    {"NCCL_TUNER_PLUGIN", true, tuner_plugin}, {"NCCL_NET_PLUGIN", false, net_plugin},
    {"NCCL_NVB_DISABLE", true, nvb_disable},   {"NCCL_P2P_LEVEL", true, p2p_level},
};

const char *gv_answer(enum gv_asker asker, const void *caller, const char *name, const char *user)
{
    if (strncmp(name, "NCCL_", 5) != 0)
        return user;
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        if (strcmp(name, answers[i].name) != 0)
            continue;
        if (asker == GV_ASKER_PRELOAD && !answers[i].preload)
            return user;
        if (asker == GV_ASKER_PRELOAD)
            atomic_store(&preloaded, true);
        const struct gv_state *state = gv_state();
        return state->disabled ? user : answers[i].answer(state, caller, user);
    }
    return user;
}
