/* Every call of libc's that a communicator's life makes fails in turn, in one of three processes
 * that are its ranks, and the real plugin must carry the job on:
 *
 *   - every slot says success and nothing crashes, hangs or is killed;
 *   - NCCL_TOPO_FILE is answered with nothing or with a file that is a whole topology;
 *   - the tables of all ranks say the same, and so do the files, except where the rank that met the
 *     fault can neither register nor make a folder and look at it: then nobody knows of it before
 *     the tuner's init, where the plan ends;
 *   - nobody waits as long as for a rank that is gone;
 *   - the next communicator of the same processes goes on as well.
 *
 * Then every call that writing a profile makes fails in turn: what is on disk is the old profile or
 * the new one, whole, and nothing else lies beside it.
 *
 *   gv-torture-faults [--most N] [--kind NAME] [--json FILE]
 *
 * --most: at most so many of a kind's calls fail, spread evenly (default: every one). */
#include <argp.h>
#include <dirent.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/gv_hash.h"
#include "config/gv_machine.h"
#include "plugin/core/gv_comm.h"
#include "plugin/topology/gv_topology.h"
#include "testbench/host/gv_fakecuda.h"
#include "tests/bench/drive.h"
#include "tests/bench/world.h"
#include "tests/torture/faults.h"

enum { RANKS = 3, COMMUNICATORS = 2, BOUND_S = 15 };
static const int gpus[RANKS] = {0, 5, 4}; /* 0 and 5 have a plan without 4, too */

struct outcome {
    long seen[GV_FAULTS];
    int errors;              /* slots that did not say success */
    int file[COMMUNICATORS]; /* 0 none, 1 a whole one, -1 a bad one */
    uint64_t table[COMMUNICATORS];
    bool done;
};

struct shared {
    pthread_barrier_t gather;
    struct outcome rank[RANKS];
};

struct fault {
    enum gv_fault kind;
    long n;
    bool stays;
    const char *force; /* GV100_FORCE or NULL */
};

static struct options {
    long most;
    const char *kind, *json;
} options = {.most = 1000000};

static int look_at(const char *answer)
{
    struct gv_error err = {0};
    if (!answer)
        return 0;
    struct gv_tree *tree = gv_tree_from_file(answer, &err);
    gv_tree_free(tree);
    return tree ? 1 : -1;
}

static uint64_t table_of(const struct gv_drive_plugin *plugin, void *context, int *errors)
{
    uint64_t h = GV_HASH_START;
    for (int func = 0; func <= 4; func++) {
        for (size_t bytes = 1024; bytes <= 1u << 30; bytes *= 32) {
            float costs[7 * 3];
            int channels = 0;
            for (int i = 0; i < 21; i++)
                costs[i] = 1000;
            *errors += plugin->tuner->get_coll_info(
                           context, func, bytes, 1, (float **)costs, 7, 3, 0, &channels) != 0;
            h = gv_hash_bytes(h, costs, sizeof(costs));
            h = gv_hash_u64(h, (uint64_t)channels);
        }
    }
    return h;
}

static void
communicator(struct shared *shared, const struct gv_drive_plugin *plugin, int rank, int number)
{
    struct outcome *out = &shared->rank[rank];
    bool victim = rank == RANKS - 1;
    void *ctx = NULL, *context = NULL;
    int ndev;
    pthread_barrier_wait(&shared->gather);
    gv_faults_here(victim);
    out->errors +=
        plugin->net->init(&ctx, 100 + (uint64_t)number, NULL, gv_world_logger, NULL) != 0;
    out->errors += plugin->net->devices(&ndev) != 0;
    plugin->net->get_properties(0, NULL);
    out->errors += plugin->net->finalize(ctx) != 0;
    pthread_barrier_wait(&shared->gather);
    const char *file = plugin->env->get_env("NCCL_TOPO_FILE");
    plugin->env->get_env("NCCL_GRAPH_FILE");
    gv_faults_here(false);
    out->file[number] = look_at(file);
    pthread_barrier_wait(&shared->gather);
    gv_faults_here(victim);
    out->errors +=
        plugin->tuner->init(
            &context, 100 + (uint64_t)number, RANKS, 1, gv_world_logger, NULL, NULL) != 0;
    out->table[number] = table_of(plugin, context, &out->errors);
    pthread_barrier_wait(&shared->gather);
    out->errors += plugin->tuner->finalize(context) != 0;
    gv_faults_here(false);
}

static void be_rank(struct shared *shared, const struct fault *fault, int rank)
{
    struct outcome *out = &shared->rank[rank];
    char parent[16];
    alarm(BOUND_S);
    snprintf(parent, sizeof(parent), "%ld", (long)getppid());
    if (fault->force) {
        setenv("GV100_FORCE", fault->force, 1);
        setenv("GV100_FORCE_BY", parent, 1);
    }
    gv_fakecuda_set_device(gpus[rank]);
    struct gv_drive_plugin plugin = gv_drive_real();
    gv_faults_set(fault->kind, fault->n, fault->stays);
    gv_faults_here(rank == RANKS - 1);
    out->errors += plugin.env->init(2, 28, 9, "", gv_world_logger) != 0;
    plugin.env->get_env("NCCL_NET_PLUGIN");
    gv_faults_here(false);
    communicator(shared, &plugin, rank, 0);
    for (int i = 0; i < GV_FAULTS; i++)
        out->seen[i] = gv_faults_seen((enum gv_fault)i);
    if (!fault->stays)
        gv_faults_set(fault->kind, 0, false);
    communicator(shared, &plugin, rank, 1);
    out->done = true;
    _exit(0);
}

static void prepare(struct shared *shared)
{
    pthread_barrierattr_t attr;
    memset(shared, 0, sizeof(*shared));
    pthread_barrierattr_init(&attr);
    pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&shared->gather, &attr, RANKS);
    pthread_barrierattr_destroy(&attr);
}

/* Runs the three ranks; the number of processes that did not end well. */
static int run(struct shared *shared, const struct fault *fault)
{
    pid_t pid[RANKS];
    int bad = 0;
    prepare(shared);
    for (int i = 0; i < RANKS; i++)
        if (!(pid[i] = fork()))
            be_rank(shared, fault, i);
    for (int i = 0; i < RANKS; i++) {
        int status;
        waitpid(pid[i], &status, 0);
        if (status || !shared->rank[i].done) {
            bad++;
            printf("  rank %d ended with %#x\n", i, (unsigned)status);
        }
    }
    return bad;
}

struct tally {
    long calls, tried, bad, errors, bad_files, tables_apart, files_apart, plans;
    double longest_s;
};

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* A victim that has no entry in the registry is not waited for: the others' files are their own. */
static bool alike(const struct shared *shared, int number, bool files)
{
    for (int i = 1; i < RANKS; i++) {
        const struct outcome *a = &shared->rank[0], *b = &shared->rank[i];
        if (files ? a->file[number] != b->file[number] : a->table[number] != b->table[number])
            return false;
    }
    return true;
}

static void judge(const struct shared *shared, struct tally *tally)
{
    for (int i = 0; i < RANKS; i++) {
        tally->errors += shared->rank[i].errors;
        for (int c = 0; c < COMMUNICATORS; c++)
            tally->bad_files += shared->rank[i].file[c] < 0;
    }
    for (int c = 0; c < COMMUNICATORS; c++) {
        tally->tables_apart += !alike(shared, c, false);
        tally->files_apart += !alike(shared, c, true);
    }
    tally->plans += shared->rank[0].file[1] > 0;
}

static void try_one(struct shared *shared, const struct fault *fault, struct tally *tally)
{
    double begin = now_s();
    long before = tally->bad + tally->errors + tally->bad_files + tally->tables_apart;
    tally->bad += run(shared, fault);
    double took = now_s() - begin;
    if (took * 1e3 > GV_DECIDE_WAIT_MS) { /* a busy machine may need as long, but not twice */
        begin = now_s();
        tally->bad += run(shared, fault);
        took = now_s() - begin < took ? now_s() - begin : took;
    }
    if (took > tally->longest_s)
        tally->longest_s = took;
    judge(shared, tally);
    if (getenv("GV_BENCH_VERBOSE"))
        for (int i = 0; i < RANKS; i++)
            printf(
                "  %s %ld%s rank %d: files %d %d, tables %016llx %016llx\n",
                gv_fault_name(fault->kind), fault->n, fault->stays ? "+" : "", i,
                shared->rank[i].file[0], shared->rank[i].file[1],
                (unsigned long long)shared->rank[i].table[0],
                (unsigned long long)shared->rank[i].table[1]);
    tally->tried++;
    if (tally->bad + tally->errors + tally->bad_files + tally->tables_apart != before)
        printf(
            "  FAILED: %s %ld%s, %s\n", gv_fault_name(fault->kind), fault->n,
            fault->stays ? " and all later" : "", fault->force ? fault->force : "policy");
}

static struct tally torture(struct shared *shared, enum gv_fault kind, const char *force)
{
    struct tally tally = {0};
    struct fault fault = {.kind = kind, .force = force};
    run(shared, &fault);
    long calls = tally.calls = shared->rank[RANKS - 1].seen[kind];
    long tries = calls < options.most ? calls : options.most;
    for (long i = 0; i < tries; i++) {
        fault.n = 1 + i * calls / tries;
        for (int stays = 0; stays < 2; stays++) {
            fault.stays = stays;
            try_one(shared, &fault, &tally);
        }
    }
    return tally;
}

/* --- a profile that is written over another --- */

static int files_in(const char *path)
{
    int n = 0;
    DIR *dir = opendir(path);
    for (struct dirent *item; dir && (item = readdir(dir));)
        n += item->d_name[0] != '.';
    if (dir)
        closedir(dir);
    return n;
}

static struct gv_profile *profile_at(const char *path)
{
    struct gv_error err = {0};
    struct gv_profile *profile = gv_profile_read(path, &err);
    if (!profile) {
        printf("  %s: %s\n", path, err.text);
        exit(3);
    }
    return profile;
}

/* 0: as it must be. `then` is what was written when the call failed, `before` what lay there. */
static int write_with(
    const char *folder, const struct fault *fault, const struct gv_profile *before,
    const struct gv_profile *then)
{
    char path[256];
    struct gv_error err = {0};
    snprintf(path, sizeof(path), "%s/profile.yaml", folder);
    if (gv_profile_write(before, path, &err))
        exit(3);
    gv_faults_set(fault->kind, fault->n, fault->stays);
    gv_faults_here(true);
    int rc = gv_profile_write(then, path, &err);
    gv_faults_here(false);
    struct gv_profile *now = gv_profile_read(path, &err);
    bool right = now && gv_profile_equal(now, rc ? before : then) && files_in(folder) == 1;
    gv_profile_free(now);
    if (!right || (rc && !err.text[0]))
        printf(
            "  FAILED: write, %s %ld%s\n", gv_fault_name(fault->kind), fault->n,
            fault->stays ? " and all later" : "");
    return !right || (rc && !err.text[0]);
}

static struct tally torture_write(const struct gv_world *world, enum gv_fault kind)
{
    struct tally tally = {0};
    char folder[192], path[PATH_MAX];
    struct gv_error err = {0};
    snprintf(folder, sizeof(folder), "%s/written", world->dir);
    if (gv_profile_resolve("4028", path, &err))
        exit(3);
    struct gv_profile *before = profile_at(path), *then = profile_at(path);
    snprintf(then->name, sizeof(then->name), "another");
    struct fault fault = {.kind = kind};
    tally.bad = write_with(folder, &fault, before, then);
    tally.calls = gv_faults_seen(kind);
    for (long i = 0, tries = tally.calls < options.most ? tally.calls : options.most; i < tries;
         i++)
        for (fault.stays = false;; fault.stays = true) {
            fault.n = 1 + i * tally.calls / tries;
            tally.bad += write_with(folder, &fault, before, then);
            tally.tried++;
            if (fault.stays)
                break;
        }
    gv_profile_free(before);
    gv_profile_free(then);
    return tally;
}

static error_t take(int key, char *arg, struct argp_state *state)
{
    (void)state;
    if (key == 'm')
        options.most = atol(arg);
    else if (key == 'k')
        options.kind = arg;
    else if (key == 'j')
        options.json = arg;
    else
        return ARGP_ERR_UNKNOWN;
    return 0;
}

static const char *const plans[] = {"policy", "forced", "write"};

static void print_json(FILE *json, bool first, const char *kind, int plan, const struct tally *t)
{
    fprintf(
        json,
        "%s{\"kind\":\"%s\",\"plan\":\"%s\",\"calls\":%ld,\"tried\":%ld,\"bad\":%ld,"
        "\"errors\":%ld,\"bad_files\":%ld,\"tables_apart\":%ld,\"files_apart\":%ld,"
        "\"plans_after\":%ld,\"longest_s\":%.2f}",
        first ? "[" : ",\n ", kind, plans[plan], t->calls, t->tried, t->bad, t->errors,
        t->bad_files, t->tables_apart, t->files_apart, t->plans, t->longest_s);
}

static struct tally
torture_one(struct shared *shared, const struct gv_world *world, enum gv_fault kind, int plan)
{
    static const char forced[] = "lend 0-5 algorithm=RING protocol=LL channels=2";
    return plan == 2 ? torture_write(world, kind) : torture(shared, kind, plan ? forced : NULL);
}

/* The number of things that must not be. */
static long torture_kind(
    struct shared *shared, const struct gv_world *world, enum gv_fault kind, FILE *json,
    bool *first)
{
    long failed = 0;
    const char *name = gv_fault_name(kind);
    for (int plan = 0; plan < 3; plan++) {
        struct tally t = torture_one(shared, world, kind, plan);
        printf(
            "%-8s %-7s %7ld %6ld %6ld %6ld %5ld %6ld | %11ld %11ld %10.2f\n", name, plans[plan],
            t.calls, t.tried, t.bad, t.errors, t.bad_files, t.tables_apart, t.files_apart, t.plans,
            t.longest_s);
        failed += t.bad + t.errors + t.bad_files + t.tables_apart +
                  (t.longest_s * 1e3 > GV_DECIDE_WAIT_MS);
        if (kind != GV_FAULT_STAT && kind != GV_FAULT_FOLDER)
            failed += t.files_apart;
        if (json)
            print_json(json, *first, name, plan, &t);
        *first = false;
    }
    return failed;
}

int main(int argc, char **argv)
{
    static const struct argp_option known[] = {
        {"most", 'm', "N", 0, "calls of a kind that fail, at most", 0},
        {"kind", 'k', "NAME", 0, "only this kind", 0},
        {"json", 'j', "FILE", 0, "all figures", 0},
        {0}};
    static const struct argp argp = {.options = known, .parser = take};
    argp_parse(&argp, argc, argv, 0, NULL, NULL);
    struct gv_world world;
    gv_world_open(&world, GV_WORLD_4028);
    gv_world_shipped("4028");
    setenv("NCCL_ENV_PLUGIN", "gv100", 1);
    struct shared *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    FILE *json = options.json ? fopen(options.json, "w") : NULL;
    long failed = 0;
    bool first = true;
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("kind     plan      calls  tried    bad  error  file  table | files apart  plan after  "
           "longest s\n");
    for (int kind = 0; kind < GV_FAULTS; kind++)
        if (!options.kind || !strcmp(options.kind, gv_fault_name((enum gv_fault)kind)))
            failed += torture_kind(shared, &world, (enum gv_fault)kind, json, &first);
    if (json) {
        fputs(first ? "[]\n" : "]\n", json);
        fclose(json);
    }
    gv_world_close(&world);
    return failed != 0;
}
