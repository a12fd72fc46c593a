/* Many ranks of many communicators at once, as threads of one process or as a process for each
 * rank, which may be killed at any point. All ranks of a communicator that decide read the same
 * word; where nobody was killed all commit; no call takes longer than its bound; no file,
 * descriptor or memory is left.
 *
 *   gv-torture-registry [--ranks N] [--communicators N] [--rounds N] [--json FILE]
 *                       [--threads | --processes | --kill] */
#include <argp.h>
#include <dirent.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/gv_hash.h"
#include "plugin/registry/gv_registry.h"

/* Waits: long enough for a busy machine where all come, short where one was killed. LATE_MS is what
 * a busy scheduler may add. */
enum { WAIT_MS = 60000, KILLED_WAIT_MS = 300, LATE_MS = 20000, NOTHING = 99 };

enum mode { THREADS, PROCESSES, KILL };
static const char *const mode_names[] = {"threads", "processes", "kill -9"};

static struct options {
    int ranks, communicators, rounds;
    enum mode mode;
    const char *json;
} o = {64, 32, 2, THREADS, NULL};

/* Shared by all processes: the word that each rank read, [round][communicator][rank]. */
struct board {
    atomic_int longest_ms, refused;
    unsigned char word[];
};

static struct board *board;
static char folder[64];

static unsigned char *word_of(int round, int communicator, int rank)
{
    return &board->word[((long)round * o.communicators + communicator) * o.ranks + rank];
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void note_time(int64_t begin)
{
    int took = (int)(now_ms() - begin), longest = atomic_load(&board->longest_ms);
    while (took > longest && !atomic_compare_exchange_weak(&board->longest_ms, &longest, took))
        ;
}

static void play_round(int rank, int communicator, int round)
{
    int wait_ms = o.mode == KILL ? KILLED_WAIT_MS : WAIT_MS;
    uint64_t key = gv_hash_u64(gv_hash_u64(GV_HASH_START, (uint64_t)round), (uint64_t)communicator);
    int64_t begin = now_ms();
    struct gv_registry_entry *entry = gv_registry_join(folder, key, rank, NULL);
    note_time(begin);
    if (!entry) {
        atomic_fetch_add(&board->refused, 1);
        return;
    }
    begin = now_ms();
    if (gv_registry_await(entry, o.ranks, wait_ms))
        gv_registry_abort(entry, GV_ABORT_TIMEOUT);
    note_time(begin);
    struct gv_registry_members m = gv_registry_members(entry);
    begin = now_ms();
    *word_of(round, communicator, rank) = (unsigned char)gv_registry_decide(
        entry, gv_hash_u64(m.gpus, (uint64_t)m.count), o.ranks, wait_ms);
    note_time(begin);
    gv_registry_leave(entry);
}

struct place {
    pthread_t thread;
    int rank, communicator;
};

static void *play(void *arg)
{
    const struct place *place = arg;
    for (int round = 0; round < o.rounds; round++)
        play_round(place->rank, place->communicator, round);
    return NULL;
}

/* The ranks `first` to `last` - 1 of every communicator, a thread for each. */
static void play_threads(int first, int last)
{
    int n = (last - first) * o.communicators;
    struct place *places = calloc((size_t)n, sizeof(*places));
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 64 * 1024);
    for (int i = 0; i < n; i++) {
        places[i].rank = first + i / o.communicators;
        places[i].communicator = i % o.communicators;
        if (pthread_create(&places[i].thread, &attr, play, &places[i])) {
            fprintf(stderr, "torture: %d threads cannot be started\n", n);
            exit(3);
        }
    }
    for (int i = 0; i < n; i++)
        pthread_join(places[i].thread, NULL);
    pthread_attr_destroy(&attr);
    free(places);
}

static void play_processes(void)
{
    pid_t *pids = calloc((size_t)o.ranks, sizeof(*pids));
    for (int rank = 0; rank < o.ranks; rank++) {
        if ((pids[rank] = fork()))
            continue;
        play_threads(rank, rank + 1);
        _exit(0);
    }
    for (int victims = o.mode == KILL ? 1 + rand() % 3 : 0; victims; victims--) {
        usleep((useconds_t)(rand() % 150000));
        kill(pids[rand() % o.ranks], SIGKILL); /* not yet waited for, so the number is still its */
    }
    for (int rank = 0; rank < o.ranks; rank++)
        waitpid(pids[rank], NULL, 0);
    free(pids);
}

static int entries(const char *path)
{
    int n = 0;
    DIR *dir = opendir(path);
    for (struct dirent *item; dir && (item = readdir(dir));)
        n += item->d_name[0] != '.';
    if (dir)
        closedir(dir);
    return n;
}

struct tally {
    int communicators, committed, other, apart, unfinished;
};

static void count_one(struct tally *tally, int round, int communicator)
{
    unsigned char word = NOTHING;
    bool apart = false, all = true;
    for (int rank = 0; rank < o.ranks; rank++) {
        unsigned char own = *word_of(round, communicator, rank);
        all &= own != NOTHING;
        apart |= own != NOTHING && word != NOTHING && own != word;
        word = own != NOTHING ? own : word;
    }
    tally->communicators++;
    tally->apart += apart;
    tally->unfinished += !all;
    tally->committed += word == GV_COMMITTED;
    tally->other += word != GV_COMMITTED;
}

static error_t take(int key, char *arg, struct argp_state *state)
{
    (void)state;
    int n = arg ? atoi(arg) : 0;
    switch (key) {
    case 'r':
        o.ranks = n;
        return 0;
    case 'c':
        o.communicators = n;
        return 0;
    case 'n':
        o.rounds = n;
        return 0;
    case 'j':
        o.json = arg;
        return 0;
    case 't':
    case 'p':
    case 'k':
        o.mode = key == 't' ? THREADS : key == 'p' ? PROCESSES : KILL;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static void read_options(int argc, char **argv)
{
    static const struct argp_option known[] = {
        {"ranks", 'r', "N", 0, "of each communicator, 1 to 64", 0},
        {"communicators", 'c', "N", 0, "at a time", 0},
        {"rounds", 'n', "N", 0, "one after another", 0},
        {"json", 'j', "FILE", 0, "all figures", 0},
        {"threads", 't', 0, 0, "ranks are threads", 0},
        {"processes", 'p', 0, 0, "ranks are processes", 0},
        {"kill", 'k', 0, 0, "one to three processes are killed", 0},
        {0}};
    static const struct argp argp = {.options = known, .parser = take};
    argp_parse(&argp, argc, argv, 0, NULL, NULL);
}

static void make_place(size_t bytes)
{
    snprintf(
        folder, sizeof(folder), "%s/gv-torture-XXXXXX",
        access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
    board = mmap(
        NULL, sizeof(*board) + bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!mkdtemp(folder) || board == MAP_FAILED)
        exit(3);
    memset(board->word, NOTHING, bytes);
}

int main(int argc, char **argv)
{
    read_options(argc, argv);
    long bytes = (long)o.rounds * o.communicators * o.ranks;
    make_place((size_t)bytes);
    srand((unsigned)getpid());
    int descriptors = entries("/proc/self/fd");
    size_t heap = mallinfo2().uordblks;
    int64_t begin = now_ms();
    if (o.mode == THREADS)
        play_threads(0, o.ranks);
    else
        play_processes();
    double took_s = (double)(now_ms() - begin) / 1000;
    struct tally t = {0};
    for (int round = 0; round < o.rounds; round++)
        for (int c = 0; c < o.communicators; c++)
            count_one(&t, round, c);
    int left = entries(folder), swept = gv_registry_sweep(folder, 1 << 20), after = entries(folder);
    int bound_ms = (o.mode == KILL ? KILLED_WAIT_MS : WAIT_MS) + LATE_MS;
    descriptors = entries("/proc/self/fd") - descriptors;
    long bytes_left = (long)(mallinfo2().uordblks - heap);
    bool right = !t.apart && !after && !descriptors && board->longest_ms < bound_ms;
    if (o.mode != KILL)
        right = right && !t.other && !t.unfinished && !left && !board->refused;
    printf(
        "%-9s %d ranks x %d communicators x %d rounds: %d committed, %d default, %d apart, %d with "
        "ranks lost; longest call %d ms; %d files left, %d swept, %d after; %d descriptors, %ld "
        "bytes more; %.1f s: %s\n",
        mode_names[o.mode], o.ranks, o.communicators, o.rounds, t.committed, t.other, t.apart,
        t.unfinished, board->longest_ms, left, swept, after, descriptors, bytes_left, took_s,
        right ? "right" : "WRONG");
    FILE *json = o.json ? fopen(o.json, "w") : NULL;
    if (json) {
        fprintf(
            json,
            "{\"mode\":\"%s\",\"ranks\":%d,\"communicators\":%d,\"rounds\":%d,\"committed\":%d,"
            "\"default\":%d,\"apart\":%d,\"ranks_lost\":%d,\"longest_ms\":%d,\"files_left\":%d,"
            "\"files_after_sweep\":%d,\"descriptors\":%d,\"heap_bytes\":%ld,\"seconds\":%.2f,"
            "\"right\":%s}\n",
            mode_names[o.mode], o.ranks, o.communicators, o.rounds, t.committed, t.other, t.apart,
            t.unfinished, board->longest_ms, left, after, descriptors, bytes_left, took_s,
            right ? "true" : "false");
        fclose(json);
    }
    rmdir(folder);
    return !right;
}
