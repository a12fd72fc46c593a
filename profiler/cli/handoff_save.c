#include <stdlib.h>
#include <string.h>

#include "config/gv_machine.h"
#include "profiler/cli/handoff.h"

static int
index_of(const struct gv_machine *machine, const int *map, const char *bus_id, struct gv_error *err)
{
    for (int i = 0; i < machine->ngpus; i++)
        if (!strcmp(machine->gpus[i].bus_id, bus_id) && map[i] >= 0)
            return map[i];
    return gv_error_set(err, "the GPU %s is not in the profile; measure the machine anew", bus_id);
}

static int open_it(
    struct gv_handoff_target *t, const char *name, const struct gv_machine *machine, int *map,
    struct gv_error *err)
{
    if (!name) {
        t->profile = gv_profile_find(machine, map, t->path, err);
        return t->profile ? 0 : -1;
    }
    if (gv_profile_resolve(name, t->path, err))
        return -1;
    t->profile = gv_profile_read(t->path, err);
    return t->profile ? gv_profile_matches(t->profile, machine, map, err) : -1;
}

int gv_handoff_target_open(
    struct gv_handoff_target *t, const char *name, const struct gv_gpus *gpus,
    const struct gv_ab_options *o, bool virtual_machine, struct gv_error *err)
{
    static struct gv_machine machine; /* large */
    int map[GV_MAX_GPUS];
    if (o->from >= gpus->n || o->to >= gpus->n)
        return gv_error_set(err, "there are only %d GPUs (0-%d)", gpus->n, gpus->n - 1);
    if (gv_machine_read(gv_sysfs_root(), &machine, err) || open_it(t, name, &machine, map, err))
        return -1;
    if ((t->profile->provenance.kind == GV_VIRTUAL) != virtual_machine)
        return gv_error_at(
            err, t->path, 0, 0, "it is %s profile, and this machine is %s: figures are not mixed",
            virtual_machine ? "a real machine's" : "a virtual machine's",
            virtual_machine ? "virtual" : "real");
    t->from = index_of(&machine, map, gpus->device[o->from].bus_id, err);
    t->to = t->from < 0 ? -1 : index_of(&machine, map, gpus->device[o->to].bus_id, err);
    return t->from < 0 || t->to < 0 ? -1 : 0;
}

static void method(char out[16], enum gv_handoff_method m)
{
    static const char *const words[GV_HANDOFF_METHODS] = {"", "mapped", "staged", "copy", "read"};
    strcpy(out, words[m]);
}

static void
fill(struct gv_profile_handoff *x, const struct gv_handoff_target *t, const struct gv_ab *ab)
{
    static const enum gv_handoff_verdict verdicts[] = {
        GV_HANDOFF_TIE, GV_HANDOFF_TIE, GV_HANDOFF_GAIN, GV_HANDOFF_LOSS};
    const struct gv_ab_way *host = &ab->ways[ab->host], *peer = &ab->ways[ab->peer];
    struct gv_figure none = gv_figure_unknown();
    *x = (struct gv_profile_handoff){
        .from = t->from,
        .to = t->to,
        .bytes = ab->options.bytes,
        .compute_us = ab->options.compute_us,
        .graph = ab->options.graph,
        .host_traffic = ab->options.host_traffic,
        .data_ok = ab->host && ab->peer && host->right && peer->right,
        .host_us = ab->host ? host->handoff_us : none,
        .peer_us = ab->peer ? peer->handoff_us : none,
        .host_step_us = ab->host ? host->step_us : none,
        .peer_step_us = ab->peer ? peer->step_us : none,
        .verdict = verdicts[ab->verdict],
    };
    method(x->host_method, ab->host);
    method(x->peer_method, ab->peer);
}

int gv_handoff_target_save(
    struct gv_handoff_target *t, const struct gv_ab *ab, struct gv_error *err)
{
    struct gv_profile *p = t->profile;
    int i = 0;
    while (i < p->nhandoffs && (p->handoffs[i].from != t->from || p->handoffs[i].to != t->to ||
                                p->handoffs[i].bytes != ab->options.bytes))
        i++;
    if (i == p->nhandoffs) {
        void *grown = realloc(p->handoffs, sizeof(*p->handoffs) * ((size_t)i + 1));
        if (!grown)
            return gv_error_set(err, "out of memory");
        p->handoffs = grown;
        p->nhandoffs++;
    }
    fill(&p->handoffs[i], t, ab);
    return gv_profile_write(p, t->path, err);
}

void gv_handoff_target_close(struct gv_handoff_target *t)
{
    gv_profile_free(t->profile);
    t->profile = NULL;
}
