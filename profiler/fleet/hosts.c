/* Each machine once, each name once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/fleet/fleet.h"

static bool share_a_card(const struct gv_profile *a, const struct gv_profile *b)
{
    for (int i = 0; i < a->ngpus; i++)
        for (int k = 0; k < b->ngpus; k++)
            if (*a->gpus[i].uuid && !strcasecmp(a->gpus[i].uuid, b->gpus[k].uuid))
                return true;
    return false;
}

static void remove_host(struct gv_fleet *fleet, int at)
{
    free(fleet->hosts[at].file);
    gv_profile_free(fleet->hosts[at].profile);
    fleet->nhosts--;
    memmove(
        &fleet->hosts[at], &fleet->hosts[at + 1],
        (size_t)(fleet->nhosts - at) * sizeof(*fleet->hosts));
}

static int refuse(struct gv_fleet *fleet, int first, int second, struct gv_error *err)
{
    struct gv_error why;
    const struct gv_fleet_host *a = &fleet->hosts[first], *b = &fleet->hosts[second];
    gv_error_at(
        &why, b->file, 0, 0,
        "the same cards as in %.200s, measured on the same day (%s): which of the two holds cannot "
        "be "
        "told; leave one out",
        a->file, *b->profile->provenance.date ? b->profile->provenance.date : "no date");
    if (gv_fleet_unread(fleet, &why))
        return gv_fleet_no_memory(err);
    gv_error_at(&why, a->file, 0, 0, "the same cards as in %.200s, see there", b->file);
    return gv_fleet_unread(fleet, &why) ? gv_fleet_no_memory(err) : 0;
}

/* Cards that stand in two profiles are one host, whatever its name. The later day counts. */
static int machines(struct gv_fleet *fleet, struct gv_error *err)
{
    for (int b = 1; b < fleet->nhosts; b++)
        for (int a = 0; a < b; a++) {
            const struct gv_fleet_host *x = &fleet->hosts[a], *y = &fleet->hosts[b];
            if (!share_a_card(x->profile, y->profile))
                continue;
            int later = strcmp(y->profile->provenance.date, x->profile->provenance.date);
            bool same = x->profile->hash == y->profile->hash;
            if (!same && !later && refuse(fleet, a, b, err))
                return -1;
            int old = later > 0 ? a : b, kept = later > 0 ? b : a;
            if (same || later)
                gv_str_addf(
                    &fleet->passed, "%s: %s %s\n", fleet->hosts[old].file,
                    same ? "the same profile as" : "older than", fleet->hosts[kept].file);
            remove_host(fleet, old);
            if (!same && !later)
                remove_host(fleet, a);
            b = 0;
            break;
        }
    return 0;
}

static const char *base_of(const char *file)
{
    const char *slash = strrchr(file, '/');
    return slash ? slash + 1 : file;
}

/* How many profiles have this name. */
static int named(const struct gv_fleet *fleet, const char *name)
{
    int n = 0;
    for (int i = 0; i < fleet->nhosts; i++)
        n += !strcmp(fleet->hosts[i].profile->name, name);
    return n;
}

static int filed(const struct gv_fleet *fleet, const char *base)
{
    int n = 0;
    for (int i = 0; i < fleet->nhosts; i++)
        n += !strcmp(base_of(fleet->hosts[i].file), base);
    return n;
}

/* A host has its profile's name (calibrate writes the host's there); where several have it, that of
 * its file, and where that is not its own either, the whole path. */
static void names(struct gv_fleet *fleet)
{
    for (int i = 0; i < fleet->nhosts; i++) {
        struct gv_fleet_host *h = &fleet->hosts[i];
        const char *base = base_of(h->file), *dot = strrchr(base, '.');
        size_t cut = dot && !strcmp(dot, ".yaml") ? (size_t)(dot - base) : strlen(base);
        if (*h->profile->name && named(fleet, h->profile->name) == 1)
            snprintf(h->name, sizeof(h->name), "%s", h->profile->name);
        else if (filed(fleet, base) == 1)
            snprintf(h->name, sizeof(h->name), "%.*s", (int)(cut < 95 ? cut : 95), base);
        else {
            size_t n = strlen(h->file);
            snprintf(h->name, sizeof(h->name), "%s", h->file + (n > 95 ? n - 95 : 0));
        }
    }
}

int gv_fleet_hosts(struct gv_fleet *fleet, struct gv_error *err)
{
    if (machines(fleet, err))
        return -1;
    names(fleet);
    return 0;
}
