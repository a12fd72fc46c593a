#include "profiler/cli/doctor_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plugin/policy/gv_policy.h"
#include "profiler/cli/capture.h"
#include "profiler/cli/cli.h"
#include "profiler/cli/doctor_load.h"

#define ADD(step, verdict, next, ...)                                                              \
    gv_finding_add(&job->findings, step, verdict, next, __VA_ARGS__)

static void variable_for(unsigned settings, char out[64])
{
    out[0] = '\0';
    for (int i = 0; i < GV_SETTINGS; i++)
        if (settings >> i & 1)
            snprintf(
                out + strlen(out), 64 - strlen(out), "%s%s", out[0] ? " and " : "",
                gv_settings[i].variable);
}

static void describe(struct gv_job *job, struct gv_job_nccl *x)
{
    char release[24] = "of unknown release", slots[64] = "", variable[64];
    const struct gv_nccl *n = &x->nccl;
    gv_slots_of(n->version, &x->slots);
    x->settings = gv_settings_for(n->version);
    x->loaded = -1;
    if (n->version) {
        gv_nccl_format(n->version, release);
        snprintf(slots, sizeof(slots), "tuner v%d, net v%d", x->slots.tuner, x->slots.net);
        if (x->slots.env)
            snprintf(slots + strlen(slots), 16, ", env v%d", x->slots.env);
    }
    if (!x->settings) {
        ADD("nccl", GV_VERDICT_NO, "use NCCL 2.19 or later",
            "NCCL %s has no tuner slot (%.150s: %.200s)", release, n->how, n->path);
        return;
    }
    variable_for(x->settings, variable);
    ADD("nccl", GV_VERDICT_OK, NULL, "NCCL %s%s%s; %s brings the plugin in (%.40s%s%.200s)",
        release, slots[0] ? ": " : "", slots, variable, n->how, n->path[0] ? ": " : "", n->path);
}

/* Programs that open NCCL by ctypes: a preload does not see their communicators. The file that does
 * so, below a folder of Python packages. */
static const struct {
    const char *package, *file;
} by_ctypes[] = {
    {"vLLM", "vllm/distributed/device_communicators/pynccl_wrapper.py"},
    {"SGLang", "sglang/srt/distributed/device_communicators/pynccl_wrapper.py"},
};

static void look_for_ctypes(struct gv_job *job, const struct gv_job_nccl *x)
{
    static const char *const tails[] = {"/nvidia/nccl/lib/libnccl.so.2", "/torch/lib/libnccl.so.2"};
    char file[PATH_MAX];
    if (!(x->settings & 1u) || !x->nccl.version)
        return;
    for (int t = 0; t < 2; t++) {
        size_t n = strlen(x->nccl.path), m = strlen(tails[t]);
        if (n <= m || strcmp(x->nccl.path + n - m, tails[t]) != 0)
            continue;
        for (size_t i = 0; i < sizeof(by_ctypes) / sizeof(by_ctypes[0]); i++) {
            snprintf(file, sizeof(file), "%.*s/%s", (int)(n - m), x->nccl.path, by_ctypes[i].file);
            if (!access(file, F_OK))
                ADD("ctypes", GV_VERDICT_WARN, "NCCL 2.28.7 or later needs no preload",
                    "%s is installed here and opens NCCL by ctypes: LD_PRELOAD does not see its "
                    "communicators, which keep NCCL's transports",
                    by_ctypes[i].package);
        }
    }
}

static void several(struct gv_job *job)
{
    for (int i = 1; i < job->n; i++)
        if (job->list[i].settings != job->list[0].settings) {
            ADD("nccl", GV_VERDICT_NOTE, "`gv100 env COMMAND` prints the one for COMMAND",
                "several NCCLs are here and need different variables; the first is the likeliest");
            return;
        }
}

/* The NCCLs, or the one that was named. */
static void find_nccls(struct gv_job *job, const char *command, const char *named)
{
    static struct gv_nccl list[GV_NCCL_MAX];
    struct gv_error err = {0};
    bool certain;
    int version = named ? gv_nccl_parse(named) : 0;
    memset(list, 0, sizeof(list));
    if (version) {
        list[0].version = version;
        job->n = 1;
    } else if (named && gv_nccl_read(named, &list[0], &err)) {
        gv_finding_error(&job->findings, "nccl", GV_VERDICT_NO, "name a libnccl.so.2", &err);
        return;
    } else {
        job->n = named ? 1 : gv_nccl_find(command, list, &certain);
    }
    if (named)
        snprintf(list[0].how, sizeof(list[0].how), "named");
    if (!job->n)
        ADD("nccl", GV_VERDICT_NO,
            "name the job's program (gv100 doctor ./program, gv100 doctor "
            "/venv/bin/python) or its libnccl.so.2 (--nccl)",
            "no libnccl.so.2 is where python3 or the loader would look");
    for (int i = 0; i < job->n; i++) {
        job->list[i].nccl = list[i];
        describe(job, &job->list[i]);
        look_for_ctypes(job, &job->list[i]);
    }
    several(job);
}

static void is_it_set(struct gv_job *job)
{
    const char *preload = getenv("LD_PRELOAD");
    const struct gv_variable *env = gv_variable_of(&job->variables, "NCCL_ENV_PLUGIN");
    const struct gv_variable *tuner = gv_variable_of(&job->variables, "NCCL_TUNER_PLUGIN");
    bool set = (preload && strstr(preload, "gv100")) || (env && strstr(env->value, "gv100")) ||
               (tuner && strstr(tuner->value, "gv100"));
    if (set)
        ADD("variable", GV_VERDICT_OK, NULL, "a job started from here brings the plugin with it");
    else
        ADD("variable", GV_VERDICT_NOTE, "gv100 run -- COMMAND, or: eval \"$(gv100 env)\"",
            "no variable here brings the plugin into a job yet");
}

static void plugin_file(struct gv_job *job)
{
    struct gv_error err = {0};
    if (gv_plugin_path(job->plugin, &err)) {
        job->plugin[0] = '\0';
        gv_finding_error(&job->findings, "plugin", GV_VERDICT_NO, NULL, &err);
        return;
    }
    ADD("plugin", GV_VERDICT_OK, NULL, "%.400s", job->plugin);
}

static void gpus(struct gv_job *job)
{
    struct gv_error err = {0};
    if (gv_machine_read(gv_sysfs_root(), &job->machine, &err)) {
        gv_finding_error(&job->findings, "gpus", GV_VERDICT_NO, NULL, &err);
        memset(&job->machine, 0, sizeof(job->machine));
        return;
    }
    const struct gv_machine *m = &job->machine;
    if (m->ngpus)
        ADD("gpus", GV_VERDICT_OK, NULL, "%d NVIDIA GPU%s, driver %s%s", m->ngpus,
            m->ngpus > 1 ? "s" : "", m->driver[0] ? m->driver : "unknown",
            m->replayed ? " (a machine from files, not this one)" : "");
    else
        ADD("gpus", GV_VERDICT_NO,
            "in a container: --gpus all; else see lspci -d 10de:", "no NVIDIA GPU in %.200s",
            gv_sysfs_root());
}

static void profile(struct gv_job *job)
{
    struct gv_error err = {0};
    if (!job->machine.ngpus)
        return;
    job->source = gv_source_open(NULL, NULL, &err);
    if (!job->source) {
        gv_finding_error(
            &job->findings, "profile", GV_VERDICT_NO,
            "`gv100 calibrate`, or `gv100 check --profile NAME` to see every field", &err);
        return;
    }
    const struct gv_profile *p = job->source->profile;
    bool virtual = p->provenance.kind == GV_VIRTUAL && !job->machine.replayed;
    ADD("profile", virtual ? GV_VERDICT_NO : GV_VERDICT_OK, virtual ? "`gv100 calibrate`" : NULL,
        "%s matches by %s, %s %s%s (%.200s)", p->name, gv_match_name(p->match),
        gv_provenance_name(p->provenance.kind), p->provenance.date,
        virtual ? ": it comes from a virtual machine and is not used on a real one" : "",
        job->source->path);
    if (p->provenance.driver[0] && job->machine.driver[0] &&
        strcmp(p->provenance.driver, job->machine.driver) != 0)
        ADD("profile", GV_VERDICT_NOTE, NULL, "it was measured with driver %s, %s is loaded",
            p->provenance.driver, job->machine.driver);
}

static void proof(struct gv_job *job)
{
    const struct gv_source *s = job->source;
    if (!s)
        return;
    if (s->own_word)
        ADD("verified", GV_VERDICT_OK, NULL,
            "by the profile's own word: it was measured here, or GV100_ASSUME_VERIFIED=1 is set");
    else if (s->verified)
        ADD("verified", GV_VERDICT_OK, NULL, "P2P was checked on this host on %s", s->stamp.date);
    else
        gv_finding_error(&job->findings, "verified", GV_VERDICT_NO, NULL, &s->no_stamp);
}

/* Whether there is anything to gain: each measured set of GPUs, decided as a job on one node. */
static void plans(struct gv_job *job)
{
    if (!job->source)
        return;
    const struct gv_profile *p = job->source->profile;
    gv_gpuset seen[256];
    int n = 0, changed = 0;
    char list[160] = "", text[256];
    for (int i = 0; i < p->ngroups && n < 256; i++) {
        bool known = false;
        for (int k = 0; k < n; k++)
            known |= seen[k] == p->groups[i].gpus;
        if (known)
            continue;
        seen[n++] = p->groups[i].gpus;
        struct gv_policy_in in = {.profile = p, .gpus = seen[n - 1], .one_node = true};
        struct gv_plan plan;
        gv_policy_decide(&in, &plan);
        if (plan.transport != GV_TRANSPORT_DEFAULT || plan.nrows) {
            changed++;
            gv_gpuset shown = gv_source_shown(job->source, seen[n - 1]);
            size_t at = strlen(list);
            snprintf(
                list + at, sizeof(list) - at, "%s%s", at ? " and " : "",
                gv_gpuset_format(shown, text, sizeof(text)));
        }
        gv_plan_finish(&plan);
    }
    ADD("plans", changed ? GV_VERDICT_OK : GV_VERDICT_WARN,
        changed ? NULL : "`gv100 explain` says why, group by group",
        "%d of %d measured sets of GPUs are changed%s%s", changed, n, changed ? ": " : "", list);
}

void gv_job_look(struct gv_job *job, const char *command, const char *nccl, const char *self_name)
{
    memset(job, 0, sizeof(*job));
    gv_variables_read(&job->variables, &job->findings);
    plugin_file(job);
    find_nccls(job, command, nccl);
    is_it_set(job);
    gv_job_load(job, self_name);
    gpus(job);
    gv_job_cuda(job, self_name);
    profile(job);
    proof(job);
    plans(job);
    gv_doctor_shared_memory(&job->findings);
    gv_doctor_pci(gv_sysfs_root(), &job->machine, &job->findings);
    gv_doctor_variables(&job->variables, &job->machine, &job->findings);
}

void gv_job_finish(struct gv_job *job)
{
    gv_source_free(job->source);
    gv_findings_finish(&job->findings);
    gv_variables_finish(&job->variables);
}
