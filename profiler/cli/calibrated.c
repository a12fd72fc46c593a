#include "profiler/cli/calibrated.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profiler/cli/measure.h"
#include "profiler/cli/text.h"

#define ROOM_BYTES (32 << 10) /* a profile of few GPUs; larger ones fail at the end, whole or not  \
                               */

/* A file beside the target, made and removed: a folder's rights alone do not tell of a read-only or
 * a full file system. */
static int try_to_write(const char *path, const char *folder, struct gv_error *err)
{
    char trial[PATH_MAX + 32];
    struct stat st;
    if (!stat(path, &st) && !S_ISREG(st.st_mode))
        return gv_error_at(err, path, 0, 0, "is no regular file; nothing was measured");
    if (!access(path, F_OK) && access(path, W_OK))
        return gv_error_at(err, path, 0, 0, "cannot be written: %m; nothing was measured");
    snprintf(trial, sizeof(trial), "%s/.gv100-XXXXXX", folder);
    int fd = mkstemp(trial);
    int error = fd < 0 ? errno : posix_fallocate(fd, 0, ROOM_BYTES);
    if (fd >= 0) {
        close(fd);
        unlink(trial);
    }
    if (!error || (fd >= 0 && (error == EOPNOTSUPP || error == EINVAL)))
        return 0;
    return gv_error_at(
        err, path, 0, 0, "cannot be written: %s; nothing was measured", strerror(error));
}

int gv_files_init(struct gv_files *f, const char *out, const char *host, struct gv_error *err)
{
    char folder[PATH_MAX];
    memset(f, 0, sizeof(*f));
    if (out)
        snprintf(f->path, sizeof(f->path), "%s", out);
    else
        snprintf(f->path, sizeof(f->path), "%s.yaml", host[0] ? host : "profile");
    if (snprintf(f->partial, sizeof(f->partial), "%.4000s.partial", f->path) >= PATH_MAX - 64)
        return gv_error_set(err, "the file's name is too long");
    snprintf(folder, sizeof(folder), "%s", f->path);
    char *slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder] = 0;
    return try_to_write(f->path, slash ? folder : ".", err);
}

int gv_files_resume(struct gv_files *f, struct gv_calibration *cal, struct gv_error *err)
{
    struct gv_error why;
    struct gv_profile *p = gv_profile_read(f->partial, err);
    if (!p)
        return -1;
    int rc = gv_calibration_resume(cal, p, &why);
    gv_profile_free(p);
    f->has_partial = true;
    return rc ? gv_error_at(err, f->partial, 0, 0, "cannot be resumed: %.400s", why.text) : 0;
}

static int write_to(const struct gv_calibration *cal, const char *path, struct gv_error *err)
{
    struct gv_profile *p = gv_calibration_profile(cal);
    if (!p)
        return gv_error_set(err, "out of memory");
    int rc = gv_profile_write(p, path, err);
    gv_profile_free(p);
    return rc;
}

int gv_files_save(void *data, struct gv_calibration *cal)
{
    struct gv_files *f = data;
    double now = gv_seconds();
    if (now - f->saved_s < 5)
        return 0;
    f->saved_s = now;
    f->has_partial |= !write_to(cal, f->partial, NULL);
    return 0;
}

int gv_files_done(struct gv_files *f, struct gv_calibration *cal, struct gv_error *err)
{
    if (write_to(cal, f->path, err))
        return -1;
    if (f->has_partial)
        unlink(f->partial);
    return 0;
}

void gv_files_kept(struct gv_files *f, struct gv_calibration *cal)
{
    bool any = false;
    for (int i = 0; i < cal->nitems; i++)
        any |= cal->items[i].done;
    if (any && !write_to(cal, f->partial, NULL))
        fprintf(
            stderr, "What was measured so far is in %s; the same command with --resume goes on.\n",
            f->partial);
}

static int left_out_of(const struct gv_calibration *cal)
{
    int n = 0;
    for (int i = 0; i < cal->nitems; i++)
        n += cal->items[i].left_out;
    return n;
}

static json_t *plan_json(const struct gv_calibration *cal)
{
    json_t *items = json_array();
    for (int i = 0; i < cal->nitems; i++) {
        const struct gv_item *item = &cal->items[i];
        json_array_append_new(
            items,
            json_pack(
                "{s:s, s:s, s:s, s:f, s:b}", "probe", item->probe->name, "what", item->label,
                "needs", item->probe->needs, "seconds", item->seconds, "left_out", item->left_out));
    }
    return json_pack(
        "{s:f, s:o, s:o}", "seconds", gv_plan_seconds(cal), "items", items, "warnings",
        gv_json_warnings(cal));
}

int gv_plan_print(const struct gv_command *cmd, const struct gv_calibration *cal, bool json)
{
    char time[24];
    int left_out = left_out_of(cal);
    gv_print_warnings(cmd, cal);
    if (json)
        return gv_json_print(cmd, plan_json(cal), GV_EXIT_OK);
    for (int i = 0; i < cal->nitems; i++) {
        const struct gv_item *item = &cal->items[i];
        printf(
            "%6s  %-8s%s%s\n", gv_duration(item->seconds, time), item->probe->name, item->label,
            item->left_out ? "  (left out)" : "");
    }
    printf("%6s  in all", gv_duration(gv_plan_seconds(cal), time));
    if (left_out)
        printf("; %d of %d steps left out to fit the budget", left_out, cal->nitems);
    puts("");
    return GV_EXIT_OK;
}

static json_t *memory_json(const struct gv_calibration *cal)
{
    static const char *const kinds[4] = {"copy", "read", "write", "triad"};
    json_t *list = json_array();
    for (int i = 0; i < cal->n; i++) {
        const struct gv_profile_memory *m = &cal->memory[i];
        const struct gv_figure *figures[4] = {
            &m->copy_gbs, &m->read_gbs, &m->write_gbs, &m->triad_gbs};
        if (!m->copy_gbs.count)
            continue;
        json_t *one = json_pack(
            "{s:i, s:o, s:o}", "gpu", i, "theoretical_gbs", gv_json_number(m->theoretical_gbs),
            "driver_copy_gbs", gv_json_number(cal->driver_copy_gbs[i].median));
        for (int k = 0; k < 4; k++) {
            const struct gv_geometry *g = &cal->geometry[i][k];
            json_object_set_new(
                one, kinds[k],
                json_pack(
                    "{s:o, s:o, s:o, s:i, s:s, s:i, s:i, s:b}", "gbs",
                    gv_json_number(figures[k]->median), "min", gv_json_number(figures[k]->min),
                    "max", gv_json_number(figures[k]->max), "samples", figures[k]->count, "kernel",
                    g->kernel, "block", (int)g->block, "blocks_per_sm", (int)g->per_sm, "in_runs",
                    g->chunked));
        }
        json_array_append_new(list, one);
    }
    return list;
}

static json_t *host_json(const struct gv_calibration *cal)
{
    json_t *list = json_array();
    for (int i = 0; i < cal->n; i++)
        if (cal->host_alone[i].gpus)
            json_array_append_new(
                list,
                json_pack(
                    "{s:i, s:o, s:o, s:o, s:o}", "gpu", i, "to_device_gbs",
                    gv_json_number(cal->host_alone[i].to_device_gbs.median), "driver_to_device_gbs",
                    gv_json_number(cal->host_driver_to_device_gbs[i].median), "to_host_gbs",
                    gv_json_number(cal->host_alone[i].to_host_gbs.median), "driver_to_host_gbs",
                    gv_json_number(cal->host_driver_to_host_gbs[i].median)));
    return list;
}

static json_t *facts_json(const struct gv_calibration *cal)
{
    const struct gv_host_facts *f = &cal->facts;
    return json_pack(
        "{s:s, s:s, s:o, s:s, s:s, s:s, s:o}", "cpu", f->cpu_model, "cpu_vendor", f->cpu_vendor,
        "shm_mib", f->shm_mib < 0 ? json_null() : json_integer(f->shm_mib), "iommu", f->iommu,
        "kernel", f->kernel, "container", f->container, "peers_at_once",
        cal->peers < 0 ? json_null() : json_integer(cal->peers));
}

static void print_text(const struct gv_calibration *cal, const char *path, double seconds)
{
    char time[24], a[24], b[24], c[24], d[24];
    for (int i = 0; i < cal->n; i++) {
        const struct gv_profile_memory *m = &cal->memory[i];
        if (m->copy_gbs.count)
            printf(
                "GPU %-2d %-26s copy %s, read %s, triad %s GB/s (the driver's copy %s)\n", i,
                cal->gpus.device[i].model, gv_number(m->copy_gbs.median, a),
                gv_number(m->read_gbs.median, b), gv_number(m->triad_gbs.median, c),
                gv_number(cal->driver_copy_gbs[i].median, d));
    }
    int verified = 0, pairs = 0;
    for (int x = 0; x < cal->n; x++)
        for (int y = x + 1; y < cal->n; y++, pairs++)
            verified += cal->pair[x][y].p2p == GV_P2P_VERIFIED;
    if (pairs)
        printf("%d of %d pairs verified, %d groups\n", verified, pairs, cal->ngroups);
    int left_out = left_out_of(cal);
    if (left_out)
        printf(
            "%d of %d steps were left out to fit the time; --dry-run with the same options lists "
            "them\n",
            left_out, cal->nitems);
    printf(
        "wrote %s in %s; gv100 show --profile %s prints it\n", path, gv_duration(seconds, time),
        path);
}

int gv_calibrated_print(
    const struct gv_command *cmd, const struct gv_calibration *cal, const char *path,
    double seconds, bool json)
{
    gv_print_warnings(cmd, cal);
    if (json)
        return gv_json_print(
            cmd,
            json_pack(
                "{s:s, s:f, s:i, s:o, s:o, s:o, s:o}", "profile", path, "seconds", seconds,
                "left_out", left_out_of(cal), "host_facts", facts_json(cal), "memory",
                memory_json(cal), "host", host_json(cal), "warnings", gv_json_warnings(cal)),
            GV_EXIT_OK);
    print_text(cal, path, seconds);
    return GV_EXIT_OK;
}
