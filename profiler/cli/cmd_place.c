/* gv100 place: which GPUs to give to which work. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/cli/cli.h"
#include "profiler/cli/place.h"

struct input {
    const char *profile, *machine, *jobs;
    struct gv_request request;
    gv_gpuset busy, within;
    enum gv_place_form form;
    int most;
    bool one_job; /* an option that speaks of a single job was given */
    struct gv_allocation allocation;
};

static int positive(const char *arg, const char *option, int most, struct argp_state *state)
{
    char *end;
    long value = strtol(arg, &end, 10);
    if (*end || end == arg || value < 1 || value > most)
        argp_error(state, "--%s: '%.40s' is no number from 1 to %d", option, arg, most);
    return (int)value;
}

static void set_form(struct input *in, const char *arg, struct argp_state *state)
{
    static const char *const names[] = {"text", "json", "env", "uuid", "gres"};
    for (int i = 0; i < 5; i++)
        if (!strcmp(arg, names[i])) {
            in->form = (enum gv_place_form)i;
            return;
        }
    argp_error(state, "--format: '%.40s' is none of text, json, env, uuid, gres", arg);
}

static void set_gpus(gv_gpuset *out, const char *arg, const char *option, struct argp_state *state)
{
    struct gv_error err;
    if (gv_gpuset_parse(arg, out, &err))
        argp_error(state, "--%s: %s", option, err.text);
}

static error_t on_option(int key, char *arg, struct argp_state *state)
{
    struct input *in = state->input;
    struct gv_error err;
    int work;
    in->one_job |= key == 'g' || key == 'M' || key == 'k';
    switch (key) {
    case 'p':
        in->profile = arg;
        return 0;
    case 'm':
        in->machine = arg;
        return 0;
    case 'g':
        in->request.gpus = positive(arg, "gpus", GV_MAX_GPUS, state);
        return 0;
    case 'M':
        if (gv_memory_parse(arg, &in->request.memory_mib, &err))
            argp_error(state, "--memory: %s", err.text);
        return 0;
    case 'k':
        work = gv_work_from_name(arg);
        if (work < 0)
            argp_error(state, "--kind: '%.40s' is none of sync, pair, memory, independent", arg);
        in->request.work = (enum gv_work)work;
        return 0;
    case 'b':
        set_gpus(&in->busy, arg, "busy", state);
        return 0;
    case 'w':
        set_gpus(&in->within, arg, "within", state);
        return 0;
    case 'J':
        in->jobs = arg;
        return 0;
    case 'n':
        in->most = positive(arg, "most", 1000, state);
        return 0;
    case 'f':
        set_form(in, arg, state);
        return 0;
    case 'j':
        in->form = GV_FORM_JSON;
        return 0;
    case ARGP_KEY_END:
        if (in->jobs && in->one_job)
            argp_error(state, "--gpus, --memory and --kind stand in each line of --jobs");
        if (in->form == GV_FORM_GRES && (in->jobs || in->one_job))
            argp_error(state, "--format gres is of the whole host, without a job");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option options[] = {
    {"gpus", 'g', "N", 0, "How many GPUs (2 for sync and pair, else 1)", 0},
    {"memory", 'M', "SIZE", 0, "Least memory of each GPU, as 24G; for pair, of all together", 0},
    {"kind", 'k', "KIND", 0,
     "sync: in step, one ring (the default); pair: a model split over GPUs; memory: bound by "
     "memory "
     "bandwidth; independent: small work that needs no other GPU",
     0},
    {"busy", 'b', "LIST", 0, "GPUs that are taken, as 3,4", 0},
    {"within", 'w', "LIST", 0, "Only these GPUs", 0},
    {"jobs", 'J', "FILE", 0, "Place every job of FILE at once, each on GPUs of its own", 0},
    {"most", 'n', "N", 0, "List this many groups (5)", 0},
    {"format", 'f', "FORM", 0, "text, json, env, uuid (for a shell, the best group) or gres", 0},
    {"profile", 'p', "NAME|FILE", 0, "This profile; no machine is needed then", 0},
    {"machine", 'm', "FOLDER", 0, "A machine's sysfs root instead of the live /sys", 0},
    {"json", 'j', 0, 0, "JSON", 0},
    {0},
};

static const struct argp argp = {
    options,
    on_option,
    NULL,
    "Ranks the groups of GPUs that fit a piece of work, by what was measured on the machine, and "
    "says what is left for others. A group that was not measured has the figure of the nearest "
    "measured one with the same slowest kind of edge, and is marked inferred."
    "\v"
    "A GPU that has P2P with no other one is never put into a ring where others can form it. "
    "Inside "
    "an allocation (SLURM_STEP_GPUS, SLURM_JOB_GPUS, NVIDIA_VISIBLE_DEVICES, CUDA_VISIBLE_DEVICES) "
    "only "
    "its GPUs are considered, and named as CUDA counts them there. A job file has one job a line: "
    "NAME gpus=N kind=KIND memory=SIZE; all divisions "
    "of "
    "up to 16 GPUs are looked at, and the one with the greatest sum of each job's figure over the "
    "best that it could have alone is taken.\n"
    "\n"
    "Examples:\n"
    "  gv100 place --profile 4028 --gpus 5\n"
    "  gv100 place --kind pair --memory 64G --busy 3,4 --json\n"
    "  eval \"$(gv100 place --gpus 6 --format env)\"\n",
    NULL,
    NULL,
    NULL,
};

/* What may be given away, as profile indexes. */
static int
free_gpus(const struct gv_source *s, struct input *in, gv_gpuset *out, struct gv_error *err)
{
    gv_gpuset busy, within;
    if (gv_allocation_read(s, &in->allocation, err) || gv_source_gpus(s, in->busy, &busy, err) ||
        gv_source_gpus(s, in->within, &within, err))
        return -1;
    *out = 0;
    for (gv_gpuset rest = in->allocation.gpus; rest; rest &= rest - 1) {
        int gpu = s->to_profile[gv_gpuset_first(rest)];
        if (gpu >= 0 && !gv_gpuset_has(busy, gpu) && (!in->within || gv_gpuset_has(within, gpu)))
            *out |= GV_GPU_BIT(gpu);
    }
    return 0;
}

static int
one(const struct gv_command *self, const struct input *in, const struct gv_source *s,
    const struct gv_place *place, gv_gpuset available)
{
    struct gv_group_place *groups;
    struct gv_error err;
    int n = gv_place_rank(place, &in->request, available, &groups, &err);
    if (n < 0)
        return gv_cli_fail(self, GV_EXIT_FAILED, &err);
    int shown = n < in->most ? n : in->most, rc = GV_EXIT_OK;
    if (in->form == GV_FORM_JSON) {
        json_t *list = json_array();
        for (int i = 0; i < shown; i++)
            json_array_append_new(
                list,
                gv_place_json(s, place, &in->request, &in->allocation, &groups[i], available));
        rc = gv_json_print(
            self,
            json_pack(
                "{s:s, s:s, s:i, s:o, s:i, s:o}", "profile", s->profile->name, "kind",
                gv_work_name(in->request.work), "count", in->request.gpus, "free",
                gv_json_gpus(gv_source_shown(s, available)), "candidates", n, "groups", list),
            rc);
    } else if (in->form == GV_FORM_TEXT) {
        gv_place_print(s, place, &in->request, groups, shown, available);
    } else if (gv_place_env(
                   s, &in->allocation, groups[0].gpus, in->form == GV_FORM_UUID, NULL, &err)) {
        rc = gv_cli_fail(self, GV_EXIT_FAILED, &err);
    }
    free(groups);
    return rc;
}

static int many(
    const struct gv_command *self, const struct input *in, const struct gv_source *s,
    const struct gv_place *place, gv_gpuset available)
{
    struct gv_request jobs[GV_PLACE_JOBS];
    struct gv_group_place groups[GV_PLACE_JOBS];
    struct gv_error err;
    int n = gv_jobs_read(in->jobs, jobs, &err);
    if (n < 0 || gv_place_jobs(place, jobs, n, available, groups, &err))
        return gv_cli_fail(self, GV_EXIT_FAILED, &err);
    gv_gpuset left = available;
    json_t *list = json_array();
    for (int i = 0; i < n; i++)
        left &= ~groups[i].gpus;
    for (int i = 0; i < n && in->form == GV_FORM_JSON; i++) {
        json_t *o = gv_place_json(s, place, &jobs[i], &in->allocation, &groups[i], available);
        json_object_set_new(o, "name", json_string(jobs[i].name));
        json_object_set_new(o, "kind", json_string(gv_work_name(jobs[i].work)));
        json_array_append_new(list, o);
    }
    if (in->form == GV_FORM_JSON)
        return gv_json_print(
            self,
            json_pack(
                "{s:s, s:o, s:o}", "profile", s->profile->name, "groups", list, "left",
                gv_json_gpus(gv_source_shown(s, left))),
            GV_EXIT_OK);
    json_decref(list);
    if (in->form == GV_FORM_TEXT)
        gv_place_print_jobs(s, place, jobs, groups, n, available);
    for (int i = 0; i < n && in->form != GV_FORM_TEXT; i++)
        if (gv_place_env(
                s, &in->allocation, groups[i].gpus, in->form == GV_FORM_UUID, jobs[i].name, &err))
            return gv_cli_fail(self, GV_EXIT_FAILED, &err);
    return GV_EXIT_OK;
}

static int place_on(
    const struct gv_command *self, struct input *in, const struct gv_source *s,
    const struct gv_place *place)
{
    struct gv_error err;
    gv_gpuset available;
    if (in->form == GV_FORM_GRES) {
        gv_place_gres(s, place);
        return GV_EXIT_OK;
    }
    if (free_gpus(s, in, &available, &err))
        return gv_cli_fail(self, GV_EXIT_USAGE, &err);
    return in->jobs ? many(self, in, s, place, available) : one(self, in, s, place, available);
}

static int run(const struct gv_command *self, int argc, char **argv)
{
    struct input in = {.most = 5};
    struct gv_error err;
    gv_gpuset bad[GV_MAX_GPUS];
    gv_cli_parse(self, argc, argv, 0, &in);
    if (!in.request.gpus)
        in.request.gpus =
            in.request.work == GV_WORK_SYNC || in.request.work == GV_WORK_PAIR ? 2 : 1;
    struct gv_source *s = gv_source_open(in.profile, in.machine, &err);
    if (!s)
        return gv_cli_fail(self, GV_EXIT_FAILED, &err);
    gv_source_bad(s, bad);
    struct gv_place *place = gv_place_new(s->profile, bad);
    int rc = GV_EXIT_FAILED;
    if (place)
        rc = place_on(self, &in, s, place);
    gv_place_free(place);
    gv_source_free(s);
    return rc;
}

const struct gv_command gv_cmd_place = {
    "place",
    "which GPUs to give to which work, and what is left",
    &argp,
    run,
};
