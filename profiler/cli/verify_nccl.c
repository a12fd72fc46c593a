#include "profiler/cli/verify_nccl.h"

#include <stdio.h>
#include <string.h>

#include "profiler/cli/compare_live.h"

#define BYTES ((uint64_t)16 << 20)
#define TIMEOUT_S 30

enum { TEST, CONTROL };

const char *gv_nccl_verdict_name(enum gv_nccl_verdict verdict)
{
    static const char *const names[GV_NCCL_VERDICTS] = {"absent", "right", "wrong", "inconclusive"};
    return (unsigned)verdict < GV_NCCL_VERDICTS ? names[verdict] : "?";
}

static bool good(const struct gv_calibration *cal, int a, int b)
{
    return a != b && cal->pair[a][b].p2p == GV_P2P_VERIFIED &&
           cal->pair[b][a].p2p == GV_P2P_VERIFIED;
}

static gv_gpuset gpus_with_p2p(const struct gv_calibration *cal)
{
    gv_gpuset set = 0;
    for (int a = 0; a < cal->n; a++)
        for (int b = 0; b < cal->n; b++)
            if (good(cal, a, b))
                set |= GV_GPU_BIT(a);
    return set;
}

static void add_pair(char *out, size_t size, int a, int b)
{
    size_t used = strlen(out);
    snprintf(out + used, size - used, " %d-%d", a, b);
}

/* A pair that NCCL would put on P2P by itself though it is not good, as "2-3"; NULL: none. */
static const char *spoiled(const struct gv_calibration *cal, gv_gpuset gpus, char *out, size_t size)
{
    for (int a = 0; a < cal->n; a++)
        for (int b = a + 1; b < cal->n; b++) {
            bool both = gv_gpuset_has(gpus, a) && gv_gpuset_has(gpus, b);
            if (!both || !gv_shape_default_p2p(cal, a, b) || good(cal, a, b) ||
                cal->pair[a][b].p2p == GV_P2P_REFUSED)
                continue;
            snprintf(out, size, "%d-%d", a, b);
            return out;
        }
    return NULL;
}

/* Both plans as GV100_FORCE has them. */
static void plans(const struct gv_calibration *cal, gv_gpuset gpus, struct gv_steer out[2])
{
    int ring[GV_MAX_GPUS], n = gv_shape_ring(cal, gpus, ring);
    struct gv_steer *test = &out[TEST], *control = &out[CONTROL];
    bool lent = false;
    snprintf(test->name, sizeof(test->name), "P2P");
    snprintf(control->name, sizeof(control->name), "host memory");
    snprintf(test->force, sizeof(test->force), "lend");
    snprintf(control->force, sizeof(control->force), "separate");
    for (int i = 0; i < n; i++) {
        int a = ring[i], b = ring[(i + 1) % n];
        if (i < n - 1 || n > 2)
            add_pair(control->force, sizeof(control->force), a, b);
        if (!good(cal, a, b) || gv_shape_default_p2p(cal, a, b))
            continue;
        lent = true;
        if (n > 2)
            add_pair(test->force, sizeof(test->force), a, b);
        else
            snprintf(test->force, sizeof(test->force), "bridge");
    }
    if (!lent)
        snprintf(test->force, sizeof(test->force), "default");
}

/* "" where the samples are right. */
static const char *fault(const struct gv_compared *c, const char *name, char *out, size_t size)
{
    out[0] = 0;
    for (int s = 0; s < c->run.nsteers; s++) {
        const struct gv_cell *cell = &c->run.cell[s * c->run.ncases];
        if (strcmp(c->run.steer[s].name, name))
            continue;
        if (cell->error[0])
            snprintf(out, size, "%.150s", cell->error);
        else if (cell->wrong || !cell->count)
            snprintf(out, size, "%llu elements are wrong", (unsigned long long)cell->wrong);
        return out;
    }
    snprintf(out, size, "it was not run");
    return out;
}

/* The pairs that NCCL used over P2P under the test, by its own log; all of its ring where it says
 * nothing. */
static void distrust(struct gv_calibration *cal, const struct gv_compared *c, const char *why)
{
    for (int s = 0; s < c->run.nsteers; s++) {
        const struct gv_wiring *w = &c->run.wiring[s];
        if (strcmp(c->run.steer[s].name, "P2P"))
            continue;
        for (int i = 0; i < w->nring; i++) {
            int a = w->edge[i].from, b = w->edge[i].to;
            if (!good(cal, a, b) || gv_transport_is_shm(w->edge[i].transport))
                continue;
            cal->pair[a][b].p2p = cal->pair[b][a].p2p = GV_P2P_UNVERIFIED;
            snprintf(cal->pair[a][b].note, sizeof(cal->pair[a][b].note), "NCCL: %.80s", why);
            memcpy(cal->pair[b][a].note, cal->pair[a][b].note, sizeof(cal->pair[b][a].note));
        }
    }
}

static void
judge(struct gv_calibration *cal, const struct gv_compared *c, struct gv_nccl_check *out)
{
    char test[200], control[200];
    fault(c, "P2P", test, sizeof(test));
    fault(c, "host memory", control, sizeof(control));
    out->version = c->run.nccl_version;
    snprintf(out->nccl, sizeof(out->nccl), "%s", c->run.nccl_path);
    out->verdict = control[0] ? GV_NCCL_INCONCLUSIVE : test[0] ? GV_NCCL_WRONG : GV_NCCL_RIGHT;
    if (out->verdict == GV_NCCL_RIGHT)
        snprintf(
            out->text, sizeof(out->text), "AllReduce is right over P2P and through host memory");
    else if (out->verdict == GV_NCCL_WRONG)
        snprintf(out->text, sizeof(out->text), "AllReduce fails over P2P: %s", test);
    else
        snprintf(
            out->text, sizeof(out->text), "AllReduce fails through host memory as well: %s",
            control);
    if (out->verdict == GV_NCCL_WRONG) {
        distrust(cal, c, test);
        gv_warn(cal, "NCCL: %s", out->text);
    } else if (out->verdict == GV_NCCL_INCONCLUSIVE)
        gv_warn(cal, "NCCL: %s; this says nothing of P2P", out->text);
}

void gv_verify_nccl(struct gv_calibration *cal, const char *machine, struct gv_nccl_check *out)
{
    struct gv_error err = {0};
    static struct gv_compared compared; /* large */
    struct gv_compare_input in = {
        .machine = machine,
        .gpus = gpus_with_p2p(cal),
        .nvariants = 2,
        .ops = GV_OP_BIT(GV_OP_ALL_REDUCE),
        .type = GV_TYPE_INT32,
        .redop = GV_REDOP_SUM,
        .min_bytes = BYTES,
        .max_bytes = BYTES,
        .factor = 2,
        .repeats = 1,
        .iterations = 2,
        .timeout_s = TIMEOUT_S,
    };
    memset(out, 0, sizeof(*out));
    if (!in.gpus) {
        snprintf(out->text, sizeof(out->text), "no pair to run NCCL over");
        return;
    }
    char pair[16];
    if (spoiled(cal, in.gpus, pair, sizeof(pair))) {
        snprintf(out->text, sizeof(out->text), "not run: it would use the pair %s", pair);
        return;
    }
    plans(cal, in.gpus, in.variants);
    if (gv_compare_live(&in, &compared, &err)) {
        char why[GV_ERROR_TEXT + GV_ERROR_FILE + 32];
        snprintf(
            out->text, sizeof(out->text), "not run: %.380s",
            gv_error_format(&err, why, sizeof(why)));
        return;
    }
    judge(cal, &compared, out);
    gv_compared_finish(&compared);
}
