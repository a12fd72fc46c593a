/* gv100 env: the one variable to set for the NCCL in use. */
#include <stdlib.h>
#include <string.h>

#include "profiler/cli/cli.h"
#include "profiler/cli/setting.h"

enum form { FORM_SHELL, FORM_JSON, FORM_SLURM, FORM_K8S };

struct input {
    const char *nccl, *command;
    enum form form;
};

struct answer {
    struct gv_nccl list[GV_NCCL_MAX]; /* the first is the one that counts */
    int n;
    unsigned settings; /* bits of gv_settings */
    char plugin[PATH_MAX];
};

static error_t on_option(int key, char *arg, struct argp_state *state)
{
    struct input *in = state->input;
    switch (key) {
    case 'n':
        in->nccl = arg;
        return 0;
    case 's':
        in->form = FORM_SHELL;
        return 0;
    case 'j':
        in->form = FORM_JSON;
        return 0;
    case 'S':
        in->form = FORM_SLURM;
        return 0;
    case 'K':
        in->form = FORM_K8S;
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
    {"shell", 's', 0, 0, "Lines for a shell (the default): eval \"$(gv100 env)\"", 0},
    {"json", 'j', 0, 0, "JSON", 0},
    {"slurm", 'S', 0, 0, "Lines for a Slurm job script", 0},
    {"k8s", 'K', 0, 0, "A piece of a Kubernetes pod", 0},
    {0},
};

static const struct argp argp = {
    options,
    on_option,
    "[COMMAND]",
    "Prints the variable that brings the plugin into a job, for the NCCL in use.\n"
    "\n"
    "Looked for, without running any of it: what COMMAND is linked with or, where it is a Python "
    "program, that Python's own NCCL; the NCCL of python3; the loader's libnccl.so.2."
    "\v"
    "NCCL 2.19 to 2.28.6 takes LD_PRELOAD, 2.28.7 and later NCCL_ENV_PLUGIN. Where no NCCL is "
    "found both are printed, which is harmless with either.\n"
    "\n"
    "Example:\n"
    "  eval \"$(gv100 env)\" && python train.py\n",
    NULL,
    NULL,
    NULL,
};

static int look(const struct input *in, struct answer *out, struct gv_error *err)
{
    bool certain;
    int version = in->nccl ? gv_nccl_parse(in->nccl) : 0;
    if (version) {
        out->list[0].version = version;
        out->n = 1;
    } else if (in->nccl) {
        if (gv_nccl_read(in->nccl, &out->list[0], err))
            return -1;
        out->n = 1;
    } else
        out->n = gv_nccl_find(in->command, out->list, &certain);
    if (in->nccl)
        snprintf(out->list[0].how, sizeof(out->list[0].how), "named");
    out->settings = gv_settings_for(out->list[0].version);
    if (!out->settings) {
        char text[16];
        return gv_error_set(
            err, "NCCL %s has no tuner slot; the plugin needs 2.19 or later",
            gv_nccl_format(out->list[0].version, text));
    }
    return 0;
}

static const char *version_text(const struct gv_nccl *n, char out[16])
{
    return n->version ? gv_nccl_format(n->version, out) : "of unknown release";
}

static void comments(const struct answer *a)
{
    char text[16];
    if (!a->n)
        puts("# No libnccl.so.2 was found here: both ways in, harmless together.");
    for (int i = 0; i < a->n; i++) {
        const struct gv_nccl *n = &a->list[i];
        printf("# %sNCCL %s", i ? "also here: " : "", version_text(n, text));
        if (n->path[0])
            printf(" (%s: %s)", n->how, n->path);
        if (i && gv_settings_for(n->version) != a->settings)
            printf(", which needs another variable: gv100 env --nccl %s", n->path);
        putchar('\n');
    }
}

/* Single quotes around what a shell would not take as it is. */
static void quoted(const char *text)
{
    if (!strpbrk(text, " \t\n'\"\\$`&|;<>()*?[]#~!{}")) {
        fputs(text, stdout);
        return;
    }
    putchar('\'');
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\''", stdout);
        else
            putchar(*text);
    }
    putchar('\'');
}

static void exports(const struct answer *a)
{
    for (int i = 0; i < GV_SETTINGS; i++) {
        if (!(a->settings >> i & 1))
            continue;
        printf("export %s=", gv_settings[i].variable);
        quoted(a->plugin);
        puts(i == 0 ? "${LD_PRELOAD:+:$LD_PRELOAD}" : "");
    }
}

static void slurm(const struct answer *a)
{
    puts("# Before srun in the job script; srun hands the environment on by itself.");
    exports(a);
    puts("# srun --ntasks-per-node=1 --export=ALL python train.py\n"
         "# mpirun needs each variable by name:");
    fputs("# mpirun", stdout);
    for (int i = 0; i < GV_SETTINGS; i++)
        if (a->settings >> i & 1)
            printf(" -x %s", gv_settings[i].variable);
    puts(" ...");
}

static void k8s(const struct answer *a)
{
    if (!a->n || strcmp(a->list[0].how, "named"))
        puts("# For an image that has another NCCL than this host: gv100 env --k8s --nccl VERSION");
    puts("# Into the pod's spec. The host's plugin, its profile (in /etc/gv100: copy a shipped one "
         "there)\n"
         "# and its verification are mounted; ranks of one node meet in /dev/shm.\n"
         "containers:\n"
         "  - name: train\n"
         "    env:");
    for (int i = 0; i < GV_SETTINGS; i++)
        if (a->settings >> i & 1)
            printf(
                "      - {name: %s, value: /opt/gv100/libnccl-tuner-gv100.so}\n",
                gv_settings[i].variable);
    printf(
        "    volumeMounts:\n"
        "      - {name: gv100, mountPath: /opt/gv100/libnccl-tuner-gv100.so, readOnly: true}\n"
        "      - {name: gv100-profiles, mountPath: /etc/gv100, readOnly: true}\n"
        "      - {name: gv100-verified, mountPath: /var/lib/gv100, readOnly: true}\n"
        "      - {name: shm, mountPath: /dev/shm}\n"
        "volumes:\n"
        "  - {name: gv100, hostPath: {path: \"%s\", type: File}}\n"
        "  - {name: gv100-profiles, hostPath: {path: /etc/gv100, type: DirectoryOrCreate}}\n"
        "  - {name: gv100-verified, hostPath: {path: /var/lib/gv100, type: DirectoryOrCreate}}\n"
        "  - {name: shm, emptyDir: {medium: Memory}}\n",
        a->plugin);
}

static json_t *nccl_json(const struct gv_nccl *n)
{
    char text[16];
    json_t *o = json_object();
    json_object_set_new(
        o, "version", n->version ? json_string(gv_nccl_format(n->version, text)) : json_null());
    json_object_set_new(o, "path", n->path[0] ? json_string(n->path) : json_null());
    json_object_set_new(o, "found_by", json_string(n->how));
    return o;
}

static json_t *to_json(const struct answer *a)
{
    json_t *o = json_object(), *set = json_object(), *others = json_array();
    json_object_set_new(o, "nccl", a->n ? nccl_json(&a->list[0]) : json_null());
    int first = __builtin_ctz(a->settings);
    for (int i = 0; i < GV_SETTINGS; i++)
        if (a->settings >> i & 1)
            json_object_set_new(set, gv_settings[i].variable, json_string(a->plugin));
    bool one = json_object_size(set) == 1;
    json_object_set_new(
        o, "variable", one ? json_string(gv_settings[first].variable) : json_null());
    json_object_set_new(o, "value", json_string(a->plugin));
    json_object_set_new(o, "set", set);
    json_object_set_new(o, "effect", json_string(gv_settings[first].effect));
    for (int i = 1; i < a->n; i++)
        json_array_append_new(others, nccl_json(&a->list[i]));
    json_object_set_new(o, "others", others);
    return o;
}

static int run(const struct gv_command *self, int argc, char **argv)
{
    struct input in = {0};
    gv_cli_parse(self, argc, argv, ARGP_IN_ORDER, &in);
    struct answer *a = calloc(1, sizeof(*a));
    struct gv_error err;
    if (!a)
        return GV_EXIT_FAILED;
    int rc = GV_EXIT_OK;
    if (look(&in, a, &err) || gv_plugin_path(a->plugin, &err) ||
        gv_plugin_path_fits(a->plugin, a->settings, &err))
        rc = gv_cli_fail(self, GV_EXIT_FAILED, &err);
    else if (in.form == FORM_JSON)
        rc = gv_json_print(self, to_json(a), rc);
    else {
        comments(a);
        if (in.form == FORM_SLURM)
            slurm(a);
        else if (in.form == FORM_K8S)
            k8s(a);
        else
            exports(a);
    }
    free(a);
    return rc;
}

const struct gv_command gv_cmd_env = {
    "env",
    "print the one variable to set for the NCCL in use",
    &argp,
    run,
};
