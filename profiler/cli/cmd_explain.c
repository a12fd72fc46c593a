/* gv100 explain: the decision for a set of GPUs, and why. */
#include <stdlib.h>
#include <string.h>

#include "profiler/cli/cli.h"
#include "profiler/cli/explain.h"
#include "profiler/cli/setting.h"

#define MAX_GROUPS 256

struct input {
    const char *profile, *machine;
    gv_gpuset groups[MAX_GROUPS];
    int ngroups;
    unsigned operations;
    int nccl;
    bool json, exit_code;
};

static void add_group(struct input *in, const char *arg, struct argp_state *state)
{
    struct gv_error err;
    if (in->ngroups == MAX_GROUPS)
        argp_error(state, "over %d groups", MAX_GROUPS);
    else if (gv_gpuset_parse(arg, &in->groups[in->ngroups++], &err))
        argp_error(state, "--gpus: %s", err.text);
}

static void set_nccl(struct input *in, const char *arg, struct argp_state *state)
{
    in->nccl = gv_nccl_parse(arg);
    if (!in->nccl)
        argp_error(state, "--nccl '%.40s' is no release; write it as in 2.28.9", arg);
    else if (!gv_settings_for(in->nccl))
        argp_error(state, "NCCL %s has no tuner slot; the plugin needs 2.19 or later", arg);
}

static error_t on_option(int key, char *arg, struct argp_state *state)
{
    struct input *in = state->input;
    struct gv_error err;
    switch (key) {
    case 'p':
        in->profile = arg;
        return 0;
    case 'm':
        in->machine = arg;
        return 0;
    case 'g':
        add_group(in, arg, state);
        return 0;
    case 'o':
        if (gv_ops_parse(arg, &in->operations, &err))
            argp_error(state, "--operations: %s", err.text);
        return 0;
    case 'n':
        set_nccl(in, arg, state);
        return 0;
    case 'j':
        in->json = true;
        return 0;
    case 'e':
        in->exit_code = true;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option options[] = {
    {"profile", 'p', "NAME|FILE", 0, "This profile; no machine is needed then", 0},
    {"machine", 'm', "FOLDER", 0, "A machine's sysfs root instead of the live /sys", 0},
    {"gpus", 'g', "LIST", 0,
     "GPUs of the communicator in PCI order, as 0-5,7; may be given several times. Without it: "
     "every group that was measured",
     0},
    {"operations", 'o', "LIST", 0, "What the job calls, as AllReduce,AllGather", 0},
    {"nccl", 'n', "VERSION", 0, "Decide as under this release", 0},
    {"json", 'j', 0, 0, "JSON: an object for one --gpus, a list for several", 0},
    {"exit-code", 'e', 0, 0, "Exit with 1 where a group keeps NCCL's default", 0},
    {0},
};

static const struct argp argp = {
    options,
    on_option,
    NULL,
    "Shows what the plugin decides for a communicator and why: the ring with the transport of each "
    "edge by default and under the plan, the measured bus bandwidth, the reason."
    "\v"
    "Without --profile the live machine is read and the profile that matches it is used. GPUs are "
    "numbered in PCI order, as nvidia-smi does; CUDA's own order may differ.\n"
    "\n"
    "Examples:\n"
    "  gv100 explain --profile 4028 --gpus 0-5\n"
    "  gv100 explain --gpus 0-5 --gpus 0-9 --operations AllReduce --json\n",
    NULL,
    NULL,
    NULL,
};

/* Every set of GPUs that was measured, in the profile's order. */
static void measured_groups(const struct gv_profile *p, struct input *in)
{
    for (int i = 0; i < p->ngroups && in->ngroups < MAX_GROUPS; i++) {
        bool known = false;
        for (int k = 0; k < in->ngroups; k++)
            known |= in->groups[k] == p->groups[i].gpus;
        if (!known)
            in->groups[in->ngroups++] = p->groups[i].gpus;
    }
    if (!in->ngroups)
        in->groups[in->ngroups++] = p->ngpus >= 64 ? ~(gv_gpuset)0 : GV_GPU_BIT(p->ngpus) - 1;
}

/* The groups as profile indexes. 0, or -1 with `err`. */
static int translate(const struct gv_source *s, struct input *in, struct gv_error *err)
{
    if (!in->ngroups) {
        measured_groups(s->profile, in);
        return 0;
    }
    for (int i = 0; i < in->ngroups; i++)
        if (gv_source_gpus(s, in->groups[i], &in->groups[i], err))
            return -1;
    return 0;
}

static int print(const struct gv_command *self, const struct gv_source *s, const struct input *in)
{
    struct gv_explained *x = malloc(sizeof(*x));
    json_t *list = json_array();
    int status = GV_EXIT_OK;
    if (!in->json)
        gv_explain_header(s);
    for (int i = 0; x && i < in->ngroups; i++) {
        gv_explain(s, in->groups[i], in->operations, in->nccl, x);
        if (in->exit_code && x->plan.transport == GV_TRANSPORT_DEFAULT)
            status = GV_EXIT_NO;
        if (in->json)
            json_array_append_new(list, gv_explain_json(x));
        else
            gv_explain_text(x, in->ngroups == 1);
        gv_explained_finish(x);
    }
    free(x);
    if (in->json) {
        json_t *one = in->ngroups == 1 ? json_incref(json_array_get(list, 0)) : json_incref(list);
        json_decref(list);
        return gv_json_print(self, one, status);
    }
    json_decref(list);
    gv_explain_legend(s);
    return status;
}

static int run(const struct gv_command *self, int argc, char **argv)
{
    static struct input in;
    struct gv_error err;
    gv_cli_parse(self, argc, argv, 0, &in);
    struct gv_source *s = gv_source_open(in.profile, in.machine, &err);
    if (!s)
        return gv_cli_fail(self, GV_EXIT_FAILED, &err);
    int rc = translate(s, &in, &err) ? gv_cli_fail(self, GV_EXIT_USAGE, &err) : print(self, s, &in);
    gv_source_free(s);
    return rc;
}

const struct gv_command gv_cmd_explain = {
    "explain",
    "show the decision for a set of GPUs, and why",
    &argp,
    run,
};
