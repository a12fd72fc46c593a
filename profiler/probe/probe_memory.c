/* Device memory: copy, read, write, triad, each with its own geometry, and the driver's copy beside
 * them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "profiler/probe/gv_calibration.h"

static const char *const kinds[4] = {"copy", "read", "write", "triad"};
static const double passes[4] = {2, 1, 1, 3}; /* buffers that each moves */

static void plan(struct gv_calibration *cal, const struct gv_probe *self)
{
    for (int i = 0; i < cal->n; i++)
        gv_plan_add(
            cal, self, i, -1, GV_GPU_BIT(i), cal->options.quick ? 1 : 12, 6, "memory of GPU %d", i);
}

/* Three buffers of one size, as large as the budget and the device allow. */
static int allocate(struct gv_calibration *cal, int gpu, gv_cu_ptr at[3], size_t *bytes)
{
    const struct gv_cuda *cuda = &cal->gpus.cuda;
    size_t size = cal->options.memory_bytes / 3, most = (size_t)1 << 30;
    gv_cu_result rc = GV_CU_OUT_OF_MEMORY;
    size = size > most ? most : size & ~(size_t)0xfffff;
    cuda->ctx_set(cal->gpus.device[gpu].ctx);
    for (; size >= (size_t)16 << 20 && rc == GV_CU_OUT_OF_MEMORY; size /= 2) {
        int n = 0;
        while (n < 3 && !(rc = cuda->mem_alloc(&at[n], size)))
            n++;
        *bytes = size;
        if (!rc)
            return 0;
        while (n > 0)
            cuda->mem_free(at[--n]);
    }
    return rc;
}

static int
fill(struct gv_calibration *cal, int gpu, const gv_cu_ptr at[3], size_t bytes, struct gv_error *err)
{
    for (int i = 0; i < 3; i++) {
        struct gv_samples samples;
        struct gv_work w = {
            .gpu = gpu,
            .kind = GV_WORK_KERNEL,
            .grid = 512,
            .block = 256,
            .repeat = 1,
            .args.pattern = {.buffer = at[i], .n16 = bytes / 16, .seed = (gv_u32)i},
        };
        struct gv_meter once = cal->meter;
        if (gv_device_function(&cal->gpus, gpu, "gv_fill", &w.function, err))
            return -1;
        cal->meter.warmups = 0;
        cal->meter.min_samples = cal->meter.max_samples = 1;
        int rc = gv_meter_run(&cal->meter, &w, 1, &samples, err);
        cal->meter.warmups = once.warmups;
        cal->meter.min_samples = once.min_samples;
        cal->meter.max_samples = once.max_samples;
        if (rc)
            return -1;
    }
    return 0;
}

static int measure(
    struct gv_calibration *cal, int gpu, int kind, const gv_cu_ptr at[3], size_t bytes,
    struct gv_figure *out, struct gv_error *err)
{
    struct gv_geometry *g = &cal->geometry[gpu][kind];
    struct gv_memory_args args = {
        .dst = at[0], .src = at[1], .src2 = kind == 3 ? at[2] : 0, .n16 = bytes / 16};
    struct gv_samples samples;
    struct gv_work work;
    double moved = passes[kind] * (double)bytes;
    if (cal->options.quick) {
        *g = (struct gv_geometry){.block = 512, .per_sm = 0};
        snprintf(g->kernel, sizeof(g->kernel), "gv_%s_u4p", kinds[kind]);
    } else if (gv_geometry_find(
                   &cal->meter, gpu, kinds[kind], &args, moved, g, cal->options.trace, err))
        return -1;
    if (gv_geometry_work(&cal->meter, gpu, 0, g, &args, moved, &work, err))
        return -1;
    work.repeat = 4;
    if (gv_meter_run(&cal->meter, &work, 1, &samples, err))
        return -1;
    *out = gv_meter_gbs(&samples, &work, 0);
    if (samples.throttle_reasons) {
        char why[96];
        gv_warn(
            cal, "GPU %d throttled while its memory was measured (%s)", gpu,
            gv_nvml_throttle_text(samples.throttle_reasons, why, sizeof(why)));
        snprintf(cal->memory[gpu].note, sizeof(cal->memory[gpu].note), "throttled: %.80s", why);
    }
    return 0;
}

/* The driver's own device-to-device copy, for scale. */
static int driver_copy(
    struct gv_calibration *cal, int gpu, const gv_cu_ptr at[3], size_t bytes, struct gv_error *err)
{
    struct gv_samples samples;
    struct gv_work w = {
        .gpu = gpu,
        .kind = GV_WORK_COPY,
        .to = at[0],
        .from = at[1],
        .copy_bytes = bytes,
        .repeat = 4,
        .bytes = 2.0 * (double)bytes,
    };
    if (gv_meter_run(&cal->meter, &w, 1, &samples, err))
        return -1;
    cal->driver_copy_gbs[gpu] = gv_meter_gbs(&samples, &w, 0);
    return 0;
}

static int run(struct gv_calibration *cal, const struct gv_item *item, struct gv_error *err)
{
    int gpu = item->a;
    const struct gv_device *d = &cal->gpus.device[gpu];
    struct gv_profile_memory *m = &cal->memory[gpu];
    struct gv_figure *figures[4] = {&m->copy_gbs, &m->read_gbs, &m->write_gbs, &m->triad_gbs};
    gv_cu_ptr at[3];
    size_t bytes = 0;
    gv_cu_result rc = allocate(cal, gpu, at, &bytes);

    m->gpus = GV_GPU_BIT(gpu);
    m->theoretical_gbs = d->memory_mhz > 0 && d->bus_width_bits > 0
                             ? 2e-3 * d->memory_mhz * d->bus_width_bits / 8
                             : NAN;
    if (rc == GV_CU_OUT_OF_MEMORY) {
        gv_warn_memory(cal, item->gpus, (size_t)48 << 20);
        return 0;
    }
    if (rc)
        return gv_cuda_fail(&cal->gpus.cuda, rc, err, "memory");
    int failed = fill(cal, gpu, at, bytes, err);
    for (int k = 0; k < 4 && !failed; k++)
        failed = measure(cal, gpu, k, at, bytes, figures[k], err);
    if (!failed)
        failed = driver_copy(cal, gpu, at, bytes, err);
    for (int i = 0; i < 3; i++)
        cal->gpus.cuda.mem_free(at[i]);
    return failed;
}

const struct gv_probe gv_probe_memory = {
    "memory", "hbm", "48 MiB of a GPU's memory", "GB/s", "more", plan, run,
};
