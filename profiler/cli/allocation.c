/* Which GPUs this process was given, and how they are numbered for it. */
#include <stdlib.h>
#include <string.h>

#include "profiler/cli/cli.h"
#include "profiler/cli/place.h"

static const char *uuid_of(const struct gv_source *s, int gpu)
{
    if (s->has_machine && s->machine.gpus[gpu].uuid[0])
        return s->machine.gpus[gpu].uuid;
    return s->to_profile[gpu] >= 0 ? s->profile->gpus[s->to_profile[gpu]].uuid : "";
}

/* "GPU-1234,..." where each may be cut short, as CUDA takes them. */
static int by_uuid(
    const struct gv_source *s, const char *name, const char *text, gv_gpuset *out,
    struct gv_error *err)
{
    *out = 0;
    while (*text) {
        size_t len = strcspn(text, ",");
        int found = -1;
        for (int i = 0; i < s->ngpus && found < 0; i++)
            if (len > 4 && !strncmp(uuid_of(s, i), text, len))
                found = i;
        if (found < 0)
            return gv_error_set(
                err, "%s names %.*s, which is not known here; name the GPUs with --within", name,
                (int)(len < 60 ? len : 60), text);
        *out |= GV_GPU_BIT(found);
        text += len + (text[len] == ',');
    }
    return 0;
}

static bool is_uuids(const char *text)
{
    return !strncmp(text, "GPU-", 4);
}

static int by_number(const char *name, const char *text, gv_gpuset *out, struct gv_error *err)
{
    struct gv_error why;
    *out = 0;
    if (!*text || !gv_gpuset_parse(text, out, &why))
        return 0;
    return gv_error_set(
        err, "%s=%.60s is no list of GPUs (%.200s); name them with --within", name, text, why.text);
}

/* What a scheduler or a container runtime gave, in the machine's numbers. NULL: none says. */
static const char *
given(const struct gv_source *s, gv_gpuset all, gv_gpuset *out, struct gv_error *err)
{
    static const char *const names[] = {
        "SLURM_STEP_GPUS", "SLURM_JOB_GPUS", "NVIDIA_VISIBLE_DEVICES"};
    static const char *const no_word[] = {"all", "none", "void"};
    *out = all;
    for (int i = 0; i < 3; i++) {
        const char *text = getenv(names[i]);
        for (int k = 0; k < 3 && text; k++)
            if (!strcmp(text, no_word[k]))
                text = NULL;
        if (!text || !*text)
            continue;
        int rc = is_uuids(text) ? by_uuid(s, names[i], text, out, err)
                                : by_number(names[i], text, out, err);
        *out &= all;
        return rc ? "" : names[i];
    }
    return NULL;
}

/* The job's own count, from 0 in PCI order: so it is in a container, and where the scheduler keeps
 * other devices away from the job. */
static void renumber(struct gv_allocation *a)
{
    int n = 0;
    for (gv_gpuset rest = a->gpus; rest; rest &= rest - 1)
        a->number[gv_gpuset_first(rest)] = n++;
    a->renumbered = true;
}

/* Those of `from` whose number is in `chosen`. */
static int take_numbers(struct gv_allocation *a, gv_gpuset chosen, struct gv_error *err)
{
    gv_gpuset out = 0;
    for (gv_gpuset rest = a->gpus; rest; rest &= rest - 1) {
        int gpu = gv_gpuset_first(rest);
        if (gv_gpuset_has(chosen, a->number[gpu]))
            out |= GV_GPU_BIT(gpu);
    }
    if (gv_gpuset_count(out) != gv_gpuset_count(chosen))
        return gv_error_set(
            err,
            "CUDA_VISIBLE_DEVICES names GPUs that this job was not given; name them with --within");
    a->gpus = out;
    return 0;
}

static bool alike(const struct gv_source *s, gv_gpuset gpus)
{
    int first = gv_gpuset_first(gpus);
    for (gv_gpuset rest = gpus; rest; rest &= rest - 1)
        if (s->machine.gpus[gv_gpuset_first(rest)].pci_device != s->machine.gpus[first].pci_device)
            return false;
    return true;
}

/* By itself CUDA counts the fastest first, which is another order where cards differ. */
static int
order_known(const struct gv_source *s, gv_gpuset gpus, gv_gpuset chosen, struct gv_error *err)
{
    const char *order = getenv("CUDA_DEVICE_ORDER");
    bool by_bus = order && !strcmp(order, "PCI_BUS_ID");
    if (by_bus || gv_gpuset_count(chosen) == gv_gpuset_count(gpus) || alike(s, gpus))
        return 0;
    return gv_error_set(
        err,
        "CUDA_VISIBLE_DEVICES counts the fastest GPU first here, since CUDA_DEVICE_ORDER is not "
        "PCI_BUS_ID and the GPUs differ: set it, or name the GPUs with --within");
}

static int narrow(
    const struct gv_source *s, struct gv_allocation *a, const char *from, const char *text,
    struct gv_error *err)
{
    gv_gpuset chosen;
    if (is_uuids(text)) {
        if (by_uuid(s, "CUDA_VISIBLE_DEVICES", text, &chosen, err))
            return -1;
        a->gpus &= chosen;
        return 0;
    }
    if (by_number("CUDA_VISIBLE_DEVICES", text, &chosen, err))
        return -1;
    /* Slurm's list is the machine's; CUDA's differs from it where the job sees its own devices
     * alone */
    if (from && !a->renumbered && (chosen & ~a->gpus))
        renumber(a);
    if (order_known(s, a->gpus, chosen, err))
        return -1;
    if (from)
        return take_numbers(a, chosen, err);
    a->gpus &= chosen;
    return 0;
}

int gv_allocation_read(const struct gv_source *s, struct gv_allocation *out, struct gv_error *err)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    gv_gpuset all = s->ngpus >= GV_MAX_GPUS ? ~(gv_gpuset)0 : GV_GPU_BIT(s->ngpus) - 1;
    *out = (struct gv_allocation){.gpus = all};
    for (int i = 0; i < GV_MAX_GPUS; i++)
        out->number[i] = i;
    if (!s->has_machine)
        return 0;
    const char *from = given(s, all, &out->gpus, err);
    if (from && !*from)
        return -1;
    if (from && !strncmp(from, "NVIDIA", 6))
        renumber(out);
    return visible ? narrow(s, out, from, visible, err) : 0;
}
