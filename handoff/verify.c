/* A pattern through the path in use. */
#include <string.h>
#include <time.h>

#include "handoff/handoff.h"
#include "kernels/gv_kernel_args.h"

#define SEED 0x51ed270bu
#define DEADLINE_S 20
/* Units of 16 bytes that the control looks at: each is found wrong, and counted over the host link.
 */
#define CONTROL 4096

struct verification {
    struct gv_handoff *h;
    gv_cu_ptr from;
    void *result; /* mapped: wrong units, lowest wrong one; the same of the control */
    gv_cu_ptr result_at;
};

static gv_cu_result make(struct verification *v)
{
    const struct gv_cuda *cuda = &v->h->gpus.cuda;
    gv_handoff_on(v->h, 0);
    gv_cu_result rc = cuda->mem_alloc(&v->from, v->h->bytes);
    if (!rc)
        rc = cuda->host_alloc(&v->result, 4096, GV_CU_HOST_PORTABLE | GV_CU_HOST_DEVICEMAP);
    return rc ? rc : cuda->host_pointer(&v->result_at, v->result, 0);
}

static void release(struct verification *v)
{
    const struct gv_cuda *cuda = &v->h->gpus.cuda;
    gv_handoff_on(v->h, 0);
    if (v->from)
        cuda->mem_free(v->from);
    if (v->result)
        cuda->host_free(v->result);
}

static gv_cu_result launch(
    struct verification *v, int side, const char *kernel, gv_cu_ptr buffer, uint64_t n16,
    unsigned seed, gv_cu_ptr result)
{
    struct gv_pattern_args args = {
        .buffer = buffer,
        .n16 = n16,
        .result = result,
        .seed = seed,
        .ranks = 1,
    };
    void *params[] = {&args};
    const struct gv_device *d = &v->h->gpus.device[side];
    const struct gv_cuda *cuda = &v->h->gpus.cuda;
    gv_cu_function function;
    gv_handoff_on(v->h, side);
    gv_cu_result rc = cuda->module_function(&function, d->module, kernel);
    unsigned grid = (unsigned)(args.n16 / 256 < 1024 ? args.n16 / 256 + 1 : 1024);
    return rc ? rc : cuda->launch(function, grid, 1, 1, 256, 1, 1, 0, d->stream[0], params, NULL);
}

/* The consumer's stream ends last; the producer's is asked first, so that its errors are seen. */
static gv_cu_result finish(struct gv_handoff *h)
{
    struct timespec pause = {0, 50000}, begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int side = 0; side < 2;) {
        gv_handoff_on(h, side);
        gv_cu_result rc = h->gpus.cuda.stream_query(h->gpus.device[side].stream[0]);
        if (rc && rc != GV_CU_NOT_READY)
            return rc;
        side += !rc;
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (rc && now.tv_sec - begin.tv_sec > DEADLINE_S)
            return rc;
        if (rc)
            nanosleep(&pause, NULL);
    }
    return 0;
}

static int through(struct verification *v, uint64_t *wrong)
{
    struct gv_handoff *h = v->h;
    uint64_t *found = v->result;
    void *at;
    uint64_t n16 = h->bytes / 16;
    for (int i = 0; i < 4; i++)
        found[i] = i % 2 ? ~0ull : 0;
    gv_cu_result rc = launch(v, 0, "gv_fill", v->from, n16, SEED, 0);
    if (rc)
        return rc;
    int sent = gv_handoff_send(
        h, (void *)(uintptr_t)v->from, (struct CUstream_st *)h->gpus.device[0].stream[0],
        (struct CUstream_st *)h->gpus.device[1].stream[0], &at);
    if (sent)
        return -1;
    /* The second one looks for another pattern: had it found that, nothing would be compared. */
    rc = launch(v, 1, "gv_check", (gv_cu_ptr)(uintptr_t)at, n16, SEED, v->result_at);
    n16 = n16 < CONTROL ? n16 : CONTROL;
    rc =
        rc ? rc : launch(v, 1, "gv_check", (gv_cu_ptr)(uintptr_t)at, n16, ~SEED, v->result_at + 16);
    gv_handoff_done(h, (struct CUstream_st *)h->gpus.device[1].stream[0]);
    rc = rc ? rc : finish(h);
    *wrong = found[0];
    return rc || found[2] ? rc : -1;
}

int gv_handoff_verify(struct gv_handoff *h, uint64_t *wrong)
{
    struct verification v = {.h = h};
    gv_cu_ctx before = NULL;
    if (!h || !wrong)
        return GV_HANDOFF_INVALID;
    if (h->failed)
        return GV_HANDOFF_FAILED;
    h->graph.ctx_get(&before);
    gv_cu_result rc = make(&v);
    int result = rc ? rc : through(&v, wrong);
    if (result != GV_CU_NOT_READY) /* what runs on is left alone */
        release(&v);
    h->gpus.cuda.ctx_set(before);
    return result ? GV_HANDOFF_FAILED : 0;
}
