/* Looks up the profile of this machine. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/gv_nearest.h"
#include "config/folders.h"
#include "config/gv_machine.h"

struct search {
    const struct gv_machine *machine;
    int *map;
    char *path_out;               /* may be NULL */
    int tried;                    /* profiles that were read and did not match */
    struct gv_error unreadable;   /* of the first file that could not be read */
    char mismatch_path[PATH_MAX]; /* the first that did not match, and why */
    struct gv_error mismatch;
    char looked_in[300];
};

static bool is_path(const char *name)
{
    size_t len = strlen(name);
    return strchr(name, '/') || (len > 5 && !strcmp(name + len - 5, ".yaml"));
}

/* "there is no shipped profile 402; did you mean ...". */
static int unknown_name(const char *name, const char *dir, struct gv_error *err)
{
    char **files;
    int n;
    gv_folder_list(dir, &files, &n);
    for (int i = 0; i < n; i++)
        files[i][strlen(files[i]) - 5] = '\0';
    const char *near = gv_nearest(name, (const char *const *)files, n);
    if (near)
        gv_error_set(err, "there is no shipped profile '%.60s'; did you mean '%s'?", name, near);
    else
        gv_error_set(
            err,
            "there is no shipped profile '%.60s' in %.200s; a file is named with its path or "
            "as NAME.yaml",
            name, dir);
    gv_folder_free(files, n);
    return -1;
}

int gv_profile_resolve(const char *name, char *out, struct gv_error *err)
{
    char dir[PATH_MAX], path[PATH_MAX];
    if (!*name)
        return gv_error_set(err, "the profile's name is empty");
    if (is_path(name)) {
        if (snprintf(path, sizeof(path), "%s", name) >= (int)sizeof(path))
            return gv_error_set(err, "the path of the profile is too long");
    } else {
        if (gv_profile_shipped_folder(dir, err))
            return -1;
        if (snprintf(path, sizeof(path), "%s/%s.yaml", dir, name) >= (int)sizeof(path) ||
            access(path, F_OK))
            return unknown_name(name, dir, err);
    }
    memcpy(out, path, sizeof(path));
    return 0;
}

/* The profile of $GV100_PROFILE; it must be there, whole, and for this machine if there is one. */
static struct gv_profile *find_named(const char *name, struct search *s, struct gv_error *err)
{
    char path[PATH_MAX];
    struct gv_error why;
    if (gv_profile_resolve(name, path, &why)) {
        gv_error_set(err, "GV100_PROFILE: %s", why.text);
        return NULL;
    }
    struct gv_profile *profile = gv_profile_read(path, err);
    if (!profile)
        return NULL;
    if (s->machine && gv_profile_matches(profile, s->machine, s->map, &why)) {
        gv_error_at(
            err, path, 0, 0,
            "GV100_PROFILE names a profile of another machine: %s; measure this one with `gv100 "
            "calibrate`, or unset GV100_PROFILE",
            why.text);
        gv_profile_free(profile);
        return NULL;
    }
    if (s->path_out)
        memcpy(s->path_out, path, sizeof(path));
    return profile;
}

static struct gv_profile *try_file(struct search *s, const char *path)
{
    struct gv_error err = {0};
    struct gv_profile *profile = gv_profile_read(path, &err);
    if (!profile) {
        if (!*s->unreadable.text)
            s->unreadable = err;
        return NULL;
    }
    if (!gv_profile_matches(profile, s->machine, s->map, &err)) {
        if (s->path_out)
            snprintf(s->path_out, PATH_MAX, "%s", path);
        return profile;
    }
    gv_profile_free(profile);
    if (!s->tried++) {
        s->mismatch = err;
        snprintf(s->mismatch_path, sizeof(s->mismatch_path), "%s", path);
    }
    return NULL;
}

static struct gv_profile *try_folder(struct search *s, const char *dir)
{
    char **files, path[PATH_MAX];
    int n;
    size_t len = strlen(s->looked_in);
    snprintf(s->looked_in + len, sizeof(s->looked_in) - len, "%s%.90s", len ? ", " : "", dir);
    if (gv_folder_list(dir, &files, &n))
        return NULL;
    struct gv_profile *found = NULL;
    for (int i = 0; i < n && !found; i++)
        if (snprintf(path, sizeof(path), "%s/%s", dir, files[i]) < (int)sizeof(path))
            found = try_file(s, path);
    gv_folder_free(files, n);
    return found;
}

static void report(const struct search *s, struct gv_error *err)
{
    if (*s->unreadable.text) {
        gv_error_at(
            err, s->unreadable.file, s->unreadable.line, s->unreadable.column,
            "%.380s; and no other profile is for this machine", s->unreadable.text);
        return;
    }
    if (!s->machine->ngpus) {
        gv_error_set(err, "this machine has no NVIDIA GPU that its sysfs knows of");
        return;
    }
    char first[200] = "";
    const char *base = strrchr(s->mismatch_path, '/');
    if (s->tried)
        snprintf(
            first, sizeof(first), " (%.60s: %.120s)", base ? base + 1 : s->mismatch_path,
            s->mismatch.text);
    gv_error_set(
        err,
        "no profile for this machine with %d GPUs: %d looked at%s in %.200s; measure it with "
        "`gv100 calibrate`",
        s->machine->ngpus, s->tried, first, s->looked_in);
}

struct gv_profile *gv_profile_find(
    const struct gv_machine *machine, int map[GV_MAX_GPUS], char *path_out, struct gv_error *err)
{
    struct search s = {.machine = machine, .map = map, .path_out = path_out};
    const char *named = secure_getenv("GV100_PROFILE");
    char dir[PATH_MAX];
    if (named && *named)
        return find_named(named, &s, err);
    if (!machine) {
        gv_error_set(err, "no profile is named: set GV100_PROFILE to a path or a shipped name");
        return NULL;
    }
    struct gv_profile *found = NULL;
    if (!gv_folder_of_user("XDG_CONFIG_HOME", ".config", dir))
        found = try_folder(&s, dir);
    if (!found)
        found = try_folder(&s, "/etc/gv100");
    if (!found && !gv_profile_shipped_folder(dir, NULL))
        found = try_folder(&s, dir);
    if (!found)
        report(&s, err);
    return found;
}
