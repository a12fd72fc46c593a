/* The verification stamp: read, written, and whether it holds. */
#include "config/gv_stamp.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/gv_str.h"
#include "base/gv_file.h"
#include "config/folders.h"
#include "config/plain_locale.h"
#include "config/stamp_file.h"

#define SYSTEM_STAMP "/var/lib/gv100/verified.yaml"
#define STAMP_PLACES 3

static void to_matrix(const struct gv_stamp_file *file, struct gv_stamp *out)
{
    memset(out, 0, sizeof(*out));
    memcpy(out->host, file->host, sizeof(out->host));
    memcpy(out->boot_id, file->boot_id, sizeof(out->boot_id));
    memcpy(out->driver, file->driver, sizeof(out->driver));
    memcpy(out->date, file->date, sizeof(out->date));
    memcpy(out->tool, file->tool, sizeof(out->tool));
    out->ngpus = file->ngpus;
    for (int i = 0; i < file->ngpus; i++)
        memcpy(out->bus_id[i], file->gpus[i].bus_id, sizeof(out->bus_id[i]));
    for (int i = 0; i < file->npairs; i++)
        for (int a = 0; a < file->ngpus; a++)
            for (int b = 0; b < file->ngpus; b++)
                if (a != b && gv_gpuset_has(file->pairs[i].from, a) &&
                    gv_gpuset_has(file->pairs[i].to, b))
                    out->pair[a][b] = file->pairs[i].p2p;
}

static int
parse(const char *text, size_t len, const char *path, struct gv_stamp *out, struct gv_error *err)
{
    struct gv_yaml tree;
    if (gv_yaml_parse(&tree, text, len, path, err))
        return -1;
    struct gv_stamp_file file = {0};
    struct gv_reader reader = {.tree = &tree, .name = path, .err = err};
    struct gv_plain_locale locale = gv_plain_locale_enter();
    int rc = gv_read_object(&reader, 0, &gv_object_stamp, &file);
    gv_plain_locale_leave(locale);
    if (!rc)
        to_matrix(&file, out);
    gv_object_finish(&gv_object_stamp, &file);
    gv_yaml_finish(&tree);
    return rc;
}

int gv_stamp_read(const char *path, struct gv_stamp *out, struct gv_error *err)
{
    size_t len;
    char *text = gv_file_read(path, GV_FILE_TRUSTED, GV_STAMP_MAX, &len, err);
    if (!text)
        return -1;
    int rc = parse(text, len, path, out, err);
    free(text);
    return rc;
}

/* The pairs of each state from one GPU are one entry. */
static void add_pairs(const struct gv_stamp *stamp, int from, struct gv_stamp_file *file)
{
    for (int state = GV_P2P_UNVERIFIED + 1; state < GV_P2P_STATES; state++) {
        gv_gpuset to = 0;
        for (int b = 0; b < stamp->ngpus; b++)
            if (b != from && (int)stamp->pair[from][b] == state)
                to |= GV_GPU_BIT(b);
        if (to)
            file->pairs[file->npairs++] =
                (struct gv_stamp_pairs){GV_GPU_BIT(from), to, (enum gv_p2p)state};
    }
}

/* Fills `file`; finish it in both cases. -1: out of memory. */
static int from_matrix(const struct gv_stamp *stamp, struct gv_stamp_file *file)
{
    memcpy(file->host, stamp->host, sizeof(file->host));
    memcpy(file->boot_id, stamp->boot_id, sizeof(file->boot_id));
    memcpy(file->driver, stamp->driver, sizeof(file->driver));
    memcpy(file->date, stamp->date, sizeof(file->date));
    memcpy(file->tool, stamp->tool, sizeof(file->tool));
    file->gpus = calloc((size_t)stamp->ngpus + 1, sizeof(*file->gpus));
    file->pairs = calloc((size_t)stamp->ngpus * GV_P2P_STATES + 1, sizeof(*file->pairs));
    if (!file->gpus || !file->pairs)
        return -1;
    file->ngpus = stamp->ngpus;
    for (int i = 0; i < stamp->ngpus; i++) {
        file->gpus[i].index = i;
        memcpy(file->gpus[i].bus_id, stamp->bus_id[i], sizeof(file->gpus[i].bus_id));
        add_pairs(stamp, i, file);
    }
    return 0;
}

int gv_stamp_write(const struct gv_stamp *stamp, const char *path, struct gv_error *err)
{
    struct gv_stamp_file file = {0};
    struct gv_stamp again;
    struct gv_str text = {0};
    struct gv_error why;
    int rc = from_matrix(stamp, &file);
    struct gv_plain_locale locale = gv_plain_locale_enter();
    if (!rc)
        gv_write_object(&gv_object_stamp, &file, &text);
    gv_plain_locale_leave(locale);
    gv_object_finish(&gv_object_stamp, &file);
    if (rc || text.failed)
        rc = gv_error_at(err, path, 0, 0, "out of memory");
    else if (parse(text.data, text.len, path, &again, &why))
        rc = gv_error_at(err, path, 0, 0, "not written: the stamp is not valid: %.400s", why.text);
    else
        rc = gv_file_replace(path, text.data, text.len, 0644, err);
    gv_str_free(&text);
    return rc;
}

/* 0 if both say the same; a real machine must say something. Else -1 and the cause. */
static int
same_fact(const char *what, const char *then, const char *now, bool replayed, struct gv_error *err)
{
    if (!*then && (*now || !replayed))
        return gv_error_set(err, "the stamp does not say with which %s it was checked", what);
    if (!*now && (*then || !replayed))
        return gv_error_set(err, "the %s of this host cannot be read", what);
    if (!strcmp(then, now))
        return 0;
    return gv_error_set(
        err, "%s was %.60s when checked, %.60s is %s", what, then, now,
        strcmp(what, "driver") ? "now" : "loaded");
}

static int
same_gpus(const struct gv_stamp *stamp, const struct gv_machine *machine, struct gv_error *err)
{
    if (stamp->ngpus != machine->ngpus)
        return gv_error_set(err, "%d GPUs when checked, %d are here", stamp->ngpus, machine->ngpus);
    for (int i = 0; i < stamp->ngpus; i++)
        if (strcasecmp(stamp->bus_id[i], machine->gpus[i].bus_id))
            return gv_error_set(
                err, "GPU %d was %s when checked, it is %s", i, stamp->bus_id[i],
                machine->gpus[i].bus_id);
    return 0;
}

int gv_stamp_holds(
    const struct gv_stamp *stamp, const struct gv_machine *machine, struct gv_error *err)
{
    bool replayed = machine->replayed;
    if (*stamp->boot_id && *machine->boot_id && strcmp(stamp->boot_id, machine->boot_id))
        return gv_error_set(
            err, "the host has booted since it was checked, or it is another host (%s)",
            stamp->host);
    if (same_fact("boot", stamp->boot_id, machine->boot_id, replayed, err) ||
        same_fact("driver", stamp->driver, machine->driver, replayed, err))
        return -1;
    return same_gpus(stamp, machine, err);
}

static int user_stamp(char *out)
{
    char dir[PATH_MAX];
    if (gv_folder_of_user("XDG_STATE_HOME", ".local/state", dir))
        return -1;
    return snprintf(out, PATH_MAX, "%s/verified.yaml", dir) < PATH_MAX ? 0 : -1;
}

static int named_stamp(char *out)
{
    const char *named = secure_getenv("GV100_STAMP");
    if (!named || !*named)
        return -1;
    return snprintf(out, PATH_MAX, "%s", named) < PATH_MAX ? 0 : -1;
}

int gv_stamp_path(char *out, struct gv_error *err)
{
    if (!named_stamp(out))
        return 0;
    if (geteuid() == 0) {
        snprintf(out, PATH_MAX, "%s", SYSTEM_STAMP);
        return 0;
    }
    if (!user_stamp(out))
        return 0;
    return gv_error_set(err, "HOME is not set: name the stamp's file with GV100_STAMP");
}

/* Where stamps may lie, in order; returns their number. */
static int places(char out[STAMP_PLACES][PATH_MAX])
{
    int n = 0;
    n += !named_stamp(out[n]);
    snprintf(out[n++], PATH_MAX, "%s", SYSTEM_STAMP);
    n += !user_stamp(out[n]);
    return n;
}

int gv_stamp_find(const struct gv_machine *machine, struct gv_stamp *out, struct gv_error *err)
{
    char path[STAMP_PLACES][PATH_MAX];
    struct gv_error first = {0}, why = {0};
    struct gv_stamp stamp;
    int n = places(path);
    for (int i = 0; i < n; i++) {
        struct stat st;
        if (lstat(path[i], &st))
            continue;
        bool bad = gv_stamp_read(path[i], &stamp, &why);
        if (!bad && !gv_stamp_holds(&stamp, machine, &why)) {
            *out = stamp;
            return 0;
        }
        if (!*why.file)
            snprintf(why.file, sizeof(why.file), "%.255s", path[i]);
        if (!*first.text)
            first = why;
    }
    if (*first.text)
        return gv_error_at(
            err, first.file, first.line, first.column, "%.440s; run `gv100 verify`", first.text);
    return gv_error_set(
        err,
        "P2P was not verified on this host since it booted (no stamp in %.150s%s%.150s); run "
        "`gv100 verify`",
        path[0], n > 1 ? ", " : "", n > 1 ? path[n - 1] : "");
}

bool gv_profile_own_word(const struct gv_profile *profile, const struct gv_machine *machine)
{
    const char *assume = secure_getenv("GV100_ASSUME_VERIFIED");
    if (assume && !strcmp(assume, "1"))
        return true;
    if (profile->match != GV_MATCH_UUID || strcmp(profile->provenance.driver, machine->driver) != 0)
        return false;
    return profile->provenance.kind == GV_CUDA ||
           (profile->provenance.kind == GV_VIRTUAL && machine->replayed);
}
