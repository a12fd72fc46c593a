/* Which path is in use, and how it changes: from peer to host, once. */
#include <stdio.h>
#include <string.h>

#include "handoff/handoff.h"

static const char *const names[GV_HANDOFF_METHODS] = {
    "none", "host, mapped", "host, staged", "peer copy", "peer read"};

const char *gv_handoff_method_name(enum gv_handoff_method method)
{
    return (unsigned)method < GV_HANDOFF_METHODS ? names[method] : "?";
}

void gv_handoff_say(struct gv_handoff *h, const char *line)
{
    if (h->logged)
        return;
    h->logged = true;
    if (h->log)
        h->log(h->log_data, line);
    else
        fprintf(stderr, "%s\n", line);
}

static int try_host(struct gv_handoff *h, enum gv_handoff_method method, gv_cu_result *rc)
{
    h->method = method;
    *rc = gv_buffers_make(h);
    return *rc ? -1 : 0;
}

/* Little memory can be pinned: the other way needs less of it. */
static void settle(struct gv_handoff *h, enum gv_handoff_method wanted, gv_cu_result rc)
{
    char line[GV_ERROR_TEXT + 200];
    const char *name = "?";
    size_t used = strlen(h->reason);
    h->gpus.cuda.error_name(rc, &name);
    snprintf(
        h->reason + used, sizeof(h->reason) - used, "%s%s is not to be had for %zu bytes (%s)",
        used ? "; " : "", names[wanted], h->bytes, name);
    if (h->fell_back)
        return; /* its own line says this as well */
    snprintf(
        line, sizeof(line), "gv-handoff: %s is used: %s. Raise the limit on pinned memory.",
        names[h->method], h->reason);
    gv_handoff_say(h, line);
}

int gv_host_set_up(struct gv_handoff *h, enum gv_handoff_method wanted, struct gv_error *err)
{
    enum gv_handoff_method other =
        wanted == GV_HANDOFF_HOST_MAPPED ? GV_HANDOFF_HOST_STAGED : GV_HANDOFF_HOST_MAPPED;
    gv_cu_result first, second;
    if (!try_host(h, wanted, &first))
        return 0;
    if (!gv_cuda_is_fatal(first) && !try_host(h, other, &second)) {
        settle(h, wanted, first);
        return 0;
    }
    return gv_cuda_fail(
        &h->gpus.cuda, first, err,
        "no pinned host memory for the hand-off; free some, or raise the limit (ulimit -l)");
}

/* Memory may not be had in the middle of a capture otherwise. */
static int exchange(struct gv_handoff *h, int mode)
{
    h->graph.capture_mode(&mode);
    return mode;
}

int gv_lost(struct gv_handoff *h, const char *why)
{
    char line[GV_ERROR_TEXT + 200];
    h->failed = true;
    snprintf(h->reason, sizeof(h->reason), "%s", why);
    snprintf(
        line, sizeof(line),
        "gv-handoff: GPU %d to %d: %s; no path is left in this process. See dmesg for Xid, and "
        "start anew.",
        h->gpus.device[0].index, h->gpus.device[1].index, why);
    h->logged = false; /* it is another matter than an earlier fallback */
    gv_handoff_say(h, line);
    return GV_HANDOFF_FAILED;
}

int gv_fall_back(struct gv_handoff *h, const char *why)
{
    char line[GV_ERROR_TEXT + 200], kept[GV_ERROR_TEXT];
    struct gv_error err = {0};
    snprintf(kept, sizeof(kept), "%s", why);
    int mode = exchange(h, GV_CU_CAPTURE_RELAXED);
    gv_buffers_leave(h);
    h->fell_back = true;
    h->generation++;
    snprintf(h->reason, sizeof(h->reason), "%s", kept);
    int rc = gv_host_set_up(h, h->host_method, &err);
    exchange(h, mode);
    if (rc)
        return gv_lost(h, err.text);
    snprintf(
        line, sizeof(line), "gv-handoff: GPU %d to %d goes through host memory (%s): %s.",
        h->gpus.device[0].index, h->gpus.device[1].index, names[h->method], h->reason);
    gv_handoff_say(h, line);
    return 0;
}
