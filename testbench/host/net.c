/* The networks of one process: plugins named by NCCL_NET_PLUGIN (or libnccl-net.so), then NCCL's
 * own two, of which InfiniBand finds no device here. The first that a communicator can use is its
 * network. A plugin may decline at several places, each with its own consequences by release. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testbench/host/engine.h"

#define MAX_NETS 16
#define BUILT_IN 2

enum state { DISABLED = -2, LOAD_FAILED = -1, LOAD_READY, INIT_READY, ENABLED };

struct gvh_net {
    char name[255];
    enum { PLUGIN, IB, SOCKET } kind;
    enum state state;
    void *lib;
    const struct gvh_net_head *head;
    int version, refs;
    int shims; /* inits of a v6 to v10 plugin through the adapter of 2.28 and later */
};

static struct {
    pthread_mutex_t lock;
    pthread_once_t once;
    struct gvh_net at[MAX_NETS];
    int n;
} nets = {.lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT};

static void add_net(const char *name, int kind, enum state state)
{
    struct gvh_net *net = &nets.at[nets.n++];
    net->kind = kind;
    net->state = state;
    net->refs =
        gvh_release()->net_list
            ? (int)gvh_param("NCCL_NET_PLUGIN_REF_COUNT", gvh_release()->net_each_comm ? 0 : 1)
            : 1;
    snprintf(net->name, sizeof(net->name), "%s", name);
}

static void list_nets(void)
{
    const char *value = gvh_getenv("NCCL_NET_PLUGIN");
    char *copy = value ? strdup(value) : NULL, *rest = NULL;

    if (value)
        GVH_INFO("NCCL_NET_PLUGIN set by environment to %s", value);
    if (!value || (!gvh_release()->net_list && !*value))
        add_net("", PLUGIN, LOAD_READY);
    else if (!gvh_release()->net_list)
        add_net(value, PLUGIN, LOAD_READY);
    else if (!gvh_release()->none || strcasecmp(value, "none"))
        for (char *name = strtok_r(copy, ",", &rest); name; name = strtok_r(NULL, ",", &rest))
            if (nets.n < MAX_NETS - BUILT_IN && strlen(name) < sizeof(nets.at[0].name))
                add_net(name, PLUGIN, LOAD_READY);
    add_net("IB", IB, INIT_READY);
    add_net("Socket", SOCKET, INIT_READY);
    free(copy);
}

static void load(struct gvh_net *net)
{
    const struct gvh_release *release = gvh_release();
    /* From 2.27.3 the list holds libnccl-net.so by name when nothing is set. */
    const char *value = net->name[0] ? net->name : release->net_list ? "libnccl-net.so" : NULL;

    net->state = LOAD_FAILED;
    net->lib = gvh_open(GVH_LIB_NET, value, release->net_naming);
    for (int v = release->net_newest; net->lib && !net->head && v >= release->net_oldest; v--) {
        char name[32];
        snprintf(name, sizeof(name), "ncclNetPlugin_v%d", v);
        net->head = gvh_symbol(net->lib, name);
        net->version = v;
    }
    if (net->head) {
        GVH_INFO("NET/Plugin: Loaded net plugin %s (v%d)", net->head->name, net->version);
        net->state = INIT_READY;
    } else if (net->lib) {
        GVH_INFO("External network plugin %s is unsupported", gvh_open_path(GVH_LIB_NET));
        gvh_close(GVH_LIB_NET, net->lib);
        net->lib = NULL;
    }
}

static const char *public_name(const struct gvh_net *net)
{
    return net->kind == PLUGIN ? net->head->name : net->name;
}

static int profiler_callback(void **handle, int type, void *parent, int64_t id, void *data)
{
    (void)handle, (void)type, (void)parent, (void)id, (void)data;
    return GVH_SUCCESS;
}

static int call_old_init(struct gvh_net *net)
{
    if (net->version >= 10)
        return ((gvh_net_init_v10)net->head->init)(gvh_logger_fn, profiler_callback);
    return ((gvh_net_init_v6)net->head->init)(gvh_logger_fn);
}

static int call_init(struct gvh_comm *comm, struct gvh_net *net)
{
    struct gvh_net_config config = {-1};
    if (net->kind != PLUGIN)
        return net->kind == IB ? GVH_INTERNAL_ERROR : GVH_SUCCESS;
    gvh_trace("net.init v%d %016lx", net->version, (unsigned long)comm->id);
    if (net->version >= 11)
        return ((gvh_net_init_v11)net->head->init)(
            &comm->net_ctx, comm->id, &config, gvh_logger_fn, profiler_callback);
    if (gvh_release()->net_each_comm && net->shims++)
        return GVH_SUCCESS;
    return call_old_init(net);
}

static int call_finalize(struct gvh_comm *comm, struct gvh_net *net)
{
    void *ctx = comm->net_ctx;
    if (net->kind == IB && ctx) /* it frees what it takes for its own */
        return gvh_fail(
            comm, GVH_INTERNAL_ERROR,
            "crash: the built-in network frees a context that a plugin left behind");
    if (net->kind != PLUGIN)
        return GVH_SUCCESS;
    gvh_trace("net.finalize");
    if (net->version < 11) {
        net->shims--;
        return GVH_SUCCESS;
    }
    return ((const struct gvh_net_v11 *)net->head)->finalize(ctx);
}

static int call_devices(struct gvh_net *net, int *ndev)
{
    *ndev = net->kind == SOCKET;
    if (net->kind != PLUGIN)
        return GVH_SUCCESS;
    gvh_trace("net.devices");
    return net->head->devices(ndev);
}

static int call_properties(struct gvh_net *net)
{
    /* Larger than any version's, as a plugin may write into all of its own. */
    union {
        struct gvh_net_props_v12 v12;
        char room[512];
    } properties;
    if (net->kind != PLUGIN)
        return GVH_SUCCESS;
    memset(&properties, 0, sizeof(properties));
    gvh_trace("net.getProperties 0");
    return net->head->get_properties(0, &properties);
}

/* Init failed. Up to 2.29.3 finalize is called all the same, and the adapter for older plugins has
 * none to call. */
static int init_failed(struct gvh_comm *comm, struct gvh_net *net, bool init_ok)
{
    int version = gvh_release()->version;
    GVH_INFO("Failed to initialize NET plugin %s", public_name(net));
    net->state = DISABLED;
    if (!gvh_release()->net_each_comm || (version >= 22907 && !init_ok))
        return GVH_SUCCESS;
    if (net->kind == PLUGIN && net->version < 11 && !init_ok && net->shims == 1)
        return gvh_fail(
            comm, GVH_INTERNAL_ERROR, "crash: NCCL calls the missing finalize of a v%d plugin",
            net->version);
    return call_finalize(comm, net);
}

static int init_net(struct gvh_comm *comm, struct gvh_net *net)
{
    int ndev = 0, rc = GVH_SUCCESS;
    bool each = gvh_release()->net_each_comm;

    if (each || net->state == INIT_READY)
        rc = call_init(comm, net);
    if (rc)
        return init_failed(comm, net, false);
    if (net->state == INIT_READY && (call_devices(net, &ndev) || ndev <= 0))
        return init_failed(comm, net, true);
    net->state = ENABLED;
    return GVH_SUCCESS;
}

static void unload(struct gvh_net *net)
{
    if (net->kind != PLUGIN || !net->lib || net->refs)
        return;
    GVH_INFO("Unloading plugin %s", net->name);
    gvh_close(GVH_LIB_NET, net->lib);
    memset(net, 0, sizeof(*net)); /* its name too: the next load finds none */
}

static int finalize_net(struct gvh_comm *comm, struct gvh_net *net)
{
    int rc = gvh_release()->net_each_comm ? call_finalize(comm, net) : GVH_SUCCESS;
    net->refs--;
    if (gvh_release()->net_list)
        unload(net);
    return rc;
}

static void disable_others(const struct gvh_net *chosen)
{
    if (chosen->kind != PLUGIN || !gvh_release()->net_list)
        return;
    for (int i = 0; i < nets.n - BUILT_IN; i++)
        if (&nets.at[i] != chosen)
            nets.at[i].state = DISABLED;
}

static bool name_fits(const struct gvh_comm *comm, const struct gvh_net *net)
{
    return !comm->net_name || !strcasecmp(comm->net_name, public_name(net));
}

/* One network after the other; 0 and comm->net set where one is usable. */
static int try_net(struct gvh_comm *comm, struct gvh_net *net)
{
    bool each = gvh_release()->net_each_comm;

    if (net->kind == PLUGIN && net->state == LOAD_READY)
        load(net);
    if (net->state < INIT_READY || (each && !name_fits(comm, net)))
        return GVH_SUCCESS;
    int rc = init_net(comm, net);
    if (rc || net->state != ENABLED)
        return rc;
    if (name_fits(comm, net) && call_properties(net) == GVH_SUCCESS) {
        comm->net = net;
        net->refs++;
        disable_others(net);
        GVH_INFO("Using network %s", public_name(net));
        return GVH_SUCCESS;
    }
    return each ? finalize_net(comm, net) : GVH_SUCCESS;
}

int gvh_net_init(struct gvh_comm *comm)
{
    int rc = GVH_SUCCESS;
    pthread_once(&nets.once, list_nets);
    pthread_mutex_lock(&nets.lock);
    for (int i = 0; !rc && !comm->net && i < nets.n; i++)
        rc = try_net(comm, &nets.at[i]);
    pthread_mutex_unlock(&nets.lock);
    if (rc || comm->net)
        return rc;
    return gvh_fail(
        comm, GVH_INVALID_USAGE, "Failed to initialize any NET plugin (NCCL_NET=%s)",
        comm->net_name ? comm->net_name : "");
}

int gvh_net_inherit(struct gvh_comm *comm)
{
    comm->net = comm->parent->net;
    comm->net_ctx = comm->parent->net_ctx;
    return GVH_SUCCESS;
}

int gvh_net_finalize(struct gvh_comm *comm)
{
    if (!comm->net)
        return GVH_SUCCESS;
    pthread_mutex_lock(&nets.lock);
    int rc = finalize_net(comm, comm->net);
    pthread_mutex_unlock(&nets.lock);
    comm->net = NULL;
    return rc;
}

const char *gvh_net_name(const struct gvh_comm *comm)
{
    return comm->net ? public_name(comm->net) : "none";
}
