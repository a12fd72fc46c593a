/* gv100: measure a machine, and see what NCCL is told because of it. */
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "base/gv_nearest.h"
#include "profiler/cli/cli.h"

const struct gv_command *const gv_commands[] = {
    &gv_cmd_calibrate, &gv_cmd_verify, &gv_cmd_explain, &gv_cmd_show,
    &gv_cmd_compare,   &gv_cmd_check,  &gv_cmd_doctor,  &gv_cmd_place,
    &gv_cmd_env,       &gv_cmd_run,    &gv_cmd_log,     &gv_cmd_fleet,
    &gv_cmd_handoff,   &gv_cmd_import, &gv_cmd_bundle,  NULL,
};

static void help(FILE *out)
{
    fputs(
        "Usage: gv100 COMMAND [OPTION...]\n"
        "Make NCCL use what was measured on this machine instead of what it assumes.\n"
        "\n",
        out);
    for (int i = 0; gv_commands[i]; i++)
        fprintf(out, "  %-10s %s\n", gv_commands[i]->name, gv_commands[i]->summary);
    fputs(
        "\n  gv100 COMMAND --help                       its options, an example\n"
        "  gv100 explain --profile 4028 --gpus 0-5    a decision, on any machine\n"
        "  GV100_DISABLE=1 ...                        the plugin switched off\n"
        "Exit status: 0 done, 1 the answer is no, 2 usage, 3 not to be read or measured.\n",
        out);
}

static const struct gv_command *find(const char *name)
{
    for (int i = 0; gv_commands[i]; i++)
        if (!strcmp(gv_commands[i]->name, name))
            return gv_commands[i];
    return NULL;
}

static int unknown(const char *name)
{
    const char *names[64];
    int n = 0;
    while (gv_commands[n]) {
        names[n] = gv_commands[n]->name;
        n++;
    }
    const char *near = gv_nearest(name, names, n);
    fprintf(stderr, "gv100: there is no command '%.60s'", name);
    if (near)
        fprintf(stderr, "; did you mean '%s'?", near);
    fputs("; `gv100 --help` lists them\n", stderr);
    return GV_EXIT_USAGE;
}

/* One file for gv100 and one for each command into `folder`. */
static int man(const char *folder)
{
    for (int i = -1; i < 0 || gv_commands[i]; i++) {
        const struct gv_command *cmd = i < 0 ? NULL : gv_commands[i];
        char path[4096];
        snprintf(
            path, sizeof(path), "%s/gv100%s%s.1", folder, cmd ? "-" : "", cmd ? cmd->name : "");
        FILE *f = fopen(path, "we");
        if (!f) {
            fprintf(stderr, "gv100: %s: %m\n", path);
            return GV_EXIT_FAILED;
        }
        gv_man_write(f, cmd);
        if (fclose(f))
            return GV_EXIT_FAILED;
    }
    return GV_EXIT_OK;
}

/* The completions of each shell into `folder`, under the names that they are looked for. */
static int completions(const char *folder)
{
    static const struct {
        const char *name;
        void (*write)(FILE *);
    } files[] = {
        {"gv100", gv_complete_bash}, {"_gv100", gv_complete_zsh}, {"gv100.fish", gv_complete_fish}};
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        char path[4096];
        snprintf(path, sizeof(path), "%s/%s", folder, files[i].name);
        FILE *f = fopen(path, "we");
        if (!f) {
            fprintf(stderr, "gv100: %s: %m\n", path);
            return GV_EXIT_FAILED;
        }
        files[i].write(f);
        if (fclose(f))
            return GV_EXIT_FAILED;
    }
    return GV_EXIT_OK;
}

/* A table that did not get out whole (a full disk) is no success; JSON says so by itself. */
static int close_stdout(const char *name, int status)
{
    if (status == GV_EXIT_FAILED || (!ferror(stdout) && !fflush(stdout)))
        return status;
    fprintf(stderr, "%s: the result could not be written to standard output\n", name);
    return GV_EXIT_FAILED;
}

static int start(const struct gv_command *cmd, int argc, char **argv)
{
    char name[64];
    snprintf(name, sizeof(name), "gv100 %s", cmd->name);
    argv[0] = name; /* argp's messages begin with it */
    return close_stdout(name, cmd->run(cmd, argc, argv));
}

static int help_about(const char *name)
{
    const struct gv_command *cmd = find(name);
    if (!cmd)
        return unknown(name);
    char zero[] = "", option[] = "--help", *argv[] = {zero, option, NULL};
    return start(cmd, 2, argv);
}

int main(int argc, char **argv)
{
    setlocale(LC_CTYPE, "");
    if (argc < 2) {
        help(stderr);
        return GV_EXIT_USAGE;
    }
    const char *first = argv[1];
    if (!strcmp(first, "--help") || !strcmp(first, "-h") || !strcmp(first, "-?") ||
        !strcmp(first, "help")) {
        if (argc > 2)
            return help_about(argv[2]);
        help(stdout);
        return close_stdout("gv100", GV_EXIT_OK);
    }
    if (!strcmp(first, "--version") || !strcmp(first, "-V")) {
        puts("gv100 " GV_VERSION);
        return close_stdout("gv100", GV_EXIT_OK);
    }
    if (!strcmp(first, "--man") && argc == 3) /* for the build */
        return man(argv[2]);
    if (!strcmp(first, "--completions") && argc == 3) /* for the build */
        return completions(argv[2]);
    const struct gv_command *cmd = find(first);
    return cmd ? start(cmd, argc - 1, argv + 1) : unknown(first);
}
