/* Folders and files. */
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/gv_file.h"
#include "profiler/fleet/fleet.h"

/* Many hosts in one stream; a single profile has its own bound. */
#define STREAM_MAX ((size_t)256 << 20)
#define FILES_MAX 4096

int gv_fleet_no_memory(struct gv_error *err)
{
    return gv_error_set(err, "out of memory");
}

void *gv_fleet_grow(void *list, int *n, size_t size)
{
    void **at = list;
    /* the room doubles whenever the number is a power of two */
    if ((*n & (*n - 1)) == 0) {
        void *more = realloc(*at, (*n ? 2 * (size_t)*n : 1) * size);
        if (!more)
            return NULL;
        *at = more;
    }
    void *one = (char *)*at + (size_t)(*n)++ * size;
    memset(one, 0, size);
    return one;
}

int gv_fleet_unread(struct gv_fleet *fleet, const struct gv_error *why)
{
    struct gv_error *one = gv_fleet_grow(&fleet->unread, &fleet->nunread, sizeof(*one));
    if (!one)
        return -1;
    *one = *why;
    return 0;
}

int gv_fleet_take_text(
    struct gv_fleet *fleet, const char *text, size_t len, const char *name, struct gv_error *err)
{
    struct gv_error why;
    struct gv_profile *profile = gv_profile_parse(text, len, name, &why);
    if (!profile)
        return gv_fleet_unread(fleet, &why) ? gv_fleet_no_memory(err) : 0;
    size_t tool = strlen(profile->provenance.tool);
    if (tool > 6 && !strcmp(profile->provenance.tool + tool - 6, " fleet")) {
        gv_str_addf(&fleet->passed, "%s: a profile of a whole kind, written by fleet\n", name);
        gv_profile_free(profile);
        return 0;
    }
    struct gv_fleet_host *host = gv_fleet_grow(&fleet->hosts, &fleet->nhosts, sizeof(*host));
    char *file = strdup(name);
    if (!host || !file) {
        free(file);
        gv_profile_free(profile);
        fleet->nhosts -= host != NULL;
        return gv_fleet_no_memory(err);
    }
    host->file = file;
    host->profile = profile;
    return 0;
}

static bool is_several(const char *text)
{
    const char *first = strstr(text, "gv100_profile:");
    return first && (strstr(first + 1, "gv100_profile:") || (first > text && first[-1] == ' '));
}

static int take_any(
    struct gv_fleet *fleet, const char *text, size_t len, const char *name, struct gv_error *err)
{
    return is_several(text) ? gv_fleet_take_stream(fleet, text, len, name, err)
                            : gv_fleet_take_text(fleet, text, len, name, err);
}

/* One file. Of a folder, what cannot be read is one host less. */
static int take_file(struct gv_fleet *fleet, const char *path, bool named, struct gv_error *err)
{
    size_t len;
    struct gv_error why;
    char *text = gv_file_read(path, GV_FILE_ANY, STREAM_MAX, &len, &why);
    if (!text && named) {
        *err = why;
        return -1;
    }
    if (!text)
        return gv_fleet_unread(fleet, &why) ? gv_fleet_no_memory(err) : 0;
    int rc = take_any(fleet, text, len, path, err);
    free(text);
    return rc;
}

static int take_stdin(struct gv_fleet *fleet, struct gv_error *err)
{
    char *text = NULL, block[1 << 16];
    size_t len = 0, n;
    while ((n = fread(block, 1, sizeof(block), stdin)) > 0 && len + n < STREAM_MAX) {
        char *more = realloc(text, len + n + 1);
        if (!more) {
            free(text);
            return gv_fleet_no_memory(err);
        }
        text = more;
        memcpy(text + len, block, n);
        len += n;
        text[len] = '\0';
    }
    int rc = n ? gv_error_set(err, "standard input is longer than %zu MiB", STREAM_MAX >> 20)
             : !text || strlen(text) != len
                 ? gv_error_set(err, "standard input %s", text ? "is no text" : "is empty")
                 : gv_fleet_take_stream(fleet, text, len, "standard input", err);
    free(text);
    return rc;
}

/* nftw hands nothing on. */
static __thread struct found {
    char **paths;
    int n;
    bool failed;
} found;

static int visit(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    const char *name = path + ftw->base, *dot = strrchr(name, '.');
    (void)st;
    if (type != FTW_F || *name == '.' || !dot || strcmp(dot, ".yaml") != 0)
        return 0;
    char **one = found.n < FILES_MAX ? gv_fleet_grow(&found.paths, &found.n, sizeof(char *)) : NULL;
    if (one)
        *one = strdup(path);
    found.failed |= !one || !*one;
    return found.failed;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int take_folder(struct gv_fleet *fleet, const char *path, struct gv_error *err)
{
    int rc = 0;
    found = (struct found){0};
    if (nftw(path, visit, 16, 0) < 0)
        rc = gv_error_at(err, path, 0, 0, "the folder cannot be read: %s", strerror(errno));
    else if (found.failed)
        rc = gv_error_at(err, path, 0, 0, "more than %d profiles, or out of memory", FILES_MAX);
    else if (!found.n)
        rc = gv_error_at(
            err, path, 0, 0,
            "there is no *.yaml in this folder; gv100 calibrate writes one a host");
    if (found.n)
        qsort(found.paths, (size_t)found.n, sizeof(char *), by_name);
    for (int i = 0; i < found.n; i++) {
        if (!rc && found.paths[i])
            rc = take_file(fleet, found.paths[i], false, err);
        free(found.paths[i]);
    }
    free(found.paths);
    return rc;
}

int gv_fleet_add(struct gv_fleet *fleet, const char *path, struct gv_error *err)
{
    struct stat st;
    if (!strcmp(path, "-"))
        return take_stdin(fleet, err);
    if (stat(path, &st))
        return gv_error_at(err, path, 0, 0, "cannot be read: %s", strerror(errno));
    return S_ISDIR(st.st_mode) ? take_folder(fleet, path, err) : take_file(fleet, path, true, err);
}
