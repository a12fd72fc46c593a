#include "profiler/cli/bundle_open.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profiler/cli/capture.h"

/* Where the one bundle of this process lies; removed when it ends. */
static char folder[] = "/tmp/gv100-replay-XXXXXX";

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static void remove_folder(void)
{
    nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

bool gv_is_bundle(const char *path)
{
    struct stat st;
    return path && !stat(path, &st) && S_ISREG(st.st_mode);
}

/* Nothing of an archive may come to lie outside of the folder, or be a link that leads there: tar
 * refuses absolute names and "..", and the links of sysfs are looked at here. */
static int check_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    char real[PATH_MAX];
    (void)st, (void)ftw;
    if (type != FTW_SL && type != FTW_SLN)
        return 0;
    size_t n = sizeof(folder) - 1;
    return !realpath(path, real) || __builtin_strncmp(real, folder, n) || real[n] != '/';
}

int gv_bundle_open(
    const char *path, char sysfs[PATH_MAX], char profile[PATH_MAX], struct gv_error *err)
{
    if (!mkdtemp(folder))
        return gv_error_at(err, folder, 0, 0, "cannot be made: %m");
    atexit(remove_folder);
    const char *argv[] = {"tar", "--force-local", "--no-same-owner", "-C", folder, "-xf", path,
                          NULL};
    struct gv_str out = {0};
    int rc = gv_capture(argv, 120000, &out);
    gv_str_free(&out);
    snprintf(sysfs, PATH_MAX, "%s/sysfs", folder);
    snprintf(profile, PATH_MAX, "%s/profile.yaml", folder);
    if (rc || access(sysfs, X_OK))
        return gv_error_at(err, path, 0, 0, "is no bundle of `gv100 bundle`");
    if (nftw(folder, check_entry, 16, FTW_PHYS))
        return gv_error_at(err, path, 0, 0, "has a link that leads out of it, and is refused");
    if (access(profile, R_OK))
        profile[0] = '\0';
    return 0;
}
