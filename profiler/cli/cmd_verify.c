/* gv100 verify: is P2P between these GPUs to be believed, today, with this driver? */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "config/gv_stamp.h"
#include "profiler/cli/measure.h"
#include "profiler/cli/verify_nccl.h"

struct input {
    const char *machine, *stamp, *worker;
    double pair_timeout_s;
    bool json, force, if_needed, no_stamp, no_nccl;
};

enum {
    KEY_FORCE = 256,
    KEY_IF_NEEDED,
    KEY_WORKER,
    KEY_TIMEOUT,
    KEY_VIRTUAL,
    KEY_NO_STAMP,
    KEY_NO_NCCL
};

static error_t on_option(int key, char *arg, struct argp_state *state)
{
    struct input *in = state->input;
    char *end;
    switch (key) {
    case KEY_VIRTUAL:
        in->machine = arg;
        return 0;
    case 'o':
        in->stamp = arg;
        return 0;
    case 'j':
        in->json = true;
        return 0;
    case KEY_FORCE:
        in->force = true;
        return 0;
    case KEY_NO_STAMP:
        in->no_stamp = true;
        return 0;
    case KEY_NO_NCCL:
        in->no_nccl = true;
        return 0;
    case KEY_IF_NEEDED:
        in->if_needed = true;
        return 0;
    case KEY_WORKER:
        in->worker = arg;
        return 0;
    case KEY_TIMEOUT:
        in->pair_timeout_s = strtod(arg, &end);
        if (*end || !(in->pair_timeout_s > 0) || in->pair_timeout_s > 1e6)
            argp_error(state, "--pair-timeout: '%s' is no number of seconds", arg);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option options[] = {
    {"stamp", 'o', "FILE", 0, "Where the stamp goes instead of the usual place", 0},
    {"no-stamp", KEY_NO_STAMP, 0, 0, "Check only, leave no stamp", 0},
    {"no-nccl", KEY_NO_NCCL, 0, 0, "Without the AllReduce of NCCL itself", 0},
    {"if-needed", KEY_IF_NEEDED, 0, 0,
     "Nothing where a stamp holds: same boot, driver and GPUs (for a service at boot)", 0},
    {"force", KEY_FORCE, 0, 0, "Also on GPUs that others use", 0},
    {"virtual", KEY_VIRTUAL, "MACHINE", 0, "A virtual machine, by name or file", 0},
    {"pair-timeout", KEY_TIMEOUT, "SECONDS", 0, "How long a pair may keep its kernels waiting (2)",
     0},
    {"json", 'j', 0, 0, "JSON", 0},
    {"worker", KEY_WORKER, "PAIRS", OPTION_HIDDEN, 0, 0},
    {0},
};

static const struct argp argp = {
    options,
    on_option,
    NULL,
    "Checks P2P between all pairs of GPUs of this machine, both directions: one GPU writes while a "
    "kernel on the other one reads what arrived. It takes seconds and leaves a stamp that the "
    "plugin "
    "needs before it turns P2P on with a profile from another machine."
    "\v"
    "Exit status: 0 if every pair that the driver offers is verified, 1 if one is corrupt, hung, "
    "one-way or not verified, 3 if it could not be checked.\n"
    "\n"
    "Example:\n"
    "  gv100 verify\n",
    NULL,
    NULL,
    NULL,
};

static void fill_stamp(const struct gv_calibration *cal, struct gv_stamp *stamp)
{
    time_t now = time(NULL);
    struct tm tm;
    memset(stamp, 0, sizeof(*stamp));
    snprintf(stamp->host, sizeof(stamp->host), "%s", cal->machine.host);
    snprintf(stamp->boot_id, sizeof(stamp->boot_id), "%s", cal->machine.boot_id);
    snprintf(
        stamp->driver, sizeof(stamp->driver), "%s",
        cal->machine.driver[0] ? cal->machine.driver : cal->gpus.driver);
    if (gmtime_r(&now, &tm))
        strftime(stamp->date, sizeof(stamp->date), "%Y-%m-%dT%H:%M:%SZ", &tm);
    snprintf(stamp->tool, sizeof(stamp->tool), "gv100 %s", GV_VERSION);
    stamp->ngpus = cal->n;
    for (int a = 0; a < cal->n; a++) {
        snprintf(stamp->bus_id[a], sizeof(stamp->bus_id[a]), "%s", cal->machine.gpus[a].bus_id);
        for (int b = 0; b < cal->n; b++)
            stamp->pair[a][b] = a == b ? GV_P2P_UNVERIFIED : cal->pair[a][b].p2p;
    }
}

static void count(const struct gv_calibration *cal, int by_state[GV_P2P_STATES])
{
    memset(by_state, 0, sizeof(int) * GV_P2P_STATES);
    for (int a = 0; a < cal->n; a++)
        for (int b = a + 1; b < cal->n; b++)
            by_state[cal->pair[a][b].p2p]++;
}

static bool all_good(const int by_state[GV_P2P_STATES])
{
    for (int s = 0; s < GV_P2P_STATES; s++)
        if (by_state[s] && s != GV_P2P_VERIFIED && s != GV_P2P_REFUSED)
            return false;
    return true;
}

static void print_text(
    const struct gv_calibration *cal, const int by_state[GV_P2P_STATES],
    const struct gv_nccl_check *nccl, const char *stamp)
{
    printf("%d GPUs, %d pairs:", cal->n, cal->n * (cal->n - 1) / 2);
    const char *sep = " ";
    for (int s = 0; s < GV_P2P_STATES; s++)
        if (by_state[s]) {
            printf("%s%d %s", sep, by_state[s], gv_p2p_name((enum gv_p2p)s));
            sep = ", ";
        }
    puts("");
    if (nccl->text[0])
        printf("NCCL: %s\n", nccl->text);
    if (stamp)
        printf("stamp: %s\n", stamp);
}

static json_t *to_json(
    const struct gv_calibration *cal, const int by_state[GV_P2P_STATES],
    const struct gv_nccl_check *nccl, const char *stamp)
{
    json_t *pairs = json_array(), *counts = json_object();
    for (int a = 0; a < cal->n; a++)
        for (int b = a + 1; b < cal->n; b++)
            json_array_append_new(
                pairs, json_pack(
                           "{s:[ii], s:s, s:s}", "gpus", a, b, "p2p",
                           gv_p2p_name(cal->pair[a][b].p2p), "note", cal->pair[a][b].note));
    for (int s = 0; s < GV_P2P_STATES; s++)
        json_object_set_new(counts, gv_p2p_name((enum gv_p2p)s), json_integer(by_state[s]));
    return json_pack(
        "{s:i, s:o, s:o, s:{s:s, s:i, s:s, s:s}, s:s?, s:b, s:o}", "gpus", cal->n, "counts", counts,
        "pairs", pairs, "nccl", "path", nccl->nccl, "version", nccl->version, "verdict",
        gv_nccl_verdict_name(nccl->verdict), "text", nccl->text, "stamp", stamp, "ok",
        all_good(by_state), "warnings", gv_json_warnings(cal));
}

static int report(
    const struct gv_command *self, const struct input *in, const struct gv_calibration *cal,
    const struct gv_nccl_check *nccl, struct gv_error *err)
{
    static struct gv_stamp stamp; /* large */
    char path[PATH_MAX];
    int by_state[GV_P2P_STATES];
    count(cal, by_state);
    if (!in->no_stamp) {
        fill_stamp(cal, &stamp);
        if (in->stamp)
            snprintf(path, sizeof(path), "%s", in->stamp);
        else if (gv_stamp_path(path, err))
            return gv_cli_fail(self, GV_EXIT_FAILED, err);
        if (gv_stamp_write(&stamp, path, err))
            return gv_cli_fail(self, GV_EXIT_FAILED, err);
    }
    int status = all_good(by_state) ? GV_EXIT_OK : GV_EXIT_NO;
    gv_print_warnings(self, cal);
    if (in->json)
        return gv_json_print(
            self, to_json(cal, by_state, nccl, in->no_stamp ? NULL : path), status);
    print_text(cal, by_state, nccl, in->no_stamp ? NULL : path);
    return status;
}

static int verify(const struct gv_command *self, const struct input *in, struct gv_measuring *m)
{
    struct gv_error err = {0};
    struct gv_nccl_check nccl = {0};
    int status;
    m->options.only = "check"; /* no other probe has this word */
    m->options.pair_timeout_s = in->pair_timeout_s;
    m->options.force = in->force;
    struct gv_calibration *cal = gv_calibration_open(&m->options, &err);
    if (!cal)
        return gv_cli_fail(self, GV_EXIT_FAILED, &err);
    gv_probe_check.plan(cal, &gv_probe_check);
    if (gv_calibration_run(cal, NULL, NULL, &err))
        status = gv_cli_fail(self, GV_EXIT_FAILED, &err);
    else {
        if (!in->no_nccl)
            gv_verify_nccl(cal, in->machine, &nccl);
        status = report(self, in, cal, &nccl, &err);
    }
    gv_calibration_close(cal);
    return status;
}

/* Whether a stamp speaks for this machine as it is now. */
static bool verified_already(const struct input *in)
{
    static struct gv_stamp stamp; /* large */
    struct gv_machine machine;
    struct gv_error why;
    if (gv_machine_read(gv_sysfs_root(), &machine, &why))
        return false;
    if (!in->stamp)
        return !gv_stamp_find(&machine, &stamp, &why);
    return !gv_stamp_read(in->stamp, &stamp, &why) && !gv_stamp_holds(&stamp, &machine, &why);
}

static int run(const struct gv_command *self, int argc, char **argv)
{
    struct input in = {0};
    struct gv_measuring m = {0};
    struct gv_error err = {0};
    gv_cli_parse(self, argc, argv, 0, &in);
    if (in.worker) {
        struct gv_calibration_options worker = {.pair_timeout_s = in.pair_timeout_s};
        if (in.machine && gv_virtual_use(in.machine, false, &m.virtual_files, &err))
            return gv_cli_fail(self, GV_EXIT_FAILED, &err);
        if (in.machine) {
            worker.cuda_path = m.virtual_files.cuda;
            worker.nvml_path = m.virtual_files.nvml;
        }
        return gv_check_worker(&worker, in.worker, stdout);
    }
    if (gv_measuring_init(&m, in.machine, &err))
        return gv_cli_fail(self, GV_EXIT_FAILED, &err);
    int status = GV_EXIT_OK;
    if (in.if_needed && verified_already(&in))
        fputs("gv100 verify: nothing to do, a stamp holds for this machine\n", stderr);
    else
        status = verify(self, &in, &m);
    gv_measuring_finish(&m);
    return status;
}

const struct gv_command gv_cmd_verify = {
    "verify",
    "check P2P between all pairs, and leave the stamp",
    &argp,
    run,
};
