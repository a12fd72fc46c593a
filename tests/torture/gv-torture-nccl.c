/* A program that calls NCCL wrongly: communicators it does not have, ranks that cannot be,
 * arguments that are missing. Prints what came back, and at the end what lies in the registry's
 * folder: a plugin that stands before these calls must change neither. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "testbench/host/gv_host_nccl.h"

static void print(const char *what, int result)
{
    printf("%s: %d\n", what, result);
}

static const ncclConfig_t sound = {.size = sizeof(sound), .magic = GV_HOST_CONFIG_MAGIC};

static void no_parent(void)
{
    ncclComm_t child = NULL;
    int out = 0;
    print("split of nothing", ncclCommSplit(NULL, 0, 0, &child, NULL));
    print("split of nothing, no color", ncclCommSplit(NULL, -1, 0, &child, NULL));
    print("split of nothing, no result", ncclCommSplit(NULL, 0, 0, NULL, NULL));
    print("shrink of nothing", ncclCommShrink(NULL, &out, 1, &child, NULL, 0));
    print("shrink of nothing by nobody", ncclCommShrink(NULL, NULL, 0, &child, NULL, 0));
    print("shrink of nothing, no result", ncclCommShrink(NULL, &out, -1, NULL, NULL, 0));
    print("destroy nothing", ncclCommDestroy(NULL));
    print("abort nothing", ncclCommAbort(NULL));
}

static void bad_ranks(void)
{
    ncclComm_t comm = NULL;
    ncclUniqueId id = {{1}};
    ncclConfig_t config = sound;
    print("rank beyond the last", ncclCommInitRank(&comm, 2, id, 5));
    print("rank below 0", ncclCommInitRank(&comm, 2, id, -1));
    print("no ranks", ncclCommInitRank(&comm, 0, id, 0));
    print("ranks below 0", ncclCommInitRankConfig(&comm, -3, id, 0, &config));
    print("no ids", ncclCommInitRankScalable(&comm, 2, 0, 0, NULL, &config));
    print("ids below 0", ncclCommInitRankScalable(&comm, 2, 0, -1, &id, &config));
    config.magic = 0;
    print("a config that is none", ncclCommInitRankConfig(&comm, 2, id, 0, &config));
}

static void bad_lists(void)
{
    static ncclComm_t comms[100];
    print("all, nowhere to put them", ncclCommInitAll(NULL, 2, NULL));
    print("all of nothing", ncclCommInitAll(comms, 0, NULL));
    print("all below 0", ncclCommInitAll(comms, -1, NULL));
    print("all of too many", ncclCommInitAll(comms, 100, NULL));
}

/* Of a communicator that there is. */
static void bad_children(void)
{
    ncclComm_t parent = NULL, child = NULL;
    const int device = 0;
    print("a communicator of one", ncclCommInitAll(&parent, 1, &device));
    print("shrink by nobody", ncclCommShrink(parent, NULL, 0, &child, NULL, 0));
    print("shrink by nobody, no result", ncclCommShrink(parent, NULL, 0, NULL, NULL, 0));
    print("no color", ncclCommSplit(parent, -1, 0, &child, NULL));
    print("its end", ncclCommDestroy(parent));
}

/* Ranks that were refused have left. */
static int left_behind(void)
{
    const char *folder = getenv("GV100_SHM_DIR");
    DIR *dir = folder ? opendir(folder) : NULL;
    int n = 0;
    for (const struct dirent *entry; dir && (entry = readdir(dir));)
        n += entry->d_name[0] != '.';
    if (dir)
        closedir(dir);
    return n;
}

int main(void)
{
    no_parent();
    bad_ranks();
    bad_lists();
    bad_children();
    print("left behind", left_behind());
    return 0;
}
