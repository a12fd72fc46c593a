/* gv100 check: a profile against a machine, field by field. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/cli/cli.h"
#include "profiler/cli/text.h"
#include "config/gv_machine.h"
#include "profiler/probe/gv_host_facts.h"

struct input {
    const char *profile, *machine;
    bool json, all;
};

enum verdict { SAME, DIFFERS, NOTED, UNKNOWN };
static const char *const verdicts[] = {"same", "differs", "differs, no matter", "not known"};

/* The result, as a table or as a list. */
struct report {
    struct gv_table_text text;
    json_t *list;
    int differences;
    bool all;
};

static void
add(struct report *r, const char *field, const char *profile, const char *here, enum verdict v)
{
    static const enum gv_style styles[] = {GV_PLAIN, GV_BAD, GV_WARN_STYLE, GV_DIM};
    json_array_append_new(
        r->list, json_pack(
                     "{s:s, s:s, s:s, s:s}", "field", field, "profile", profile, "machine", here,
                     "verdict", verdicts[v]));
    r->differences += v == DIFFERS;
    if (r->all || v == DIFFERS || v == NOTED) {
        const char *const cells[] = {field, profile, here, verdicts[v]};
        gv_text_row(&r->text, cells, styles[v]);
    }
}

static void compare_text(
    struct report *r, const char *field, const char *profile, const char *here,
    enum verdict differing)
{
    bool both = profile[0] && here[0];
    add(r, field, profile[0] ? profile : "-", here[0] ? here : "-",
        !both                    ? UNKNOWN
        : !strcmp(profile, here) ? SAME
                                 : differing);
}

static void
compare_number(struct report *r, const char *field, long profile, long here, enum verdict differing)
{
    char a[24] = "", b[24] = "";
    if (profile >= 0)
        snprintf(a, sizeof(a), "%ld", profile);
    if (here >= 0)
        snprintf(b, sizeof(b), "%ld", here);
    compare_text(r, field, a, b, differing);
}

static void add_text(struct report *r, const char *field, const char *profile, const char *here)
{
    compare_text(r, field, profile, here, DIFFERS);
}

static void add_number(struct report *r, const char *field, int profile, int here)
{
    compare_number(r, field, profile, here, DIFFERS);
}

static void pci_id(unsigned vendor, unsigned device, char out[16])
{
    if (vendor)
        snprintf(out, 16, "%04x:%04x", vendor, device);
    else
        out[0] = '\0';
}

/* Islands have no names in sysfs: the GPUs that share this one's are compared. */
static void islands(
    struct report *r, const char *field, const struct gv_profile *p, const struct gv_machine *m,
    const int *map, int gpu)
{
    gv_gpuset here = 0, there = 0;
    char a[256], b[256];
    for (int i = 0; i < m->ngpus; i++)
        if (m->gpus[gpu].root_port[0] && !strcmp(m->gpus[i].root_port, m->gpus[gpu].root_port))
            here |= GV_GPU_BIT(i);
    gv_gpuset island = gv_profile_island(p, map[gpu]);
    for (int i = 0; i < m->ngpus; i++)
        if (map[i] >= 0 && gv_gpuset_has(island, map[i]))
            there |= GV_GPU_BIT(i);
    if (!p->gpus[map[gpu]].island[0])
        there = 0;
    add_text(r, field, gv_gpuset_format(there, a, sizeof(a)), gv_gpuset_format(here, b, sizeof(b)));
}

static void one_gpu(
    struct report *r, const struct gv_profile *p, const struct gv_machine *m, const int *map,
    int gpu)
{
    const struct gv_profile_gpu *want = &p->gpus[map[gpu]];
    const struct gv_machine_gpu *have = &m->gpus[gpu];
    char field[64], a[16], b[16];
#define FIELD(name) (snprintf(field, sizeof(field), "GPU %d %s", gpu, name), field)
    pci_id(want->pci_vendor, want->pci_device, a);
    pci_id(have->pci_vendor, have->pci_device, b);
    add_text(r, FIELD("PCI id"), a, b);
    add_text(r, FIELD("bus id"), want->bus_id, have->bus_id);
    add_text(r, FIELD("UUID"), want->uuid, have->uuid);
    add_number(r, FIELD("NUMA node"), want->numa_node, have->numa_node);
    add_number(r, FIELD("link width"), want->link_width, have->link_width);
    islands(r, FIELD("island"), p, m, map, gpu);
#undef FIELD
}

/* "unknown" is what it says. */
static const char *known(const char *text)
{
    return strcmp(text, "unknown") ? text : "";
}

/* Access control on the way between two GPUs decides whether their P2P works. */
static void
acs(struct report *r, const char *sysfs, const struct gv_profile *p, const struct gv_machine *m,
    const int *map)
{
    char field[48], here[96];
    for (int a = 0; a < m->ngpus; a++)
        for (int b = a + 1; b < m->ngpus; b++) {
            const struct gv_profile_path *path =
                map[a] < 0 || map[b] < 0 ? NULL : gv_profile_path_of(p, map[a], map[b]);
            if (!path || !path->acs[0])
                continue;
            gv_host_acs_between(sysfs, m->gpus[a].bus_id, m->gpus[b].bus_id, here, sizeof(here));
            snprintf(field, sizeof(field), "ACS between GPU %d and %d", a, b);
            add_text(r, field, known(path->acs), known(here));
        }
}

static void compare_host(
    struct report *r, const char *sysfs, const struct gv_profile *p, const struct gv_machine *m,
    const int *map)
{
    struct gv_host_facts f;
    gv_host_facts_read(sysfs, m->replayed, m->gpus[0].bus_id, &f);
    add_text(r, "IOMMU", known(p->host.iommu), known(f.iommu));
    acs(r, sysfs, p, m, map);
    /* These move figures and decide nothing. */
    compare_text(r, "processor", p->host.cpu_model, f.cpu_model, NOTED);
    compare_number(r, "/dev/shm MiB", p->host.shm_mib, f.shm_mib, NOTED);
    compare_text(r, "kernel", p->provenance.kernel, f.kernel, NOTED);
    compare_text(r, "container", p->provenance.container, f.container, NOTED);
}

/* GPUs pair up in PCI order where the profile does not match, so that every difference is named and
 * not only the first. */
static void compare(
    struct report *r, const char *sysfs, const struct gv_profile *p, const struct gv_machine *m,
    struct gv_error *mismatch)
{
    int map[GV_MAX_GPUS];
    bool matches = !gv_profile_matches(p, m, map, mismatch);
    for (int i = 0; !matches && i < m->ngpus; i++)
        map[i] = i < p->ngpus ? i : -1;
    add_number(r, "number of GPUs", p->ngpus, m->ngpus);
    for (int i = 0; i < m->ngpus; i++)
        if (map[i] >= 0)
            one_gpu(r, p, m, map, i);
    const char *driver = p->provenance.driver;
    bool known = driver[0] && m->driver[0];
    add(r, "driver", driver[0] ? driver : "-", m->driver[0] ? m->driver : "-",
        !known                       ? UNKNOWN
        : !strcmp(driver, m->driver) ? SAME
                                     : NOTED);
    compare_host(r, sysfs, p, m, map);
    if (!matches && !r->differences)
        add(r, "match", gv_match_name(p->match), "no", DIFFERS);
    if (matches)
        mismatch->text[0] = '\0';
}

static void print(struct report *r, const struct gv_profile *p, const struct gv_error *mismatch)
{
    if (r->text.rows > 1) {
        gv_text_print(&r->text, 0);
        putchar('\n');
    }
    gv_text_free(&r->text);
    if (mismatch->text[0])
        printf(
            "%sno%s: profile %s is not used on this machine: %s\n", gv_style(GV_BAD),
            gv_style(GV_PLAIN), p->name, mismatch->text);
    else if (r->differences)
        printf(
            "%sno%s: profile %s matches this machine, but %d field%s changed since it was "
            "measured\n",
            gv_style(GV_BAD), gv_style(GV_PLAIN), p->name, r->differences,
            r->differences > 1 ? "s" : "");
    else
        printf(
            "%syes%s: profile %s is this machine's\n", gv_style(GV_GOOD), gv_style(GV_PLAIN),
            p->name);
}

static int report(
    const struct gv_command *self, const struct input *in, const struct gv_profile *p,
    const struct gv_machine *m)
{
    struct report r = {.text = {.columns = 4}, .list = json_array(), .all = in->all};
    struct gv_error mismatch = {0};
    const char *const head[] = {"field", "profile", "this machine", ""};
    gv_text_row(&r.text, head, GV_DIM);
    compare(&r, in->machine ? in->machine : gv_sysfs_root(), p, m, &mismatch);
    int status = r.differences ? GV_EXIT_NO : GV_EXIT_OK;
    if (!in->json) {
        print(&r, p, &mismatch);
        json_decref(r.list);
        return status;
    }
    gv_text_free(&r.text);
    json_t *o = json_object();
    json_object_set_new(o, "profile", json_string(p->name));
    json_object_set_new(o, "matches", json_boolean(!mismatch.text[0]));
    json_object_set_new(o, "differences", json_integer(r.differences));
    json_object_set_new(o, "reason", mismatch.text[0] ? json_string(mismatch.text) : json_null());
    json_object_set_new(o, "fields", r.list);
    return gv_json_print(self, o, status);
}

static error_t on_option(int key, char *arg, struct argp_state *state)
{
    struct input *in = state->input;
    switch (key) {
    case 'p':
        in->profile = arg;
        return 0;
    case 'm':
        in->machine = arg;
        return 0;
    case 'a':
        in->all = true;
        return 0;
    case 'j':
        in->json = true;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option options[] = {
    {"profile", 'p', "NAME|FILE", 0, "The profile to compare with", 0},
    {"machine", 'm', "FOLDER", 0, "A machine's sysfs root instead of the live /sys", 0},
    {"all", 'a', 0, 0, "List the fields that agree, too", 0},
    {"json", 'j', 0, 0, "JSON", 0},
    {0},
};

static const struct argp argp = {
    options,
    on_option,
    NULL,
    "Compares a profile with the machine, field by field, and exits with 1 where one differs. A "
    "profile that does not match is never used on the machine."
    "\v"
    "Without --profile, the one that matches is looked up; none is a difference. A field that one "
    "of both does not know is not compared. IOMMU and ACS on the way between two GPUs count; "
    "another "
    "driver, kernel, container, processor or /dev/shm is noted and does not.\n"
    "\n"
    "Example:\n"
    "  gv100 check --profile 4028 || echo not this kind of machine\n",
    NULL,
    NULL,
    NULL,
};

static struct gv_profile *
load(const struct input *in, const struct gv_machine *m, struct gv_error *err)
{
    char path[PATH_MAX];
    int map[GV_MAX_GPUS];
    if (!in->profile)
        return gv_profile_find(m, map, NULL, err);
    return gv_profile_resolve(in->profile, path, err) ? NULL : gv_profile_read(path, err);
}

static int run(const struct gv_command *self, int argc, char **argv)
{
    static struct gv_machine machine;
    struct input in = {0};
    struct gv_error err;
    gv_cli_parse(self, argc, argv, 0, &in);
    if (gv_machine_read(in.machine ? in.machine : gv_sysfs_root(), &machine, &err))
        return gv_cli_fail(self, GV_EXIT_FAILED, &err);
    struct gv_profile *p = load(&in, &machine, &err);
    if (!p)
        return gv_cli_fail(self, in.profile ? GV_EXIT_FAILED : GV_EXIT_NO, &err);
    int rc = report(self, &in, p, &machine);
    gv_profile_free(p);
    return rc;
}

const struct gv_command gv_cmd_check = {
    "check",
    "compare a profile with this machine, field by field",
    &argp,
    run,
};
