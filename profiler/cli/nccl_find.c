/* Which libnccl.so.2 is meant: the program's, Python's, the loader's. */
#include <stdlib.h>
#include <string.h>

#include "profiler/cli/capture.h"
#include "profiler/cli/cli.h"
#include "profiler/cli/loader.h"
#include "profiler/cli/nccl.h"

static const char library[] = "libnccl.so.2";

struct found {
    struct gv_nccl *list;
    int n;
};

/* Adds the file unless it cannot be read or is already there under another name. */
static bool add(struct found *f, const char *path, const char *how)
{
    char real[PATH_MAX], other[PATH_MAX];
    if (f->n == GV_NCCL_MAX || !realpath(path, real))
        return false;
    for (int i = 0; i < f->n; i++)
        if (realpath(f->list[i].path, other) && !strcmp(real, other))
            return true;
    if (gv_nccl_read(path, &f->list[f->n], NULL))
        return false;
    snprintf(f->list[f->n].how, sizeof(f->list[f->n].how), "%s", how);
    f->n++;
    return true;
}

/* The wheels that torch depends on bring nvidia/nccl; older torch wheels have it beside their own
 * libraries. torch's run path comes before LD_LIBRARY_PATH. */
static bool in_site_folder(struct found *f, const char *folder, const char *how)
{
    static const char *const places[] = {"nvidia/nccl/lib", "torch/lib"};
    for (int i = 0; i < 2; i++) {
        char path[PATH_MAX];
        int n = snprintf(path, sizeof(path), "%s/%s/%s", folder, places[i], library);
        if (n < (int)sizeof(path) && add(f, path, how))
            return true;
    }
    return false;
}

/* Asks that Python for its search path: virtual environments, conda and user folders need no rule
 * of their own then. */
static bool of_python(struct found *f, const char *python)
{
    const char *argv[] = {python, "-c", "import sys; print('\\n'.join(sys.path))", NULL};
    struct gv_str paths = {0};
    bool hit = false;
    if (!gv_capture(argv, 10000, &paths) && paths.data) {
        const char *base = strrchr(python, '/');
        char *rest = NULL;
        for (char *folder = strtok_r(paths.data, "\n", &rest); folder && !hit;
             folder = strtok_r(NULL, "\n", &rest))
            hit = in_site_folder(f, folder, base ? base + 1 : python);
    }
    gv_str_free(&paths);
    return hit;
}

static bool is_python(const char *path)
{
    const char *base = strrchr(path, '/');
    return !strncmp(base ? base + 1 : path, "python", 6);
}

/* What `command` itself would load, where that can be told. */
static bool of_program(struct found *f, const char *command)
{
    char path[PATH_MAX], linked[PATH_MAX], interpreter[PATH_MAX];
    if (gv_program_path(command, path))
        return false;
    if (is_python(path))
        return of_python(f, path);
    if (!gv_script_interpreter(path, interpreter, sizeof(interpreter)))
        return is_python(interpreter) && of_python(f, interpreter);
    return !gv_loader_linked(path, library, linked) && add(f, linked, "the program");
}

int gv_nccl_find(const char *command, struct gv_nccl out[GV_NCCL_MAX], bool *certain)
{
    struct found f = {out, 0};
    *certain = command && of_program(&f, command);
    of_python(&f, "python3");
    char paths[GV_NCCL_MAX][PATH_MAX];
    int n = gv_loader_search(library, paths, GV_NCCL_MAX);
    for (int i = 0; i < n; i++)
        add(&f, paths[i], "the loader");
    return f.n;
}
