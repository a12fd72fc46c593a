/* NCCL_GRAPH_FILE, asked once for each graph. What it does to the rings is not evaluated here; that
 * it breaks communicators over other GPUs than it lists is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testbench/host/engine.h"

static bool in_comm(const struct gvh_comm *comm, int gpu)
{
    for (int r = 0; r < comm->boot.nlocal; r++)
        if (comm->devices[r] == gpu)
            return true;
    return false;
}

/* Devices are hexadecimal from 2.22.3 on ("0xa"), plain numbers before. */
static int check_text(struct gvh_comm *comm, const char *text)
{
    bool listed[GV_NCCL_MAX_GPUS] = {false};
    for (const char *at = text; (at = strstr(at, "<gpu dev=\""));) {
        at += strlen("<gpu dev=\"");
        long gpu = strtol(at, NULL, 0);
        if (gpu < 0 || gpu >= GV_NCCL_MAX_GPUS || !in_comm(comm, (int)gpu))
            return gvh_fail(comm, GVH_SYSTEM_ERROR, "XML Import Channel : dev %ld not found.", gpu);
        listed[gpu] = true;
    }
    for (int r = 0; r < comm->boot.nlocal; r++)
        if (!listed[comm->devices[r]])
            return gvh_fail(comm, GVH_INTERNAL_ERROR, "Error : ring 0 does not contain rank %d", r);
    return GVH_SUCCESS;
}

static int use_file(struct gvh_comm *comm, const char *path)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = fopen(path, "r");
    if (!file)
        return gvh_fail(comm, GVH_SYSTEM_ERROR, "Could not open XML graph file %s : %m", path);
    ssize_t got = getdelim(&text, &size, 0, file);
    fclose(file);
    int rc = got > 0 ? check_text(comm, text) : GVH_SUCCESS;
    free(text);
    return rc;
}

int gvh_graph_files(struct gvh_comm *comm)
{
    /* Ring and tree; the NVLS graph only where the GPUs have it. */
    int graphs = comm->eval->min_sm >= 90 ? 3 : 2;
    int rc = GVH_SUCCESS;
    for (int i = 0; !rc && i < graphs; i++) {
        const char *path = gvh_getenv("NCCL_GRAPH_FILE");
        if (path && i == 0) {
            GVH_INFO("NCCL_GRAPH_FILE set by environment to %s", path);
            rc = use_file(comm, path);
        }
    }
    return rc;
}
