#include <dlfcn.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profiler/cli/virtual.h"

/* The folder with the stand-ins: ../lib/virtual of the program's own. */
static int find_folder(char out[PATH_MAX], struct gv_error *err)
{
    char self[PATH_MAX - 64];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    const char *named = getenv("GV_VIRTUAL_DIR");
    if (n <= 0)
        return gv_error_set(err, "/proc/self/exe cannot be read");
    self[n] = 0;
    for (int i = 0; i < 2; i++)
        if (strrchr(self, '/'))
            *strrchr(self, '/') = 0;
    if (named)
        snprintf(out, PATH_MAX, "%s", named);
    else
        snprintf(out, PATH_MAX, "%s/lib/virtual", self);
    if (!access(out, X_OK))
        return 0;
    return gv_error_set(err, "no virtual driver in %.300s: build with -DGV_TESTS=ON", out);
}

static int
find_machine(const char *name, const char *folder, char out[PATH_MAX], struct gv_error *err)
{
    const char *dot = strrchr(name, '.'), *dirs[] = {getenv("GV_MACHINES_DIR"), folder};
    char path[2 * PATH_MAX];
    if (strchr(name, '/') || (dot && !strcmp(dot, ".yaml"))) {
        if (realpath(name, out))
            return 0;
        return gv_error_at(err, name, 0, 0, "cannot be opened: %m");
    }
    for (int i = 0; i < 2; i++) {
        if (!dirs[i])
            continue;
        snprintf(path, sizeof(path), "%s/%s%s/machine.yaml", dirs[i], i ? "machines/" : "", name);
        if (realpath(path, out))
            return 0;
    }
    return gv_error_set(
        err, "no virtual machine '%s': name a file, or one below %.300s/machines", name, folder);
}

static int make_sysfs(struct gv_virtual *v, struct gv_error *err)
{
    int (*write_tree)(const char *root, char *text);
    char text[512] = "";
    void *library = dlopen(v->cuda, RTLD_NOW | RTLD_LOCAL);
    void *found = library ? dlsym(library, "gv_virtual_sysfs") : NULL;
    const char *tmp = getenv("TMPDIR");
    if (!found)
        return gv_error_set(err, "the virtual driver does not open: %s", dlerror());
    memcpy(&write_tree, &found, sizeof(found));
    snprintf(v->sysfs, sizeof(v->sysfs), "%.40s/gv100-sysfs-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(v->sysfs)) {
        v->sysfs[0] = 0;
        return gv_error_set(err, "no temporary folder: %m");
    }
    if (write_tree(v->sysfs, text))
        return gv_error_set(err, "%s", text);
    setenv("GV100_SYSFS", v->sysfs, 1);
    return 0;
}

int gv_virtual_use(const char *machine, bool with_sysfs, struct gv_virtual *v, struct gv_error *err)
{
    char folder[PATH_MAX], file[PATH_MAX];
    memset(v, 0, sizeof(*v));
    if (find_folder(folder, err) || find_machine(machine, folder, file, err))
        return -1;
    snprintf(v->cuda, sizeof(v->cuda), "%.4000s/libcuda.so.1", folder);
    snprintf(v->nvml, sizeof(v->nvml), "%.4000s/libnvidia-ml.so.1", folder);
    snprintf(v->nccl, sizeof(v->nccl), "%.4000s/libnccl.so.2", folder);
    setenv("GV_VIRTUAL_MACHINE", file, 1);
    if (!with_sysfs || !make_sysfs(v, err))
        return 0;
    gv_virtual_finish(v);
    return -1;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

void gv_virtual_finish(struct gv_virtual *v)
{
    if (v->sysfs[0])
        nftw(v->sysfs, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    v->sysfs[0] = 0;
}
