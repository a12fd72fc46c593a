#include "profiler/probe/gv_pair.h"

#include <stdio.h>
#include <string.h>

#define BLOCKS 8
#define ROUNDS 4
#define SEED 0x1234567u
#define PAGE 4096

/* One check's memory: the buffer with the flags behind it, and the words of the host. */
struct check {
    struct gv_meter *m;
    int from, to;
    gv_cu_ptr buffer, flags; /* in the owner's memory, or in host memory for the control */
    void *host;              /* ack, then both results */
    gv_cu_ptr host_at;
    size_t n16;
    bool stuck; /* the kernels run on: nothing more can be done with this process's contexts */
};

static int fail(struct check *c, gv_cu_result rc, struct gv_error *err, const char *what)
{
    char text[96];
    c->m->last = rc;
    snprintf(text, sizeof(text), "pair %d>%d: %s", c->from, c->to, what);
    return gv_cuda_fail(&c->m->gpus->cuda, rc, err, text);
}

const char *gv_pair_outcome_name(enum gv_pair_outcome outcome)
{
    static const char *const names[GV_PAIR_OUTCOMES] = {
        "verified", "refused", "corrupt", "hung", "inconclusive"};
    return (unsigned)outcome < GV_PAIR_OUTCOMES ? names[outcome] : "?";
}

gv_cu_result gv_peer_on(struct gv_gpus *gpus, int from, int to)
{
    if (from == to)
        return 0;
    gpus->cuda.ctx_set(gpus->device[from].ctx);
    gv_cu_result rc = gpus->cuda.peer_enable(gpus->device[to].ctx, 0);
    return rc == GV_CU_PEER_ACCESS_ALREADY_ENABLED ? 0 : rc;
}

void gv_peer_off(struct gv_gpus *gpus, int from, int to)
{
    if (from == to)
        return;
    gpus->cuda.ctx_set(gpus->device[from].ctx);
    gpus->cuda.peer_disable(gpus->device[to].ctx);
}

/* One half: 0 pushes, 1 owns. */
static int
half(struct check *c, int owner, double timeout_s, struct gv_work *work, struct gv_error *err)
{
    *work = (struct gv_work){
        .gpu = owner ? c->to : c->from,
        .kind = GV_WORK_KERNEL,
        .grid = BLOCKS,
        .block = 256,
        .repeat = 1,
        .args.pair =
            {.buffer = c->buffer,
             .flags = c->flags,
             .ack = c->host_at,
             .n16 = c->n16,
             .result = c->host_at + PAGE + (owner ? PAGE : 0),
             .timeout_ns = (gv_u64)(timeout_s * 1e9),
             .rounds = ROUNDS,
             .seed = SEED},
    };
    /* The same GPU twice (the control of one device) needs two streams. */
    work->stream = owner && c->from == c->to;
    return gv_device_function(
        c->m->gpus, work->gpu, owner ? "gv_owner" : "gv_push", &work->function, err);
}

static void read_results(const struct check *c, struct gv_pair_result *out, bool p2p)
{
    const gv_u64 *push = (const void *)((char *)c->host + PAGE);
    const gv_u64 *own = (const void *)((char *)c->host + 2 * PAGE);
    *out = (struct gv_pair_result){.wrong = own[0], .first_wrong = own[1]};
    if (own[0]) {
        out->outcome = GV_PAIR_CORRUPT;
        snprintf(
            out->text, sizeof(out->text), "%llu of %llu units wrong, from byte %llu on", own[0],
            (gv_u64)c->n16 * ROUNDS, own[1] * 16);
    } else if (own[2] || push[2]) {
        out->outcome = GV_PAIR_HUNG;
        snprintf(
            out->text, sizeof(out->text), "nothing arrived%s",
            p2p ? ": look at ACS and the IOMMU" : " through host memory");
    }
}

/* Runs both halves over the buffer of `c`. */
static int
run(struct check *c, double timeout_s, struct gv_pair_result *out, bool p2p, struct gv_error *err)
{
    struct gv_work works[2];
    struct gv_samples samples;
    struct gv_meter once = *c->m;
    memset(c->host, 0, 3 * PAGE);
    memset((char *)c->host + PAGE + 8, 0xff, 8);
    memset((char *)c->host + 2 * PAGE + 8, 0xff, 8);
    if (half(c, 0, timeout_s, &works[0], err) || half(c, 1, timeout_s, &works[1], err))
        return -1;
    works[1].clear = p2p ? c->flags : 0;
    works[1].clear_words = BLOCKS * 32;
    once.warmups = 0;
    once.min_samples = once.max_samples = 1;
    once.deadline_s = 10 * timeout_s;
    int rc = gv_meter_run(&once, works, 2, &samples, err);
    c->m->gate_value = once.gate_value;
    c->m->last = once.last;
    memcpy(c->m->begin, once.begin, sizeof(once.begin));
    memcpy(c->m->end, once.end, sizeof(once.end));
    if (rc && once.timed_out) {
        c->stuck = true;
        out->outcome = GV_PAIR_HUNG;
        snprintf(
            out->text, sizeof(out->text), "the kernels never ended: look at ACS and the IOMMU");
        return 0;
    }
    if (!rc)
        read_results(c, out, p2p);
    return rc;
}

/* The same over a buffer in host memory: what is wrong there is no matter of P2P. */
static int
control(struct check *c, double timeout_s, struct gv_pair_result *p2p, struct gv_error *err)
{
    const struct gv_cuda *cuda = &c->m->gpus->cuda;
    struct check host = *c;
    struct gv_pair_result result = {0};
    void *buffer = NULL;
    host.n16 = c->n16 < (1 << 18) ? c->n16 : 1 << 18;
    gv_cu_result rc =
        cuda->host_alloc(&buffer, host.n16 * 16 + PAGE, GV_CU_HOST_PORTABLE | GV_CU_HOST_DEVICEMAP);
    if (rc || (rc = cuda->host_pointer(&host.buffer, buffer, 0)))
        return fail(c, rc, err, "no host memory for the control");
    host.flags = host.buffer + host.n16 * 16;
    memset((char *)buffer + host.n16 * 16, 0, PAGE);
    int failed = run(&host, timeout_s, &result, false, err);
    cuda->host_free(buffer);
    if (failed || result.outcome == GV_PAIR_OK)
        return failed;
    p2p->outcome = GV_PAIR_INCONCLUSIVE;
    snprintf(p2p->text, sizeof(p2p->text), "host memory failed too: %.90s", result.text);
    return 0;
}

static int allocate(struct check *c, size_t bytes, struct gv_error *err)
{
    const struct gv_cuda *cuda = &c->m->gpus->cuda;
    gv_cu_result rc;
    cuda->ctx_set(c->m->gpus->device[c->to].ctx);
    while ((rc = cuda->mem_alloc(&c->buffer, bytes + PAGE)) == GV_CU_OUT_OF_MEMORY &&
           bytes > 1 << 20)
        bytes /= 2;
    if (rc)
        return fail(c, rc, err, "no memory");
    c->n16 = bytes / 16;
    c->flags = c->buffer + bytes;
    rc = cuda->host_alloc(&c->host, 3 * PAGE, GV_CU_HOST_PORTABLE | GV_CU_HOST_DEVICEMAP);
    if (!rc)
        rc = cuda->host_pointer(&c->host_at, c->host, 0);
    return rc ? fail(c, rc, err, "no host memory") : 0;
}

static void release(struct check *c)
{
    const struct gv_cuda *cuda = &c->m->gpus->cuda;
    cuda->ctx_set(c->m->gpus->device[c->to].ctx);
    if (c->host)
        cuda->host_free(c->host);
    if (c->buffer)
        cuda->mem_free(c->buffer);
}

static bool refused(struct check *c, struct gv_pair_result *out)
{
    struct gv_gpus *gpus = c->m->gpus;
    int can = 0;
    gv_cu_result rc =
        gpus->cuda.can_access_peer(&can, gpus->device[c->from].device, gpus->device[c->to].device);
    if (!rc && can)
        rc = gv_peer_on(gpus, c->from, c->to);
    if (!rc && can)
        return false;
    const char *name = "the driver says that P2P is not supported";
    if (rc)
        gpus->cuda.error_name(rc, &name);
    out->outcome = GV_PAIR_REFUSED;
    snprintf(out->text, sizeof(out->text), "%s", name);
    return true;
}

int gv_pair_check(
    struct gv_meter *m, int from, int to, size_t bytes, double timeout_s,
    struct gv_pair_result *out, struct gv_error *err)
{
    struct check c = {.m = m, .from = from, .to = to};
    *out = (struct gv_pair_result){0};
    if (from != to && refused(&c, out))
        return 0;
    int rc = allocate(&c, bytes, err);
    if (!rc)
        rc = run(&c, timeout_s, out, true, err);
    out->stuck = c.stuck;
    if (c.stuck)
        return 0;
    if (!rc && out->outcome != GV_PAIR_OK)
        rc = control(&c, timeout_s, out, err);
    release(&c);
    gv_peer_off(m->gpus, from, to);
    return rc;
}

int gv_pair_latency(
    struct gv_meter *m, int a, int b, unsigned rounds, struct gv_figure *out, struct gv_error *err)
{
    const struct gv_cuda *cuda = &m->gpus->cuda;
    struct check c = {.m = m, .from = a, .to = b};
    struct gv_samples samples;
    struct gv_work works[2] = {0};
    gv_cu_ptr word[2] = {0};
    int rc = 0, gpu[2] = {a, b};

    for (int i = 0; i < 2 && !rc; i++) {
        cuda->ctx_set(m->gpus->device[gpu[i]].ctx);
        rc = cuda->mem_alloc(&word[i], PAGE);
    }
    if (rc)
        rc = fail(&c, rc, err, "no memory");
    for (int i = 0; i < 2 && !rc; i++) {
        works[i] = (struct gv_work){
            .gpu = gpu[i],
            .kind = GV_WORK_KERNEL,
            .grid = 1,
            .block = 32,
            .repeat = 1,
            .clear = word[i],
            .clear_words = PAGE / 4,
            .args.pingpong =
                {.mine = word[i],
                 .theirs = word[!i],
                 .result = word[i] + 1024,
                 .timeout_ns = 5000000000ull,
                 .rounds = rounds,
                 .start = !i},
        };
        rc = gv_device_function(m->gpus, gpu[i], "gv_pingpong", &works[i].function, err);
    }
    if (!rc)
        rc = gv_meter_run(m, works, 2, &samples, err);
    if (!rc)
        *out = gv_meter_us(&samples, 2.0 * rounds);
    for (int i = 0; i < 2; i++)
        if (word[i])
            cuda->mem_free(word[i]);
    return rc;
}
