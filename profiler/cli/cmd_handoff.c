/* gv100 handoff: what a stage's hand-off takes, over both paths, and whether the direct one pays.
 */
#include <stdlib.h>
#include <string.h>

#include "base/gv_size.h"
#include "profiler/cli/handoff.h"
#include "profiler/cli/measure.h"

struct input {
    struct gv_measuring m;
    struct gv_ab_options o;
    const char *machine, *profile;
    bool json, save, exit_code;
};

enum {
    KEY_FROM = 256,
    KEY_TO,
    KEY_BYTES,
    KEY_COMPUTE,
    KEY_STEPS,
    KEY_SAMPLES,
    KEY_TRAFFIC,
    KEY_GRAPH,
    KEY_SAVE,
    KEY_PROFILE,
    KEY_VIRTUAL,
    KEY_EXIT
};

static const struct argp_option options[] = {
    {"from", KEY_FROM, "GPU", 0, "GPU of the stage before (0)", 0},
    {"to", KEY_TO, "GPU", 0, "GPU of the stage after (1)", 0},
    {"bytes", KEY_BYTES, "SIZE", 0, "Bytes handed over in each step (64M)", 0},
    {"compute-us", KEY_COMPUTE, "N", 0, "What a step computes, half on each GPU (0)", 0},
    {"host-traffic", KEY_TRAFFIC, 0, 0, "Both GPUs pull from host memory meanwhile", 0},
    {"graph", KEY_GRAPH, 0, 0, "Capture the steps once and replay them", 0},
    {"steps", KEY_STEPS, "N", 0, "Steps in a sample (as many as last 0.1 s, at most 20)", 0},
    {"samples", KEY_SAMPLES, "N", 0, "Samples, 5 to 32 (9)", 0},
    {"save", KEY_SAVE, 0, 0, "Write the result into the profile", 0},
    {"profile", KEY_PROFILE, "NAME|FILE", 0, "The profile for --save; else the one found", 0},
    {"virtual", KEY_VIRTUAL, "MACHINE", 0, "A virtual machine, by name or file", 0},
    {"exit-code", KEY_EXIT, 0, 0, "Exit with 1 unless the direct path gains", 0},
    {"json", 'j', 0, 0, "JSON", 0},
    {0},
};

static int number(const char *text, int low, int high, const char *name, struct argp_state *state)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (end == text || *end || value < low || value > high)
        argp_error(state, "%s: '%s' is no number from %d to %d", name, text, low, high);
    return (int)value;
}

static size_t size(const char *text, struct argp_state *state)
{
    uint64_t bytes = 0;
    struct gv_error err;
    if (gv_size_parse(text, &bytes, &err))
        argp_error(state, "--bytes: %s", err.text);
    if (bytes < 16 || bytes % 16)
        argp_error(state, "--bytes: '%s' is no multiple of 16", text);
    return bytes;
}

static double microseconds(const char *text, struct argp_state *state)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value >= 0) || value > 60e6)
        argp_error(state, "--compute-us: '%s' is no number from 0 to 60000000", text);
    return value;
}

static error_t on_measure(int key, char *arg, struct argp_state *state)
{
    struct gv_ab_options *o = &((struct input *)state->input)->o;
    switch (key) {
    case KEY_FROM:
        o->from = number(arg, 0, GV_MAX_GPUS - 1, "--from", state);
        return 0;
    case KEY_TO:
        o->to = number(arg, 0, GV_MAX_GPUS - 1, "--to", state);
        return 0;
    case KEY_BYTES:
        o->bytes = size(arg, state);
        return 0;
    case KEY_COMPUTE:
        o->compute_us = microseconds(arg, state);
        return 0;
    case KEY_STEPS:
        o->steps = number(arg, 1, 1000, "--steps", state);
        return 0;
    case KEY_SAMPLES:
        o->samples = number(arg, 5, GV_MAX_SAMPLES, "--samples", state);
        return 0;
    case KEY_TRAFFIC:
        o->host_traffic = true;
        return 0;
    case KEY_GRAPH:
        o->graph = true;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static error_t on_option(int key, char *arg, struct argp_state *state)
{
    struct input *in = state->input;
    switch (key) {
    case KEY_SAVE:
        in->save = true;
        return 0;
    case KEY_PROFILE:
        in->profile = arg;
        return 0;
    case KEY_VIRTUAL:
        in->machine = arg;
        return 0;
    case KEY_EXIT:
        in->exit_code = true;
        return 0;
    case 'j':
        in->json = true;
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "'%s' is no option; GPUs are named by --from and --to", arg);
        return 0;
    case ARGP_KEY_END:
        if (in->profile && !in->save)
            argp_error(state, "--profile names where --save writes; add --save");
        return 0;
    default:
        return on_measure(key, arg, state);
    }
}

static const struct argp argp = {
    options,
    on_option,
    NULL,
    "A model split by layers hands one buffer per step from GPU to GPU. Measures that hand-off as "
    "part of a step, through host memory (mapped and read in place, or staged) and from GPU to GPU "
    "(copied, or read in place): what it takes, the part of the step that it is, and so the most "
    "that any transport can gain; each host link alone and with both at work; and whether the "
    "direct "
    "path gains, ties or loses end to end."
    "\v"
    "Each step waits for the one before. libgv-handoff is what moves the bytes, so a program that "
    "uses it gets what was measured; it takes the direct path by itself (mode auto) only after "
    "--save recorded a gain. A gain is a step shorter by 3 % or more, a loss "
    "one longer by 1 % or more, both above the spread of the samples; all else is a tie.\n"
    "\n"
    "Examples:\n"
    "  gv100 handoff --from 0 --to 1 --bytes 320M --compute-us 14400000\n"
    "  gv100 handoff --virtual 2x2080ti --bytes 320M --host-traffic\n"
    "  gv100 handoff --bytes 16M --compute-us 300 --graph --save\n",
    NULL,
    NULL,
    NULL,
};

static int
measure(const struct gv_command *self, struct input *in, struct gv_gpus *gpus, struct gv_ab *ab)
{
    struct gv_error err = {0};
    struct gv_handoff_target target = {0};
    int status = GV_EXIT_OK;
    if (gv_gpus_open(gpus, in->o.cuda_path, in->o.nvml_path, &err))
        return gv_cli_fail(self, GV_EXIT_FAILED, &err);
    bool ready =
        in->save
            ? !gv_handoff_target_open(&target, in->profile, gpus, &in->o, in->machine != NULL, &err)
            : true;
    if (!ready || gv_ab_run(gpus, &in->o, ab, &err) ||
        (in->save && gv_handoff_target_save(&target, ab, &err)))
        status = gv_cli_fail(self, GV_EXIT_FAILED, &err);
    else if (in->json)
        status = gv_json_print(self, gv_handoff_json(ab, gpus, target.path), status);
    else
        gv_handoff_print(ab, gpus, target.path);
    gv_handoff_target_close(&target);
    gv_gpus_close(gpus);
    if (!status && in->exit_code && ab->verdict != GV_AB_GAIN)
        status = GV_EXIT_NO;
    return status;
}

static void log_line(void *data, const char *line)
{
    (void)data;
    const char *own = strstr(line, ": ");
    fprintf(stderr, "gv100 handoff: %s\n", own ? own + 2 : line);
}

static int run(const struct gv_command *self, int argc, char **argv)
{
    static struct input in; /* these are large */
    static struct gv_gpus gpus;
    static struct gv_ab ab;
    struct gv_error err = {0};
    in.o.to = 1;
    in.o.bytes = (size_t)64 << 20;
    gv_cli_parse(self, argc, argv, 0, &in);
    if (gv_measuring_init(&in.m, in.machine, &err))
        return gv_cli_fail(self, GV_EXIT_FAILED, &err);
    in.o.stop = in.m.options.stop;
    in.o.cuda_path = in.m.options.cuda_path;
    in.o.nvml_path = in.m.options.nvml_path;
    in.o.log = log_line;
    int status = measure(self, &in, &gpus, &ab);
    gv_measuring_finish(&in.m);
    return status;
}

const struct gv_command gv_cmd_handoff = {
    "handoff",
    "a stage's hand-off over both paths, and whether the direct one pays",
    &argp,
    run,
};
