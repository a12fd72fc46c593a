/* The peer path, up to the point where it may be believed. */
#include <stdio.h>
#include <string.h>

#include "handoff/handoff.h"
#include "profiler/probe/gv_pair.h"

#define CHECK_BYTES ((size_t)16 << 20)
#define CHECK_TIMEOUT_S 2.0

static int
fail(struct gv_handoff *h, gv_cu_result rc, struct gv_error *err, const char *what, int from)
{
    char text[128];
    snprintf(
        text, sizeof(text), "%s (GPU %d to %d)", what, h->gpus.device[from].index,
        h->gpus.device[!from].index);
    return gv_cuda_fail(&h->gpus.cuda, rc, err, text);
}

static int can_access(struct gv_handoff *h, int from, struct gv_error *err)
{
    const struct gv_device *d = h->gpus.device;
    int can = 0;
    gv_cu_result rc = h->gpus.cuda.can_access_peer(&can, d[from].device, d[!from].device);
    if (rc)
        return fail(h, rc, err, "the driver cannot be asked for peer access", from);
    if (can)
        return 0;
    return gv_error_set(
        err, "the driver refuses peer access from GPU %d to GPU %d", d[from].index, d[!from].index);
}

static int enable(struct gv_handoff *h, int from, struct gv_error *err)
{
    gv_handoff_on(h, from);
    gv_cu_result rc = h->gpus.cuda.peer_enable(h->gpus.device[!from].ctx, 0);
    h->enabled[from] = !rc;
    if (!rc || rc == GV_CU_PEER_ACCESS_ALREADY_ENABLED)
        return 0;
    return fail(h, rc, err, "peer access cannot be enabled", from);
}

void gv_peer_undo(struct gv_handoff *h)
{
    for (int from = 0; from < 2; from++)
        if (h->enabled[from]) {
            gv_handoff_on(h, from);
            h->gpus.cuda.peer_disable(h->gpus.device[!from].ctx);
            h->enabled[from] = false;
        }
}

static gv_cu_result keep_enabled(gv_cu_ctx peer)
{
    (void)peer;
    return 0;
}

/* The check switches peer access off when it is over; what the caller's process had on stays on. */
static int check_data(struct gv_handoff *h, int from, struct gv_error *err)
{
    struct gv_meter meter;
    struct gv_pair_result result;
    const struct gv_device *d = h->gpus.device;
    gv_cu_result (*disable)(gv_cu_ctx) = h->gpus.cuda.peer_disable;
    h->gpus.cuda.peer_disable = keep_enabled;
    int rc = gv_meter_init(&meter, &h->gpus, err);
    size_t bytes = h->bytes < CHECK_BYTES ? h->bytes : CHECK_BYTES;
    if (!rc) {
        rc = gv_pair_check(&meter, from, !from, bytes, CHECK_TIMEOUT_S, &result, err);
        gv_meter_finish(&meter);
    }
    h->gpus.cuda.peer_disable = disable;
    if (rc || result.outcome == GV_PAIR_OK)
        return rc;
    return gv_error_set(
        err, "data check from GPU %d to GPU %d: %s (%s)", d[from].index, d[!from].index,
        gv_pair_outcome_name(result.outcome), result.text);
}

static int check_buffers(struct gv_handoff *h, struct gv_error *err)
{
    uint64_t wrong = 0;
    if (gv_handoff_verify(h, &wrong))
        return gv_error_set(err, "the data check could not be made: %.200s", h->reason);
    if (!wrong)
        return 0;
    return gv_error_set(
        err, "data check: %llu of %llu units of 16 bytes arrived wrong", (unsigned long long)wrong,
        (unsigned long long)h->bytes / 16);
}

int gv_peer_set_up(struct gv_handoff *h, struct gv_error *err)
{
    bool two = h->gpus.device[0].device != h->gpus.device[1].device;
    gv_cu_result rc;
    if (two && (can_access(h, 0, err) || can_access(h, 1, err) || enable(h, 0, err) ||
                enable(h, 1, err) || check_data(h, 0, err) || check_data(h, 1, err)))
        return -1;
    if ((rc = gv_buffers_make(h)))
        return fail(h, rc, err, "no memory for the peer path", 0);
    if (check_buffers(h, err)) {
        gv_buffers_free(h);
        return -1;
    }
    return 0;
}
