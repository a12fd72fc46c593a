/* gv-gpu-bench: the kernels against the driver's own copies, on the GPUs that are here. Prints one
 * table; ends with 1 where a result was wrong. With two paths as arguments these libraries stand in
 * for the driver and NVML. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/gv_kernels.h"
#include "kernels/gv_twin.h"
#include "profiler/probe/gv_geometry.h"
#include "profiler/probe/gv_pair.h"
#include "profiler/probe/gv_ring.h"

#define MIB ((size_t)1 << 20)

static struct gv_gpus gpus;
static struct gv_meter meter;
static int wrong;

static void die(const struct gv_error *err)
{
    printf("FAILED: %s\n", err->text);
    exit(3);
}

static void check(gv_cu_result rc, const char *what)
{
    struct gv_error err;
    if (!rc)
        return;
    gv_cuda_fail(&gpus.cuda, rc, &err, what);
    die(&err);
}

static gv_cu_ptr device_buffer(int gpu, size_t bytes)
{
    gv_cu_ptr at = 0;
    check(gpus.cuda.ctx_set(gpus.device[gpu].ctx), "context");
    check(gpus.cuda.mem_alloc(&at, bytes), "memory");
    return at;
}

static void device_free(int gpu, gv_cu_ptr at)
{
    gpus.cuda.ctx_set(gpus.device[gpu].ctx);
    gpus.cuda.mem_free(at);
}

static struct gv_figure run(struct gv_work *works, int n, int which)
{
    static struct gv_samples samples;
    struct gv_error err = {0};
    if (gv_meter_run(&meter, works, n, &samples, &err))
        die(&err);
    return gv_meter_gbs(&samples, works, which);
}

static void row(const char *what, struct gv_figure f, double against, const char *beside)
{
    printf("  %-44s %9.2f GB/s (%.2f to %.2f, %d)", what, f.median, f.min, f.max, f.count);
    if (against > 0)
        printf("  %.4f of %s", f.median / against, beside);
    puts("");
}

static struct gv_work copy_work(int gpu, gv_cu_ptr to, gv_cu_ptr from, size_t bytes, double moved)
{
    return (struct gv_work){
        .gpu = gpu,
        .kind = GV_WORK_COPY,
        .to = to,
        .from = from,
        .copy_bytes = bytes,
        .repeat = 4,
        .bytes = moved};
}

static void fill(int gpu, gv_cu_ptr at, size_t bytes, gv_u32 seed)
{
    struct gv_error err = {0};
    struct gv_work w = {
        .gpu = gpu,
        .kind = GV_WORK_KERNEL,
        .grid = 512,
        .block = 256,
        .repeat = 1,
        .args.pattern = {.buffer = at, .n16 = bytes / 16, .seed = seed}};
    if (gv_device_function(&gpus, gpu, "gv_fill", &w.function, &err))
        die(&err);
    run(&w, 1, 0);
}

/* The device's pattern against the twin's: what the virtual driver checks is what a GPU would. */
static void pattern_of(int gpu)
{
    const size_t bytes = 1 * MIB;
    gv_cu_ptr at = device_buffer(gpu, bytes);
    void *host = NULL;
    int differ = 0;
    check(gpus.cuda.host_alloc(&host, bytes, GV_CU_HOST_PORTABLE | GV_CU_HOST_DEVICEMAP), "host");
    fill(gpu, at, bytes, 99);
    check(gpus.cuda.copy_dtoh(host, at, bytes, gpus.device[gpu].stream[0]), "copy");
    check(gpus.cuda.stream_sync(gpus.device[gpu].stream[0]), "copy");
    size_t moved = getenv("GV_VIRTUAL_MACHINE") ? 64 << 10 : bytes; /* what the stand-in moves */
    for (size_t i = 0; i < moved / 16; i++)
        for (gv_u32 w = 0; w < 4; w++)
            differ += ((gv_u32 *)host)[4 * i + w] != gv_twin_pattern_word(i, w, 99);
    printf("  pattern: %d words differ from the twin's\n", differ);
    wrong += differ != 0;
    gpus.cuda.host_free(host);
    device_free(gpu, at);
}

/* Own copy and the driver's in turn, so that both see the same clocks. */
static void memory_of(int gpu, size_t bytes, FILE *trace)
{
    static const char *const kinds[] = {"copy", "read", "write", "triad"};
    static const double passes[] = {2, 1, 1, 3};
    struct gv_error err = {0};
    const struct gv_device *d = &gpus.device[gpu];
    double peak = 2e-3 * d->memory_mhz * d->bus_width_bits / 8;
    gv_cu_ptr at[3];
    printf(
        "GPU %d %s, %s, %d SMs, memory %d MHz x %d bits = %.0f GB/s\n", gpu, d->model, d->bus_id,
        d->multiprocessors, d->memory_mhz, d->bus_width_bits, peak);
    for (int i = 0; i < 3; i++) {
        at[i] = device_buffer(gpu, bytes);
        fill(gpu, at[i], bytes, (gv_u32)i);
    }
    for (int k = 0; k < 4; k++) {
        struct gv_geometry g;
        struct gv_memory_args args = {
            .dst = at[0], .src = at[1], .src2 = k == 3 ? at[2] : 0, .n16 = bytes / 16};
        struct gv_work own;
        double moved = passes[k] * (double)bytes;
        char what[64];
        if (trace)
            fprintf(trace, "GPU %d %s\n", gpu, kinds[k]);
        if (gv_geometry_find(&meter, gpu, kinds[k], &args, moved, &g, trace, &err) ||
            gv_geometry_work(&meter, gpu, 0, &g, &args, moved, &own, &err))
            die(&err);
        own.repeat = 4;
        snprintf(
            what, sizeof(what), "%s (%s, %u threads, %u a SM%s)", kinds[k], g.kernel, g.block,
            g.per_sm, g.chunked ? " in runs" : "");
        if (k) {
            row(what, run(&own, 1, 0), peak, "theoretical");
            continue;
        }
        struct gv_work theirs = copy_work(gpu, at[0], at[1], bytes, moved);
        double driver[6], ours[6];
        for (int r = 0; r < 6; r++) {
            ours[r] = run(&own, 1, 0).median;
            driver[r] = run(&theirs, 1, 0).median;
        }
        struct gv_figure f = gv_figure_of(driver, 6);
        row("driver's device-to-device copy", f, peak, "theoretical");
        row(what, gv_figure_of(ours, 6), f.median, "the driver's copy");
    }
    for (int i = 0; i < 3; i++)
        device_free(gpu, at[i]);
}

static void host_of(int gpu)
{
    const size_t bytes = 256 * MIB;
    struct gv_error err = {0};
    gv_cu_ptr at = device_buffer(gpu, bytes), host_at = 0;
    void *host = NULL;
    check(gpus.cuda.host_alloc(&host, bytes, GV_CU_HOST_PORTABLE | GV_CU_HOST_DEVICEMAP), "host");
    check(gpus.cuda.host_pointer(&host_at, host, 0), "host");
    for (int to_device = 0; to_device < 2; to_device++) {
        gv_cu_ptr to = to_device ? at : host_at, from = to_device ? host_at : at;
        struct gv_work theirs = copy_work(gpu, to, from, bytes, (double)bytes), own;
        struct gv_figure driver = run(&theirs, 1, 0), best = {0};
        struct gv_geometry found = {0};
        for (unsigned per_sm = 1; per_sm <= 8; per_sm *= 2)
            for (int u = 1; u <= 8; u *= 2) {
                struct gv_geometry g = {.block = 512, .per_sm = per_sm};
                struct gv_memory_args args = {.dst = to, .src = from, .n16 = bytes / 16};
                snprintf(g.kernel, sizeof(g.kernel), "gv_copy_u%dp", u);
                if (gv_geometry_work(&meter, gpu, 0, &g, &args, (double)bytes, &own, &err))
                    die(&err);
                struct gv_figure f = run(&own, 1, 0);
                if (f.median > best.median) {
                    best = f;
                    found = g;
                }
            }
        char what[64];
        row(to_device ? "driver, host to device" : "driver, device to host", driver, 0, "");
        snprintf(
            what, sizeof(what), "%s (%s, %u a SM)", to_device ? "read of host memory" : "write",
            found.kernel, found.per_sm);
        row(what, best, driver.median, "the driver's");
    }
    gpus.cuda.host_free(host);
    device_free(gpu, at);
}

/* `ranks` ranks in turn over the GPUs first .. first + n - 1. */
static void ring_of(int first, int n, int ranks, size_t bytes, bool shm)
{
    static struct gv_ring_setup setup;
    struct gv_ring ring = {.n = ranks, .bytes = bytes};
    struct gv_error err = {0};
    double values[10];
    bool throttled;
    for (int i = 0; i < ranks; i++) {
        ring.gpu[i] = first + i * n / ranks;
        ring.shm[i] = shm;
    }
    if (gv_ring_init(&meter, &ring, NULL, &setup, &err))
        die(&err);
    if (gv_ring_verify(&meter, &setup, &err)) {
        wrong++;
        printf("  WRONG: ring of %d ranks, %zu bytes: %s\n", ranks, bytes, err.text);
    } else {
        char what[64];
        for (int i = 0; i < 10; i++)
            if (gv_ring_sample(&meter, &setup, NULL, &values[i], &throttled, &err))
                die(&err);
        snprintf(
            what, sizeof(what), "ring of %d ranks, %zu KiB%s: right", ranks, bytes >> 10,
            shm ? ", host memory" : "");
        row(what, gv_figure_of(values, 10), 0, "");
    }
    gv_ring_finish(&meter, &setup, true);
}

static void check_of(int from, int to)
{
    struct gv_pair_result result;
    struct gv_error err = {0};
    if (gv_pair_check(&meter, from, to, 64 * MIB, 2, &result, &err))
        die(&err);
    printf("  check %d > %d: %s %s\n", from, to, gv_pair_outcome_name(result.outcome), result.text);
    wrong += result.outcome != GV_PAIR_OK;
}

static void one_direction(int a, int b, gv_cu_ptr at_a, gv_cu_ptr at_b, size_t bytes, bool write)
{
    struct gv_error err = {0};
    struct gv_memory_args args = {
        .dst = write ? at_b : at_a, .src = write ? at_a : at_b, .n16 = bytes / 16};
    struct gv_work theirs = copy_work(a, args.dst, args.src, bytes, (double)bytes), own;
    struct gv_figure driver = run(&theirs, 1, 0), best = {0};
    char what[64] = "";
    for (unsigned per_sm = 1; per_sm <= 16; per_sm *= 2)
        for (int u = 1; u <= 16; u *= 2) {
            struct gv_geometry g = {.block = 512, .per_sm = per_sm};
            snprintf(g.kernel, sizeof(g.kernel), "gv_copy_u%dp", u);
            if (gv_geometry_work(&meter, a, 0, &g, &args, (double)bytes, &own, &err))
                die(&err);
            struct gv_figure f = run(&own, 1, 0);
            if (f.median > best.median) {
                best = f;
                snprintf(
                    what, sizeof(what), "peer %s %d>%d (%s, %u a SM)", write ? "write" : "read", a,
                    b, g.kernel, per_sm);
            }
        }
    row(write ? "driver's peer copy, pushed" : "driver's peer copy, pulled", driver, 0, "");
    row(what, best, driver.median, "the driver's");
}

static void pair_of(int a, int b)
{
    const size_t bytes = 512 * MIB;
    struct gv_figure latency;
    struct gv_error err = {0};
    check_of(a, b);
    check_of(b, a);
    check(gv_peer_on(&gpus, a, b), "peer access");
    check(gv_peer_on(&gpus, b, a), "peer access");
    gv_cu_ptr at_a = device_buffer(a, bytes), at_b = device_buffer(b, bytes);
    one_direction(a, b, at_a, at_b, bytes, true);
    one_direction(a, b, at_a, at_b, bytes, false);
    if (gv_pair_latency(&meter, a, b, 1000, &latency, &err))
        die(&err);
    printf(
        "  one-way latency %d-%d: %.3f us (%.3f to %.3f, %d)\n", a, b, latency.median, latency.min,
        latency.max, latency.count);
    device_free(a, at_a);
    device_free(b, at_b);
}

int main(int argc, char **argv)
{
    struct gv_error err = {0};
    const char *small = getenv("GV_BENCH_SMALL");
    FILE *trace = getenv("GV_BENCH_TRACE") ? fopen(getenv("GV_BENCH_TRACE"), "w") : NULL;
    if (gv_gpus_open(&gpus, argc > 2 ? argv[1] : NULL, argc > 2 ? argv[2] : NULL, &err))
        die(&err);
    printf(
        "%d GPUs, driver %s, CUDA %d.%d, kernels by %s\n", gpus.n, gpus.driver,
        gpus.cuda.version / 1000, gpus.cuda.version % 1000 / 10, gv_kernels_compiler);
    for (int i = 0; i < gpus.n; i++)
        if (gv_device_start(&gpus, i, &err))
            die(&err);
    if (gv_meter_init(&meter, &gpus, &err))
        die(&err);
    pattern_of(0);
    for (int ranks = 2; ranks <= 8; ranks *= 2) {
        ring_of(0, 1, ranks, 4096 * 5 + 16, false);
        ring_of(0, 1, ranks, 256 * MIB, false);
        ring_of(0, 1, ranks, 16 * MIB, true);
    }
    check_of(0, 0);
    for (int b = 1; b < gpus.n && b < 2; b++) {
        pair_of(0, b);
        ring_of(0, 2, 2, 1024 * MIB, false);
        ring_of(0, 2, 2, 256 * MIB, true);
        ring_of(0, 2, 8, 256 * MIB, false);
    }
    for (int i = 0; i < (small ? 1 : gpus.n); i++) {
        memory_of(i, (small ? 64 : 2048) * MIB, trace);
        host_of(i);
    }
    printf("%s\n", wrong ? "SOMETHING WAS WRONG" : "all results right");
    if (trace)
        fclose(trace);
    gv_meter_finish(&meter);
    gv_gpus_close(&gpus);
    return wrong != 0;
}
