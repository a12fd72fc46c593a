/* The registry's two steps in every order, within bounds: ranks join, gather, prepare, decide and
 * leave, some die on the way, waits run out, somebody sweeps. In every run
 *
 *   - all ranks that decide read the same word;
 *   - where nobody died and no wait ran out, that word is the one that the plans deserve;
 *   - where nobody died, a wait never runs out for want of a rank that could go on;
 *   - nobody hangs, whoever ended holds nothing, and after a sweep no file is left.
 *
 *   gv-torture-orders [--long] [--json FILE] */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/gv_hash.h"
#include "plugin/registry/gv_registry.h"
#include "tests/torture/orders.h"

enum { RANKS = 4, ROUNDS = 2, KEY = 5 };

struct scene {
    const char *what;
    int ranks, rounds;
    /* rank 0's plan is another, or it goes without a word; the first that asks finds no room */
    enum first { SAME, ODD, QUITS, NO_ROOM } first;
    bool sweeper; /* one more player sweeps */
    struct gv_orders_bounds bounds, at_length;
};

#define MOST 200000
static const struct scene scenes[] = {
    {"2 ranks", 2, 1, SAME, false, {2, 0, 0, 0}, {4, 0, 0, MOST}},
    {"2 ranks, one dies", 2, 1, SAME, false, {1, 1, 0, 0}, {2, 1, 0, MOST}},
    {"2 ranks, both die", 2, 1, SAME, false, {0, 2, 0, 0}, {1, 2, 0, MOST}},
    {"2 ranks, a wait runs out", 2, 1, SAME, false, {1, 0, 1, 0}, {2, 0, 2, MOST}},
    {"2 ranks, one dies, a wait runs out", 2, 1, SAME, false, {0, 1, 1, 0}, {1, 1, 1, MOST}},
    {"2 ranks of different plans", 2, 1, ODD, false, {1, 0, 1, 0}, {2, 0, 1, MOST}},
    {"2 ranks, one quits", 2, 1, QUITS, false, {2, 0, 0, 0}, {3, 0, 1, MOST}},
    {"2 ranks, one finds no room", 2, 1, NO_ROOM, false, {2, 0, 0, 0}, {4, 0, 1, MOST}},
    {"2 ranks and a sweeper", 2, 1, SAME, true, {1, 0, 0, 0}, {1, 1, 0, MOST}},
    {"2 ranks twice under one key", 2, 2, SAME, false, {1, 0, 0, 0}, {1, 1, 0, MOST}},
    {"3 ranks", 3, 1, SAME, false, {0, 0, 0, 0}, {1, 0, 0, MOST}},
    {"3 ranks, one dies", 3, 1, SAME, false, {0, 1, 0, 3000}, {0, 2, 1, MOST}},
    {"3 ranks, one quits", 3, 1, QUITS, false, {0, 0, 0, 0}, {1, 0, 0, MOST}},
    {"3 ranks, one finds no room", 3, 1, NO_ROOM, false, {1, 0, 0, 0}, {2, 0, 1, MOST}},
    {"3 ranks of different plans", 3, 1, ODD, false, {0, 0, 0, 0}, {1, 0, 0, MOST}},
    {"3 ranks and a sweeper", 3, 1, SAME, true, {0, 0, 0, 3000}, {0, 1, 0, MOST}},
    {"4 ranks", 4, 1, SAME, false, {0, 0, 0, 3000}, {0, 0, 1, MOST}},
    {"4 ranks, one dies", 4, 1, SAME, false, {0, 1, 0, 2000}, {0, 1, 1, MOST}},
    {"4 ranks twice under one key", 4, 2, SAME, false, {0, 0, 0, 1000}, {0, 0, 0, MOST}},
};

struct rank {
    bool joined[ROUNDS], arrived[3 * ROUNDS];
    enum gv_verdict word[ROUNDS]; /* GV_OPEN: did not decide */
    uint64_t plan[ROUNDS];
};

static const struct scene *scene;
static struct rank ranks[RANKS];
static char folder[64];

static bool gather_is_over(void *arg)
{
    int gather = *(int *)arg;
    for (int i = 0; i < scene->ranks; i++)
        if (!ranks[i].arrived[gather] && !gv_orders_died(i))
            return false;
    return true;
}

/* NCCL's own exchange: everybody goes on when everybody came; a rank that is lost ends it. */
static bool gather(int rank, int which)
{
    ranks[rank].arrived[which] = true;
    gv_orders_wait(gather_is_over, &which);
    for (int i = 0; i < scene->ranks; i++)
        if (!ranks[i].arrived[which])
            return false;
    return true;
}

static bool play_round(int rank, int round)
{
    struct rank *r = &ranks[rank];
    struct gv_registry_entry *entry = gv_registry_join(folder, KEY, rank, NULL);
    r->joined[round] = entry != NULL;
    if (!entry)
        gv_registry_refuse(folder, KEY); /* as the plugin does */
    bool all = gather(rank, 3 * round);
    if (entry && gv_registry_refused(folder, KEY))
        gv_registry_abort(entry, GV_ABORT_RANK);
    if (scene->first == QUITS && !rank) {
        gv_registry_leave(entry);
        entry = NULL;
    }
    if (all && entry) {
        struct gv_registry_members m = gv_registry_members(entry);
        r->plan[round] =
            gv_hash_u64(m.gpus, (uint64_t)m.count) + (scene->first == ODD && rank == 0);
        r->word[round] = gv_registry_decide(entry, r->plan[round], m.count, 3000);
    }
    all = all && gather(rank, 3 * round + 1);
    gv_registry_leave(entry);
    return all && gather(rank, 3 * round + 2);
}

static void play(int player)
{
    if (player == scene->ranks) {
        gv_registry_sweep(folder, 100);
        return;
    }
    for (int round = 0; round < scene->rounds; round++)
        if (!play_round(player, round))
            return;
}

static bool mortal(int player)
{
    return player < scene->ranks;
}

static void begin(void)
{
    memset(ranks, 0, sizeof(ranks));
    gv_orders_no_room(scene->first == NO_ROOM);
}

static int remove_files(void)
{
    int n = 0;
    DIR *dir = opendir(folder);
    for (struct dirent *item; dir && (item = readdir(dir));) {
        if (item->d_name[0] == '.')
            continue;
        n++;
        unlinkat(dirfd(dir), item->d_name, 0);
    }
    if (dir)
        closedir(dir);
    return n;
}

/* Some rank is not in: nobody acts. Whoever died may have been it. */
static bool all_default(int round)
{
    bool out = false, acts = false;
    for (int i = 0; i < scene->ranks; i++) {
        out = out || !ranks[i].joined[round];
        acts = acts || ranks[i].word[round] == GV_COMMITTED;
    }
    return gv_orders_deaths() || (out && !acts);
}

static bool round_is_right(int round)
{
    enum gv_verdict word = GV_OPEN;
    uint64_t plan = 0;
    for (int i = 0; i < scene->ranks; i++) {
        const struct rank *r = &ranks[i];
        if (r->word[round] == GV_OPEN)
            continue;
        if (word != GV_OPEN && r->word[round] != word)
            return false;
        if (word == GV_COMMITTED && r->plan[round] != plan)
            return false;
        word = r->word[round];
        plan = r->plan[round];
    }
    static const enum gv_verdict deserved[] = {
        [SAME] = GV_COMMITTED, [ODD] = GV_ABORT_MISMATCH, [QUITS] = GV_ABORT_RANK};
    if (scene->first == NO_ROOM)
        return all_default(round);
    if (gv_orders_deaths())
        return true;
    return gv_orders_timeouts() ? !gv_orders_stalls() : word == deserved[scene->first];
}

static bool end(void)
{
    bool right = true;
    for (int round = 0; round < scene->rounds; round++)
        right = round_is_right(round) && right;
    if (gv_orders_deaths() || scene->first == NO_ROOM) /* as the next job does first */
        gv_registry_sweep(folder, 100);
    gv_registry_take_back(folder, KEY);
    right = !remove_files() && right;
    if (!right)
        for (int i = 0; i < scene->ranks; i++)
            printf("  rank %d: words %d %d\n", i, ranks[i].word[0], ranks[i].word[1]);
    return right;
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static long explore(const struct scene *s, bool at_length, FILE *json)
{
    const struct gv_orders orders = {s->ranks + s->sweeper, play, mortal, begin, end};
    double from = now_s();
    scene = s;
    struct gv_orders_bounds b = at_length ? s->at_length : s->bounds;
    long runs = gv_orders_explore(&orders, b);
    printf(
        "%-36s %11d %6d %8d %9ld%c %-6s %6.1f s\n", s->what, b.preemptions, b.deaths, b.timeouts,
        runs, b.most && runs >= b.most ? '+' : ' ', runs < 0 ? "FAILED" : "alike", now_s() - from);
    if (json)
        fprintf(
            json,
            "%s{\"scene\":\"%s\",\"preemptions\":%d,\"deaths\":%d,\"timeouts\":%d,\"runs\":%ld,"
            "\"complete\":%s}",
            s == scenes ? "[" : ",\n ", s->what, b.preemptions, b.deaths, b.timeouts, runs,
            b.most && runs >= b.most ? "false" : "true");
    return runs;
}

int main(int argc, char **argv)
{
    bool at_length = false, failed = false;
    FILE *json = NULL;
    for (int i = 1; i < argc; i++) {
        at_length |= !strcmp(argv[i], "--long");
        if (!strcmp(argv[i], "--json") && i + 1 < argc)
            json = fopen(argv[++i], "w");
    }
    snprintf(
        folder, sizeof(folder), "%s/gv-orders-XXXXXX",
        access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
    if (!mkdtemp(folder))
        return 3;
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("%-36s preemptions deaths timeouts      runs (+: there are more)\n", "");
    for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++)
        failed |= explore(&scenes[i], at_length, json) < 0;
    if (json) {
        fputs("]\n", json);
        fclose(json);
    }
    remove_files();
    rmdir(folder);
    return failed;
}
