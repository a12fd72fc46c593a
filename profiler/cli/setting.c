#include "profiler/cli/setting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/gv_str.h"

#ifndef GV_INSTALL_LIBDIR
#define GV_INSTALL_LIBDIR "/usr/local/lib"
#endif

static const char plugin[] = "libnccl-tuner-gv100.so";

/* The env slot came with NCCL 2.28.7; the tuner slot, and with it all that the plugin does, with
 * 2.19. */
const struct gv_setting gv_settings[GV_SETTINGS] = {
    {"LD_PRELOAD", 21900, 22806, "transport, algorithm, protocol"},
    {"NCCL_ENV_PLUGIN", 22807, 0, "transport, algorithm, protocol"},
};

unsigned gv_settings_for(int nccl_version)
{
    unsigned bits = 0;
    for (int i = 0; i < GV_SETTINGS; i++) {
        const struct gv_setting *s = &gv_settings[i];
        if (!nccl_version || (nccl_version >= s->from && (!s->to || nccl_version <= s->to)))
            bits |= 1u << i;
    }
    return bits;
}

static int found(const char *folder, const char *below, char out[PATH_MAX])
{
    char path[2 * PATH_MAX];
    snprintf(path, sizeof(path), "%s%s/%s", folder, below, plugin);
    return strlen(path) < PATH_MAX && realpath(path, out) && !access(out, R_OK);
}

static int named(const char *path, char out[PATH_MAX], struct gv_error *err)
{
    if (realpath(path, out) && !access(out, R_OK))
        return 0;
    return gv_error_at(
        err, path, 0, 0,
        "GV100_PLUGIN names this file and it cannot be read; unset it, or name "
        "the installed %s",
        plugin);
}

int gv_plugin_path(char out[PATH_MAX], struct gv_error *err)
{
    static const char *const beside[] = {"/../lib", "/../lib64", "/../" GV_INSTALL_LIBNAME};
    const char *set = getenv("GV100_PLUGIN");
    if (set && *set)
        return named(set, out, err);
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (n > 0) {
        self[n] = '\0';
        char *slash = strrchr(self, '/');
        if (slash)
            *slash = '\0';
        for (size_t i = 0; slash && i < sizeof(beside) / sizeof(beside[0]); i++)
            if (found(self, beside[i], out))
                return 0;
    }
    if (found(GV_INSTALL_LIBDIR, "", out))
        return 0;
    return gv_error_set(
        err,
        "%s is neither beside this command nor in %s; build it (./setup build) or name it in "
        "GV100_PLUGIN",
        plugin, GV_INSTALL_LIBDIR);
}

int gv_plugin_path_fits(const char *path, unsigned settings, struct gv_error *err)
{
    if (!(settings & 1u) || !strpbrk(path, " \t:"))
        return 0;
    return gv_error_at(
        err, path, 0, 0,
        "LD_PRELOAD cannot hold a path with a blank or a colon; link the plugin "
        "from a folder without one and name the link in GV100_PLUGIN");
}

static int preload(const char *path)
{
    const char *old = getenv("LD_PRELOAD");
    if (!old || !*old)
        return setenv("LD_PRELOAD", path, 1);
    struct gv_str both = {0};
    gv_str_addf(&both, "%s:%s", path, old);
    int rc = both.failed ? -1 : setenv("LD_PRELOAD", both.data, 1);
    gv_str_free(&both);
    return rc;
}

void gv_settings_apply(unsigned settings, const char *path)
{
    for (int i = 0; i < GV_SETTINGS; i++) {
        if (!(settings >> i & 1))
            continue;
        if (!strcmp(gv_settings[i].variable, "LD_PRELOAD"))
            preload(path);
        else
            setenv(gv_settings[i].variable, path, 0);
    }
}
