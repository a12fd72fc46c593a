#include "base/gv_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int fail_errno(struct gv_error *err, const char *path, const char *what)
{
    int saved = errno;
    char text[128];
    const char *why = strerror_r(saved, text, sizeof(text));
    return gv_error_at(err, path, 0, 0, "%s: %s", what, why);
}

static const char *kind_of(const struct stat *st)
{
    return S_ISDIR(st->st_mode)    ? "a folder"
           : S_ISFIFO(st->st_mode) ? "a pipe"
           : S_ISSOCK(st->st_mode) ? "a socket"
                                   : "a device";
}

static int believe(
    const struct stat *st, const char *path, enum gv_file_trust trust, size_t most,
    struct gv_error *err)
{
    if (!S_ISREG(st->st_mode))
        return gv_error_at(err, path, 0, 0, "this is %s, a file is expected", kind_of(st));
    if (st->st_size > (off_t)most)
        return gv_error_at(
            err, path, 0, 0, "the file has %lld bytes, more than the %zu that are read",
            (long long)st->st_size, most);
    if (trust == GV_FILE_ANY)
        return 0;
    if (st->st_uid != 0 && st->st_uid != geteuid())
        return gv_error_at(
            err, path, 0, 0, "not believed: it belongs to user %u, neither to root nor to user %u",
            (unsigned)st->st_uid, (unsigned)geteuid());
    if (st->st_mode & (S_IWGRP | S_IWOTH))
        return gv_error_at(
            err, path, 0, 0, "not believed: others may write to it (mode %04o); chmod go-w it",
            (unsigned)st->st_mode & 07777u);
    return 0;
}

/* Reads into a text that grows; *n is its length even where the limit was passed. NULL: errno. */
static char *read_up_to_limit(int fd, size_t most, size_t *n)
{
    size_t cap = 16384;
    char *text = malloc(cap + 1);
    for (*n = 0; text && *n <= most;) {
        ssize_t got = read(fd, text + *n, cap - *n);
        if (got < 0 && errno != EINTR) {
            free(text);
            return NULL;
        }
        if (got == 0)
            break;
        *n += got > 0 ? (size_t)got : 0;
        if (*n == cap) {
            char *more = realloc(text, (cap *= 2) + 1);
            if (!more)
                free(text);
            text = more;
        }
    }
    return text;
}

/* Files of sysfs and proc do not say their size, so what counts is what was read. */
static char *slurp(int fd, const char *path, size_t most, size_t *len, struct gv_error *err)
{
    size_t n;
    char *text = read_up_to_limit(fd, most, &n);
    if (!text) {
        fail_errno(err, path, "cannot be read");
        return NULL;
    }
    if (n > most) {
        gv_error_at(err, path, 0, 0, "the file is larger than %zu bytes", most);
        free(text);
        return NULL;
    }
    text[n] = '\0';
    *len = n;
    return text;
}

char *gv_file_read(
    const char *path, enum gv_file_trust trust, size_t most, size_t *len, struct gv_error *err)
{
    int flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY;
    int fd = open(path, trust == GV_FILE_TRUSTED ? flags | O_NOFOLLOW : flags);
    if (fd < 0) {
        if (errno == ELOOP && trust == GV_FILE_TRUSTED)
            gv_error_at(err, path, 0, 0, "not believed: it is a symbolic link");
        else
            fail_errno(err, path, "cannot be opened");
        return NULL;
    }
    struct stat st;
    char *text = NULL;
    if (fstat(fd, &st))
        fail_errno(err, path, "cannot be read");
    else if (!believe(&st, path, trust, most, err))
        text = slurp(fd, path, most, len, err);
    close(fd);
    return text;
}

int gv_file_line(const char *path, char *out, size_t size)
{
    out[0] = '\0';
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return -1;
    struct stat st;
    ssize_t n = -1;
    if (!fstat(fd, &st) && S_ISREG(st.st_mode))
        n = read(fd, out, size);
    close(fd);
    if (n <= 0) {
        out[0] = '\0';
        return -1;
    }
    size_t len = 0;
    while (len < (size_t)n && out[len] && out[len] != '\n')
        len++;
    if (len == size) { /* no end in sight: not what it should be */
        out[0] = '\0';
        return -1;
    }
    while (len && (out[len - 1] == ' ' || out[len - 1] == '\t' || out[len - 1] == '\r'))
        len--;
    out[len] = '\0';
    return 0;
}

static int make_folders(const char *path, struct gv_error *err)
{
    char dir[PATH_MAX];
    if (snprintf(dir, sizeof(dir), "%s", path) >= (int)sizeof(dir))
        return gv_error_at(err, path, 0, 0, "the path is too long");
    for (char *slash = strchr(dir + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(dir, 0755) && errno != EEXIST)
            return fail_errno(err, dir, "the folder cannot be made");
        *slash = '/';
    }
    return 0;
}

static int write_all(int fd, const char *text, size_t len)
{
    while (len) {
        ssize_t n = write(fd, text, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        text += n;
        len -= (size_t)n;
    }
    return 0;
}

/* The rename itself must survive a power cut too; where a folder cannot be synced it is as it is.
 */
static void sync_folder(const char *path)
{
    char dir[PATH_MAX];
    snprintf(dir, sizeof(dir), "%s", path);
    char *slash = strrchr(dir, '/');
    if (slash)
        slash[slash == dir] = '\0';
    int fd = open(slash ? dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    fsync(fd);
    close(fd);
}

/* Fills the open temporary file and makes it `path`. */
static int fill_and_rename(
    int fd, const char *temp, const char *path, const char *text, size_t len, unsigned mode,
    struct gv_error *err)
{
    bool bad = fchmod(fd, (mode_t)mode) || write_all(fd, text, len) || fsync(fd);
    if (bad)
        fail_errno(err, path, "cannot be written");
    if (close(fd) && !bad) {
        bad = true;
        fail_errno(err, path, "cannot be written");
    }
    if (bad)
        return -1;
    return rename(temp, path) ? fail_errno(err, path, "cannot be replaced") : 0;
}

/* The open temporary file beside `path`, its name in `temp`; -1 with `err`. */
static int open_beside(const char *path, char temp[PATH_MAX], struct gv_error *err)
{
    struct stat st;
    if (!path[0])
        return gv_error_set(err, "the name of the file to write is empty");
    if (!stat(path, &st) && !S_ISREG(st.st_mode))
        return gv_error_at(err, path, 0, 0, "this is %s, a file is expected", kind_of(&st));
    if (make_folders(path, err))
        return -1;
    if (snprintf(temp, PATH_MAX, "%s.XXXXXX", path) >= PATH_MAX)
        return gv_error_at(err, path, 0, 0, "the path is too long");
    int fd = mkostemp(temp, O_CLOEXEC);
    return fd < 0 ? fail_errno(err, path, "cannot be written") : fd;
}

int gv_file_replace(
    const char *path, const char *text, size_t len, unsigned mode, struct gv_error *err)
{
    char temp[PATH_MAX];
    int fd = open_beside(path, temp, err);
    if (fd < 0)
        return -1;
    if (fill_and_rename(fd, temp, path, text, len, mode, err)) {
        unlink(temp);
        return -1;
    }
    sync_folder(path);
    return 0;
}

int gv_file_try_replace(const char *path, struct gv_error *err)
{
    char temp[PATH_MAX];
    int fd = open_beside(path, temp, err);
    if (fd < 0)
        return -1;
    close(fd);
    unlink(temp);
    return 0;
}
