/* The driver's device files: what it may not open it only calls "no device". */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profiler/gpu/gv_device_files.h"

static const char *user_name(uid_t uid, char *out, size_t size)
{
    const struct passwd *user = getpwuid(uid);
    if (user)
        snprintf(out, size, "%s (uid %u)", user->pw_name, (unsigned)uid);
    else
        snprintf(out, size, "uid %u", (unsigned)uid);
    return out;
}

static void explain(const char *path, int error, char *out, size_t size)
{
    char who[64], owner[64];
    struct stat st;
    user_name(geteuid(), who, sizeof(who));
    if (stat(path, &st)) {
        snprintf(out, size, "%s cannot be looked at by %s: %s", path, who, strerror(error));
        return;
    }
    const struct group *group = getgrgid(st.st_gid);
    snprintf(
        out, size,
        "%s cannot be opened for reading and writing by %s: %s; it belongs to %s, group %s, mode "
        "%04o",
        path, who, strerror(error), user_name(st.st_uid, owner, sizeof(owner)),
        group ? group->gr_name : "?", (unsigned)st.st_mode & 07777);
}

bool gv_device_file_closed(char *out, size_t size)
{
    static const char *const names[] = {"nvidiactl", "nvidia[0-9]*", "nvidia-uvm"};
    const char *root = getenv("GV100_DEV");
    char pattern[PATH_MAX];
    bool closed = false;
    for (size_t n = 0; n < sizeof(names) / sizeof(names[0]) && !closed; n++) {
        glob_t files;
        snprintf(pattern, sizeof(pattern), "%.4000s/%s", root && *root ? root : "/dev", names[n]);
        if (glob(pattern, 0, NULL, &files))
            continue;
        for (size_t i = 0; i < files.gl_pathc && !closed; i++) {
            int fd = open(files.gl_pathv[i], O_RDWR | O_CLOEXEC | O_NONBLOCK);
            if (fd >= 0)
                close(fd);
            else if (errno == EACCES || errno == EPERM) {
                explain(files.gl_pathv[i], errno, out, size);
                closed = true;
            }
        }
        globfree(&files);
    }
    return closed;
}
