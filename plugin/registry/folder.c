/* The registry's folder: one for each user, nobody else's business. */
#include "plugin/registry/entry.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SIGN_AGE_S 3600

void gv_registry_folder(char *out, unsigned long out_size)
{
    const char *own = secure_getenv("GV100_SHM_DIR");
    if (own && own[0] == '/')
        snprintf(out, out_size, "%s", own);
    else
        snprintf(out, out_size, "/dev/shm/gv100-%u", (unsigned)geteuid());
}

static int check_folder(int fd, const char *folder, struct gv_error *err)
{
    struct stat st;
    if (fstat(fd, &st))
        return gv_error_set(err, "cannot look at %s: %s", folder, strerror(errno));
    if (st.st_uid != geteuid())
        return gv_error_set(
            err,
            "%s belongs to user %u, not to this one; remove it, or name another folder in "
            "GV100_SHM_DIR",
            folder, (unsigned)st.st_uid);
    if (st.st_mode & 077)
        return gv_error_set(
            err, "%s is open to other users (mode %03o); chmod it to 700", folder,
            (unsigned)st.st_mode & 0777);
    return 0;
}

int gv_folder_open(const char *folder, struct gv_error *err)
{
    if (mkdir(folder, 0700) && errno != EEXIST)
        return gv_error_set(
            err,
            "cannot make %s: %s; free or enlarge /dev/shm, or name another folder in GV100_SHM_DIR",
            folder, strerror(errno));
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return gv_error_set(
            err, "cannot open %s: %s; it must be a folder of this user's, not a link", folder,
            strerror(errno));
    if (check_folder(fd, folder, err)) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Removes `name` if nobody holds its lock. */
static int sweep_one(int dirfd, const char *name)
{
    int fd = openat(dirfd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return 0;
    int gone = 0;
    if (!flock(fd, LOCK_EX | LOCK_NB))
        gone = !unlinkat(dirfd, name, 0);
    close(fd);
    return gone;
}

/* Removes a sign that has been there for longer than any init takes. */
static int sweep_sign(int dirfd, const char *name)
{
    struct stat st;
    if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) || time(NULL) - st.st_mtime < SIGN_AGE_S)
        return 0;
    return !unlinkat(dirfd, name, AT_REMOVEDIR);
}

static int sweep_any(int dirfd, const char *name)
{
    if (!strncmp(name, "c-", 2))
        return sweep_one(dirfd, name);
    if (!strncmp(name, GV_SIGN_PREFIX, 2))
        return sweep_sign(dirfd, name);
    return 0;
}

int gv_registry_sweep(const char *folder, int limit)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return 0;
    DIR *dir = check_folder(fd, folder, NULL) ? NULL : fdopendir(fd);
    if (!dir) {
        close(fd);
        return 0;
    }
    int swept = 0;
    struct dirent *item;
    while (limit-- > 0 && (item = readdir(dir)))
        swept += sweep_any(dirfd(dir), item->d_name);
    closedir(dir);
    return swept;
}
