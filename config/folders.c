#include "config/folders.h"

#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/gv_machine.h"

#define MOST_FILES 256

int gv_folder_of_user(const char *xdg, const char *below_home, char *out)
{
    const char *dir = secure_getenv(xdg), *home = secure_getenv("HOME");
    int n = -1;
    if (dir && *dir == '/') /* the XDG rule: a relative path is no path */
        n = snprintf(out, PATH_MAX, "%s/gv100", dir);
    else if (home && *home == '/')
        n = snprintf(out, PATH_MAX, "%s/%s/gv100", home, below_home);
    return n > 0 && n < PATH_MAX ? 0 : -1;
}

static bool wanted(const char *name)
{
    size_t len = strlen(name);
    return *name != '.' && len > 5 && !strcmp(name + len - 5, ".yaml");
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int gv_folder_list(const char *dir, char ***names, int *n)
{
    DIR *folder = opendir(dir);
    *names = NULL;
    *n = 0;
    if (!folder)
        return -1;
    char **list = calloc(MOST_FILES, sizeof(*list));
    for (struct dirent *entry; list && *n < MOST_FILES && (entry = readdir(folder));) {
        char *copy = wanted(entry->d_name) ? strdup(entry->d_name) : NULL;
        if (copy)
            list[(*n)++] = copy;
    }
    closedir(folder);
    if (!list)
        return -1;
    qsort(list, (size_t)*n, sizeof(*list), by_name);
    *names = list;
    return 0;
}

void gv_folder_free(char **names, int n)
{
    for (int i = 0; i < n; i++)
        free(names[i]);
    free(names);
}

static bool is_folder(const char *path)
{
    struct stat st;
    return !stat(path, &st) && S_ISDIR(st.st_mode);
}

/* The folder of the file that holds this code: the plugin, or the program itself (whose name the
 * loader knows only as it was typed). */
static int own_folder(char *out)
{
    static const char here;
    Dl_info info;
    char real[PATH_MAX];
    const char *name = NULL;
    if (dladdr(&here, &info))
        name = info.dli_fname;
    bool library = name && strstr(name, ".so");
    if (!realpath(library || (name && *name == '/') ? name : "/proc/self/exe", real))
        return -1;
    char *slash = strrchr(real, '/');
    if (!slash)
        return -1;
    *slash = '\0';
    return snprintf(out, PATH_MAX, "%s", real) < PATH_MAX ? 0 : -1;
}

/* Writes the real path of `dir`/`below` if that is a folder. */
static bool take_folder(const char *dir, const char *below, char *out)
{
    char path[PATH_MAX], real[PATH_MAX];
    if (snprintf(path, sizeof(path), "%s/%s", dir, below) >= (int)sizeof(path) ||
        !realpath(path, real) || !is_folder(real))
        return false;
    memcpy(out, real, sizeof(real));
    return true;
}

int gv_profile_shipped_folder(char *out, struct gv_error *err)
{
    static const char *const near[] = {
        "../share/gv100/profiles", "../../share/gv100/profiles", "profiles"};
    const char *named = secure_getenv("GV100_PROFILE_DIR");
    char own[PATH_MAX];
    if (named && *named)
        return take_folder(named, "", out)
                   ? 0
                   : gv_error_set(err, "GV100_PROFILE_DIR is no folder: %.200s", named);
    if (!own_folder(own))
        for (unsigned i = 0; i < sizeof(near) / sizeof(near[0]); i++)
            if (take_folder(own, near[i], out))
                return 0;
    if (take_folder(GV_SHARE_DIR, "profiles", out))
        return 0;
    return gv_error_set(
        err, "the shipped profiles are not found beside this installation; name their folder with "
             "GV100_PROFILE_DIR");
}
