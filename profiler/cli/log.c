/* What a log means: figures from a profile, and sentences. */
#include "profiler/cli/log.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

int gv_log_gpu(const struct gv_profile *profile, const struct gv_nlog_rank *rank)
{
    bool addresses = false;
    for (int i = 0; profile && i < profile->ngpus; i++) {
        addresses |= *profile->gpus[i].bus_id != 0;
        if (*rank->bus_id && !strcmp(profile->gpus[i].bus_id, rank->bus_id))
            return i;
    }
    if (!profile || (addresses && *rank->bus_id))
        return -1;
    return rank->nvml_dev < profile->ngpus ? rank->nvml_dev : -1;
}

double gv_log_edge_gbs(
    const struct gv_profile *profile, const struct gv_nlog_comm *comm,
    const struct gv_nlog_edge *edge)
{
    if (edge->from >= comm->slots || edge->to >= comm->slots)
        return NAN;
    int from = gv_log_gpu(profile, &comm->ranks[edge->from]);
    int to = gv_log_gpu(profile, &comm->ranks[edge->to]);
    if (from < 0 || to < 0 || from == to)
        return NAN;
    const struct gv_profile_path *path = gv_profile_path_of(profile, from, to);
    if (!path || edge->transport > GV_NLOG_SHM)
        return NAN;
    const struct gv_figure *f =
        edge->transport == GV_NLOG_P2P ? &path->write_gbs : &path->host_path_gbs;
    return f->count ? f->median : NAN;
}

const struct gv_nlog_edge *
gv_log_slowest(const struct gv_profile *profile, const struct gv_nlog_comm *comm, double *gbs)
{
    const struct gv_nlog_edge *slowest = NULL;
    *gbs = NAN;
    for (int i = 0; profile && i < comm->nedges; i++) {
        double here = gv_log_edge_gbs(profile, comm, &comm->edges[i]);
        bool host = comm->edges[i].transport == GV_NLOG_SHM;
        if ((comm->nrings && !comm->edges[i].ring) || (isnan(here) && !host))
            continue;
        if (slowest && (isnan(*gbs) || here >= *gbs)) /* a way through the host without a figure */
            continue;
        slowest = &comm->edges[i];
        *gbs = here;
    }
    return slowest;
}

const char *gv_log_transport(const struct gv_nlog_comm *comm)
{
    int by[GV_NLOG_TRANSPORTS], n = gv_nlog_count(comm, by);
    for (int t = 0; t < GV_NLOG_TRANSPORTS; t++)
        if (n && by[t] == n)
            return gv_nlog_transport_name(t);
    return n ? "mixed" : "unknown";
}

const char *gv_log_moved(const struct gv_nlog_change *c, char out[200])
{
    size_t n = 0;
    *out = 0;
    for (int b = 0; b < GV_NLOG_TRANSPORTS; b++)
        for (int a = 0; a < GV_NLOG_TRANSPORTS; a++) {
            if (a == b || !c->moved[b][a] || n >= 190)
                continue;
            n += (size_t)snprintf(
                out + n, 200 - n, "%s%d of %d edges went from %s to %s", n ? ", " : "",
                c->moved[b][a], c->edges, gv_nlog_transport_name(b), gv_nlog_transport_name(a));
        }
    return out;
}

const char *gv_log_tuner(const struct gv_nlog *log, char out[400])
{
    switch (log->tuner) {
    case GV_NLOG_TUNER_PLUGIN:
        snprintf(out, 400, "%s was in use", log->tuner_name);
        break;
    case GV_NLOG_TUNER_INTERNAL:
        snprintf(
            out, 400,
            "no plugin was in use, NCCL's own tuner was; `gv100 env` prints the variable to set");
        break;
    default:
        snprintf(
            out, 400, "%s",
            log->ours.n ? "no line says that one was loaded, but gv100 speaks in this log"
                        : "no line tells whether one was in use");
    }
    return out;
}
