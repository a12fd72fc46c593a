#include "plugin/policy/facts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void pair_set(gv_gpuset sets[GV_MAX_GPUS], int a, int b)
{
    sets[a] |= GV_GPU_BIT(b);
    sets[b] |= GV_GPU_BIT(a);
}

static gv_gpuset machine_gpus(const struct gv_profile *profile)
{
    return profile->ngpus >= GV_MAX_GPUS ? ~(gv_gpuset)0 : GV_GPU_BIT(profile->ngpus) - 1;
}

/* Enters one entry for the ordered pairs that it covers, `from` x `to`. */
static void fill_paths_one_way(
    struct gv_facts *facts, const struct gv_profile_path *path, gv_gpuset from, gv_gpuset to)
{
    for (; from; from &= from - 1) {
        int a = gv_gpuset_first(from);
        for (gv_gpuset rest = to & ~GV_GPU_BIT(a); rest; rest &= rest - 1)
            facts->path[a][gv_gpuset_first(rest)] = path;
    }
}

static void fill_paths(struct gv_facts *facts)
{
    const struct gv_profile *profile = facts->profile;
    gv_gpuset all = machine_gpus(profile);
    for (int i = 0; i < profile->npaths; i++) {
        const struct gv_profile_path *path = &profile->paths[i];
        fill_paths_one_way(facts, path, path->from & all, path->to & all);
        if (path->both_directions)
            fill_paths_one_way(facts, path, path->to & all, path->from & all);
    }
}

static void fill_islands(struct gv_facts *facts)
{
    const struct gv_profile *profile = facts->profile;
    for (int a = 0; a < profile->ngpus; a++)
        for (int b = 0; b < profile->ngpus; b++)
            if (a == b || (profile->gpus[a].island[0] &&
                           !strcmp(profile->gpus[a].island, profile->gpus[b].island)))
                facts->island[a] |= GV_GPU_BIT(b);
}

static bool is_bad(enum gv_p2p state)
{
    return state == GV_P2P_CORRUPT || state == GV_P2P_HUNG || state == GV_P2P_ONE_WAY;
}

/* What one direction says about the pair. `sound` is settled later, since it needs both. */
static void fill_direction(struct gv_facts *facts, int a, int b)
{
    const struct gv_profile_path *path = facts->path[a][b];
    enum gv_path_class class = path ? path->nccl_class : GV_PATH_UNKNOWN;
    if ((path && path->nvlinks > 0) || class == GV_PATH_NVL)
        pair_set(facts->nvlink, a, b);
    if (gv_gpuset_has(facts->island[a], b) || class == GV_PATH_PIX || class == GV_PATH_PXB)
        pair_set(facts->near, a, b);
    if (path && path->p2p == GV_P2P_REFUSED)
        pair_set(facts->refused, a, b);
    bool found_bad = facts->in->bad && gv_gpuset_has(facts->in->bad[a], b);
    if (found_bad || (path && is_bad(path->p2p)))
        pair_set(facts->bad, a, b);
}

static bool one_way_verified(const struct gv_facts *facts, int a, int b)
{
    const struct gv_profile_path *path = facts->path[a][b];
    if (facts->in->verified)
        return gv_gpuset_has(facts->in->verified[a], b);
    return path && path->p2p == GV_P2P_VERIFIED;
}

static void fill_pairs(struct gv_facts *facts)
{
    int n = facts->profile->ngpus;
    for (int a = 0; a < n; a++)
        for (int b = 0; b < n; b++)
            if (a != b)
                fill_direction(facts, a, b);
    for (int a = 0; a < n; a++) {
        facts->peers[a] = (facts->near[a] | facts->nvlink[a]) & ~facts->refused[a];
        gv_gpuset never = facts->refused[a] | facts->bad[a] | GV_GPU_BIT(a);
        for (int b = 0; b < n; b++)
            if (!gv_gpuset_has(never, b) && one_way_verified(facts, a, b) &&
                one_way_verified(facts, b, a))
                facts->sound[a] |= GV_GPU_BIT(b);
    }
}

/* Processors on which NCCL's default level was PXB before 2.23 already. */
static bool level_was_pxb(const struct gv_profile *profile)
{
    const char *vendor = profile->cpu_vendor;
    return !strcmp(vendor, "intel") || !strcmp(vendor, "arm") || !strcmp(vendor, "zhaoxin");
}

/* NCCL's default for NCCL_P2P_LEVEL: PXB, but SYS on AMD with at most two GPUs in the communicator,
 * and before 2.23 on everything but Intel, ARM and Zhaoxin. A processor that is not known is taken
 * for one with PXB. */
static bool default_level_is_sys(const struct gv_policy_in *in)
{
    const char *vendor = in->profile->cpu_vendor;
    if (in->nccl_version && in->nccl_version < 22300)
        return vendor[0] && !level_was_pxb(in->profile);
    return !strcmp(vendor, "amd") && gv_gpuset_count(in->gpus) <= 2;
}

/* A pair is bad, and NCCL's level may be SYS in some communicator of the process. */
static bool needs_level_pxb(const struct gv_facts *facts)
{
    const struct gv_profile *profile = facts->profile;
    bool old = facts->in->nccl_version < 22300 && !level_was_pxb(profile);
    bool any_bad = false;
    for (gv_gpuset rest = machine_gpus(profile); rest; rest &= rest - 1) {
        int a = gv_gpuset_first(rest);
        any_bad |= (facts->bad[a] & ~facts->refused[a]) != 0;
    }
    return any_bad && (old || !profile->cpu_vendor[0] || !strcmp(profile->cpu_vendor, "amd"));
}

/* Two NVLinks in a row (NCCL: NVB) are P2P through the GPU between, if it takes part. */
static void fill_joined(struct gv_facts *facts)
{
    gv_gpuset gpus = facts->in->gpus;
    for (gv_gpuset rest = gpus; rest; rest &= rest - 1) {
        int a = gv_gpuset_first(rest);
        gv_gpuset beyond = facts->level_pxb ? facts->bad[a] : gpus;
        facts->joined[a] = (facts->peers[a] | (facts->level_sys ? beyond : 0)) & gpus;
        for (gv_gpuset between = facts->nvlink[a] & gpus; between; between &= between - 1)
            facts->joined[a] |= facts->nvlink[gv_gpuset_first(between)] & gpus;
        facts->joined[a] &= ~(facts->refused[a] | GV_GPU_BIT(a));
    }
}

/* Below, at or above 0 as the group comes before, at or after the key. */
static int
against(const struct gv_profile_group *group, gv_gpuset gpus, enum gv_op op, uint64_t bytes)
{
    int order = (group->gpus > gpus) - (group->gpus < gpus);
    if (!order)
        order = (int)group->op - (int)op;
    return order ? order : (group->bytes > bytes) - (group->bytes < bytes);
}

static int by_key(const void *a, const void *b)
{
    const struct gv_profile_group *x = *(const struct gv_profile_group *const *)a;
    const struct gv_profile_group *y = *(const struct gv_profile_group *const *)b;
    int order = against(x, y->gpus, y->op, y->bytes);
    return order ? order : (int)x->loaded - (int)y->loaded;
}

static void index_groups(struct gv_facts *facts)
{
    int n = facts->profile->ngroups;
    facts->group = malloc((size_t)n * sizeof(*facts->group));
    if (!facts->group)
        return;
    facts->ngroups = n;
    for (int i = 0; i < n; i++)
        facts->group[i] = &facts->profile->groups[i];
    qsort(facts->group, (size_t)n, sizeof(*facts->group), by_key);
}

int gv_facts_group(const struct gv_facts *facts, gv_gpuset gpus, enum gv_op op, uint64_t bytes)
{
    int low = 0, high = facts->ngroups;
    while (low < high) {
        int middle = (low + high) / 2;
        if (against(facts->group[middle], gpus, op, bytes) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int gv_facts_groups(const struct gv_facts *facts, gv_gpuset gpus, enum gv_op op, int *end)
{
    int first = gv_facts_group(facts, gpus, op, 0);
    *end = first;
    while (*end < facts->ngroups && facts->group[*end]->gpus == gpus &&
           facts->group[*end]->op == op)
        ++*end;
    return first;
}

static double threshold(double of_profile, double otherwise)
{
    return of_profile >= 0 ? of_profile : otherwise; /* false for NAN */
}

/* What the profile says of pairs; no groups. */
static void init_pairs(struct gv_facts *facts, const struct gv_policy_in *in)
{
    memset(facts, 0, sizeof(*facts));
    facts->in = in;
    facts->profile = in->profile;
    facts->min_gain = threshold(in->profile->policy.min_gain, 0.03);
    facts->max_loss = threshold(in->profile->policy.max_loss, 0.05);
    facts->operations = in->operations ? in->operations : in->profile->policy.operations;
    facts->level_sys = default_level_is_sys(in);
    fill_paths(facts);
    fill_islands(facts);
    fill_pairs(facts);
    facts->level_pxb = needs_level_pxb(facts);
    fill_joined(facts);
    for (int a = 0; a < in->profile->ngpus; a++)
        facts->chains |= gv_gpuset_count(facts->nvlink[a]) > 1;
}

void gv_facts_init(struct gv_facts *facts, const struct gv_policy_in *in)
{
    init_pairs(facts, in);
    index_groups(facts);
}

void gv_facts_finish(struct gv_facts *facts)
{
    free(facts->group);
    facts->group = NULL;
    facts->ngroups = 0;
}

gv_gpuset gv_facts_islands(const struct gv_facts *facts, gv_gpuset gpus)
{
    gv_gpuset islands = 0;
    for (gpus &= machine_gpus(facts->profile); gpus; gpus &= gpus - 1)
        islands |= GV_GPU_BIT(gv_gpuset_first(facts->island[gv_gpuset_first(gpus)]));
    return islands;
}

double gv_facts_p2p_gbs(const struct gv_facts *facts, int from, int to)
{
    const struct gv_profile_path *path = facts->path[from][to];
    return path && path->write_gbs.count > 0 ? path->write_gbs.median : NAN;
}

bool gv_facts_refused(const struct gv_facts *facts, int a, int b)
{
    return gv_gpuset_has(facts->refused[a], b);
}

bool gv_facts_uses(const struct gv_facts *facts, enum gv_op op)
{
    return !facts->operations || (facts->operations & GV_OP_BIT(op));
}

bool gv_policy_level_pxb(const struct gv_profile *profile, int nccl_version, const gv_gpuset *bad)
{
    struct gv_policy_in in = {.profile = profile, .bad = bad, .nccl_version = nccl_version};
    struct gv_facts facts;
    init_pairs(&facts, &in);
    return facts.level_pxb;
}

bool gv_profile_nvlink_chains(const struct gv_profile *profile)
{
    struct gv_policy_in in = {.profile = profile};
    struct gv_facts facts;
    init_pairs(&facts, &in);
    return facts.chains;
}
