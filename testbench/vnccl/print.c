/* NCCL's log as NCCL prints it: to $NCCL_DEBUG_FILE or stdout, by $NCCL_DEBUG. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "testbench/vnccl/vnccl.h"

static FILE *log_file;
static int most; /* level that is still printed */

static void open_log(void)
{
    const char *level = getenv("NCCL_DEBUG"), *path = getenv("NCCL_DEBUG_FILE");
    most = !level ? 0 : !strcasecmp(level, "WARN") ? GVH_LOG_WARN : GVH_LOG_INFO;
    if (level && !strcasecmp(level, "VERSION"))
        most = GVH_LOG_VERSION;
    log_file = path && *path ? fopen(path, "we") : stdout;
    if (log_file)
        setvbuf(log_file, NULL, _IOLBF, 0);
}

void gvh_print(int level, const char *text)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_log);
    if (log_file && level <= most)
        fprintf(
            log_file, "virtual:%d:%d [%d] NCCL %s %s\n", (int)getpid(), (int)gettid(),
            gvh_get_device(), level == GVH_LOG_WARN ? "WARN" : "INFO", text);
}

static int rank_of(const struct gvh_comm *comm, int gpu)
{
    for (int r = 0; r < comm->nranks; r++)
        if (comm->devices[r] == gpu)
            return r;
    return -1;
}

static const char *transport_text(char transport)
{
    return transport == 'P' ? "P2P/IPC" : transport == 'S' ? "SHM/direct/direct" : "NET/Socket/0";
}

static void print_order(const struct gvh_comm *comm, int channel)
{
    const struct gv_nccl_eval_out *e = comm->eval;
    struct gv_str line = {0};
    for (int i = 0; i < e->n; i++)
        gv_str_addf(&line, " %d", rank_of(comm, e->ring[i]));
    GVH_INFO("Channel %02d/%02d :%s", channel, e->channels, line.data ? line.data : "");
    gv_str_free(&line);
}

/* A PCI address as the number that NCCL prints. */
static const char *bus_number(const struct gvh_comm *comm, char out[32])
{
    unsigned domain = 0, bus = 0, device = 0, function = 0;
    const struct gv_fabric *f = gvv_fabric();
    if (f)
        sscanf(
            f->machine.gpus[comm->device].pci.bus_id, "%x:%x:%x.%x", &domain, &bus, &device,
            &function);
    snprintf(out, 32, "%lx", (unsigned long)domain << 20 | bus << 12 | device << 4 | function);
    return out;
}

void gvh_report(const struct gvh_comm *comm)
{
    char number[32];
    const struct gv_nccl_eval_out *e = comm->eval;
    GVH_INFO(
        "ncclCommInitRank comm %p rank %d nranks %d cudaDev %d nvmlDev %d busId %s commId 0x%lx - "
        "Init START",
        (const void *)comm, comm->rank, comm->nranks, comm->device, comm->device,
        bus_number(comm, number), (unsigned long)comm->id);
    if (e->n < 2)
        return;
    for (int c = 0; c < e->channels && comm->rank == 0; c++)
        print_order(comm, c);
    for (int c = 0; c < e->channels; c++)
        for (int i = 0; i < e->n; i++) {
            int to = e->ring[(i + 1) % e->n];
            if (e->ring[i] != comm->devices[comm->rank])
                continue;
            GVH_INFO(
                "Channel %02d/0 : %d[%d] -> %d[%d] via %s", c, comm->rank, e->ring[i],
                rank_of(comm, to), to, transport_text(e->transport[i]));
        }
}
