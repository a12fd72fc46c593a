#include "plugin/core/gv_answer.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "plugin/core/gv_comm.h"
#include "plugin/core/gv_env.h"
#include "plugin/core/gv_proof.h"
#include "plugin/core/gv_state.h"
#include "plugin/policy/gv_policy.h"

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

static atomic_bool tuner_is_ours;

int gv_answer_tuner_is_ours(void)
{
    return atomic_load(&tuner_is_ours);
}

static const char *tuner(const char *user)
{
    pthread_once(&found.once, look_for_plugins);
    bool ours = user && *user ? gv_answer_names_us(user) : !found.default_tuner;
    atomic_store(&tuner_is_ours, ours);
    return ours ? GV_SONAME : user;
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
    const char *who, *net = gv_env_get("NCCL_NET");
    if (net && *net && strcasecmp(net, "IB") != 0 && strcasecmp(net, "Socket") != 0)
        return false;
    if (gv_proof_environment(&who) == GV_NODES_ONE)
        return true;
    if (user && *user)
        return gv_answer_names_us(user) || !strcasecmp(user, "none");
    pthread_once(&found.once, look_for_plugins);
    return !found.default_net;
}

static const char *net_plugin(const struct gv_state *state, const char *user)
{
    if (!state->usable)
        return gv_answer_names_us(user) ? "none" : user;
    if (hook_may_be_answered(user))
        return GV_SONAME;
    gv_log_once(
        GV_LOG_INFO, "a net plugin of the user's is in use, so transports stay NCCL's default; "
                     "GV100_SINGLE_NODE=1 says that no network is needed");
    return user;
}

static const char *topology_file(const struct gv_state *state, const char *user)
{
    struct gv_comm *comm = state->usable ? gv_comm_of_this_thread() : NULL;
    if (!comm)
        return user;
    gv_comm_decide(comm, 0, 0, true);
    const char *file = gv_comm_file(comm);
    return file ? file : user;
}

/* Asked once per process, so the answer is for the machine as a whole: whether any pair must be
 * kept apart that no file can. */
static const char *p2p_level(const struct gv_state *state, const char *user)
{
    if ((user && *user) || !state->usable)
        return user;
    bool level_pxb = gv_policy_level_pxb(state->profile, 0, state->own_word ? NULL : state->bad);
    return level_pxb ? "PXB" : user;
}

const char *gv_answer(enum gv_asker asker, const char *name, const char *user)
{
    static const char prefix[] = "NCCL_";
    if (strncmp(name, prefix, sizeof(prefix) - 1) != 0)
        return user;
    const char *rest = name + sizeof(prefix) - 1;
    bool topology = !strcmp(rest, "TOPO_FILE"), graph = !strcmp(rest, "GRAPH_FILE"),
         tune = !strcmp(rest, "TUNER_PLUGIN"), nvb = !strcmp(rest, "NVB_DISABLE"),
         level = !strcmp(rest, "P2P_LEVEL"),
         net = asker == GV_ASKER_ENV_PLUGIN && !strcmp(rest, "NET_PLUGIN");
    if (!(topology || graph || tune || nvb || level || net))
        return user;
    const struct gv_state *state = gv_state();
    if (state->disabled)
        return user;
    if (topology)
        return topology_file(state, user);
    if (tune)
        return tuner(user);
    if (net)
        return net_plugin(state, user);
    if (level)
        return p2p_level(state, user);
    if (nvb)
        return !(user && *user) && state->usable && state->answer_nvb ? "1" : user;
    gv_comm_disarm(); /* the graph comes after the topology: what follows belongs to nobody */
    return user;
}
