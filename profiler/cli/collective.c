#include "profiler/cli/collective.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profiler/cli/cli.h"
#include "profiler/cli/nccl.h"
#include "profiler/cli/setting.h"

/* What the virtual NCCL checks and moves of each buffer; under its own bound. */
#define VIRTUAL_CHECK ((size_t)32 << 10)

/* The virtual NCCL plays the release in its file's name, or the environment's. */
static int virtual_release(const char *path)
{
    const char *name = strstr(path, "libnccl.so.2."), *played = getenv("GV_HOST_RELEASE");
    return gv_nccl_parse(name ? name + strlen("libnccl.so.") : played ? played : "2.28.9");
}

static int find_nccl(
    struct gv_collective_setup *s, const char *machine, const char *named, struct gv_error *err)
{
    struct gv_nccl list[GV_NCCL_MAX];
    bool certain;
    if (!named && !gv_nccl_find(NULL, list, &certain))
        return gv_error_set(
            err, "no libnccl.so.2 was found, neither python3's nor the loader's; --nccl PATH names "
                 "one");
    if (named && access(named, R_OK))
        return gv_error_at(err, named, 0, 0, "cannot be read: %m");
    if (named && !machine && gv_nccl_read(named, &list[0], err))
        return -1;
    snprintf(s->nccl, sizeof(s->nccl), "%s", named ? named : list[0].path);
    s->options.nccl_version = machine ? virtual_release(s->nccl) : list[0].version;
    return 0;
}

int gv_collective_prepare(
    struct gv_collective_setup *s, const struct gv_measuring *m, const char *machine,
    const char *nccl, struct gv_error *err)
{
    struct gv_collective_options *o = &s->options;
    memset(s, 0, sizeof(*s));
    o->self = m->self;
    o->cuda = machine ? m->virtual_files.cuda : NULL;
    o->nvml = machine ? m->virtual_files.nvml : NULL;
    o->nccl = s->nccl;
    o->plugin = s->plugin;
    o->virtual_driver = machine != NULL;
    o->check_bytes = machine ? VIRTUAL_CHECK : 0;
    o->stop = m->options.stop;
    if (!nccl && machine)
        nccl = m->virtual_files.nccl;
    if (find_nccl(s, machine, nccl, err) || gv_plugin_path(s->plugin, err))
        return -1;
    return gv_plugin_path_fits(s->plugin, gv_settings_for(o->nccl_version), err);
}
