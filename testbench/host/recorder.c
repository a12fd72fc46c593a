/* A plugin for tests of the host alone: fills every slot, changes nothing unless told to.
 *
 *   GVREC_ENV_INIT, GVREC_NET_INIT, GVREC_NET_DEVICES, GVREC_NET_PROPERTIES, GVREC_TUNER_INIT,
 *   GVREC_COLL, GVREC_TUNER_FINALIZE   what that call returns (GVREC_NET_DEVICES: how many)
 *   GVREC_NET_CTX=1       net init leaves a context behind
 *   GVREC_UNSTABLE=1      answers for NCCL_*NTHREADS share one buffer
 *   GVREC_TOPO_FILE       the answer to NCCL_TOPO_FILE
 *   GVREC_CELLS           "1,2,0.5 0,0,-1": cost of (algorithm, protocol)
 *   GVREC_CHANNELS        nChannels
 *   GVREC_PAIR            "1,2": algorithm and protocol, for tuners v1 and v2
 *   GVREC_LOG             a file: one line for each call, "THREAD WHAT", for use under a real NCCL
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "testbench/host/abi.h"

#define EXPORT __attribute__((visibility("default")))

/* One write, so that lines of several threads and processes stay whole. */
static void note(const char *what, const char *name)
{
    char line[256];
    const char *path = getenv("GVREC_LOG");
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    if (fd < 0)
        return;
    int n = snprintf(line, sizeof(line), "%ld %s%s\n", (long)syscall(SYS_gettid), what, name);
    if (write(fd, line, (size_t)n) != n)
        perror(path);
    close(fd);
}

static int told(const char *name, int otherwise)
{
    const char *text = getenv(name);
    return text ? atoi(text) : otherwise;
}

static int env_init_v1(uint8_t major, uint8_t minor, uint8_t patch, const char *suffix)
{
    note("env.init v1", "");
    (void)major, (void)minor, (void)patch, (void)suffix;
    return told("GVREC_ENV_INIT", 0);
}

static int
env_init_v2(uint8_t major, uint8_t minor, uint8_t patch, const char *suffix, gvh_logger log)
{
    note("env.init v2", "");
    log(GVH_LOG_INFO, GVH_ENV, __FILE__, __LINE__, "recorder: %d.%d.%d%s", major, minor, patch,
        suffix);
    return told("GVREC_ENV_INIT", 0);
}

static int env_finalize(void)
{
    note("env.finalize", "");
    return 0;
}

/* Breaks the promise that a string stays until the same name is asked again. */
static const char *unstable(const char *name)
{
    static _Thread_local char text[64];
    snprintf(text, sizeof(text), "%zu", strlen(name));
    return strstr(name, "_NTHREADS") ? text : getenv(name);
}

static const char *env_get(const char *name)
{
    if (told("GVREC_UNSTABLE", 0))
        return unstable(name);
    const char *topology = getenv("GVREC_TOPO_FILE");
    note("getenv ", name);
    return topology && !strcmp(name, "NCCL_TOPO_FILE") ? topology : getenv(name);
}

EXPORT const struct gvh_env_v1 ncclEnvPlugin_v1 = {"recorder", env_init_v1, env_finalize, env_get};
EXPORT const struct gvh_env_v2 ncclEnvPlugin_v2 = {"recorder", env_init_v2, env_finalize, env_get};

static int net_init_v11(
    void **ctx, uint64_t id, struct gvh_net_config *config, gvh_logger log,
    gvh_profiler_callback callback)
{
    note("net.init", "");
    (void)id, (void)log, (void)callback;
    static int left;
    *ctx = told("GVREC_NET_CTX", 0) ? &left : NULL;
    return config->traffic_class == -1 ? told("GVREC_NET_INIT", 0) : GVH_INVALID_ARGUMENT;
}

static int net_init_v10(gvh_logger log, gvh_profiler_callback callback)
{
    note("net.init v10", "");
    (void)log, (void)callback;
    return told("GVREC_NET_INIT", 0);
}

static int net_init_v6(gvh_logger log)
{
    note("net.init v6", "");
    (void)log;
    return told("GVREC_NET_INIT", 0);
}

static int net_devices(int *ndev)
{
    note("net.devices", "");
    *ndev = told("GVREC_NET_DEVICES", 1);
    return 0;
}

static int net_properties(int dev, void *properties)
{
    note("net.getProperties", "");
    (void)dev, (void)properties;
    return told("GVREC_NET_PROPERTIES", GVH_INTERNAL_ERROR);
}

static int net_finalize(void *ctx)
{
    note("net.finalize", "");
    (void)ctx;
    return 0;
}

#define HEAD(fn)                                                                                   \
    {                                                                                              \
        "recorder", (gvh_slot)(fn), net_devices, net_properties                                    \
    }
EXPORT const struct gvh_net_v8 ncclNetPlugin_v6 = {.head = HEAD(net_init_v6)};
EXPORT const struct gvh_net_v8 ncclNetPlugin_v7 = {.head = HEAD(net_init_v6)};
EXPORT const struct gvh_net_v8 ncclNetPlugin_v8 = {.head = HEAD(net_init_v6)};
EXPORT const struct gvh_net_v10 ncclNetPlugin_v9 = {.base.head = HEAD(net_init_v6)};
EXPORT const struct gvh_net_v10 ncclNetPlugin_v10 = {.base.head = HEAD(net_init_v10)};
EXPORT const struct gvh_net_v11 ncclNetPlugin_v11 = {
    .base.base.head = HEAD(net_init_v11), .finalize = net_finalize};
EXPORT const struct gvh_net_v11 ncclNetPlugin_v12 = {
    .base.base.head = HEAD(net_init_v11), .finalize = net_finalize};

static int tuner_init_v1(size_t nranks, size_t nnodes, gvh_logger log)
{
    note("tuner.init", "");
    log(GVH_LOG_INFO, GVH_TUNING, __FILE__, __LINE__, "recorder: %zu ranks, %zu nodes", nranks,
        nnodes);
    return told("GVREC_TUNER_INIT", 0);
}

static int tuner_init_v2(size_t nranks, size_t nnodes, gvh_logger log, void **ctx)
{
    *ctx = NULL;
    return tuner_init_v1(nranks, nnodes, log);
}

static int tuner_init_v5(
    void **ctx, uint64_t id, size_t nranks, size_t nnodes, gvh_logger log,
    struct gvh_nvl_domain *domain, struct gvh_tuner_constants *constants)
{
    (void)id;
    *ctx = NULL;
    if (!domain->count || constants->base_latencies[0][0] <= 0)
        return GVH_INVALID_ARGUMENT;
    return tuner_init_v1(nranks, nnodes, log);
}

static void set_pair(int *algo, int *proto, int *channels)
{
    note("tuner.getCollInfo", "");
    const char *pair = getenv("GVREC_PAIR");
    if (pair)
        sscanf(pair, "%d,%d", algo, proto);
    *channels = told("GVREC_CHANNELS", *channels);
}

static int coll_v1(
    int func, size_t bytes, int collnet, int nvls, int ops, int *algo, int *proto, int *channels)
{
    (void)func, (void)bytes, (void)collnet, (void)nvls, (void)ops;
    set_pair(algo, proto, channels);
    return told("GVREC_COLL", 0);
}

static int coll_v2(
    void *ctx, int func, size_t bytes, int collnet, int nvls, int ops, int *algo, int *proto,
    int *channels)
{
    (void)ctx;
    return coll_v1(func, bytes, collnet, nvls, ops, algo, proto, channels);
}

static int set_cells(float **table, int nalgo, int nproto, int *channels)
{
    note("tuner.getCollInfo", "");
    int a, p, used;
    float cost;
    for (const char *at = getenv("GVREC_CELLS");
         at && sscanf(at, "%d,%d,%f%n", &a, &p, &cost, &used) == 3; at += used)
        if (a < nalgo && p < nproto)
            ((float *)table)[a * nproto + p] = cost;
    *channels = told("GVREC_CHANNELS", *channels);
    return told("GVREC_COLL", 0);
}

static int coll_v3(
    void *ctx, int func, size_t bytes, int ops, float **table, int nalgo, int nproto, int *channels)
{
    (void)ctx, (void)func, (void)bytes, (void)ops;
    return set_cells(table, nalgo, nproto, channels);
}

static int coll_v4(
    void *ctx, int func, size_t bytes, int ops, float **table, int nalgo, int nproto, int reg,
    int *channels)
{
    (void)ctx, (void)func, (void)bytes, (void)ops, (void)reg;
    return set_cells(table, nalgo, nproto, channels);
}

static int tuner_end(void *ctx)
{
    note("tuner.finalize", "");
    (void)ctx;
    return told("GVREC_TUNER_FINALIZE", 0);
}

static int tuner_end_v1(void)
{
    note("tuner.destroy", "");
    return told("GVREC_TUNER_FINALIZE", 0);
}

EXPORT const struct gvh_tuner_v1 ncclTunerPlugin_v1 = {
    "recorder", tuner_init_v1, coll_v1, tuner_end_v1};
EXPORT const struct gvh_tuner_v2 ncclTunerPlugin_v2 = {
    "recorder", tuner_init_v2, coll_v2, tuner_end};
EXPORT const struct gvh_tuner_v3 ncclTunerPlugin_v3 = {
    "recorder", tuner_init_v2, coll_v3, tuner_end};
EXPORT const struct gvh_tuner_v4 ncclTunerPlugin_v4 = {
    "recorder", tuner_init_v2, coll_v4, tuner_end};
EXPORT const struct gvh_tuner_v5 ncclTunerPlugin_v5 = {
    "recorder", tuner_init_v5, coll_v4, tuner_end};
EXPORT const struct gvh_tuner_v6 ncclTunerPlugin_v6 = {
    "recorder", tuner_init_v5, coll_v4, tuner_end, NULL};
