/* gv100 log: what a job's NCCL log says. */
#include <stdlib.h>

#include "config/gv_machine.h"
#include "profiler/cli/cli.h"
#include "profiler/cli/log.h"
#include "profiler/cli/source.h"

struct input {
    const char *file, *against, *profile;
    bool json;
};

static error_t on_option(int key, char *arg, struct argp_state *state)
{
    struct input *in = state->input;
    switch (key) {
    case 'a':
        in->against = arg;
        return 0;
    case 'p':
        in->profile = arg;
        return 0;
    case 'j':
        in->json = true;
        return 0;
    case ARGP_KEY_ARG:
        if (in->file)
            argp_error(state, "one log at a time; --against FILE compares two");
        in->file = arg;
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "name the log of a job that ran with NCCL_DEBUG=INFO");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option options[] = {
    {"against", 'a', "FILE", 0, "What changed since this log", 0},
    {"profile", 'p', "NAME|FILE", 0, "Figures of this profile for each edge, and the slowest", 0},
    {"json", 'j', 0, 0, "JSON", 0},
    {0},
};

static const struct argp argp = {
    options,
    on_option,
    "FILE",
    "Reads the log of a job that ran with NCCL_DEBUG=INFO, of any NCCL release: which "
    "communicators there were, their rings, the transport of each edge, whether a tuner plugin was "
    "in use, and what gv100 decided."
    "\v"
    "Logs of several ranks in one file, behind tags of mpirun, or cut at either end are read as "
    "far "
    "as they go; what is cut is left out. Edges are named by rank; the GPU of a rank stands beside "
    "it where the log tells.\n"
    "\n"
    "Examples:\n"
    "  gv100 log job.log --profile 4028\n"
    "  gv100 log today.log --against yesterday.log\n",
    NULL,
    NULL,
    NULL,
};

static int open_all(
    const struct input *in, struct gv_log_view *v, struct gv_source **source, struct gv_error *err)
{
    v->path = in->file;
    v->against_path = in->against;
    if (in->profile) {
        *source = gv_source_open(in->profile, NULL, err);
        if (!*source)
            return -1;
        v->profile = (*source)->profile;
    }
    v->log = gv_nlog_read(in->file, err);
    if (v->log && in->against)
        v->against = gv_nlog_read(in->against, err);
    return v->log && (v->against || !in->against) ? 0 : -1;
}

static int run(const struct gv_command *self, int argc, char **argv)
{
    struct input in = {0};
    struct gv_log_view view = {0};
    struct gv_source *source = NULL;
    struct gv_error err;
    int rc = GV_EXIT_OK;
    gv_cli_parse(self, argc, argv, 0, &in);
    if (open_all(&in, &view, &source, &err))
        rc = gv_cli_fail(self, GV_EXIT_FAILED, &err);
    else if (in.json)
        rc = gv_json_print(self, gv_log_json(&view), rc);
    else
        gv_log_text(&view);
    gv_nlog_free((struct gv_nlog *)view.log);
    gv_nlog_free((struct gv_nlog *)view.against);
    if (source)
        gv_source_free(source);
    return rc;
}

const struct gv_command gv_cmd_log = {
    "log",
    "what a job's NCCL log says: rings, transports, plugins",
    &argp,
    run,
};
