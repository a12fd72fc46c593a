/* gv100 doctor: does what a job would do, and says at each step what is so and what to do. */
#include <stdlib.h>
#include <string.h>

#include "profiler/cli/cli.h"
#include "profiler/cli/doctor_job.h"
#include "profiler/cli/doctor_load.h"
#include "profiler/cli/text.h"

struct input {
    const char *command, *nccl, *probe_nccl;
    int probe_set;
    bool json, all, probe_cuda;
};

enum { KEY_PROBE_NCCL = 256, KEY_PROBE_SET, KEY_PROBE_CUDA };

static error_t on_option(int key, char *arg, struct argp_state *state)
{
    struct input *in = state->input;
    switch (key) {
    case 'n':
        in->nccl = arg;
        return 0;
    case 'a':
        in->all = true;
        return 0;
    case 'j':
        in->json = true;
        return 0;
    case KEY_PROBE_NCCL:
        in->probe_nccl = arg;
        return 0;
    case KEY_PROBE_SET:
        in->probe_set = atoi(arg);
        return 0;
    case KEY_PROBE_CUDA:
        in->probe_cuda = true;
        return 0;
    case ARGP_KEY_ARG:
        if (in->command)
            argp_error(state, "one command at most; '%s' is the second", arg);
        in->command = arg;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option options[] = {
    {"nccl", 'n', "VERSION|PATH", 0, "This NCCL (2.28.9, or a libnccl.so.2) instead of a search",
     0},
    {"all", 'a', 0, 0, "Also the settings that the plugin is not concerned with", 0},
    {"json", 'j', 0, 0, "JSON", 0},
    {"probe-nccl", KEY_PROBE_NCCL, "PATH", OPTION_HIDDEN, 0, 0},
    {"probe-set", KEY_PROBE_SET, "BITS", OPTION_HIDDEN, 0, 0},
    {"probe-cuda", KEY_PROBE_CUDA, 0, OPTION_HIDDEN, 0, 0},
    {0},
};

static const struct argp argp = {
    options,
    on_option,
    "[COMMAND]",
    "Does what a job on this host would do, and says at each step what is so, why, and what to do: "
    "the NCCLs and which slots of the plugin they use, whether the plugin is really loaded, GPUs "
    "and P2P, profile and verification, /dev/shm, IOMMU and ACS, and every setting that bears on "
    "it, with the file and line where it stands."
    "\v"
    "COMMAND is what the job starts (a program, or the Python of a virtual environment); without "
    "it, python3 and the loader are asked. Exit status 0: a job is ready to run under the plugin; "
    "1: it would keep NCCL's default, or fail. NCCL and the CUDA driver are opened in processes of "
    "their own.\n"
    "\n"
    "Example:\n"
    "  gv100 doctor /venv/bin/python\n",
    NULL,
    NULL,
    NULL,
};

static bool shown(const struct gv_finding *f, bool all)
{
    return all || strcmp(f->step, "settings") != 0 || f->verdict != GV_VERDICT_OK;
}

static void print_finding(const struct gv_finding *f)
{
    static const enum gv_style styles[GV_VERDICTS] = {
        GV_GOOD, GV_PLAIN, GV_WARN_STYLE, GV_BAD, GV_DIM};
    char place[GV_ERROR_FILE + 16] = "", text[sizeof(f->text) + sizeof(place)];
    if (f->file[0])
        snprintf(place, sizeof(place), f->line ? "%s:%u: " : "%s: ", f->file, f->line);
    snprintf(text, sizeof(text), "%s%s", place, f->text);
    printf(
        "%s%-7s%s", gv_style(styles[f->verdict]), gv_verdict_name(f->verdict), gv_style(GV_PLAIN));
    gv_print_field(f->step, text);
    if (f->next[0]) {
        printf("%7s", "");
        gv_print_field("", f->next);
    }
}

static void print(const struct gv_job *job, const struct input *in, bool ready)
{
    int stops = 0;
    for (int i = 0; i < job->findings.n; i++) {
        if (shown(&job->findings.list[i], in->all))
            print_finding(&job->findings.list[i]);
        stops += job->findings.list[i].verdict == GV_VERDICT_NO;
    }
    if (ready)
        printf(
            "\n%sready%s: a job here runs under the plugin\n", gv_style(GV_GOOD),
            gv_style(GV_PLAIN));
    else
        printf(
            "\n%snot ready%s: %d thing%s in the way, marked no\n", gv_style(GV_BAD),
            gv_style(GV_PLAIN), stops, stops == 1 ? " is" : "s are");
}

static json_t *slot(int version)
{
    return version ? json_integer(version) : json_null();
}

static json_t *nccl_json(const struct gv_job_nccl *x)
{
    char text[16];
    const struct gv_nccl *n = &x->nccl;
    json_t *set = json_array();
    for (int i = 0; i < GV_SETTINGS; i++)
        if (x->settings >> i & 1)
            json_array_append_new(set, json_string(gv_settings[i].variable));
    return json_pack(
        "{s:o, s:o, s:s, s:{s:o, s:o, s:o}, s:o, s:o}", "version",
        n->version ? json_string(gv_nccl_format(n->version, text)) : json_null(), "path",
        n->path[0] ? json_string(n->path) : json_null(), "found_by", n->how, "slots", "tuner",
        slot(x->slots.tuner), "net", slot(x->slots.net), "env", slot(x->slots.env), "set", set,
        "loaded", x->loaded < 0 ? json_null() : json_boolean(x->loaded));
}

static json_t *finding_json(const struct gv_finding *f)
{
    return json_pack(
        "{s:s, s:s, s:s, s:o, s:o, s:o}", "step", f->step, "verdict", gv_verdict_name(f->verdict),
        "text", f->text, "next", f->next[0] ? json_string(f->next) : json_null(), "file",
        f->file[0] ? json_string(f->file) : json_null(), "line",
        f->line ? json_integer(f->line) : json_null());
}

static json_t *to_json(const struct gv_job *job, bool ready)
{
    json_t *nccls = json_array(), *steps = json_array(), *settings = json_array();
    for (int i = 0; i < job->n; i++)
        json_array_append_new(nccls, nccl_json(&job->list[i]));
    for (int i = 0; i < job->findings.n; i++)
        json_array_append_new(steps, finding_json(&job->findings.list[i]));
    for (int i = 0; i < job->variables.n; i++) {
        const struct gv_variable *v = &job->variables.list[i];
        json_array_append_new(
            settings, json_pack(
                          "{s:s, s:s, s:o, s:o}", "name", v->name, "value", v->value, "file",
                          v->file[0] ? json_string(v->file) : json_null(), "line",
                          v->line ? json_integer(v->line) : json_null()));
    }
    return json_pack(
        "{s:b, s:o, s:o, s:o, s:o, s:o}", "ready", ready, "nccl", nccls, "plugin",
        job->plugin[0] ? json_string(job->plugin) : json_null(), "profile",
        job->source ? json_string(job->source->profile->name) : json_null(), "settings", settings,
        "steps", steps);
}

static int run(const struct gv_command *self, int argc, char **argv)
{
    static struct gv_job job; /* large */
    struct input in = {.probe_set = -1};
    gv_cli_parse(self, argc, argv, ARGP_IN_ORDER, &in);
    if (in.probe_cuda)
        return gv_probe_cuda();
    if (in.probe_nccl)
        return gv_job_child_nccl(in.probe_nccl, in.probe_set, self->name);
    gv_job_look(&job, in.command, in.nccl, self->name);
    bool ready = gv_findings_ready(&job.findings);
    int rc = ready ? GV_EXIT_OK : GV_EXIT_NO;
    if (in.json)
        rc = gv_json_print(self, to_json(&job, ready), rc);
    else
        print(&job, &in, ready);
    gv_job_finish(&job);
    return rc;
}

const struct gv_command gv_cmd_doctor = {
    "doctor",
    "say at each step whether a job here is ready, and what to do",
    &argp,
    run,
};
