/* Where a tree comes from. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/gv_file.h"
#include "plugin/topology/tree.h"

struct gv_tree *gv_tree_from_file(const char *path, struct gv_error *err)
{
    size_t len;
    char *text = gv_file_read(path, GV_FILE_ANY, GV_TREE_MAX_FILE, &len, err);
    if (!text)
        return NULL;
    struct gv_tree *tree = NULL;
    if (len)
        tree = gv_tree_parse(text, len, path, err);
    else
        gv_error_at(err, path, 0, 0, "is empty");
    free(text);
    return tree;
}

/* The file that NCCL reads where NCCL_TOPO_FILE is not set; beside another machine's sysfs it is
 * looked for beside that. */
static void virtual_file(const char *sysfs, char *out, size_t size)
{
    static const char name[] = "/var/run/nvidia-topologyd/virtualTopology.xml";
    size_t len = strlen(sysfs);
    if (len >= 4 && !strcmp(sysfs + len - 4, "/sys"))
        len -= 4;
    snprintf(out, size, "%.*s%s", (int)len, sysfs, name);
}

struct gv_tree *gv_tree_base(const char *user_file, const char *sysfs, struct gv_error *err)
{
    char path[PATH_MAX];
    if (user_file && *user_file)
        return gv_tree_from_file(user_file, err);
    virtual_file(sysfs, path, sizeof(path));
    if (!access(path, F_OK))
        return gv_tree_from_file(path, err);
    return gv_tree_from_sysfs(sysfs, err);
}
