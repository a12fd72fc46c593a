#include "profiler/probe/gv_calibration.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void gv_warn(struct gv_calibration *cal, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (!cal->warnings.data || !strstr(cal->warnings.data, text))
        gv_str_addf(&cal->warnings, "%s\n", text);
}

void gv_warn_memory(struct gv_calibration *cal, gv_gpuset gpus, size_t bytes)
{
    for (gv_gpuset rest = gpus; rest; rest &= rest - 1) {
        int gpu = gv_gpuset_first(rest);
        size_t free_bytes = 0, total = 0;
        cal->gpus.cuda.ctx_set(cal->gpus.device[gpu].ctx);
        if (gv_gpuset_has(cal->short_of_memory, gpu) ||
            cal->gpus.cuda.mem_info(&free_bytes, &total) || free_bytes >= bytes)
            continue;
        cal->short_of_memory |= GV_GPU_BIT(gpu);
        gv_warn(
            cal, "GPU %d (%s) has only %zu MiB free: what needs more was not measured there", gpu,
            cal->gpus.device[gpu].bus_id, free_bytes >> 20);
    }
}

void gv_plan_add(
    struct gv_calibration *cal, const struct gv_probe *probe, int a, int b, gv_gpuset gpus,
    double seconds, int priority, const char *fmt, ...)
{
    if (cal->nitems == cal->item_capacity) {
        int capacity = cal->item_capacity ? 2 * cal->item_capacity : 64;
        void *grown = realloc(cal->items, sizeof(*cal->items) * (size_t)capacity);
        if (!grown)
            return;
        cal->items = grown;
        cal->item_capacity = capacity;
    }
    struct gv_item *item = &cal->items[cal->nitems++];
    *item = (struct gv_item){
        .probe = probe, .a = a, .b = b, .gpus = gpus, .seconds = seconds, .priority = priority};
    va_list args;
    va_start(args, fmt);
    vsnprintf(item->label, sizeof(item->label), fmt, args);
    va_end(args);
}

double gv_plan_seconds(const struct gv_calibration *cal)
{
    double seconds = 0;
    for (int i = 0; i < cal->nitems; i++)
        if (!cal->items[i].done && !cal->items[i].left_out)
            seconds += cal->items[i].seconds;
    return seconds;
}

static bool selected(const char *only, const char *word)
{
    size_t n = strlen(word);
    if (!only)
        return true;
    for (const char *p = only; *p; p += strcspn(p, ","), p += *p == ',')
        if (strcspn(p, ",") == n && !strncmp(p, word, n))
            return true;
    return false;
}

/* Leaves out items, the least important and among those the last first, until the rest fits. */
static void fit_budget(struct gv_calibration *cal)
{
    double left = gv_plan_seconds(cal);
    for (int priority = 0; priority < 10 && left > cal->options.budget_s; priority++)
        for (int i = cal->nitems - 1; i >= 0 && left > cal->options.budget_s; i--)
            if (cal->items[i].priority == priority) {
                cal->items[i].left_out = true;
                left -= cal->items[i].seconds;
            }
}

static void make_plan(struct gv_calibration *cal)
{
    for (int p = 0; gv_probes[p]; p++)
        if (selected(cal->options.only, gv_probes[p]->only))
            gv_probes[p]->plan(cal, gv_probes[p]);
    if (cal->options.budget_s > 0)
        fit_budget(cal);
}

/* CUDA's list and sysfs must name the same GPUs: a profile is of the whole machine. */
static int same_gpus(struct gv_calibration *cal, struct gv_error *err)
{
    struct gv_machine *m = &cal->machine;
    if (gv_machine_read(gv_sysfs_root(), m, err))
        return -1;
    if (!m->ngpus) { /* no sysfs here (some containers): what CUDA says is all there is */
        for (int i = 0; i < cal->n; i++) {
            snprintf(
                m->gpus[i].bus_id, sizeof(m->gpus[i].bus_id), "%s", cal->gpus.device[i].bus_id);
            m->gpus[i].numa_node = m->gpus[i].link_width = m->gpus[i].link_width_max = -1;
        }
        m->ngpus = cal->n;
        gv_warn(
            cal, "no GPU below %s: islands, NUMA nodes and path classes are unknown",
            gv_sysfs_root());
    }
    if (m->ngpus != cal->n)
        return gv_error_set(
            err,
            "the machine has %d GPUs and CUDA shows %d: unset CUDA_VISIBLE_DEVICES, and give "
            "the container all GPUs",
            m->ngpus, cal->n);
    for (int i = 0; i < cal->n; i++)
        if (strcmp(m->gpus[i].bus_id, cal->gpus.device[i].bus_id))
            return gv_error_set(
                err, "GPU %d is %s for CUDA and %s in sysfs", i, cal->gpus.device[i].bus_id,
                m->gpus[i].bus_id);
    return 0;
}

static int free_of_others(struct gv_calibration *cal, struct gv_error *err)
{
    for (int i = 0; i < cal->n; i++) {
        char users[300];
        if (!gv_device_users(&cal->gpus, i, users, sizeof(users)))
            continue;
        if (!cal->options.force)
            return gv_error_set(
                err,
                "GPU %d (%s) is in use by %s: its figures would be wrong, and its work slow; "
                "wait, or --force",
                i, cal->gpus.device[i].bus_id, users);
        gv_warn(cal, "GPU %d was in use by %s while it was measured", i, users);
    }
    return 0;
}

static int start_devices(struct gv_calibration *cal, struct gv_error *err)
{
    for (int i = 0; i < cal->n; i++)
        if (gv_device_start(&cal->gpus, i, err))
            return -1;
    if (gv_meter_init(&cal->meter, &cal->gpus, err))
        return -1;
    cal->meter.stop = cal->options.stop;
    if (cal->options.quick) {
        cal->meter.min_samples = 3;
        cal->meter.max_samples = 5;
    }
    return 0;
}

static void all_unknown(struct gv_calibration *cal)
{
    struct gv_figure none = gv_figure_unknown();
    cal->peers = -1;
    for (int a = 0; a < GV_MAX_GPUS; a++) {
        cal->memory[a].copy_gbs = cal->memory[a].read_gbs = none;
        cal->memory[a].write_gbs = cal->memory[a].triad_gbs = none;
        cal->host_alone[a].to_device_gbs = cal->host_alone[a].to_host_gbs = none;
        cal->driver_copy_gbs[a] = none;
        cal->host_driver_to_device_gbs[a] = cal->host_driver_to_host_gbs[a] = none;
        for (int b = 0; b < GV_MAX_GPUS; b++) {
            struct gv_pair_state *p = &cal->pair[a][b];
            p->write_gbs = p->read_gbs = p->both_ways_gbs = p->latency_us = none;
            p->loaded_write_gbs = p->host_path_gbs = none;
        }
    }
}

struct gv_calibration *
gv_calibration_open(const struct gv_calibration_options *options, struct gv_error *err)
{
    struct gv_calibration *cal = calloc(1, sizeof(*cal));
    if (!cal) {
        gv_error_set(err, "out of memory");
        return NULL;
    }
    cal->options = *options;
    if (!cal->options.memory_bytes)
        cal->options.memory_bytes = (size_t)3 << 30;
    if (cal->options.pair_timeout_s <= 0)
        cal->options.pair_timeout_s = 2;
    if (cal->options.quick && cal->options.budget_s <= 0)
        cal->options.budget_s = 60;
    all_unknown(cal);
    if (gv_gpus_open(&cal->gpus, options->cuda_path, options->nvml_path, err))
        goto failed;
    cal->n = cal->gpus.n;
    if (same_gpus(cal, err) || free_of_others(cal, err))
        goto failed;
    gv_host_facts_read(
        gv_sysfs_root(), cal->machine.replayed, cal->machine.gpus[0].bus_id, &cal->facts);
    gv_shape_read(cal);
    make_plan(cal);
    return cal;
failed:
    gv_calibration_close(cal);
    return NULL;
}

static void free_groups(struct gv_calibration *cal)
{
    for (int g = 0; g < cal->ngroups; g++) {
        for (int v = 0; v < cal->groups[g].nvariants; v++) {
            struct gv_profile_variant *variant = &cal->groups[g].variants[v];
            for (int r = 0; r < variant->nruns; r++) {
                free(variant->runs[r].busbw_gbs);
                free(variant->runs[r].throttled);
            }
            free(variant->runs);
        }
        free(cal->groups[g].variants);
    }
    free(cal->groups);
}

void gv_calibration_close(struct gv_calibration *cal)
{
    if (!cal)
        return;
    if (cal->meter.gate)
        gv_meter_finish(&cal->meter);
    gv_gpus_close(&cal->gpus);
    free_groups(cal);
    free(cal->items);
    gv_str_free(&cal->warnings);
    free(cal);
}

static void
tell(const struct gv_calibration *cal, const struct gv_item *item, double done, double all)
{
    if (cal->options.progress)
        cal->options.progress(cal->options.progress_data, cal, item, done, all);
}

int gv_calibration_run(
    struct gv_calibration *cal, int (*save)(void *data, struct gv_calibration *cal), void *data,
    struct gv_error *err)
{
    double all = gv_plan_seconds(cal), done = 0;
    int rc = start_devices(cal, err);
    for (int i = 0; i < cal->nitems && !rc; i++) {
        struct gv_item *item = &cal->items[i];
        if (item->done || item->left_out)
            continue;
        tell(cal, item, done, all);
        rc = item->probe->run(cal, item, err);
        done += item->seconds;
        item->done = !rc;
        if (!rc && save)
            rc = save(data, cal);
    }
    tell(cal, NULL, done, all);
    return rc;
}
