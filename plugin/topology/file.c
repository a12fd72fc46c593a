#include "plugin/topology/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Non-blocking, so that a FIFO in the place of a file cannot hold us. */
static int open_regular(const char *path, struct stat *st)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -1;
    if (!fstat(fd, st) && S_ISREG(st->st_mode))
        return fd;
    close(fd);
    errno = S_ISDIR(st->st_mode) ? EISDIR : EINVAL;
    return -1;
}

static int read_all(int fd, size_t most, struct gv_str *out)
{
    char part[16384];
    for (;;) {
        ssize_t n = read(fd, part, sizeof(part));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -1 : 0;
        gv_str_add_n(out, part, (size_t)n);
        if (out->failed || out->len > most) {
            errno = out->failed ? ENOMEM : EFBIG;
            return -1;
        }
    }
}

int gv_tree_read_file(const char *path, size_t most, struct gv_str *out, struct gv_error *err)
{
    struct stat st = {0};
    int fd = open_regular(path, &st);
    if (fd < 0) {
        const char *why = errno == EINVAL ? "not a regular file" : strerror(errno);
        return gv_error_at(err, path, 0, 0, "cannot be read: %s", why);
    }
    int rc = read_all(fd, most, out);
    if (rc)
        gv_error_at(err, path, 0, 0, "cannot be read: %s", strerror(errno));
    close(fd);
    return rc;
}

int gv_tree_read_line(const char *path, char *out, size_t out_size)
{
    struct stat st = {0};
    out[0] = '\0';
    int fd = open_regular(path, &st);
    if (fd < 0)
        return -1;
    ssize_t n = read(fd, out, out_size - 1);
    close(fd);
    out[n > 0 ? n : 0] = '\0';
    out[strcspn(out, "\n")] = '\0';
    return n > 0 ? (int)strlen(out) : -1;
}
