/* Machines made by chance, for the policy's tests: 2 to 64 GPUs, 1 to 8 islands, pairs in every
 * state, measurements of any outcome. The same number gives the same machine. */
#ifndef GV_POLICY_MACHINES_H
#define GV_POLICY_MACHINES_H

#include "tests/policy_check.h"

static uint64_t seed;

static inline unsigned chance(unsigned below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(seed >> 33) % below;
}

static inline bool in_percent(unsigned percent)
{
    return chance(100) < percent;
}

static inline enum gv_p2p any_state(void)
{
    static const enum gv_p2p states[] = {
        GV_P2P_UNVERIFIED, GV_P2P_REFUSED, GV_P2P_CORRUPT, GV_P2P_HUNG, GV_P2P_ONE_WAY};
    return in_percent(92) ? GV_P2P_VERIFIED : states[chance(5)];
}

/* How mixed a machine is: some have no NVLinks, no unknown compute capability, one speed. */
struct flavour {
    bool nvlinks, sms, speeds, states;
};

static inline void
any_gpus(struct gv_build *build, const struct flavour *flavour, unsigned most_islands)
{
    static const int sms[] = {70, 80, 90, -1};
    static const char *const vendors[] = {"intel", "amd", "arm", ""};
    int islands = 1 + (int)chance(most_islands), left = 2 + (int)chance(in_percent(70) ? 14 : 63);
    strcpy(build->profile.cpu_vendor, vendors[chance(4)]);
    for (int i = 0; i < islands && left > 0; i++) {
        char name[16];
        int n =
            i == islands - 1 ? left : 1 + (int)chance(2 * (unsigned)left / (unsigned)islands + 1);
        n = n < left ? n : left;
        snprintf(name, sizeof(name), "I%d", i);
        gv_build_gpus(
            build, n, name, (int)chance(2) - (in_percent(5) ? 1 : 0),
            flavour->sms ? sms[chance(4)] : 70);
        left -= n;
    }
}

static inline void any_paths(struct gv_build *build, const struct flavour *flavour)
{
    const struct gv_profile *p = &build->profile;
    for (int a = 0; a < p->ngpus; a++)
        for (int b = a + 1; b < p->ngpus; b++) {
            bool near = gv_check_same_island(p, a, b);
            int links = flavour->nvlinks && in_percent(4) ? 2 : 0;
            if (in_percent(1))
                continue;
            gv_build_path_sets(
                build, GV_GPU_BIT(a), GV_GPU_BIT(b),
                links  ? GV_PATH_NVL
                : near ? GV_PATH_PIX
                       : GV_PATH_PHB,
                links, flavour->states ? any_state() : GV_P2P_VERIFIED,
                flavour->speeds ? 5 + chance(10) : 10);
        }
}

static inline gv_gpuset all_of(const struct gv_profile *p)
{
    return p->ngpus == GV_MAX_GPUS ? ~(gv_gpuset)0 : GV_GPU_BIT(p->ngpus) - 1;
}

static inline gv_gpuset any_set(const struct gv_profile *p)
{
    gv_gpuset set = 0;
    unsigned percent = 20 + chance(81);
    for (int gpu = 0; gpu < p->ngpus; gpu++)
        if (in_percent(percent))
            set |= GV_GPU_BIT(gpu);
    return gv_gpuset_count(set) > 1 ? set : all_of(p);
}

static inline void any_samples(struct gv_profile_variant *variant, double about)
{
    char text[256] = "";
    int n = 1 + (int)chance(6);
    for (int i = 0; i < n; i++)
        snprintf(
            text + strlen(text), sizeof(text) - strlen(text), " %.2f%s",
            about + (double)chance(40) / 100, in_percent(5) ? "!" : "");
    gv_build_run(variant, text);
}

static inline void any_group(struct gv_build *build, gv_gpuset gpus)
{
    static const enum gv_edit_kind edits[] = {
        GV_EDIT_LEND, GV_EDIT_BRIDGE, GV_EDIT_P2P_LEVEL, GV_EDIT_P2P_LEVEL, GV_EDIT_SEPARATE};
    enum gv_op op = in_percent(80) ? GV_OP_ALL_REDUCE : (enum gv_op)chance(GV_OP_COUNT);
    struct gv_profile_group *group =
        gv_build_group_set(build, gpus, op, 1u << (10 + chance(20)), in_percent(20));
    if (group->nvariants)
        return;
    any_samples(gv_build_variant(group, GV_EDIT_NONE), 10);
    for (unsigned i = 0, n = 1 + chance(2); i < n; i++) {
        struct gv_profile_variant *variant = gv_build_variant(group, edits[chance(5)]);
        if (variant->edit == GV_EDIT_LEND)
            variant->lend_count = (int)chance(3);
        if (in_percent(20)) {
            variant->algorithm = (enum gv_algo)chance(2);
            variant->protocol = (enum gv_proto)chance(3);
        }
        any_samples(variant, 9.8 + chance(3));
    }
}

/* `plain`: at most four islands and no NVLinks. */
static inline struct gv_build *any_machine(uint64_t number, bool plain)
{
    seed = number * 2654435761u + 12345;
    for (int i = 0; i < 8; i++)
        chance(2);
    struct flavour flavour = {in_percent(40), in_percent(30), in_percent(50), in_percent(60)};
    flavour.nvlinks &= !plain;
    struct gv_build *build = gv_build_new(in_percent(50) ? GV_CUDA : GV_PUBLISHED);
    any_gpus(build, &flavour, plain ? 4 : 8);
    any_paths(build, &flavour);
    if (in_percent(50))
        build->profile.policy.operations = GV_OP_BIT(GV_OP_ALL_REDUCE);
    for (unsigned i = 0, n = chance(30); i < n; i++)
        any_group(build, any_set(&build->profile));
    any_group(build, all_of(&build->profile));
    return build;
}

/* Communicators of this machine: its measured groups and some others. */
static inline gv_gpuset communicator(const struct gv_profile *p, int i)
{
    return i < p->ngroups ? p->groups[i].gpus : any_set(p);
}

#endif
