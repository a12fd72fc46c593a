#include "testbench/host/caller.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/gv_str.h"
#include "testbench/host/gv_fakecuda.h"

struct rank {
    pthread_t thread;
    ncclUniqueId id;
    int rank, nranks, gpu;
    ncclComm_t comm;
    int result, alltoall;
};

static int exchange(const struct rank *r)
{
    int rc = ncclGroupStart();
    for (int peer = 0; !rc && peer < r->nranks; peer++) {
        rc = ncclSend(NULL, 1024, 7, peer, r->comm, NULL);
        rc = rc ? rc : ncclRecv(NULL, 1024, 7, peer, r->comm, NULL);
    }
    int ended = ncclGroupEnd();
    return rc ? rc : ended;
}

static void *live(void *user)
{
    struct rank *r = user;
    gv_fakecuda_set_device(r->gpu);
    if (!r->comm)
        r->result = ncclCommInitRank(&r->comm, r->nranks, r->id, r->rank);
    if (!r->result)
        r->result = ncclAllReduce(NULL, NULL, 1 << 28, 7, 0, r->comm, NULL);
    r->alltoall = r->result ? -1 : exchange(r);
    return NULL;
}

static void *end(void *user)
{
    struct rank *r = user;
    gv_fakecuda_set_device(r->gpu);
    int rc = r->comm ? ncclCommDestroy(r->comm) : 0;
    r->result = r->result ? r->result : rc;
    return NULL;
}

static void each(struct rank *ranks, int n, void *(*what)(void *))
{
    for (int i = 0; i < n; i++)
        if (pthread_create(&ranks[i].thread, NULL, what, &ranks[i]))
            abort();
    for (int i = 0; i < n; i++)
        pthread_join(ranks[i].thread, NULL);
}

static int make_all(struct rank *ranks, int n)
{
    ncclComm_t comms[GV_NCCL_MAX_GPUS] = {0};
    int gpus[GV_NCCL_MAX_GPUS];
    for (int i = 0; i < n; i++)
        gpus[i] = ranks[i].gpu;
    int rc = ncclCommInitAll(comms, n, gpus);
    for (int i = 0; i < n; i++)
        ranks[i].comm = comms[i];
    return rc;
}

struct out {
    const char *name;
    struct gv_str *text;
};

static void say(void *user, int tag, int rank, int level, const char *text)
{
    const struct out *out = user;
    (void)tag, (void)rank, (void)level;
    if (!strncmp(text, "gv100:", 6))
        gv_str_addf(out->text, "%s says %s\n", out->name, text);
}

static void report(const char *name, const struct rank *ranks, int n)
{
    struct gv_str text = {0};
    struct gv_host_result first = {0};
    int version = 0, result = 0, alltoall = 0, files = 0;
    ncclGetVersion(&version);
    for (int i = 0; i < n; i++) {
        struct gv_host_result one = {0};
        if (ranks[i].comm)
            gv_host_result(ranks[i].comm, &one);
        files += one.topology_file;
        result = result ? result : ranks[i].result;
        alltoall = alltoall ? alltoall : ranks[i].alltoall;
        first = i ? first : one;
    }
    gv_str_addf(
        &text, "%s release=%d result=%d file=%d alltoall=%d choice=%d,%d transports=%s\n", name,
        version, result, files == n ? 1 : -files, alltoall, first.algorithm, first.protocol,
        first.eval ? first.eval->transport : "");
    struct out out = {name, &text};
    gv_host_log_each(say, &out);
    fputs(text.data ? text.data : "", stdout); /* one call: others print at the same time */
    gv_str_free(&text);
}

void gv_caller_run(const char *name, const int *gpus, int n, bool all)
{
    struct rank ranks[GV_NCCL_MAX_GPUS] = {0};
    ncclUniqueId id = {0};
    int rc = ncclGetUniqueId(&id);
    for (int i = 0; i < n; i++)
        ranks[i] = (struct rank){.id = id, .rank = i, .nranks = n, .gpu = gpus[i], .result = rc};
    if (!rc && all)
        ranks[0].result = make_all(ranks, n);
    each(ranks, n, live);
    each(ranks, n, end);
    report(name, ranks, n);
}
