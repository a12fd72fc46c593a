#include "tests/torture/orders.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

#include "tests/torture/steps.h"

enum { STACK = 128 * 1024, MOST_POINTS = 4096, MOST_OPTIONS = 2 * GV_ORDERS_PLAYERS + 2, HELD = 8 };

enum state { READY, ASIDE, WAITING, SLEEPING, ENDED, DEAD };

struct map {
    void *where;
    size_t size;
    ino_t file;
};

struct player {
    ucontext_t context;
    char *stack;
    enum state state;
    bool (*ready)(void *); /* WAITING */
    void *arg;
    ino_t file; /* SLEEPING: on the word at `offset` of this file, until `until_ms` */
    long offset;
    int64_t until_ms;
    bool timed_out;
    /* what the kernel would take back */
    int fds[HELD];
    struct map maps[HELD];
    void *memory[HELD];
};

/* A point at which there was a choice: the options and the one taken. */
struct point {
    int options, taken;
};

enum act { GO, KILL, TIME_UP };
struct option {
    enum act act;
    int player;
};

static struct player players[GV_ORDERS_PLAYERS];
static const struct gv_orders *game;
static ucontext_t scheduler;
static int current;
static int64_t now_ms;
static struct point points[MOST_POINTS];
static int npoints, nplanned;
static int preemptions, deaths, timeouts, stalls, no_room;
static bool inside; /* a player is at it; else the registry was called outside of a run */

void gv_step(void)
{
    if (inside)
        swapcontext(&players[current].context, &scheduler);
}

void gv_step_aside(void)
{
    if (inside)
        players[current].state = ASIDE;
    gv_step();
}

static int free_place(const int *fds)
{
    for (int i = 0; i < HELD; i++)
        if (!fds[i])
            return i;
    abort();
}

int gv_step_open(int dir, const char *path, int flags, unsigned mode)
{
    gv_step();
    int fd = openat(dir, path, flags, mode);
    if (inside && fd > 0)
        players[current].fds[free_place(players[current].fds)] = fd;
    return fd;
}

static void forget_fd(int fd)
{
    for (int i = 0; inside && i < HELD; i++)
        if (players[current].fds[i] == fd)
            players[current].fds[i] = 0;
}

int gv_step_close(int fd)
{
    gv_step();
    forget_fd(fd);
    return close(fd);
}

DIR *gv_step_fdopendir(int fd)
{
    forget_fd(fd);
    return fdopendir(fd);
}

void *gv_step_mmap(size_t size, int prot, int flags, int fd)
{
    struct stat st;
    void *where = mmap(NULL, size, prot, flags, fd, 0);
    if (where == MAP_FAILED || fstat(fd, &st))
        return where;
    for (int i = 0; i < HELD; i++) {
        struct map *map = &players[current].maps[i];
        if (map->where)
            continue;
        *map = (struct map){where, size, st.st_ino};
        return where;
    }
    abort();
}

int gv_step_munmap(void *where, size_t size)
{
    for (int i = 0; i < HELD; i++)
        if (players[current].maps[i].where == where)
            players[current].maps[i].where = NULL;
    return munmap(where, size);
}

int gv_step_allocate(int fd, size_t size)
{
    gv_step();
    if (no_room) {
        no_room--;
        return ENOSPC;
    }
    return posix_fallocate(fd, 0, (off_t)size);
}

void gv_orders_no_room(int times)
{
    no_room = times;
}

void *gv_step_calloc(size_t n, size_t size)
{
    void *what = calloc(n, size);
    for (int i = 0; i < HELD; i++)
        if (!players[current].memory[i]) {
            players[current].memory[i] = what;
            return what;
        }
    abort();
}

void gv_step_free(void *what)
{
    for (int i = 0; i < HELD; i++)
        if (players[current].memory[i] == what)
            players[current].memory[i] = NULL;
    free(what);
}

int gv_step_clock(struct timespec *out)
{
    *out = (struct timespec){.tv_sec = now_ms / 1000, .tv_nsec = now_ms % 1000 * 1000000};
    return 0;
}

/* Ranks have one file mapped at different places: a word is known by file and offset. */
static void place_of(const void *word, ino_t *file, long *offset)
{
    for (int i = 0; i < HELD; i++) {
        const struct map *map = &players[current].maps[i];
        long at = (const char *)word - (const char *)map->where;
        if (!map->where || at < 0 || at >= (long)map->size)
            continue;
        *file = map->file;
        *offset = at;
        return;
    }
    abort();
}

long gv_step_futex(_Atomic uint32_t *word, int what, uint32_t value, const struct timespec *most)
{
    struct player *p = &players[current];
    ino_t file;
    long offset;
    gv_step();
    place_of(word, &file, &offset);
    if (what == FUTEX_WAKE) {
        for (int i = 0; i < game->nplayers; i++)
            if (players[i].state == SLEEPING && players[i].file == file &&
                players[i].offset == offset)
                players[i].state = READY;
        return 0;
    }
    if (atomic_load(word) != value)
        return -1;
    p->file = file;
    p->offset = offset;
    p->until_ms = now_ms + most->tv_sec * 1000 + most->tv_nsec / 1000000;
    p->state = SLEEPING;
    gv_step();
    return 0;
}

void gv_orders_wait(bool (*ready)(void *), void *arg)
{
    struct player *p = &players[current];
    p->ready = ready;
    p->arg = arg;
    p->state = WAITING;
    gv_step();
}

bool gv_orders_died(int player)
{
    return players[player].state == DEAD;
}

int gv_orders_deaths(void)
{
    return deaths;
}

int gv_orders_timeouts(void)
{
    return timeouts;
}

int gv_orders_stalls(void)
{
    return stalls;
}

static void live(int player)
{
    game->play(player);
    players[player].state = ENDED;
    swapcontext(&players[player].context, &scheduler);
}

static void start(int player)
{
    struct player *p = &players[player];
    char *stack = p->stack ? p->stack : malloc(STACK);
    memset(p, 0, sizeof(*p));
    p->stack = stack;
    if (!stack || getcontext(&p->context))
        abort();
    p->context.uc_stack.ss_sp = stack;
    p->context.uc_stack.ss_size = STACK;
    makecontext(&p->context, (void (*)(void))live, 1, player);
}

/* What the kernel does for a process that was killed. */
static void die(int player)
{
    struct player *p = &players[player];
    p->state = DEAD;
    deaths++;
    for (int i = 0; i < HELD; i++) {
        if (p->maps[i].where)
            munmap(p->maps[i].where, p->maps[i].size);
        if (p->fds[i])
            close(p->fds[i]);
        free(p->memory[i]);
    }
}

static bool can_go(int player)
{
    const struct player *p = &players[player];
    return p->state == READY || p->state == ASIDE || (p->state == WAITING && p->ready(p->arg));
}

/* The running player first, so that option 0 is to go on; who stepped aside comes last. */
static int list_goers(struct option *out)
{
    int n = 0;
    for (int aside = 0; aside < 2; aside++) {
        for (int i = 0; i < game->nplayers; i++) {
            int player = (current + i) % game->nplayers;
            if (can_go(player) && (players[player].state == ASIDE) == aside)
                out[n++] = (struct option){GO, player};
        }
        if (n)
            break;
    }
    return n;
}

static int list_options(struct option *out, struct gv_orders_bounds bounds)
{
    int n = list_goers(out);
    bool goes_on = n && out[0].player == current && players[current].state == READY;
    if (goes_on && bounds.preemptions >= 0 && preemptions >= bounds.preemptions)
        n = 1;
    bool any = n > 0;
    if (deaths < bounds.deaths && players[current].state < ENDED && game->mortal(current))
        out[n++] = (struct option){KILL, current};
    for (int i = 0; i < game->nplayers; i++)
        if (players[i].state == SLEEPING && (!any || timeouts < bounds.timeouts))
            out[n++] = (struct option){TIME_UP, i};
    return n;
}

static void take(const struct option *option)
{
    struct player *p = &players[option->player];
    if (option->act == KILL) {
        die(option->player);
        return;
    }
    if (option->act == TIME_UP) {
        timeouts++;
        stalls += !list_goers((struct option[MOST_OPTIONS]){{0}});
        if (p->until_ms > now_ms)
            now_ms = p->until_ms;
    } else if (option->player != current && players[current].state == READY) {
        preemptions++;
    }
    p->state = READY;
    current = option->player;
    inside = true;
    swapcontext(&scheduler, &p->context);
    inside = false;
}

/* false: somebody still lives and nothing can happen. */
static bool run(struct gv_orders_bounds bounds)
{
    npoints = preemptions = deaths = timeouts = stalls = current = 0;
    now_ms = 1000;
    for (int i = 0; i < game->nplayers; i++)
        start(i);
    for (;;) {
        struct option options[MOST_OPTIONS];
        int n = list_options(options, bounds);
        if (!n)
            break;
        int taken = 0;
        if (n > 1) {
            if (npoints == MOST_POINTS)
                return false; /* no end: a hang of those who never stop */
            taken = npoints < nplanned ? points[npoints].taken : 0;
            points[npoints++] = (struct point){n, taken};
        }
        take(&options[taken]);
    }
    for (int i = 0; i < game->nplayers; i++)
        if (players[i].state < ENDED)
            return false;
    return true;
}

/* Whoever ended in peace holds nothing. */
static bool all_given_back(void)
{
    for (int i = 0; i < game->nplayers; i++)
        for (int h = 0; h < HELD && players[i].state == ENDED; h++)
            if (players[i].fds[h] || players[i].maps[h].where || players[i].memory[h])
                return false;
    return true;
}

/* The next plan: the last choice that had another option is changed. false: there is none. */
static bool advance(void)
{
    while (npoints && points[npoints - 1].taken + 1 == points[npoints - 1].options)
        npoints--;
    if (!npoints)
        return false;
    points[npoints - 1].taken++;
    nplanned = npoints;
    return true;
}

static void print_choices(void)
{
    printf("  choices:");
    for (int i = 0; i < npoints; i++)
        if (points[i].taken)
            printf(" %d:%d/%d", i, points[i].taken, points[i].options);
    printf("\n");
}

long gv_orders_explore(const struct gv_orders *orders, struct gv_orders_bounds bounds)
{
    game = orders;
    nplanned = 0;
    for (long runs = 1;; runs++) {
        orders->begin();
        bool ended = run(bounds), given = ended && all_given_back(), right = orders->end();
        if (!ended || !given || !right) {
            printf(
                "  run %ld: %s\n", runs,
                !ended  ? "somebody hangs"
                : given ? "not as it must be"
                        : "something is held at the end");
            print_choices();
            return -1;
        }
        if ((bounds.most && runs == bounds.most) || !advance())
            return runs;
    }
}
