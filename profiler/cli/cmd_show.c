/* gv100 show: a profile, whole. */
#include "profiler/cli/cli.h"
#include "profiler/cli/html.h"
#include "profiler/cli/show.h"
#include "profiler/cli/source.h"

struct input {
    const char *profile, *machine, *html;
    bool json;
};

enum { KEY_HTML = 256 };

static error_t on_option(int key, char *arg, struct argp_state *state)
{
    struct input *in = state->input;
    switch (key) {
    case 'p':
        in->profile = arg;
        return 0;
    case 'm':
        in->machine = arg;
        return 0;
    case KEY_HTML:
        in->html = arg;
        return 0;
    case 'j':
        in->json = true;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option options[] = {
    {"profile", 'p', "NAME|FILE", 0, "This profile; no machine is needed then", 0},
    {"machine", 'm', "FOLDER", 0, "A machine's sysfs root instead of the live /sys", 0},
    {"html", KEY_HTML, "FILE", 0, "A report with pictures, in one HTML file, instead", 0},
    {"json", 'j', 0, 0, "JSON", 0},
    {0},
};

static const struct argp argp = {
    options,
    on_option,
    NULL,
    "Prints a profile: where its figures come from, the GPUs, the paths as a matrix like that of "
    "nvidia-smi topo -m and with figures, memory, host links, and every measured group with all of "
    "its samples."
    "\v"
    "Without --profile, the one that matches this machine.\n"
    "\n"
    "Example:\n"
    "  gv100 show --profile 4028\n"
    "  gv100 show --profile 4028 --html 4028.html\n",
    NULL,
    NULL,
    NULL,
};

static int run(const struct gv_command *self, int argc, char **argv)
{
    struct input in = {0};
    struct gv_error err;
    gv_cli_parse(self, argc, argv, 0, &in);
    struct gv_source *s = gv_source_open(in.profile, in.machine, &err);
    if (!s)
        return gv_cli_fail(self, GV_EXIT_FAILED, &err);
    int rc = GV_EXIT_OK;
    if (in.html && gv_html_profile(s->profile, s->path, in.html, &err))
        rc = gv_cli_fail(self, GV_EXIT_FAILED, &err);
    else if (in.html)
        rc = GV_EXIT_OK;
    else if (in.json)
        rc = gv_json_print(self, gv_show_json(s->profile, s->path), rc);
    else
        gv_show_text(s->profile, s->path);
    gv_source_free(s);
    return rc;
}

const struct gv_command gv_cmd_show = {
    "show",
    "print a profile: machine, paths, memory, groups",
    &argp,
    run,
};
