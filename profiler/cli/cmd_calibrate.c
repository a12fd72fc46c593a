/* gv100 calibrate: measure this machine and write its profile. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/gv_size.h"
#include "profiler/cli/calibrated.h"
#include "profiler/cli/collective.h"
#include "profiler/cli/measure.h"

struct input {
    struct gv_measuring m;
    struct gv_collective_setup collective;
    const char *machine, *out, *nccl, *trace_path;
    gv_gpuset groups[GV_MAX_GPUS];
    int ngroups;
    bool json, dry_run, resume;
    FILE *trace;
};

enum {
    KEY_VIRTUAL = 256,
    KEY_QUICK,
    KEY_ONLY,
    KEY_GROUPS,
    KEY_BUDGET,
    KEY_DRY,
    KEY_RESUME,
    KEY_FORCE,
    KEY_MEMORY,
    KEY_TIMEOUT,
    KEY_TRACE,
    KEY_NCCL
};

static const struct argp_option options[] = {
    {"output", 'o', "FILE", 0, "The profile; without it HOST.yaml in this folder", 0},
    {"quick", KEY_QUICK, 0, 0, "Fewer samples, smaller buffers, three sizes of NCCL", 0},
    {"only", KEY_ONLY, "LIST", 0, "Only these of hbm, host, p2p, nccl, ring", 0},
    {"groups", KEY_GROUPS, "LIST[;LIST...]", 0, "NCCL over these groups (\"0-5;0,5\")", 0},
    {"budget", KEY_BUDGET, "TIME", 0, "Fit the plan into this time (10m, 90s)", 0},
    {"memory", KEY_MEMORY, "SIZE", 0, "At most this much of each GPU's memory (3G)", 0},
    {"dry-run", KEY_DRY, 0, 0, "Print the plan with its expected time", 0},
    {"resume", KEY_RESUME, 0, 0, "Go on where a stopped run left FILE.partial", 0},
    {"force", KEY_FORCE, 0, 0, "Also on GPUs that others use", 0},
    {"virtual", KEY_VIRTUAL, "MACHINE", 0, "A virtual machine, by name or file", 0},
    {"pair-timeout", KEY_TIMEOUT, "SECONDS", 0, "How long a pair may keep its kernels waiting (2)",
     0},
    {"nccl", KEY_NCCL, "PATH", 0, "This libnccl.so.2; without it python3's or the loader's", 0},
    {"trace", KEY_TRACE, "FILE", 0, "Write every launch geometry tried, with its speed", 0},
    {"json", 'j', 0, 0, "JSON", 0},
    {0},
};

static void check_only(const char *list, struct argp_state *state)
{
    static const char *const words[] = {"hbm", "host", "p2p", "nccl", "ring"};
    if (!*list)
        argp_error(state, "--only: '' is none of hbm, host, p2p, nccl, ring");
    for (const char *p = list; *p; p += strcspn(p, ","), p += *p == ',') {
        size_t n = strcspn(p, ","), i = 0;
        while (i < 5 && (strlen(words[i]) != n || strncmp(words[i], p, n)))
            i++;
        if (i == 5)
            argp_error(state, "--only: '%.*s' is none of hbm, host, p2p, nccl, ring", (int)n, p);
    }
}

static void take_groups(struct input *in, const char *text, struct argp_state *state)
{
    struct gv_error err;
    if (!*text)
        argp_error(state, "--groups: no group is named; write it as in \"0-5;0,5\"");
    while (*text) {
        char list[256];
        size_t n = strcspn(text, ";");
        if (n >= sizeof(list))
            argp_error(state, "--groups: '%.40s...' is longer than any list of GPUs", text);
        snprintf(list, sizeof(list), "%.*s", (int)n, text);
        if (in->ngroups == GV_MAX_GPUS)
            argp_error(state, "--groups: more than %d", GV_MAX_GPUS);
        if (gv_gpuset_parse(list, &in->groups[in->ngroups], &err))
            argp_error(state, "--groups: %s", err.text);
        if (gv_gpuset_count(in->groups[in->ngroups++]) < 2)
            argp_error(state, "--groups: '%s' has fewer than two GPUs", list);
        text += n + (text[n] == ';');
    }
}

static double take_time(const char *text, struct argp_state *state)
{
    char *end;
    double value = strtod(text, &end);
    double unit = !strcmp(end, "m") ? 60 : !strcmp(end, "h") ? 3600 : 1;
    if (end == text || !(value > 0) || value > 1e6 || (*end && strcmp(end, "s") && unit == 1))
        argp_error(state, "'%s' is no time such as 10m or 90s", text);
    return value * unit;
}

static void take_memory(struct input *in, const char *text, struct argp_state *state)
{
    uint64_t bytes;
    struct gv_error err;
    if (gv_size_parse(text, &bytes, &err))
        argp_error(state, "--memory: %s", err.text);
    if (bytes < (uint64_t)64 << 20)
        argp_error(state, "--memory: at least 64M are needed");
    in->m.options.memory_bytes = bytes;
}

static error_t on_option(int key, char *arg, struct argp_state *state)
{
    struct input *in = state->input;
    struct gv_calibration_options *o = &in->m.options;
    switch (key) {
    case 'o':
        in->out = arg;
        break;
    case 'j':
        in->json = true;
        break;
    case KEY_VIRTUAL:
        in->machine = arg;
        break;
    case KEY_QUICK:
        o->quick = true;
        break;
    case KEY_DRY:
        in->dry_run = true;
        break;
    case KEY_RESUME:
        in->resume = true;
        break;
    case KEY_FORCE:
        o->force = true;
        break;
    case KEY_BUDGET:
        o->budget_s = take_time(arg, state);
        break;
    case KEY_TIMEOUT:
        o->pair_timeout_s = take_time(arg, state);
        break;
    case KEY_GROUPS:
        take_groups(in, arg, state);
        break;
    case KEY_MEMORY:
        take_memory(in, arg, state);
        break;
    case KEY_ONLY:
        check_only(arg, state);
        o->only = arg;
        break;
    case KEY_NCCL:
        in->nccl = arg;
        break;
    case KEY_TRACE:
        in->trace_path = arg;
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static const struct argp argp = {
    options,
    on_option,
    NULL,
    "Measures this machine once and writes its profile: memory of each GPU, host links alone and "
    "together, every pair (checked from the owner's side before any figure counts), and NCCL over "
    "the "
    "groups that its shape suggests: its default and the plans that could be better, AllReduce and "
    "AllToAll."
    "\v"
    "An old profile stays as it is until the new one is whole. After Ctrl-C or a failure what was "
    "found is in FILE.partial, and --resume goes on from there.\n"
    "\n"
    "Example:\n"
    "  gv100 calibrate --dry-run\n"
    "  gv100 calibrate -o /etc/gv100/host.yaml\n"
    "  gv100 calibrate --virtual 4028 -o /tmp/4028.yaml\n",
    NULL,
    NULL,
    NULL,
};

static int
check_groups(const struct input *in, const struct gv_calibration *cal, struct gv_error *err)
{
    for (int i = 0; i < in->ngroups; i++)
        if (cal->n < GV_MAX_GPUS && in->groups[i] >> cal->n)
            return gv_error_set(err, "--groups: there are only %d GPUs (0-%d)", cal->n, cal->n - 1);
    return 0;
}

static bool wanted(const char *only, const char *word)
{
    const char *at = only ? strstr(only, word) : word;
    return at != NULL;
}

/* NCCL for the groups, unless --only names our own ring. Where there is none the ring stands in,
 * which is said; a NCCL that was named must be there. */
static int find_nccl(const struct gv_command *self, struct input *in, struct gv_error *err)
{
    const char *only = in->m.options.only;
    if (!wanted(only, "nccl"))
        return 0;
    if (!gv_collective_prepare(&in->collective, &in->m, in->machine, in->nccl, err)) {
        in->m.options.nccl = &in->collective.options;
        return 0;
    }
    if (in->nccl || only)
        return -1;
    fprintf(
        stderr, "gv100 %s: NCCL is not measured, our own ring stands in: %s\n", self->name,
        err->text);
    return 0;
}

static int open_trace(struct input *in, struct gv_error *err)
{
    if (in->trace_path && !(in->trace = fopen(in->trace_path, "we")))
        return gv_error_at(err, in->trace_path, 0, 0, "cannot be written: %m");
    in->m.options.trace = in->trace;
    return 0;
}

static int calibrate(const struct gv_command *self, struct input *in)
{
    struct gv_error err = {0};
    struct gv_files files;
    if (open_trace(in, &err))
        return gv_cli_fail(self, GV_EXIT_FAILED, &err);
    if (find_nccl(self, in, &err))
        return gv_cli_fail(self, GV_EXIT_FAILED, &err);
    in->m.options.groups = in->ngroups ? in->groups : NULL;
    in->m.options.ngroups = in->ngroups;
    struct gv_calibration *cal = gv_calibration_open(&in->m.options, &err);
    if (!cal)
        return gv_cli_fail(self, GV_EXIT_FAILED, &err);
    int status = GV_EXIT_OK;
    if (check_groups(in, cal, &err))
        status = gv_cli_fail(self, GV_EXIT_USAGE, &err);
    else if (in->dry_run)
        status = gv_plan_print(self, cal, in->json);
    else if (
        gv_files_init(&files, in->out, cal->machine.host, &err) ||
        (in->resume && gv_files_resume(&files, cal, &err)) ||
        gv_calibration_run(cal, gv_files_save, &files, &err) || gv_files_done(&files, cal, &err)) {
        gv_print_warnings(self, cal);
        status = gv_cli_fail(self, GV_EXIT_FAILED, &err);
        gv_files_kept(&files, cal);
    } else
        status =
            gv_calibrated_print(self, cal, files.path, gv_seconds() - in->m.started_s, in->json);
    gv_calibration_close(cal);
    return status;
}

static int run(const struct gv_command *self, int argc, char **argv)
{
    static struct input in; /* large */
    struct gv_error err = {0};
    gv_cli_parse(self, argc, argv, 0, &in);
    int status = gv_measuring_init(&in.m, in.machine, &err)
                     ? gv_cli_fail(self, GV_EXIT_FAILED, &err)
                     : calibrate(self, &in);
    gv_measuring_finish(&in.m);
    if (in.trace)
        fclose(in.trace);
    return status;
}

const struct gv_command gv_cmd_calibrate = {
    "calibrate",
    "measure this machine and write its profile",
    &argp,
    run,
};
