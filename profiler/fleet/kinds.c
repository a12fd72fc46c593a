/* Which hosts are of one kind. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/fleet/fleet.h"

static int
differs_text(char *out, size_t size, const char *what, const char *here, const char *there)
{
    return snprintf(
        out, size, "%s is %s, not %s", what, *here ? here : "not known",
        *there ? there : "not known");
}

static int
differs_gpu(const struct gv_profile_gpu *x, const struct gv_profile_gpu *y, char *out, size_t size)
{
    char what[48], here[96], there[96];
    snprintf(what, sizeof(what), "GPU %d", x->index);
    if (strcmp(x->model, y->model))
        return differs_text(out, size, what, x->model, y->model);
    if (x->pci_vendor != y->pci_vendor || x->pci_device != y->pci_device) {
        snprintf(here, sizeof(here), "PCI device %04x", x->pci_device);
        snprintf(there, sizeof(there), "%04x", y->pci_device);
        return differs_text(out, size, what, here, there);
    }
    struct {
        const char *name;
        int here, there;
    } numbers[] = {
        {"memory in MiB", x->memory_mib, y->memory_mib},
        {"NUMA node", x->numa_node, y->numa_node},
        {"compute capability", x->sm, y->sm},
    };
    for (int i = 0; i < 3; i++)
        if (numbers[i].here != numbers[i].there)
            return snprintf(
                out, size, "GPU %d: %s is %d, not %d", x->index, numbers[i].name, numbers[i].here,
                numbers[i].there);
    return 0;
}

static int
differs_islands(const struct gv_profile *x, const struct gv_profile *y, char *out, size_t size)
{
    for (int b = 0; b < x->ngpus; b++)
        for (int a = 0; a < b; a++) {
            bool here = !strcmp(x->gpus[a].island, x->gpus[b].island);
            if (here != !strcmp(y->gpus[a].island, y->gpus[b].island))
                return snprintf(
                    out, size, "GPU %d and %d are under %s", a, b,
                    here ? "one switch" : "two switches");
        }
    return 0;
}

static int
differs_links(const struct gv_profile *x, const struct gv_profile *y, char *out, size_t size)
{
    for (int a = 0; a < x->ngpus; a++)
        for (int b = a + 1; b < x->ngpus; b++) {
            const struct gv_profile_path *p = gv_profile_path_of(x, a, b),
                                         *q = gv_profile_path_of(y, a, b);
            bool here = p && p->nvlinks > 0, there = q && q->nvlinks > 0;
            if (here != there)
                return snprintf(
                    out, size, "GPU %d and %d are %sjoined by NVLink", a, b, here ? "" : "not ");
        }
    return 0;
}

/* The first of what makes a kind that is not the same, as a sentence about `x`; 0 and "" where all
 * is. */
static int differs(const struct gv_profile *x, const struct gv_profile *y, char *out, size_t size)
{
    out[0] = '\0';
    if (x->ngpus != y->ngpus)
        return snprintf(out, size, "%d GPUs, not %d", x->ngpus, y->ngpus);
    for (int i = 0; i < x->ngpus; i++)
        if (differs_gpu(&x->gpus[i], &y->gpus[i], out, size))
            return 1;
    if (differs_islands(x, y, out, size) || differs_links(x, y, out, size))
        return 1;
    if (strcmp(x->cpu_vendor, y->cpu_vendor))
        return differs_text(out, size, "the CPU", x->cpu_vendor, y->cpu_vendor);
    if (strcmp(x->provenance.driver, y->provenance.driver))
        return differs_text(out, size, "the driver", x->provenance.driver, y->provenance.driver);
    if (x->provenance.kind != y->provenance.kind)
        return differs_text(
            out, size, "the profile", gv_provenance_name(x->provenance.kind),
            gv_provenance_name(y->provenance.kind));
    return 0;
}

static const struct gv_profile *
first_of(const struct gv_fleet *fleet, const struct gv_fleet_kind *kind)
{
    return fleet->hosts[kind->hosts[0]].profile;
}

static int put(struct gv_fleet *fleet, int host, struct gv_error *err)
{
    char text[200];
    int k = 0;
    while (
        k < fleet->nkinds &&
        differs(fleet->hosts[host].profile, first_of(fleet, &fleet->kinds[k]), text, sizeof(text)))
        k++;
    struct gv_fleet_kind *kind = k < fleet->nkinds
                                     ? &fleet->kinds[k]
                                     : gv_fleet_grow(&fleet->kinds, &fleet->nkinds, sizeof(*kind));
    int *member = kind ? gv_fleet_grow(&kind->hosts, &kind->n, sizeof(int)) : NULL;
    if (!member)
        return gv_fleet_no_memory(err);
    *member = host;
    return 0;
}

static int by_size(const void *a, const void *b)
{
    const struct gv_fleet_kind *x = a, *y = b;
    return x->n != y->n ? y->n - x->n : x->hosts[0] - y->hosts[0];
}

/* The model that most GPUs have, as a word: "tesla-v100-pcie-32gb". */
static void model_word(const struct gv_profile *p, char out[48])
{
    int best = 0, most = 0;
    for (int i = 0; i < p->ngpus; i++) {
        int n = 0;
        for (int k = 0; k < p->ngpus; k++)
            n += !strcmp(p->gpus[i].model, p->gpus[k].model);
        if (n > most) {
            most = n;
            best = i;
        }
    }
    size_t n = 0;
    for (const char *c = p->ngpus ? p->gpus[best].model : ""; *c && n < 47; c++)
        if (isalnum((unsigned char)*c))
            out[n++] = (char)tolower((unsigned char)*c);
        else if (n && out[n - 1] != '-')
            out[n++] = '-';
    out[n] = '\0';
}

static void name_kind(struct gv_fleet *fleet, int k)
{
    struct gv_fleet_kind *kind = &fleet->kinds[k];
    char model[48];
    int same = 0;
    model_word(first_of(fleet, kind), model);
    int n = snprintf(
        kind->name, sizeof(kind->name), "%dx-%.40s", first_of(fleet, kind)->ngpus,
        *model ? model : "gpu");
    for (int i = 0; i < k; i++)
        same += !strncmp(fleet->kinds[i].name, kind->name, (size_t)n) &&
                (!fleet->kinds[i].name[n] || fleet->kinds[i].name[n] == '-');
    if (same)
        snprintf(kind->name + n, sizeof(kind->name) - (size_t)n, "-%d", same + 1);
}

/* How much alike two machines are: the part of the GPUs that are the same. */
static int alike(const struct gv_profile *x, const struct gv_profile *y)
{
    char text[200];
    int n = x->ngpus == y->ngpus;
    for (int i = 0; i < x->ngpus && i < y->ngpus; i++)
        n += 2 * !strcmp(x->gpus[i].model, y->gpus[i].model) +
             !differs_gpu(&x->gpus[i], &y->gpus[i], text, sizeof(text));
    return n;
}

/* What sets a kind apart from the larger one that is most like it. */
static void say_difference(struct gv_fleet *fleet, int k)
{
    const struct gv_profile *p = first_of(fleet, &fleet->kinds[k]);
    int best = 0, most = -1;
    char text[160];
    for (int i = 0; i < k; i++) {
        int n = alike(p, first_of(fleet, &fleet->kinds[i]));
        if (n > most) {
            most = n;
            best = i;
        }
    }
    differs(p, first_of(fleet, &fleet->kinds[best]), text, sizeof(text));
    snprintf(
        fleet->kinds[k].differs, sizeof(fleet->kinds[k].differs), "from %.*s: %.130s", 40,
        fleet->kinds[best].name, text);
}

int gv_fleet_group(struct gv_fleet *fleet, struct gv_error *err)
{
    for (int i = 0; i < fleet->nhosts; i++)
        if (put(fleet, i, err))
            return -1;
    qsort(fleet->kinds, (size_t)fleet->nkinds, sizeof(*fleet->kinds), by_size);
    for (int k = 0; k < fleet->nkinds; k++) {
        for (int i = 0; i < fleet->kinds[k].n; i++)
            fleet->hosts[fleet->kinds[k].hosts[i]].kind = k;
        name_kind(fleet, k);
        if (k)
            say_difference(fleet, k);
    }
    return 0;
}

static int gpu_at(const struct gv_profile *p, const char *bus_id, const char *model)
{
    for (int i = 0; i < p->ngpus; i++)
        if (!strcmp(p->gpus[i].bus_id, bus_id) && !strcmp(p->gpus[i].model, model))
            return i;
    return -1;
}

/* Whether every GPU of `part` is one of `whole` at the same PCI address. */
static bool is_part(const struct gv_profile *part, const struct gv_profile *whole)
{
    for (int i = 0; i < part->ngpus; i++)
        if (!*part->gpus[i].bus_id || gpu_at(whole, part->gpus[i].bus_id, part->gpus[i].model) < 0)
            return false;
    return part->ngpus > 0;
}

static void gpus_missing(struct gv_fleet *fleet, int host, const struct gv_profile *whole)
{
    const struct gv_profile *here = fleet->hosts[host].profile;
    for (int i = 0; i < whole->ngpus; i++) {
        if (gpu_at(here, whole->gpus[i].bus_id, whole->gpus[i].model) >= 0)
            continue;
        struct gv_fleet_outlier *o = gv_fleet_new_outlier(fleet, host);
        if (!o)
            return;
        snprintf(o->where, sizeof(o->where), "GPU at %s", whole->gpus[i].bus_id);
        snprintf(
            o->text, sizeof(o->text), "is missing: others have %s there, as GPU %d",
            whole->gpus[i].model, i);
    }
}

static bool joined(const struct gv_profile *p, int a, int b)
{
    const struct gv_profile_path *path = gv_profile_path_of(p, a, b);
    return path && path->nvlinks > 0;
}

static void links_missing(struct gv_fleet *fleet, int host, const struct gv_profile *whole)
{
    const struct gv_profile *here = fleet->hosts[host].profile;
    for (int a = 0; a < whole->ngpus; a++)
        for (int b = a + 1; b < whole->ngpus; b++) {
            int x = gpu_at(here, whole->gpus[a].bus_id, whole->gpus[a].model);
            int y = gpu_at(here, whole->gpus[b].bus_id, whole->gpus[b].model);
            if (x < 0 || y < 0 || !joined(whole, a, b) || joined(here, x, y) || !here->npaths)
                continue;
            struct gv_fleet_outlier *o = gv_fleet_new_outlier(fleet, host);
            if (!o)
                return;
            snprintf(o->where, sizeof(o->where), "GPU %d and %d", x, y);
            snprintf(o->text, sizeof(o->text), "have no NVLink, others do");
        }
}

/* A few hosts that are like many but for parts that are not there: not a kind of their own making.
 */
void gv_fleet_missing(struct gv_fleet *fleet)
{
    for (int k = 1; k < fleet->nkinds; k++)
        for (int w = 0; w < k; w++) {
            const struct gv_fleet_kind *part = &fleet->kinds[k], *whole = &fleet->kinds[w];
            if (whole->n < GV_FLEET_FEWEST || 2 * part->n >= whole->n ||
                !is_part(first_of(fleet, part), first_of(fleet, whole)))
                continue;
            for (int i = 0; i < part->n; i++) {
                gpus_missing(fleet, part->hosts[i], first_of(fleet, whole));
                links_missing(fleet, part->hosts[i], first_of(fleet, whole));
            }
            break;
        }
}
