/* NCCL logs: ranks and rings are sound, and a log compared with itself shows no change. */
#include "profiler/log/gv_nccl_log.h"
#include "tests/fuzz/fuzz.h"

static void check_ring(const struct gv_nlog_comm *c, const struct gv_nlog_ring *ring)
{
    static unsigned char seen[GV_NLOG_MAX_RANKS];
    memset(seen, 0, sizeof(seen));
    GV_MUST(ring->n >= 2 && ring->n == c->nranks);
    for (int i = 0; i < ring->n; i++) {
        GV_MUST(ring->order[i] >= 0 && ring->order[i] < GV_NLOG_MAX_RANKS && !seen[ring->order[i]]);
        seen[ring->order[i]] = 1;
    }
}

static void check_comm(const struct gv_nlog_comm *c, unsigned lines)
{
    int by[GV_NLOG_TRANSPORTS], sum = 0;
    for (int i = 0; i < c->nrings; i++)
        check_ring(c, &c->rings[i]);
    for (int i = 0; i < c->nedges; i++) {
        GV_MUST(c->edges[i].from != c->edges[i].to && c->edges[i].transport < GV_NLOG_TRANSPORTS);
        GV_MUST(c->edges[i].line >= 1 && c->edges[i].line <= lines && c->edges[i].via[0]);
    }
    int n = gv_nlog_count(c, by);
    for (int t = 0; t < GV_NLOG_TRANSPORTS; t++)
        sum += by[t];
    GV_MUST(sum == n && n <= c->nedges);
}

static void check_self(const struct gv_nlog *log)
{
    static struct gv_nlog_change changes[64];
    int n = gv_nlog_compare(log, log, changes, 64);
    for (int i = 0; i < n; i++)
        for (int b = 0; b < GV_NLOG_TRANSPORTS; b++)
            for (int a = 0; a < GV_NLOG_TRANSPORTS; a++)
                GV_MUST(a == b || !changes[i].moved[b][a]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gv_error err = {0};
    struct gv_nlog *log = gv_nlog_parse((const char *)data, size, "file.log", &err);
    if (!log) {
        GV_MUST(err.text[0]);
        return 0;
    }
    GV_MUST(log->nccl_lines > 0 && log->cut_line <= log->lines);
    for (int i = 0; i < log->ncomms; i++)
        check_comm(&log->comms[i], log->lines);
    check_self(log);
    gv_nlog_free(log);
    return 0;
}
