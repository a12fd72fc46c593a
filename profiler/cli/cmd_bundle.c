/* gv100 bundle: one archive of what a maintainer would ask for. */
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/gv_file.h"
#include "profiler/bundle/gv_bundle.h"
#include "profiler/cli/capture.h"
#include "profiler/cli/cli.h"
#include "profiler/cli/source.h"

#define LOG_MAX (256u << 20)

struct input {
    const char *output, *profile, *machine, *log, *decisions;
    bool yes, dry;
};

static error_t on_option(int key, char *arg, struct argp_state *state)
{
    struct input *in = state->input;
    switch (key) {
    case 'o':
        in->output = arg;
        return 0;
    case 'p':
        in->profile = arg;
        return 0;
    case 'm':
        in->machine = arg;
        return 0;
    case 'l':
        in->log = arg;
        return 0;
    case 'd':
        in->decisions = arg;
        return 0;
    case 'y':
        in->yes = true;
        return 0;
    case 'n':
        in->dry = true;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option options[] = {
    {"output", 'o', "FILE", 0, "The archive (gv100-bundle.tar)", 0},
    {"log", 'l', "FILE", 0, "A job's NCCL log (NCCL_DEBUG=INFO) to put in", 0},
    {"decisions", 'd', "FILE", 0, "A job's decisions (GV100_LOG) to put in", 0},
    {"profile", 'p', "NAME|FILE", 0, "This profile instead of the one that is found", 0},
    {"machine", 'm', "FOLDER", 0, "A machine's sysfs root instead of the live /sys", 0},
    {"yes", 'y', 0, 0, "Write it without asking", 0},
    {"dry-run", 'n', 0, 0, "Show what would be in it, write nothing", 0},
    {0},
};

static const struct argp argp = {
    options,
    on_option,
    NULL,
    "Gathers what a maintainer would ask for: the part of sysfs that describes GPUs, NICs and the "
    "bridges above them, the profile, the doctor's result and, where they are named, a job's NCCL "
    "log and decisions. `gv100 explain --machine FILE.tar` decides with it elsewhere."
    "\v"
    "Host and user names, the home folder, IP addresses, UUIDs of GPUs and the values of variables "
    "whose names speak of keys, tokens or passwords are replaced. What is in the archive is shown "
    "first, in a folder where it can be read; it is written after a yes (--yes where there is no "
    "terminal).\n"
    "\n"
    "Example:\n"
    "  gv100 bundle --log nccl.log\n",
    NULL,
    NULL,
    NULL,
};

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static void remove_folder(const char *folder)
{
    nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static int add_file(
    const char *folder, const char *name, const char *path, struct gv_scrub *scrub,
    struct gv_error *err)
{
    size_t len;
    if (!path || !*path)
        return 0;
    char *text = gv_file_read(path, GV_FILE_ANY, LOG_MAX, &len, err);
    if (!text)
        return -1;
    int rc = gv_bundle_text(folder, name, text, scrub, err);
    free(text);
    return rc;
}

/* The doctor's own result; its exit status is part of it. */
static int add_doctor(const char *folder, struct gv_scrub *scrub, struct gv_error *err)
{
    const char *argv[] = {"/proc/self/exe", "doctor", "--json", NULL};
    struct gv_str out = {0};
    gv_capture(argv, 180000, &out);
    int rc = gv_bundle_text(folder, "doctor.json", out.data ? out.data : "", scrub, err);
    gv_str_free(&out);
    return rc;
}

static int add_profile(
    const struct input *in, const char *folder, struct gv_scrub *scrub, struct gv_error *err)
{
    struct gv_error why;
    struct gv_source *s = gv_source_open(in->profile, in->machine, &why);
    char text[GV_ERROR_TEXT + GV_ERROR_FILE + 32];
    int rc;
    if (s)
        rc = add_file(folder, "profile.yaml", s->path, scrub, err);
    else
        rc = gv_bundle_text(
            folder, "no-profile.txt", gv_error_format(&why, text, sizeof(text)), scrub, err);
    gv_source_free(s);
    return rc;
}

static int
gather(const struct input *in, const char *folder, struct gv_scrub *scrub, struct gv_error *err)
{
    static struct gv_machine machine;
    const char *sysfs = in->machine ? in->machine : gv_sysfs_root();
    if (gv_machine_read(sysfs, &machine, err) ||
        gv_bundle_sysfs(sysfs, &machine, folder, scrub, err) ||
        add_profile(in, folder, scrub, err) || add_doctor(folder, scrub, err) ||
        add_file(folder, "nccl.log", in->log, scrub, err) ||
        add_file(folder, "decisions.json", in->decisions, scrub, err))
        return -1;
    return gv_bundle_text(folder, "version.txt", "gv100 " GV_VERSION "\n", scrub, err);
}

static int shown_files;

static int show_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)ftw;
    bool sysfs = strstr(path, "/sysfs/") != NULL;
    shown_files += type == FTW_F;
    if (type == FTW_F && !sysfs)
        printf("  %-16s %8lld bytes\n", strrchr(path, '/') + 1, (long long)st->st_size);
    return 0;
}

static void show(const char *folder, const struct gv_scrub *scrub)
{
    shown_files = 0;
    printf("The bundle's content, in %s until this command ends:\n", folder);
    nftw(folder, show_entry, 16, FTW_PHYS);
    printf(
        "  sysfs/           the rest of %d files: PCI devices, NUMA nodes, the driver's version\n"
        "Names, addresses, UUIDs and secrets replaced: %d times.\n",
        shown_files, scrub->replaced);
}

static bool agreed(const struct input *in)
{
    char answer[8];
    if (in->yes)
        return true;
    if (!isatty(STDIN_FILENO)) {
        puts("Not written: say --yes where there is no terminal to ask.");
        return false;
    }
    printf("Write it? [y/N] ");
    fflush(stdout);
    return fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

/* The content's owner and times say nothing either. */
static int pack(const char *folder, const char *file, struct gv_error *err)
{
    const char *argv[] = {
        "tar",
        "--format=ustar",
        "--force-local", /* a colon in the name (a time) is no host */
        "--owner=0",
        "--group=0",
        "--numeric-owner",
        "--sort=name",
        "--mtime=@0",
        "-cf",
        file,
        "-C",
        folder,
        ".",
        NULL};
    struct gv_str out = {0};
    int rc = gv_capture(argv, 120000, &out);
    gv_str_free(&out);
    return rc ? gv_error_at(err, file, 0, 0, "could not be written by tar") : 0;
}

static int run(const struct gv_command *self, int argc, char **argv)
{
    static struct gv_scrub scrub;
    struct input in = {.output = "gv100-bundle.tar"};
    struct gv_error err;
    char folder[] = "/tmp/gv100-bundle-XXXXXX";
    gv_cli_parse(self, argc, argv, 0, &in);
    if (!mkdtemp(folder)) {
        gv_error_at(&err, folder, 0, 0, "cannot be made: %m");
        return gv_cli_fail(self, GV_EXIT_FAILED, &err);
    }
    gv_scrub_init(&scrub);
    int rc = GV_EXIT_OK;
    if (gather(&in, folder, &scrub, &err))
        rc = gv_cli_fail(self, GV_EXIT_FAILED, &err);
    else {
        show(folder, &scrub);
        if (!in.dry && !agreed(&in))
            rc = GV_EXIT_USAGE;
        else if (!in.dry && pack(folder, in.output, &err))
            rc = gv_cli_fail(self, GV_EXIT_FAILED, &err);
        else if (!in.dry)
            printf("Written: %s\n", in.output);
    }
    remove_folder(folder);
    return rc;
}

const struct gv_command gv_cmd_bundle = {
    "bundle",
    "gather what a maintainer would ask for, secrets left out",
    &argp,
    run,
};
