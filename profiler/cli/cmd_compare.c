/* gv100 compare: NCCL's default against what the plugin makes of it, measured here and now. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/gv_size.h"
#include "base/gv_file.h"
#include "profiler/cli/compare_live.h"
#include "profiler/cli/compare_show.h"
#include "profiler/cli/html.h"

struct input {
    struct gv_compare_input live;
    const char *saved[2], *save, *sizes, *html, *nccl[2];
    int nsaved, nnccl;
    const char *measures; /* the first option given that only a measurement can follow */
    double steps, step_s;
    bool json, csv, worker, exit_code;
};

enum {
    KEY_VIRTUAL = 256,
    KEY_PROFILE,
    KEY_NCCL,
    KEY_VARIANT,
    KEY_TYPE,
    KEY_REDOP,
    KEY_IN_PLACE,
    KEY_REPEATS,
    KEY_ITERATIONS,
    KEY_THREADS,
    KEY_RANKS,
    KEY_TIMEOUT,
    KEY_CHECK,
    KEY_SAVE,
    KEY_HTML,
    KEY_CSV,
    KEY_EXIT,
    KEY_SIZES,
    KEY_STEPS,
    KEY_STEP_TIME,
    KEY_WITH,
    KEY_WORKER
};

static const struct argp_option options[] = {
    {"gpus", 'g', "LIST", 0, "The communicator's GPUs (0-5,7); without it all", 0},
    {"profile", KEY_PROFILE, "FILE", 0, "The profile that the plugin decides by", 0},
    {"variant", KEY_VARIANT, "PLAN", 0,
     "Also this plan: \"lend 4-5 8-0\", \"bridge\", \"separate 7-9\", \"algorithm=RING protocol=LL "
     "channels=4\"; may be given several times",
     0},
    {"operation", 'o', "LIST", 0,
     "AllReduce, AllGather, ReduceScatter, Broadcast, Reduce, AllToAll (AllReduce,AllToAll)", 0},
    {"minbytes", 'b', "SIZE", 0, "Smallest size, as nccl-tests counts it (64K)", 0},
    {"maxbytes", 'e', "SIZE", 0, "Largest size (256M)", 0},
    {"stepfactor", 'f', "N", 0, "From one size to the next (16)", 0},
    {"type", KEY_TYPE, "TYPE", 0, "float, half, bfloat16, double, int8, int32, ... (float)", 0},
    {"redop", KEY_REDOP, "OP", 0, "sum, prod, max, min, avg (sum)", 0},
    {"in-place", KEY_IN_PLACE, 0, 0, "In place as well", 0},
    {"repeats", KEY_REPEATS, "N", 0, "Communicators of each variant, in turn (5)", 0},
    {"iterations", KEY_ITERATIONS, "N", 0, "Timed calls of a sample (by size, 3 to 50)", 0},
    {"threads", KEY_THREADS, 0, 0, "One process with a thread for each GPU", 0},
    {"ranks-per-gpu", KEY_RANKS, "N", 0,
     "Several ranks on each GPU, as if on different hosts (no plan applies to them)", 0},
    {"nccl", KEY_NCCL, "PATH", 0, "This libnccl.so.2; given twice: the first against the second",
     0},
    {"with", KEY_WITH, "PROGRAM", 0,
     "Also run this program of nccl-tests (.../all_reduce_perf) under each variant, as a witness",
     0},
    {"timeout", KEY_TIMEOUT, "SECONDS", 0, "For each step of the workers (60)", 0},
    {"check", KEY_CHECK, "SIZE", 0, "Check so much of each result, at both its ends (all)", 0},
    {"save", KEY_SAVE, "FILE", 0, "Keep the run, every sample of it", 0},
    {"html", KEY_HTML, "FILE", 0, "Also a report with pictures, in one HTML file", 0},
    {"sizes", KEY_SIZES, "FILE", 0,
     "What it would bring to a job: lines of SIZE OPERATION CALLS of one step, or an NCCL log "
     "(NCCL_DEBUG_SUBSYS=COLL)",
     0},
    {"steps", KEY_STEPS, "N", 0, "So many steps are in that file (1)", 0},
    {"step-time", KEY_STEP_TIME, "SECONDS", 0, "How long a step takes, for the share of it", 0},
    {"json", 'j', 0, 0, "JSON", 0},
    {"csv", KEY_CSV, 0, 0, "CSV, one line a variant, operation and size", 0},
    {"exit-code", KEY_EXIT, 0, 0, "Status 1 if a variant loses or a result is wrong", 0},
    {"virtual", KEY_VIRTUAL, "MACHINE", 0, "A virtual machine, by name or file", 0},
    {"worker", KEY_WORKER, 0, OPTION_HIDDEN, 0, 0},
    {0},
};

static uint64_t take_size(const char *text, const char *option, struct argp_state *state)
{
    struct gv_error err;
    uint64_t bytes = 0;
    if (gv_size_parse(text, &bytes, &err))
        argp_error(state, "%s: %s", option, err.text);
    if (!bytes)
        argp_error(state, "%s: at least one byte", option);
    return bytes;
}

static int
take_int(const char *text, const char *option, int least, int most, struct argp_state *state)
{
    char *end;
    long n = strtol(text, &end, 10);
    if (end == text || *end || n < least || n > most)
        argp_error(state, "%s: '%s' is not between %d and %d", option, text, least, most);
    return (int)n;
}

static double
take_real(const char *text, const char *option, double above, struct argp_state *state)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value > above) || value > 1e6)
        argp_error(state, "%s: '%s' is not a number over %g", option, text, above);
    return value;
}

static void take_variant(struct input *in, const char *text, struct argp_state *state)
{
    struct gv_compare_input *live = &in->live;
    int most = (int)(sizeof(live->variants) / sizeof(live->variants[0]));
    if (live->nvariants == most)
        argp_error(state, "--variant: more than %d", most);
    struct gv_steer *steer = &live->variants[live->nvariants++];
    if (!*text || strlen(text) >= sizeof(steer->force))
        argp_error(state, "--variant: a plan has 1 to %zu letters", sizeof(steer->force) - 1);
    snprintf(steer->force, sizeof(steer->force), "%s", text);
    snprintf(steer->name, sizeof(steer->name), "%s", text);
    for (int i = 0; i < live->nvariants - 1; i++)
        if (!strcmp(live->variants[i].name, text))
            argp_error(state, "--variant: '%s' is given twice", text);
    if (!strcmp(text, "default"))
        argp_error(state, "--variant: 'default' is measured always");
}

static void take_ops(struct input *in, const char *text, struct argp_state *state)
{
    struct gv_error err;
    if (gv_ops_parse(text, &in->live.ops, &err))
        argp_error(state, "--operation: %s", err.text);
    if (in->live.ops & GV_OP_BIT(GV_OP_SEND_RECV))
        argp_error(state, "--operation: SendRecv is not measured by itself; AllToAll is");
}

static int
take_name(const char *text, const char *option, int (*find)(const char *), struct argp_state *state)
{
    int found = find(text);
    if (found < 0)
        argp_error(state, "%s: '%s' is not known", option, text);
    return found;
}

static error_t on_number(int key, char *arg, struct argp_state *state)
{
    struct input *in = state->input;
    struct gv_compare_input *live = &in->live;
    switch (key) {
    case 'b':
        live->min_bytes = take_size(arg, "-b", state);
        return 0;
    case 'e':
        live->max_bytes = take_size(arg, "-e", state);
        return 0;
    case 'f':
        live->factor = take_real(arg, "-f", 1, state);
        return 0;
    case KEY_REPEATS:
        live->repeats = take_int(arg, "--repeats", 1, GV_MAX_REPEATS, state);
        return 0;
    case KEY_ITERATIONS:
        live->iterations = take_int(arg, "--iterations", 1, 100000, state);
        return 0;
    case KEY_RANKS:
        live->ranks_per_gpu = take_int(arg, "--ranks-per-gpu", 1, GV_MAX_GPUS, state);
        return 0;
    case KEY_TIMEOUT:
        live->timeout_s = take_real(arg, "--timeout", 0, state);
        return 0;
    case KEY_STEPS:
        in->steps = take_real(arg, "--steps", 0, state);
        return 0;
    case KEY_STEP_TIME:
        in->step_s = take_real(arg, "--step-time", 0, state);
        return 0;
    case KEY_CHECK:
        live->check_bytes = take_size(arg, "--check", state);
        live->check_some = true;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static error_t on_choice(int key, char *arg, struct argp_state *state)
{
    struct input *in = state->input;
    struct gv_error err;
    switch (key) {
    case 'g':
        if (gv_gpuset_parse(arg, &in->live.gpus, &err))
            argp_error(state, "--gpus: %s", err.text);
        return 0;
    case 'o':
        take_ops(in, arg, state);
        return 0;
    case KEY_VARIANT:
        take_variant(in, arg, state);
        return 0;
    case KEY_TYPE:
        in->live.type = (enum gv_type)take_name(arg, "--type", gv_type_from_name, state);
        return 0;
    case KEY_REDOP:
        in->live.redop = (enum gv_redop)take_name(arg, "--redop", gv_redop_from_name, state);
        return 0;
    case KEY_PROFILE:
        in->live.profile = arg;
        return 0;
    case KEY_NCCL:
        if (in->nnccl == 2)
            argp_error(state, "--nccl: at most two");
        in->nccl[in->nnccl++] = arg;
        return 0;
    case KEY_VIRTUAL:
        in->live.machine = arg;
        return 0;
    case KEY_SIZES:
        in->sizes = arg;
        return 0;
    case KEY_WITH:
        in->live.witness = arg;
        return 0;
    case KEY_SAVE:
        in->save = arg;
        return 0;
    case KEY_HTML:
        in->html = arg;
        return 0;
    default:
        return on_number(key, arg, state);
    }
}

/* Options that only a measurement can follow. */
static void note_measuring(struct input *in, int key)
{
    static const int shown[] = {'g',       'j',      KEY_CSV,   KEY_HTML,      KEY_SAVE,
                                KEY_SIZES, KEY_EXIT, KEY_STEPS, KEY_STEP_TIME, KEY_PROFILE};
    for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
        if (key == shown[i])
            return;
    for (const struct argp_option *o = options; o->name && !in->measures; o++)
        if (o->key == key)
            in->measures = o->name;
}

static error_t on_option(int key, char *arg, struct argp_state *state)
{
    struct input *in = state->input;
    note_measuring(in, key);
    switch (key) {
    case 'j':
        in->json = true;
        return 0;
    case KEY_CSV:
        in->csv = true;
        return 0;
    case KEY_EXIT:
        in->exit_code = true;
        return 0;
    case KEY_IN_PLACE:
        in->live.in_place = true;
        return 0;
    case KEY_THREADS:
        in->live.threads = true;
        return 0;
    case KEY_WORKER:
        in->worker = true;
        return 0;
    case ARGP_KEY_ARG:
        if (in->nsaved == 2)
            argp_error(state, "at most two saved runs or profiles");
        in->saved[in->nsaved++] = arg;
        return 0;
    case ARGP_KEY_END:
        if (in->live.min_bytes > in->live.max_bytes)
            argp_error(state, "-b is over -e");
        if (in->nnccl == 2 && in->live.witness)
            argp_error(state, "--with goes with one --nccl");
        if (in->nsaved && in->measures)
            argp_error(state, "--%s: nothing is measured where saved runs are shown", in->measures);
        if (in->live.threads && in->live.ranks_per_gpu > 1)
            argp_error(state, "--threads and --ranks-per-gpu exclude each other");
        return 0;
    default:
        return on_choice(key, arg, state);
    }
}

static const struct argp argp = {
    options,
    on_option,
    "[SAVED [SAVED]]",
    "Runs NCCL itself on these GPUs, its default and what the plugin makes of it in turn, each "
    "time in a new communicator; checks every result; and says what differs: busbw with its range, "
    "the gain, the transport of each ring edge. With SAVED nothing is measured: a run kept with "
    "--save or --json is shown again, or what a profile measured of its GPUs. Two of them are held "
    "against each other, all variants of both against the default of the first."
    "\v"
    "Verdicts are the policy's own rule: medians at least min_gain apart (3 % unless the profile "
    "says "
    "otherwise), and ranges (second to last but one sample) that do not overlap. The interval "
    "beside "
    "the gain is a bootstrap over the samples. Integers must be right to the bit, floats within "
    "the "
    "rounding that any order of adding can cause.\n"
    "\n"
    "Example:\n"
    "  gv100 compare --gpus 0-5\n"
    "  gv100 compare --gpus 0,1 --variant \"separate 0-1\" -b 1M -e 1G -f 4 --save run.json\n"
    "  gv100 compare run.json --csv\n"
    "  gv100 compare run.json --html report.html\n"
    "  gv100 compare before.json after.json\n"
    "  gv100 compare old.yaml new.yaml --gpus 0-5\n",
    NULL,
    NULL,
    NULL,
};

static int save(const struct gv_compared *c, const char *path, struct gv_error *err)
{
    json_t *json = gv_compared_json(c);
    char *text = json ? json_dumps(json, JSON_INDENT(2)) : NULL;
    int rc = text ? gv_file_replace(path, text, strlen(text), 0644, err)
                  : gv_error_set(err, "out of memory");
    free(text);
    json_decref(json);
    return rc;
}

static int status_of(const struct input *in, const struct gv_compared *c)
{
    bool bad = false, measured = false;
    for (int i = 0; i < c->nrows; i++)
        bad |= c->rows[i].verdict == GV_LOSS;
    for (int i = 0; i < c->run.nsteers * c->run.ncases; i++) {
        bad |= c->run.cell[i].wrong > 0;
        measured |= c->run.cell[i].count > 0;
    }
    if (!measured)
        return GV_EXIT_FAILED;
    return bad && in->exit_code ? GV_EXIT_NO : GV_EXIT_OK;
}

static int print(const struct gv_command *self, const struct input *in, const struct gv_compared *c)
{
    int status = status_of(in, c);
    if (in->json)
        return gv_json_print(self, gv_compared_json(c), status);
    if (in->csv) {
        gv_compared_csv(c, stdout);
        return status;
    }
    gv_compared_text(c);
    if (c->job.file[0])
        gv_job_text(c);
    return status;
}

static int measure(struct input *in, struct gv_compared *out, struct gv_error *err)
{
    if (in->nsaved)
        return gv_compare_saved(in->saved, in->nsaved, in->live.gpus, out, err);
    if (in->nnccl == 2)
        return gv_compare_releases(&in->live, in->nccl, out, err);
    in->live.nccl = in->nccl[0];
    return gv_compare_live(&in->live, out, err);
}

/* Instead of the job that a saved run has. */
static void take_job(const struct input *in, struct gv_histogram *sizes, struct gv_compared *c)
{
    if (!in->sizes)
        return;
    gv_histogram_finish(&c->job.sizes);
    c->job.sizes = *sizes;
    *sizes = (struct gv_histogram){0};
    if (!realpath(in->sizes, c->job.file))
        snprintf(c->job.file, sizeof(c->job.file), "%s", in->sizes);
    c->job.steps = in->steps;
    c->job.step_s = in->step_s;
}

static int run(const struct gv_command *self, int argc, char **argv)
{
    static struct gv_compared compared; /* large */
    struct input in = {
        .live =
            {.ops = GV_OP_BIT(GV_OP_ALL_REDUCE) | GV_OP_BIT(GV_OP_ALL_TO_ALL),
             .type = GV_TYPE_FLOAT,
             .min_bytes = 64 << 10,
             .max_bytes = 256 << 20,
             .factor = 16,
             .repeats = 5},
        .steps = 1,
        .step_s = NAN,
    };
    struct gv_histogram histogram = {0};
    struct gv_error err = {0};
    gv_cli_parse(self, argc, argv, 0, &in);
    if (in.worker)
        return gv_collective_worker();
    if (in.sizes && gv_histogram_read(in.sizes, &histogram, &err))
        return gv_cli_fail(self, GV_EXIT_FAILED, &err);
    if ((in.save && gv_file_try_replace(in.save, &err)) ||
        (in.html && gv_file_try_replace(in.html, &err)))
        return gv_cli_fail(self, GV_EXIT_FAILED, &err);
    int rc = measure(&in, &compared, &err);
    if (!rc)
        take_job(&in, &histogram, &compared);
    if (rc || (in.save && save(&compared, in.save, &err)) ||
        (in.html && gv_html_compared(&compared, in.live.profile, in.html, &err)))
        return gv_cli_fail(self, GV_EXIT_FAILED, &err);
    int status = print(self, &in, &compared);
    gv_histogram_finish(&histogram);
    gv_compared_finish(&compared);
    return status;
}

const struct gv_command gv_cmd_compare = {
    "compare",
    "measure NCCL's default against the plugin's plan",
    &argp,
    run,
};
