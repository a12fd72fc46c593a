/* gv100 run: a job under the plugin, and what was decided in it. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profiler/cli/cli.h"
#include "profiler/cli/decisions.h"
#include "profiler/cli/setting.h"
#include "profiler/cli/supervise.h"

struct input {
    const char *log, *nccl;
    char **command;
    bool quiet;
};

/* Where the plugin writes. `from` is the file's length before the job, so that an older job's lines
 * in it are not counted again. */
struct log {
    char path[PATH_MAX];
    long from;
    bool temporary;
};

static error_t on_option(int key, char *arg, struct argp_state *state)
{
    struct input *in = state->input;
    switch (key) {
    case 'l':
        in->log = arg;
        return 0;
    case 'n':
        in->nccl = arg;
        return 0;
    case 'q':
        in->quiet = true;
        return 0;
    case ARGP_KEY_ARGS:
        in->command = state->argv + state->next;
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "a command is missing: gv100 run -- python train.py");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option options[] = {
    {"log", 'l', "FILE", 0, "Keep the decisions (JSON lines) in FILE", 0},
    {"nccl", 'n', "VERSION|PATH", 0, "The job's NCCL, where it cannot be found by itself", 0},
    {"quiet", 'q', 0, 0, "No closing line", 0},
    {0},
};

static const struct argp argp = {
    options,
    on_option,
    "[--] COMMAND [ARG...]",
    "Runs COMMAND with the one variable set that its NCCL needs (as `gv100 env COMMAND` prints it) "
    "and closes with one line on standard error: what was decided, and why.\n"
    "\n"
    "COMMAND keeps its standard input, output and error, its signals and its exit status. It runs "
    "without the plugin, with one line saying so, where the plugin is not found."
    "\v"
    "Where the release cannot be told, LD_PRELOAD and NCCL_ENV_PLUGIN are both set. Variables that "
    "are already set are kept: LD_PRELOAD is extended, an NCCL_ENV_PLUGIN of yours wins.\n"
    "\n"
    "Example:\n"
    "  gv100 run -- torchrun --nproc-per-node=6 train.py\n",
    NULL,
    NULL,
    NULL,
};

/* The settings for the job's NCCL. Where the command does not tell which one it loads, every one
 * that was found must be served. */
static unsigned settings_for(const struct input *in, struct gv_nccl list[GV_NCCL_MAX], int *n)
{
    bool certain = true;
    *n = 1;
    list[0].version = in->nccl ? gv_nccl_parse(in->nccl) : 0;
    if (in->nccl && !list[0].version && gv_nccl_read(in->nccl, &list[0], NULL))
        list[0].version = 0;
    if (!in->nccl)
        *n = gv_nccl_find(in->command[0], list, &certain);
    if (!*n)
        return gv_settings_for(0);
    unsigned bits = 0;
    for (int i = 0; i < (certain ? 1 : *n); i++)
        bits |= gv_settings_for(list[i].version);
    return bits;
}

/* GV100_LOG is the user's, --log's or a temporary file's, which may be in /tmp where TMPDIR takes
 * none. -1: there is none. */
static int open_log(const struct input *in, struct log *out, struct gv_error *err)
{
    const char *set = in->log ? in->log : getenv("GV100_LOG");
    const char *folder = getenv("TMPDIR");
    struct stat st;
    int fd = -1;
    out->temporary = !set || !*set;
    for (int i = folder && *folder ? 0 : 1; out->temporary && i < 2 && fd < 0; i++) {
        snprintf(out->path, sizeof(out->path), "%s/gv100-log-XXXXXX", i ? "/tmp" : folder);
        fd = mkostemp(out->path, O_CLOEXEC);
    }
    if (!out->temporary) {
        snprintf(out->path, sizeof(out->path), "%s", set);
        fd = open(out->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    }
    if (fd < 0)
        return gv_error_at(
            err, out->path, 0, 0, "the log cannot be written: %s; name another with --log",
            strerror(errno));
    out->from = fstat(fd, &st) ? 0 : (long)st.st_size;
    close(fd);
    char full[PATH_MAX]; /* the job may change its folder */
    return setenv("GV100_LOG", realpath(out->path, full) ? full : out->path, 1);
}

/* Why nothing was decided, as far as it can be told from here. */
static void nothing_decided(
    const struct gv_nccl *list, int n, unsigned bits, const char *plugin, struct gv_str *out)
{
    char text[16];
    const char *theirs = getenv("NCCL_ENV_PLUGIN");
    const char *release = n && list[0].version ? gv_nccl_format(list[0].version, text) : NULL;
    if (!bits) {
        gv_str_addf(
            out, "nothing was set: NCCL %s has no tuner slot, the plugin needs 2.19 or later",
            release ? release : "?");
        return;
    }
    gv_str_add(out, "no decision: NCCL made no communicator, or did not load the plugin (");
    for (int i = 0; i < GV_SETTINGS; i++) {
        bool kept = !strcmp(gv_settings[i].variable, "NCCL_ENV_PLUGIN") && theirs &&
                    strcmp(theirs, plugin) != 0;
        if (bits >> i & 1 && kept)
            gv_str_addf(out, "NCCL_ENV_PLUGIN=%.80s of yours was kept ", theirs);
        else if (bits >> i & 1)
            gv_str_addf(out, "%s was set ", gv_settings[i].variable);
    }
    if (!out->failed)
        out->data[--out->len] = '\0'; /* the last blank */
    if (release)
        gv_str_addf(out, " for NCCL %s", release);
    gv_str_add(out, "); NCCL_DEBUG=INFO shows which plugins it loads");
}

static void close_with_a_line(
    const struct log *log, const struct gv_nccl *list, int n, unsigned bits, const char *plugin)
{
    struct gv_decisions d;
    struct gv_str line = {0};
    const char *off = getenv("GV100_DISABLE");
    if (gv_decisions_read(log->path, log->from, &d))
        gv_str_add(&line, "the decisions could not be read: out of memory");
    else if (off && !strcmp(off, "1"))
        gv_str_add(&line, "switched off by GV100_DISABLE=1");
    else if (!d.n && !d.warnings)
        nothing_decided(list, n, bits, plugin, &line);
    else
        gv_decisions_sentence(&d, 6, &line);
    if (line.data && !line.failed)
        fprintf(stderr, "gv100: %s\n", line.data);
    gv_str_free(&line);
    gv_decisions_finish(&d);
}

static int start_failed(const struct gv_command *self, const char *command, int cause)
{
    struct gv_error err;
    gv_error_at(&err, command, 0, 0, "cannot be started: %s", strerror(cause));
    return gv_cli_fail(self, cause == ENOENT ? 127 : 126, &err);
}

/* A job is never kept from running by what is wrong on our side. */
static int
run_plain(const struct gv_command *self, const struct input *in, const struct gv_error *err)
{
    int status;
    gv_cli_fail(self, 0, err);
    fputs("gv100 run: the command runs without the plugin\n", stderr);
    int cause = gv_supervise(in->command, &status);
    return cause ? start_failed(self, in->command[0], cause) : gv_supervise_end(status);
}

static int run(const struct gv_command *self, int argc, char **argv)
{
    struct input in = {0};
    gv_cli_parse(self, argc, argv, ARGP_IN_ORDER, &in);
    static struct gv_nccl list[GV_NCCL_MAX];
    static struct log log;
    char plugin[PATH_MAX];
    struct gv_error err;
    int n, status;
    unsigned bits = settings_for(&in, list, &n);
    if (gv_plugin_path(plugin, &err) || gv_plugin_path_fits(plugin, bits, &err))
        return run_plain(self, &in, &err);
    bool logged = !open_log(&in, &log, &err);
    if (!logged) {
        gv_cli_fail(self, 0, &err);
        fputs("gv100 run: the command runs under the plugin, without a closing line\n", stderr);
    }
    gv_settings_apply(bits, plugin);
    int cause = gv_supervise(in.command, &status);
    if (!cause && !in.quiet && logged)
        close_with_a_line(&log, list, n, bits, plugin);
    if (log.temporary && logged)
        unlink(log.path);
    return cause ? start_failed(self, in.command[0], cause) : gv_supervise_end(status);
}

const struct gv_command gv_cmd_run = {
    "run",
    "run a command under the plugin and say what was decided",
    &argp,
    run,
};
