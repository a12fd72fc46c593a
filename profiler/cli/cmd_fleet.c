/* gv100 fleet: many hosts' profiles side by side. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/gv_file.h"
#include "profiler/cli/fleet.h"

struct input {
    const char *html, *folder;
    char **paths;
    int npaths;
    bool json;
};

static error_t on_option(int key, char *arg, struct argp_state *state)
{
    struct input *in = state->input;
    switch (key) {
    case 'o':
        in->folder = arg;
        return 0;
    case 'H':
        in->html = arg;
        return 0;
    case 'j':
        in->json = true;
        return 0;
    case ARGP_KEY_ARGS:
        in->paths = state->argv + state->next;
        in->npaths = state->argc - state->next;
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "name a folder of profiles, the profiles, or - for standard input");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option options[] = {
    {"output", 'o', "FOLDER", 0, "Write one profile for each kind of host into FOLDER", 0},
    {"html", 'H', "FILE", 0, "The whole as one page", 0},
    {"json", 'j', 0, 0, "JSON, with every figure of every kind", 0},
    {0},
};

static const struct argp argp = {
    options,
    on_option,
    "FOLDER|FILE...|-",
    "Reads the profiles of many hosts, groups the hosts by hardware (GPUs, memory, NUMA nodes, "
    "switches, NVLinks, driver), says how far each figure spreads across the hosts of a kind, and "
    "names what is off: host, GPU or pair or group, figure, how far. Of a folder every *.yaml "
    "below "
    "it is read."
    "\v"
    "A host is off in a figure where it is further from the median than 3.5 scaled median absolute "
    "deviations, than the range of one host's own samples, and than the tolerated loss (5 %); in a "
    "setting or a P2P state where over half of the hosts have another. Of two hosts no one can "
    "tell "
    "which is off, so none is named. What goes with another fault (a slow link shows in each pair "
    "and "
    "group of its GPU) is counted there.\n"
    "\n"
    "The profile of a kind has the median over its hosts of each figure that all of them measured. "
    "A "
    "pair is verified in it where every host that is not off verified it. It matches by shape and "
    "turns nothing on before each host ran gv100 verify.\n"
    "\n"
    "A profile that cannot be read is named, and the rest goes on; the exit status is 3 then. It "
    "is 1 "
    "where something is off. Cards that stand in two profiles are one host: the later day counts, "
    "of "
    "the same day neither.\n"
    "\n"
    "Examples:\n"
    "  cd /shared/profiles && srun --ntasks-per-node=1 gv100 calibrate\n"
    "  gv100 fleet /shared/profiles -o /shared/kinds --html fleet.html\n"
    "  srun --ntasks-per-node=1 --label cat /etc/gv100/host.yaml | gv100 fleet -\n",
    NULL,
    NULL,
    NULL,
};

static int
write_kinds(const struct gv_fleet *fleet, const char *folder, char **written, struct gv_error *err)
{
    if (mkdir(folder, 0755) && errno != EEXIST)
        return gv_error_at(err, folder, 0, 0, "cannot be made: %s", strerror(errno));
    for (int k = 0; k < fleet->nkinds; k++) {
        if (asprintf(&written[k], "%s/%s.yaml", folder, fleet->kinds[k].name) < 0) {
            written[k] = NULL;
            return gv_error_set(err, "out of memory");
        }
        if (gv_profile_write(fleet->kinds[k].merged, written[k], err))
            return -1;
    }
    return 0;
}

static int write_page(const struct gv_fleet *fleet, const char *file, struct gv_error *err)
{
    struct gv_str page = {0};
    int rc = gv_fleet_html(fleet, &page) ? gv_error_set(err, "out of memory")
                                         : gv_file_replace(file, page.data, page.len, 0644, err);
    gv_str_free(&page);
    return rc;
}

static int show(
    const struct gv_command *self, const struct input *in, const struct gv_fleet *fleet,
    char **written)
{
    struct gv_error err;
    int status = fleet->nunread ? GV_EXIT_FAILED : fleet->noutliers ? GV_EXIT_NO : GV_EXIT_OK;
    for (int i = 0; i < fleet->nunread; i++)
        gv_cli_fail(self, 0, &fleet->unread[i]);
    if ((in->folder && write_kinds(fleet, in->folder, written, &err)) ||
        (in->html && write_page(fleet, in->html, &err)))
        return gv_cli_fail(self, GV_EXIT_FAILED, &err);
    if (in->json)
        return gv_json_print(self, gv_fleet_json(fleet, written), status);
    gv_fleet_print(fleet, written);
    return status;
}

static int run(const struct gv_command *self, int argc, char **argv)
{
    struct input in = {0};
    struct gv_fleet fleet = {0};
    struct gv_error err;
    gv_cli_parse(self, argc, argv, 0, &in);
    int rc = 0;
    for (int i = 0; i < in.npaths && !rc; i++)
        rc = gv_fleet_add(&fleet, in.paths[i], &err);
    if (!rc)
        rc = gv_fleet_settle(&fleet, &err);
    char **written = calloc((size_t)fleet.nkinds + 1, sizeof(*written));
    if (rc || !written)
        rc = gv_cli_fail(self, GV_EXIT_FAILED, &err);
    else
        rc = show(self, &in, &fleet, written);
    for (int k = 0; written && k < fleet.nkinds; k++)
        free(written[k]);
    free(written);
    gv_fleet_free(&fleet);
    return rc;
}

const struct gv_command gv_cmd_fleet = {
    "fleet",
    "compare many hosts: kinds, spread, what is off",
    &argp,
    run,
};
