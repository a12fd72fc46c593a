/* Host links: one GPU at a time, then those of a root port together, then all. */
#include <stdio.h>
#include <string.h>

#include "profiler/probe/gv_calibration.h"

#define BYTES ((size_t)64 << 20)

static gv_gpuset port_of(const struct gv_calibration *cal, int gpu)
{
    gv_gpuset set = 0;
    for (int i = 0; i < cal->n; i++)
        if (cal->island[i] == cal->island[gpu])
            set |= GV_GPU_BIT(i);
    return set;
}

static void plan(struct gv_calibration *cal, const struct gv_probe *self)
{
    gv_gpuset all = 0;
    double seconds = cal->options.quick ? 0.4 : 1.5;
    for (int i = 0; i < cal->n; i++) {
        all |= GV_GPU_BIT(i);
        gv_plan_add(cal, self, i, -1, GV_GPU_BIT(i), seconds, 5, "host link of GPU %d", i);
    }
    for (int i = 0; i < cal->n; i++) {
        gv_gpuset set = port_of(cal, i);
        if (gv_gpuset_first(set) == i && gv_gpuset_count(set) > 1 && set != all)
            gv_plan_add(
                cal, self, -1, -1, set, seconds, 4, "host links under %s",
                cal->machine.gpus[i].root_port);
    }
    if (cal->n > 1)
        gv_plan_add(cal, self, -1, -1, all, seconds, 4, "all host links at once");
}

struct buffers {
    gv_cu_ptr device[GV_MAX_GPUS];
    void *host[GV_MAX_GPUS];
};

static int allocate(struct gv_calibration *cal, gv_gpuset gpus, struct buffers *b)
{
    const struct gv_cuda *cuda = &cal->gpus.cuda;
    gv_cu_result rc = 0;
    for (gv_gpuset rest = gpus; rest && !rc; rest &= rest - 1) {
        int i = gv_gpuset_first(rest);
        cuda->ctx_set(cal->gpus.device[i].ctx);
        rc = cuda->mem_alloc(&b->device[i], BYTES);
        if (!rc)
            rc = cuda->host_alloc(&b->host[i], BYTES, GV_CU_HOST_PORTABLE | GV_CU_HOST_DEVICEMAP);
    }
    return rc;
}

static void release(struct gv_calibration *cal, struct buffers *b)
{
    for (int i = 0; i < cal->n; i++) {
        cal->gpus.cuda.ctx_set(cal->gpus.device[i].ctx);
        if (b->device[i])
            cal->gpus.cuda.mem_free(b->device[i]);
        if (b->host[i])
            cal->gpus.cuda.host_free(b->host[i]);
    }
}

/* One direction over all GPUs of the set, by kernel on mapped host memory or by the copy engine.
 * The figure is each GPU's share. */
static int measure(
    struct gv_calibration *cal, gv_gpuset gpus, const struct buffers *b, bool to_device,
    bool kernel, struct gv_figure *out, struct gv_error *err)
{
    struct gv_work works[GV_MAX_GPUS];
    struct gv_samples samples;
    struct gv_geometry g = {.kernel = "gv_copy_u4p", .block = 512, .per_sm = 4};
    int n = 0;
    for (gv_gpuset rest = gpus; rest; rest &= rest - 1, n++) {
        int i = gv_gpuset_first(rest);
        gv_cu_ptr host = 0;
        cal->gpus.cuda.ctx_set(cal->gpus.device[i].ctx);
        if (cal->gpus.cuda.host_pointer(&host, b->host[i], 0))
            return gv_error_set(err, "host memory is not mapped");
        gv_cu_ptr to = to_device ? b->device[i] : host, from = to_device ? host : b->device[i];
        struct gv_memory_args args = {.dst = to, .src = from, .n16 = BYTES / 16};
        if (gv_geometry_work(&cal->meter, i, 0, &g, &args, (double)BYTES, &works[n], err))
            return -1;
        if (!kernel)
            works[n] = (struct gv_work){
                .gpu = i,
                .kind = GV_WORK_COPY,
                .to = to,
                .from = from,
                .copy_bytes = BYTES,
                .bytes = (double)BYTES};
        works[n].repeat = 2;
    }
    if (gv_meter_run(&cal->meter, works, n, &samples, err))
        return -1;
    *out = gv_meter_gbs(&samples, works, -1);
    out->median /= n, out->min /= n, out->max /= n;
    return 0;
}

static struct gv_figure better(struct gv_figure a, struct gv_figure b)
{
    return a.median >= b.median ? a : b;
}

static void check_link(struct gv_calibration *cal, int gpu)
{
    struct gv_device *d = &cal->gpus.device[gpu];
    gv_device_read_link(&cal->gpus, d);
    if (d->link_width > 0 && d->link_width_max > 0 && d->link_width < d->link_width_max)
        gv_warn(
            cal, "GPU %d (%s): its link trained at x%d of x%d: reseat the card, check the riser",
            gpu, d->bus_id, d->link_width, d->link_width_max);
}

static int run(struct gv_calibration *cal, const struct gv_item *item, struct gv_error *err)
{
    bool alone = item->a >= 0;
    struct buffers b = {0};
    struct gv_profile_host_link *link =
        alone ? &cal->host_alone[item->a] : &cal->host_together[cal->nhost_together];
    struct gv_figure kernel, driver;
    gv_cu_result rc = allocate(cal, item->gpus, &b);
    int failed = 0;
    if (rc == GV_CU_OUT_OF_MEMORY)
        gv_warn_memory(cal, item->gpus, BYTES);
    else if (rc)
        failed = gv_cuda_fail(&cal->gpus.cuda, rc, err, item->label);
    for (int to_device = 0; to_device < 2 && !rc && !failed; to_device++) {
        failed = measure(cal, item->gpus, &b, to_device, true, &kernel, err) ||
                 measure(cal, item->gpus, &b, to_device, false, &driver, err);
        if (failed)
            break;
        *(to_device ? &link->to_device_gbs : &link->to_host_gbs) = better(kernel, driver);
        if (alone)
            (to_device ? cal->host_driver_to_device_gbs : cal->host_driver_to_host_gbs)[item->a] =
                driver;
    }
    if (!rc && !failed) {
        link->gpus = item->gpus;
        link->together = !alone;
        int first = gv_gpuset_first(item->gpus);
        if ((item->gpus & ~port_of(cal, first)) == 0)
            snprintf(
                link->root_port, sizeof(link->root_port), "%s", cal->machine.gpus[first].root_port);
        cal->nhost_together += !alone;
        if (alone)
            check_link(cal, item->a);
    }
    release(cal, &b);
    return failed ? -1 : 0;
}

const struct gv_probe gv_probe_host = {
    "host", "host", "64 MiB of pinned host memory a GPU", "GB/s", "more", plan, run,
};
