#include "plugin/core/gv_proof.h"

#include <stdlib.h>
#include <string.h>

#include "plugin/core/gv_env.h"

/* A launcher tells how many ranks there are, and how many of them are on this host. Sources:
 * torchrun's (PyTorch elastic) documentation, Open MPI's mpirun(1), MPICH's Hydra and MVAPICH2 user
 * guides. */
static const struct {
    const char *all, *here;
} launchers[] = {
    {"WORLD_SIZE", "LOCAL_WORLD_SIZE"},
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_SIZE"},
    {"PMI_SIZE", "MPI_LOCALNRANKS"},
};

static int number(const char *name)
{
    const char *value = gv_env_get(name);
    if (!value || !*value)
        return 0;
    char *end;
    long n = strtol(value, &end, 10);
    return *end || n < 0 || n > 1000000 ? 0 : (int)n;
}

static int only_loopback(void)
{
    const char *interfaces = gv_env_get("NCCL_SOCKET_IFNAME");
    if (!interfaces)
        return 0;
    if (*interfaces == '=')
        interfaces++;
    return !strcmp(interfaces, "lo");
}

static enum gv_nodes slurm(const char **who)
{
    static const char *const names[] = {
        "SLURM_STEP_NUM_NODES", "SLURM_NNODES", "SLURM_JOB_NUM_NODES"};
    /* Without a step of its own the allocation's size says nothing about who was started where. */
    if (!gv_env_get("SLURM_PROCID"))
        return GV_NODES_UNKNOWN;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        int nodes = number(names[i]);
        if (!nodes)
            continue;
        *who = names[i];
        return nodes == 1 ? GV_NODES_ONE : GV_NODES_SEVERAL;
    }
    return GV_NODES_UNKNOWN;
}

enum gv_nodes gv_proof_environment(const char **who)
{
    *who = "";
    if (number("GV100_SINGLE_NODE") == 1) {
        *who = "GV100_SINGLE_NODE";
        return GV_NODES_ONE;
    }
    for (size_t i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++) {
        int all = number(launchers[i].all), here = number(launchers[i].here);
        if (!all || !here)
            continue;
        *who = launchers[i].here;
        return all == here ? GV_NODES_ONE : GV_NODES_SEVERAL;
    }
    enum gv_nodes nodes = slurm(who);
    if (nodes != GV_NODES_UNKNOWN)
        return nodes;
    if (only_loopback()) {
        *who = "NCCL_SOCKET_IFNAME";
        return GV_NODES_ONE;
    }
    return GV_NODES_UNKNOWN;
}

int gv_proof_world_size(void)
{
    for (size_t i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++) {
        int all = number(launchers[i].all);
        if (all)
            return all;
    }
    return number("SLURM_NTASKS");
}
