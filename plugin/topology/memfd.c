/* The file that NCCL is told to read: in memory, sealed, and read back on the way NCCL takes. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/gv_file.h"
#include "plugin/topology/tree.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U /* Linux 6.3; needed where vm.memfd_noexec is 2 */
#endif

static int create(void)
{
    static const char name[] = "gv100-topology.xml";
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 && errno == EACCES)
        fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    return fd;
}

static int write_all(int fd, const char *data, size_t len)
{
    while (len) {
        ssize_t n = write(fd, data, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        data += n;
        len -= (size_t)n;
    }
    return 0;
}

/* What NCCL will see is what was meant. */
static int read_back(const struct gv_tree *tree, int fd, struct gv_error *err)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    struct gv_tree *again = gv_tree_from_file(path, err);
    if (!again)
        return -1;
    bool same = gv_elem_equal(tree->root, again->root);
    gv_tree_free(again);
    return same ? 0 : gv_error_at(err, path, 0, 0, "the topology reads back differently");
}

int gv_tree_memfd(const struct gv_tree *tree, struct gv_error *err)
{
    struct gv_str text = {0};
    if (gv_tree_format(tree, &text)) {
        gv_str_free(&text);
        return gv_error_set(err, "the topology does not fit into memory");
    }
    int fd = create();
    int rc = fd < 0 ? -1 : write_all(fd, text.data, text.len);
    const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;
    if (!rc)
        rc = fcntl(fd, F_ADD_SEALS, seals);
    if (rc)
        gv_error_set(err, "the topology cannot be written to a memfd: %s", strerror(errno));
    gv_str_free(&text);
    if (!rc)
        rc = read_back(tree, fd, err);
    if (!rc)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}
