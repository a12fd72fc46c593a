/* What NCCL and the plugin said of a communicator, from the workers' log files. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/gv_str.h"
#include "profiler/collective/crew.h"
#include "profiler/log/gv_nccl_log.h"

/* What a member wrote since the last look. */
static void read_member(struct gv_crew *crew, int i, struct gv_str *text)
{
    char path[PATH_MAX + 32], part[4096];
    size_t n;
    snprintf(path, sizeof(path), "%s/nccl-%d", crew->dir, i);
    FILE *f = fopen(path, "re");
    if (!f)
        return;
    fseek(f, crew->member[i].log_at, SEEK_SET);
    while ((n = fread(part, 1, sizeof(part), f)) > 0)
        gv_str_add_n(text, part, n);
    crew->member[i].log_at = ftell(f);
    fclose(f);
}

static const char *via(const struct gv_nlog_comm *comm, int from, int to)
{
    for (int i = 0; i < comm->nedges; i++)
        if (comm->edges[i].from == from && comm->edges[i].to == to)
            return comm->edges[i].via;
    return "";
}

static void
to_gpus(const struct gv_crew *crew, const struct gv_nlog_comm *comm, struct gv_wiring *out)
{
    const struct gv_nlog_ring *ring = comm->nrings ? &comm->rings[0] : NULL;
    out->channels = comm->channels > 0 ? comm->channels : 0;
    if (!ring || ring->n != crew->nranks)
        return;
    for (int i = 0; i < ring->n; i++) {
        int from = ring->order[i], to = ring->order[(i + 1) % ring->n];
        if (from < 0 || to < 0 || from >= crew->nranks || to >= crew->nranks)
            return;
        out->ring[i] = out->edge[i].from = crew->gpu[from];
        out->edge[i].to = crew->gpu[to];
        snprintf(
            out->edge[i].transport, sizeof(out->edge[i].transport), "%.31s", via(comm, from, to));
    }
    out->nring = ring->n;
}

/* All ranks decide alike, so the last line stands for all. */
static void read_decision(struct gv_crew *crew, struct gv_wiring *out)
{
    char path[PATH_MAX + 32], line[4096];
    snprintf(path, sizeof(path), "%s/decisions", crew->dir);
    FILE *f = fopen(path, "re");
    if (!f)
        return;
    fseek(f, crew->decisions_at, SEEK_SET);
    while (fgets(line, sizeof(line), f)) {
        json_t *value = json_loads(line, 0, NULL);
        const char *transport = NULL, *reason = NULL;
        if (value &&
            !json_unpack(value, "{s:s, s:s}", "transport", &transport, "reason", &reason)) {
            snprintf(out->decided, sizeof(out->decided), "%s", reason);
            snprintf(out->plugin_transport, sizeof(out->plugin_transport), "%.15s", transport);
        }
        json_decref(value);
    }
    crew->decisions_at = ftell(f);
    fclose(f);
}

void gv_crew_read_logs(struct gv_crew *crew, struct gv_wiring *wiring)
{
    struct gv_str text = {0};
    memset(wiring, 0, sizeof(*wiring));
    int members = crew->options->threads ? 1 : crew->nranks;
    for (int i = 0; i < members; i++)
        read_member(crew, i, &text);
    struct gv_nlog *log =
        text.data && !text.failed ? gv_nlog_parse(text.data, text.len, "NCCL's log", NULL) : NULL;
    for (int i = 0; log && i < log->ncomms; i++)
        if (log->comms[i].nranks == crew->nranks)
            to_gpus(crew, &log->comms[i], wiring);
    gv_nlog_free(log);
    gv_str_free(&text);
    read_decision(crew, wiring);
}
