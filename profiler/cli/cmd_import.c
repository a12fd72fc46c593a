/* gv100 import: a profile from what other tools printed. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/gv_nearest.h"
#include "base/gv_str.h"
#include "config/gv_machine.h"
#include "profiler/cli/cli.h"
#include "profiler/cli/import.h"
#include "profiler/cli/text.h"

#define MOST_FILES 256

struct input {
    const char *files[MOST_FILES], *out, *into, *name;
    int nfiles;
    enum gv_import_format format;
    struct gv_import_options options;
    bool json;
};

static void
wrong(struct argp_state *state, const char *what, const char *arg, const char *const *words, int n)
{
    const char *near = gv_nearest(arg, words, n);
    argp_error(
        state, "%s '%.40s' is not known%s%s%s", what, arg, near ? "; did you mean '" : "",
        near ? near : "", near ? "'?" : "");
}

static void take_format(struct argp_state *state, struct input *in, const char *arg)
{
    const char *words[GV_IMPORT_FORMATS];
    int format = gv_import_format_from_name(arg);
    for (int i = 0; i < GV_IMPORT_FORMATS; i++)
        words[i] = gv_import_format_name((enum gv_import_format)i);
    if (format < 0)
        wrong(state, "format", arg, words, GV_IMPORT_FORMATS);
    else
        in->format = (enum gv_import_format)format;
}

static void take_op(struct argp_state *state, struct input *in, const char *arg)
{
    const char *words[GV_OP_COUNT];
    for (int i = 0; i < GV_OP_COUNT; i++)
        words[i] = gv_op_name((enum gv_op)i);
    in->options.op = gv_op_from_name(arg);
    if (in->options.op < 0)
        wrong(state, "operation", arg, words, GV_OP_COUNT);
}

static void take_edit(struct argp_state *state, struct input *in, const char *arg)
{
    const char *words[GV_EDIT_KINDS];
    for (int i = 0; i < GV_EDIT_KINDS; i++)
        words[i] = gv_edit_name((enum gv_edit_kind)i);
    in->options.edit = gv_edit_from_name(arg);
    if (in->options.edit < 0)
        wrong(state, "edit", arg, words, GV_EDIT_KINDS);
}

static void take_gpus(struct argp_state *state, struct input *in, const char *arg)
{
    struct gv_error err;
    in->options.ngpus = gv_gpulist_parse(arg, in->options.gpus, &err);
    if (in->options.ngpus < 0)
        argp_error(state, "--gpus %.60s: %s", arg, err.text);
}

static void take_file(struct argp_state *state, struct input *in, const char *arg)
{
    if (in->nfiles == MOST_FILES)
        argp_error(state, "%d files at most", MOST_FILES);
    else
        in->files[in->nfiles++] = arg;
}

static error_t on_option(int key, char *arg, struct argp_state *state)
{
    struct input *in = state->input;
    switch (key) {
    case 'o':
        in->out = arg;
        return 0;
    case 'i':
        in->into = arg;
        return 0;
    case 'f':
        take_format(state, in, arg);
        return 0;
    case 'g':
        take_gpus(state, in, arg);
        return 0;
    case 'O':
        take_op(state, in, arg);
        return 0;
    case 'e':
        take_edit(state, in, arg);
        return 0;
    case 'P':
        in->options.in_place = true;
        return 0;
    case 'n':
        in->name = arg;
        return 0;
    case 'j':
        in->json = true;
        return 0;
    case ARGP_KEY_ARG:
        take_file(state, in, arg);
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "name the files to read");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option options[] = {
    {"output", 'o', "FILE", 0, "Write the profile here; without it and --into nothing is written",
     0},
    {"into", 'i', "PROFILE", 0, "Add to this profile, in place unless -o is given", 0},
    {"format", 'f', "FORMAT", 0,
     "smi, nccl-tests, nccl-tests-json, p2p-bandwidth, nvbandwidth, nvbandwidth-json, "
     "nccl-topology, nccl-graph, hwloc, csv, nccl-tuner; by default told from the content",
     0},
    {"gpus", 'g', "LIST", 0, "The profile's GPU of each rank of a table, in the order of ranks", 0},
    {"op", 'O', "NAME", 0, "The operation of a table that does not say it (AllReduce, ...)", 0},
    {"edit", 'e', "KIND", 0,
     "What a table was measured with: none (NCCL's default), p2p-level, bridge, lend, separate", 0},
    {"in-place", 'P', 0, 0, "The in-place half of tables instead of the other one", 0},
    {"name", 'n', "NAME", 0, "Name of a new profile", 0},
    {"json", 'j', 0, 0, "JSON: every figure with its line, or what was refused and where", 0},
    {0},
};

static const struct argp argp = {
    options,
    on_option,
    "FILE...",
    "Makes or extends a profile from what other tools printed: nvidia-smi topo -m and -p2p, tables "
    "and JSON of nccl-tests, p2pBandwidthLatencyTest, nvbandwidth, NCCL's topology and graph "
    "files, lstopo's XML, the configuration of NCCL's example tuner, CSV. Each figure keeps its "
    "file and line."
    "\v"
    "All files together make one profile; where two contradict each other, where results were "
    "wrong or not checked, or where a row is cut, glued or missing, everything is refused with "
    "file, line and reason, and nothing is written. The profile's provenance is `imported`: P2P is "
    "turned on only after `gv100 verify` on the host.\n"
    "\n"
    "CSV has a heading of one of these kinds:\n"
    "  gpus,op,bytes,busbw_gbs[,edit,algorithm,protocol,channels]   gpus as in 0-5 or 0;2;4\n"
    "  from,to[,smi_class,p2p,write_gbs,read_gbs,both_ways_gbs,latency_us,host_path_gbs]\n"
    "  gpu[,copy_gbs,to_device_gbs,to_host_gbs]\n"
    "\n"
    "A tuner's configuration holds choices and no figures. It becomes rows of the profile's "
    "`tuner`, "
    "which the plugin uses for operations of which no choice was measured, with -1 as any number "
    "of nodes or ranks.\n"
    "\n"
    "Examples:\n"
    "  gv100 import topo.txt lstopo.xml all_reduce.txt -o host.yaml\n"
    "  gv100 import all_reduce_phb.txt --into host.yaml --edit p2p-level --gpus 0-5\n"
    "  gv100 import nccl_tuner.conf --into host.yaml\n",
    NULL,
    NULL,
    NULL,
};

static void plural(struct gv_str *s, int n, const char *what)
{
    if (n)
        gv_str_addf(s, ", %d %s%s", n, what, n == 1 ? "" : "s");
}

static void print_source(const struct gv_import_source *s)
{
    struct gv_str line = {0};
    gv_str_addf(&line, "%s: %s", s->path, gv_import_format_name(s->format));
    plural(&line, s->ngpus, "GPU");
    plural(&line, s->npairs, "pair");
    plural(&line, s->nsingles, "single figure");
    plural(&line, s->nsamples, "sample");
    plural(&line, s->nrings, "ring");
    plural(&line, s->nchoices, "tuner row");
    gv_print_field("read", line.data && !line.failed ? line.data : s->path);
    gv_str_free(&line);
    for (int i = 0; i < s->nnotes; i++) {
        gv_str_addf(&line, "line %u: %s", s->notes[i].line, s->notes[i].text);
        gv_print_field("", line.data && !line.failed ? line.data : "");
        gv_str_free(&line);
    }
}

/* A measured profile with figures of other tools in it is no longer a measured one. */
static void print_kind(const struct gv_profile *base)
{
    struct gv_str line = {0};
    if (!base || base->provenance.kind == GV_IMPORTED)
        return;
    gv_str_addf(
        &line,
        "the profile's provenance was %s; with figures of other tools in it, it is imported: a "
        "host "
        "turns P2P on only after `gv100 verify`",
        gv_provenance_name(base->provenance.kind));
    gv_print_field("note", line.data && !line.failed ? line.data : "");
    gv_str_free(&line);
}

static void print_profile(const struct gv_profile *p)
{
    struct gv_str line = {0};
    gv_str_addf(&line, "'%s', provenance imported, match %s", p->name, gv_match_name(p->match));
    plural(&line, p->ngpus, "GPU");
    plural(&line, p->npaths, "path");
    plural(&line, p->ngroups, "group");
    plural(&line, p->ntuner, "tuner row");
    gv_print_field("profile", line.data && !line.failed ? line.data : p->name);
    gv_str_free(&line);
}

static void print(
    const struct gv_import *im, const struct gv_profile *p, const struct gv_profile *base,
    const char *written)
{
    for (int i = 0; i < im->nsources; i++)
        print_source(&im->sources[i]);
    if (!p) {
        gv_print_field(
            "profile", "none: choices alone name no GPU; add them to a profile with --into");
        return;
    }
    print_profile(p);
    gv_print_field(
        "written", written ? written : "nothing: name a file with -o, or a profile with --into");
    print_kind(base);
    bool found = p->match != GV_MATCH_SHAPE;
    for (int i = 0; i < p->ngpus && !found; i++)
        found = p->gpus[i].pci_device && *p->gpus[i].island;
    if (!found)
        gv_print_field(
            "note",
            "no PCI ids are known, so no machine finds this profile by itself; add lstopo's XML or "
            "NCCL's topology dump of the machine");
}

/* Where it goes; NULL: nowhere. A shipped profile is not written over. */
static int target(const struct input *in, const char **out, struct gv_error *err)
{
    *out = in->out ? in->out : in->into;
    if (!in->out && in->into && !strchr(in->into, '/') && !strstr(in->into, ".yaml"))
        return gv_error_set(
            err, "'%s' is a shipped profile, which stays as it is: name the new one with -o",
            in->into);
    return 0;
}

static int work(
    const struct input *in, struct gv_import *im, struct gv_profile **base,
    struct gv_profile **made, const char **out, struct gv_error *err)
{
    char path[PATH_MAX];
    if (target(in, out, err))
        return -1;
    if (in->into && gv_profile_resolve(in->into, path, err))
        return -1;
    if (in->into && !(*base = gv_profile_read(path, err)))
        return -1;
    int rc = 0;
    for (int i = 0; i < in->nfiles && !rc; i++)
        rc = gv_import_file(im, in->files[i], in->format, err);
    if (!rc && !*out && gv_import_choices_alone(im))
        return 0; /* shown, and nothing is asked to be made */
    if (!rc)
        *made = gv_import_profile(im, *base, in->name ? in->name : "imported", err);
    return *made && (!*out || !gv_profile_write(*made, *out, err)) ? 0 : -1;
}

static int run(const struct gv_command *self, int argc, char **argv)
{
    static struct input in;
    struct gv_import im = {0};
    struct gv_profile *made = NULL, *base = NULL;
    struct gv_error err = {0};
    const char *out = NULL;
    int rc = GV_EXIT_OK;
    in.options.op = in.options.edit = -1;
    gv_cli_parse(self, argc, argv, 0, &in);
    im.options = in.options;
    if (work(&in, &im, &base, &made, &out, &err)) {
        rc = gv_cli_fail(self, GV_EXIT_FAILED, &err);
        if (in.json)
            rc = gv_json_print(self, gv_import_refused_json(&err), rc);
    } else if (in.json)
        rc = gv_json_print(self, gv_import_json(&im, made, out), rc);
    else
        print(&im, made, base, out);
    gv_profile_free(made);
    gv_profile_free(base);
    gv_import_finish(&im);
    return rc;
}

const struct gv_command gv_cmd_import = {
    "import",
    "a profile from what other tools printed",
    &argp,
    run,
};
