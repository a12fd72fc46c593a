/* The tuner plugin of one process: found, initialised for each communicator, closed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testbench/host/engine.h"

static struct {
    pthread_mutex_t lock;
    enum { READY, FAILED, LOADED } state;
    void *lib;
    struct gvh_tuner tuner;
    int refs;
} tuners = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* 2.21 to 2.25: the net plugin's names in the tuner's stead. */
static void *open_net_names(void)
{
    const char *value = gvh_getenv("NCCL_NET_PLUGIN");
    char name[512];
    if (!value || !*value)
        return gvh_open_name(GVH_LIB_TUNER, "libnccl-net.so");
    void *lib = gvh_open_name(GVH_LIB_TUNER, value);
    snprintf(name, sizeof(name), "libnccl-net-%s.so", value);
    return lib ? lib : gvh_open_name(GVH_LIB_TUNER, name);
}

static void *open_library(void)
{
    const struct gvh_release *release = gvh_release();
    const char *value = gvh_getenv("NCCL_TUNER_PLUGIN");

    if (value)
        GVH_INFO("NCCL_TUNER_PLUGIN set by environment to %s", value);
    if (value && release->none && !strcasecmp(value, "none"))
        return NULL;
    void *lib = gvh_open(GVH_LIB_TUNER, value, release->tuner_naming);
    if (!lib && release->tuner_net_names)
        lib = open_net_names();
    if (!lib && release->tuner_net_handle)
        lib = gvh_reopen_net();
    return lib;
}

static bool find_tuner(void *lib, struct gvh_tuner *out)
{
    for (int v = gvh_release()->tuner_newest; v >= gvh_release()->tuner_oldest; v--) {
        char name[32];
        snprintf(name, sizeof(name), "ncclTunerPlugin_v%d", v);
        if ((out->any = gvh_symbol(lib, name))) {
            out->version = v;
            return true;
        }
    }
    return false;
}

static const char *tuner_name(const struct gvh_tuner *tuner)
{
    return *(const char *const *)tuner->any;
}

static void load_first(struct gvh_comm *comm)
{
    tuners.state = FAILED; /* a failed load is never tried again */
    if (!(tuners.lib = open_library()))
        return;
    if (!find_tuner(tuners.lib, &tuners.tuner)) {
        GVH_INFO("External tuner plugin %s is unsupported", gvh_open_path(GVH_LIB_TUNER));
        gvh_close(GVH_LIB_TUNER, tuners.lib);
        return;
    }
    GVH_INFO("TUNER/Plugin: Using %s (v%d)", tuner_name(&tuners.tuner), tuners.tuner.version);
    GVH_INFO("Using tuner plugin %s", tuner_name(&tuners.tuner));
    tuners.state = LOADED;
    comm->tuner_loader = true;
}

static int call_init(struct gvh_comm *comm)
{
    const struct gvh_tuner *t = comm->tuner;
    size_t nranks = (size_t)comm->nranks, nnodes = (size_t)comm->nnodes;
    struct gvh_nvl_domain domain = {1, comm->nranks, comm->nranks};

    gvh_trace("tuner.init v%d %016lx", t->version, (unsigned long)comm->id);
    switch (t->version) {
    case 1:
        return t->v1->init(nranks, nnodes, gvh_logger_fn);
    case 2:
        return t->v2->init(nranks, nnodes, gvh_logger_fn, &comm->tuner_ctx);
    case 3:
        return t->v3->init(nranks, nnodes, gvh_logger_fn, &comm->tuner_ctx);
    case 4:
        return t->v4->init(nranks, nnodes, gvh_logger_fn, &comm->tuner_ctx);
    case 5:
        return t->v5->init(
            &comm->tuner_ctx, comm->id, nranks, nnodes, gvh_logger_fn, &domain, &comm->constants);
    default:
        return t->v6->init(
            &comm->tuner_ctx, comm->id, nranks, nnodes, gvh_logger_fn, &domain, &comm->constants);
    }
}

int gvh_tuner_load(struct gvh_comm *comm)
{
    pthread_mutex_lock(&tuners.lock);
    if (tuners.state == READY)
        load_first(comm);
    bool loaded = tuners.state == LOADED && tuners.lib;
    if (loaded) {
        comm->tuner = &tuners.tuner;
        tuners.refs++;
    }
    pthread_mutex_unlock(&tuners.lock);
    if (!loaded)
        return GVH_SUCCESS;
    int rc = call_init(comm);
    if (rc == GVH_IN_PROGRESS) /* NCCL's checks let this one pass */
        rc = GVH_SUCCESS;
    return rc ? gvh_fail(comm, rc, "the tuner's init returned %d", rc) : GVH_SUCCESS;
}

static int call_destroy(struct gvh_comm *comm)
{
    const struct gvh_tuner *t = comm->tuner;
    gvh_trace("tuner.%s", t->version >= 5 ? "finalize" : "destroy");
    switch (t->version) {
    case 1:
        return t->v1->destroy();
    case 2:
        return t->v2->destroy(comm->tuner_ctx);
    case 3:
        return t->v3->destroy(comm->tuner_ctx);
    case 4:
        return t->v4->destroy(comm->tuner_ctx);
    case 5:
        return t->v5->finalize(comm->tuner_ctx);
    default:
        return t->v6->finalize(comm->tuner_ctx);
    }
}

static void close_library(void)
{
    GVH_INFO("TUNER/Plugin: Closing tuner: '%s'", tuner_name(&tuners.tuner));
    gvh_close(GVH_LIB_TUNER, tuners.lib);
    tuners.lib = NULL;
    /* 2.21 keeps the state, so that later communicators get nothing */
    if (gvh_release()->tuner_unload != GVH_UNLOAD_ONCE)
        tuners.state = READY;
}

int gvh_tuner_finalize(struct gvh_comm *comm)
{
    if (!comm->tuner)
        return GVH_SUCCESS;
    int rc = call_destroy(comm);
    pthread_mutex_lock(&tuners.lock);
    bool counts = gvh_release()->tuner_unload != GVH_UNLOAD_BY_LOADER || comm->tuner_loader;
    if (counts && --tuners.refs == 0)
        close_library();
    pthread_mutex_unlock(&tuners.lock);
    comm->tuner = NULL;
    return rc ? gvh_fail(comm, rc, "the tuner's finalize returned %d", rc) : GVH_SUCCESS;
}
