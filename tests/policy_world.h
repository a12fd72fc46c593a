/* Machines as text, and one communicator of each, for the tests of rings and of what edits need. */
#ifndef GV_POLICY_WORLD_H
#define GV_POLICY_WORLD_H

#include "tests/policy_machines.h"

#include "plugin/policy/ring.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

/* Three GPUs in a row by NVLinks, on an island of their own behind the others. */
#define CHAIN "5/6 6/7"

/* A machine of so many GPUs an island ("44": two of four), and one communicator of it. */
struct world {
    struct gv_build *build;
    struct gv_policy_in in;
    struct gv_facts facts;
    gv_gpuset lendable[GV_MAX_GPUS];
};

/* Pairs as "3/4/10 0-3/7": GPUs, GPUs, GB/s where measured. `lendable`: they may be lent a link. */
static inline void
add_pairs(struct world *w, const char *text, enum gv_path_class path, bool lendable)
{
    char from[64], to[64];
    for (int used = 0; sscanf(text, " %63[^/]/%63[^/ ]%n", from, to, &used) == 2; text += used) {
        gv_gpuset a = gv_build_set(from), b = gv_build_set(to);
        double gbs = NAN;
        int more = 0;
        text += used;
        if (sscanf(text, "/%lf%n", &gbs, &used) == 1)
            more = used;
        used = more;
        gv_build_path_sets(w->build, a, b, path, path == GV_PATH_NVL ? 2 : 0, GV_P2P_VERIFIED, gbs);
        for (int gpu = 0; lendable && gpu < GV_MAX_GPUS; gpu++) {
            w->lendable[gpu] |= gv_gpuset_has(a, gpu) ? b : 0;
            w->lendable[gpu] |= gv_gpuset_has(b, gpu) ? a : 0;
        }
    }
}

/* All pairs are verified; pairs that are added later count before that. */
static inline struct world *world(const char *sizes)
{
    struct world *w = calloc(1, sizeof(*w));
    assert_non_null(w);
    w->build = gv_build_new(GV_CUDA);
    for (int i = 0; sizes[i]; i++) {
        char island[16];
        snprintf(island, sizeof(island), "I%d", i);
        gv_build_gpus(w->build, sizes[i] - '0', island, 0, 70);
    }
    gv_gpuset all = all_of(&w->build->profile);
    gv_build_path_sets(w->build, all, all, GV_PATH_UNKNOWN, 0, GV_P2P_VERIFIED, NAN);
    return w;
}

/* After all pairs. `gpus` NULL: all. */
static inline void ask(struct world *w, const char *gpus)
{
    w->in = (struct gv_policy_in){
        .profile = &w->build->profile,
        .gpus = gpus ? gv_build_set(gpus) : all_of(&w->build->profile),
        .one_node = true};
    gv_facts_init(&w->facts, &w->in);
}

static inline void end(struct world *w)
{
    gv_facts_finish(&w->facts);
    gv_build_free(w->build);
    free(w);
}

#endif
