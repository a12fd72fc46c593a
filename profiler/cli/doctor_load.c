#include "profiler/cli/doctor_load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profiler/cli/capture.h"
#include "profiler/cli/cli.h"

/* ncclGetUniqueId takes a tenth of a second; reading 400 MB of library from a slow disk more. */
#define NCCL_TIMEOUT_MS 60000
/* cuInit takes about a second a GPU where the persistence daemon is off. */
#define CUDA_TIMEOUT_MS 90000

#define ADD(step, verdict, next, ...)                                                              \
    gv_finding_add(&job->findings, step, verdict, next, __VA_ARGS__)

int gv_job_child_nccl(const char *path, int settings, const char *self_name)
{
    char plugin[PATH_MAX], name[64];
    struct gv_error err;
    if (gv_plugin_path(plugin, &err))
        return GV_EXIT_FAILED;
    if (settings < 0)
        return gv_probe_nccl(path, plugin);
    gv_settings_apply((unsigned)settings, plugin);
    unsetenv("NCCL_DEBUG_FILE"); /* the job's log is not ours to write to */
    setenv("NCCL_DEBUG", "INFO", 1);
    snprintf(name, sizeof(name), "%s", self_name);
    char gv100[] = "gv100", *argv[] = {gv100, name, (char *)"--probe-nccl", (char *)path, NULL};
    execv("/proc/self/exe", argv);
    return GV_EXIT_FAILED;
}

/* What NCCL itself said about the env plugin. */
static void own_words(const char *output, char *out, size_t size)
{
    out[0] = '\0';
    const char *hit = output ? strstr(output, "ENV/Plugin: Could not find") : NULL;
    if (hit)
        snprintf(out, size, "; NCCL says: %.*s", (int)strcspn(hit, "\n"), hit);
}

static void judge(struct gv_job *job, struct gv_job_nccl *x, const char *output, bool in_time)
{
    char text[300], number[16] = "", release[16], loaded[8] = "", answers[8] = "";
    if (gv_probe_answer(output, "error", text, sizeof(text))) {
        ADD("load", GV_VERDICT_WARN, "see `ldd` of that file", "%.150s cannot be opened: %s",
            x->nccl.path, text);
        return;
    }
    if (!gv_probe_answer(output, "getenv", answers, sizeof(answers)) ||
        !gv_probe_answer(output, "loaded", loaded, sizeof(loaded))) {
        ADD("load", GV_VERDICT_WARN, "start it with NCCL_DEBUG=INFO to see where it stops",
            "a process that opened %.200s %s", x->nccl.path,
            in_time ? "ended before it answered" : "did not answer in time");
        return;
    }
    gv_probe_answer(output, "version", number, sizeof(number));
    int version = atoi(number);
    bool preload = !(gv_settings_for(version) & 2u);
    x->loaded = preload ? atoi(answers) : atoi(loaded);
    gv_nccl_format(version, release);
    x->nccl.version = version; /* its file may not have told */
    x->settings = gv_settings_for(version);
    gv_slots_of(version, &x->slots);
    own_words(output, text, sizeof(text));
    if (x->loaded && preload)
        ADD("load", GV_VERDICT_OK, NULL,
            "NCCL %s, opened in a process of its own, asks the plugin for its variables (getenv)",
            release);
    else if (x->loaded)
        ADD("load", GV_VERDICT_OK, NULL,
            "NCCL %s, opened in a process of its own, loaded the plugin (env v%d)", release,
            x->slots.env);
    else
        ADD("load", GV_VERDICT_NO, "see the settings below; NCCL_DEBUG=INFO names what is loaded",
            "NCCL %s, opened in a process of its own, did not load the plugin%s", release, text);
}

static void load_one(struct gv_job *job, struct gv_job_nccl *x, const char *self_name)
{
    struct gv_error err = {0};
    struct gv_str output = {0};
    char bits[16];
    if (gv_plugin_path_fits(job->plugin, x->settings, &err)) {
        gv_finding_error(&job->findings, "load", GV_VERDICT_NO, NULL, &err);
        return;
    }
    snprintf(bits, sizeof(bits), "%u", x->settings);
    const char *argv[] = {"/proc/self/exe", self_name,    "--probe-set", bits,
                          "--probe-nccl",   x->nccl.path, NULL};
    bool in_time = !gv_capture(argv, NCCL_TIMEOUT_MS, &output);
    judge(job, x, output.data, in_time);
    gv_str_free(&output);
}

void gv_job_load(struct gv_job *job, const char *self_name)
{
    for (int i = 0; i < job->n && job->plugin[0]; i++)
        if (job->list[i].nccl.path[0] && job->list[i].settings)
            load_one(job, &job->list[i], self_name);
}

/* The machine's number of a bus id, -1 where it is not there. */
static int index_of(const struct gv_machine *m, const char *bus_id)
{
    for (int i = 0; i < m->ngpus; i++)
        if (!strcmp(m->gpus[i].bus_id, bus_id))
            return i;
    return -1;
}

static void order(struct gv_job *job, const struct gv_cuda_view *view)
{
    char list[256] = "";
    int last = -1, strange = 0;
    bool ascending = true;
    for (int i = 0; i < view->n; i++) {
        int gpu = index_of(&job->machine, view->bus_id[i]);
        size_t at = strlen(list);
        snprintf(list + at, sizeof(list) - at, "%s%d", at ? "," : "", gpu);
        ascending &= gpu > last;
        last = gpu;
        strange += gpu < 0;
    }
    if (strange)
        ADD("order", GV_VERDICT_UNKNOWN, NULL,
            "CUDA lists %d GPUs that this machine's PCI tree does not have", strange);
    else if (!ascending)
        ADD("order", GV_VERDICT_NOTE, "CUDA_DEVICE_ORDER=PCI_BUS_ID makes the numbers agree",
            "CUDA's GPU 0, 1, ... are GPUs %s of nvidia-smi and of this tool", list);
    else
        ADD("order", GV_VERDICT_OK, NULL, "CUDA numbers the GPUs in PCI order%s",
            view->n < job->machine.ngpus ? ", of those that this process may see" : "");
}

static void peers(struct gv_job *job, const struct gv_cuda_view *view)
{
    int offered = 0, pairs = view->n * (view->n - 1) / 2, most = 0;
    for (int a = 0; a < view->n; a++) {
        for (int b = a + 1; b < view->n; b++)
            offered += gv_gpuset_has(view->peers[a], b) && gv_gpuset_has(view->peers[b], a);
        int n = gv_gpuset_count(view->peers[a]);
        most = n > most ? n : most;
    }
    if (view->n < 2)
        return;
    ADD("p2p", offered ? GV_VERDICT_OK : GV_VERDICT_WARN,
        offered ? NULL : "nvidia-smi topo -p2p r says why",
        "the driver offers P2P for %d of %d pairs", offered, pairs);
    /* CUDA's programming guide: "each device can support a system-wide maximum of eight peer
     * connections". */
    if (most > 8)
        ADD("p2p", GV_VERDICT_NOTE, NULL,
            "a GPU has %d peers and CUDA connects 8 at most: NCCL_P2P_LEVEL would break "
            "all-to-all here (error 711); the plugin stays below",
            most);
}

void gv_job_cuda(struct gv_job *job, const char *self_name)
{
    const char *argv[] = {"/proc/self/exe", self_name, "--probe-cuda", NULL};
    struct gv_str output = {0};
    struct gv_cuda_view view;
    char text[300];
    if (!job->machine.ngpus)
        return;
    bool in_time = !gv_capture(argv, CUDA_TIMEOUT_MS, &output);
    gv_probe_cuda_read(output.data, &view);
    if (view.n) {
        order(job, &view);
        peers(job, &view);
    } else {
        bool said = gv_probe_answer(output.data, "error", text, sizeof(text)) != NULL;
        ADD("cuda", job->machine.replayed ? GV_VERDICT_UNKNOWN : GV_VERDICT_NO,
            "see nvidia-smi -L and CUDA_VISIBLE_DEVICES", "CUDA shows no GPU: %s",
            said      ? text
            : in_time ? "it lists none"
                      : "the driver did not answer");
    }
    gv_str_free(&output);
}
