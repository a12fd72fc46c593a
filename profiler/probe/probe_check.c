/* Every ordered pair, checked from the owner's side in a child process. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/probe/gv_calibration.h"

static void plan(struct gv_calibration *cal, const struct gv_probe *self)
{
    int pairs = cal->n * (cal->n - 1);
    if (pairs)
        gv_plan_add(cal, self, -1, -1, 0, 1 + 0.15 * pairs, 10, "check of %d ordered pairs", pairs);
}

static enum gv_p2p state_of(enum gv_pair_outcome outcome)
{
    switch (outcome) {
    case GV_PAIR_OK:
        return GV_P2P_VERIFIED;
    case GV_PAIR_REFUSED:
        return GV_P2P_REFUSED;
    case GV_PAIR_CORRUPT:
        return GV_P2P_CORRUPT;
    case GV_PAIR_HUNG:
        return GV_P2P_HUNG;
    default:
        return GV_P2P_UNVERIFIED;
    }
}

static int rank(enum gv_p2p state)
{
    static const enum gv_p2p worst[] = {
        GV_P2P_CORRUPT, GV_P2P_HUNG, GV_P2P_ONE_WAY, GV_P2P_UNVERIFIED, GV_P2P_REFUSED};
    for (int i = 0; i < 5; i++)
        if (worst[i] == state)
            return i;
    return 5;
}

/* NCCL uses a pair in both directions, so both carry the worse state; one direction that works and
 * one that the driver refuses is one-way. */
static void join(struct gv_calibration *cal, int a, int b)
{
    struct gv_pair_state *x = &cal->pair[a][b], *y = &cal->pair[b][a];
    if (x->p2p == y->p2p)
        return;
    bool one = x->p2p == GV_P2P_VERIFIED || y->p2p == GV_P2P_VERIFIED;
    bool other = x->p2p == GV_P2P_REFUSED || y->p2p == GV_P2P_REFUSED;
    struct gv_pair_state *bad = rank(x->p2p) < rank(y->p2p) ? x : y;
    int from = bad == x ? a : b, to = bad == x ? b : a;
    char why[96];
    snprintf(why, sizeof(why), "%.70s", bad->note);
    enum gv_p2p state = one && other ? GV_P2P_ONE_WAY : bad->p2p;
    snprintf(x->note, sizeof(x->note), "%d>%d: %.70s", from, to, why);
    memcpy(y->note, x->note, sizeof(y->note));
    x->p2p = y->p2p = state;
}

/* What to look at, from what this host shows. */
static void advise(struct gv_calibration *cal, int a, int b)
{
    char acs[160];
    gv_shape_acs(cal, a, b, acs, sizeof(acs));
    if (!strcmp(acs, "unknown"))
        gv_warn(cal, "ACS cannot be read here (root can): it must be off on the bridges of a pair");
    else if (strcmp(acs, "off"))
        gv_warn(cal, "ACS redirects P2P at %s: turn it off in the firmware, or with setpci", acs);
    if (!strncmp(cal->facts.iommu, "DMA", 3))
        gv_warn(
            cal, "the IOMMU translates (%s): boot with iommu=pt, or turn it off", cal->facts.iommu);
}

static void warn(struct gv_calibration *cal, int a, int b)
{
    enum gv_p2p state = cal->pair[a][b].p2p;
    const char *note = cal->pair[a][b].note;
    if (state == GV_P2P_VERIFIED || state == GV_P2P_REFUSED)
        return;
    if (state == GV_P2P_UNVERIFIED)
        gv_warn(cal, "GPU %d and %d: P2P is not verified (%s)", a, b, note);
    else
        gv_warn(
            cal,
            "GPU %d and %d: P2P is %s (%s); it will not be used, and NCCL will be kept from it", a,
            b, gv_p2p_name(state), note);
    if (state != GV_P2P_ONE_WAY)
        advise(cal, a, b);
}

/* CUDA's limit of peer connections (8): how many of the first GPU's verified peers it can hold. */
static void count_peers(struct gv_calibration *cal)
{
    cal->peers = 0;
    for (int b = 1; b < cal->n; b++)
        if (cal->pair[0][b].p2p == GV_P2P_VERIFIED && !gv_peer_on(&cal->gpus, 0, b))
            cal->peers++;
    for (int b = 1; b < cal->n; b++)
        gv_peer_off(&cal->gpus, 0, b);
}

static int run(struct gv_calibration *cal, const struct gv_item *item, struct gv_error *err)
{
    int n = 0, most = cal->n * cal->n;
    int(*pairs)[2] = calloc((size_t)most + 1, sizeof(*pairs));
    struct gv_pair_result *results = calloc((size_t)most + 1, sizeof(*results));
    (void)item;
    for (int a = 0; a < cal->n && pairs; a++)
        for (int b = 0; b < cal->n; b++)
            if (a != b && !cal->pair[a][b].checked) {
                pairs[n][0] = a;
                pairs[n++][1] = b;
            }
    int rc = pairs && results ? gv_check_pairs(cal, (const int(*)[2])pairs, n, results, err)
                              : gv_error_set(err, "out of memory");
    for (int i = 0; i < n && !rc; i++) {
        struct gv_pair_state *p = &cal->pair[pairs[i][0]][pairs[i][1]];
        p->p2p = state_of(results[i].outcome);
        p->checked = true;
        snprintf(p->note, sizeof(p->note), "%.94s", results[i].text);
    }
    for (int a = 0; a < cal->n && !rc; a++)
        for (int b = a + 1; b < cal->n; b++) {
            join(cal, a, b);
            warn(cal, a, b);
        }
    if (!rc)
        count_peers(cal);
    free(pairs);
    free(results);
    return rc;
}

const struct gv_probe gv_probe_check = {
    "check", "p2p", "17 MiB of each GPU", "state", "verified", plan, run,
};
