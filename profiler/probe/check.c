/* The parent of the worker: starts it, reads its lines, kills it at a deadline, starts another one
 * for the pairs that are left. A GPU that never answers again costs its pair, not the run. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "profiler/probe/gv_calibration.h"

extern char **environ;

struct worker {
    pid_t pid;
    int out;
    char line[512];
    size_t used;
};

struct checking {
    struct gv_calibration *cal;
    const int (*pairs)[2];
    int npairs;
    struct gv_pair_result *results;
    bool *done;
};

static int pair_index(const struct checking *c, int from, int to)
{
    for (int i = 0; i < c->npairs; i++)
        if (c->pairs[i][0] == from && c->pairs[i][1] == to)
            return i;
    return -1;
}

static char *list_left(const struct checking *c)
{
    struct gv_str text = {0};
    for (int i = 0; i < c->npairs; i++)
        if (!c->done[i])
            gv_str_addf(&text, "%s%d>%d", text.len ? "," : "", c->pairs[i][0], c->pairs[i][1]);
    if (!text.failed)
        return text.data;
    gv_str_free(&text);
    return NULL;
}

static int start(struct worker *w, const struct checking *c, struct gv_error *err)
{
    char timeout[32], *list = list_left(c);
    int ends[2];
    posix_spawn_file_actions_t actions;
    const char *self = c->cal->options.self;
    *w = (struct worker){.out = -1};
    if (!list)
        return gv_error_set(err, "out of memory");
    if (pipe2(ends, O_CLOEXEC)) {
        free(list);
        return gv_error_set(err, "no pipe: %m");
    }
    snprintf(timeout, sizeof(timeout), "%g", c->cal->options.pair_timeout_s);
    const char *machine = c->cal->options.machine_name;
    char *argv[] = {
        (char *)self,
        "verify",
        "--worker",
        list,
        "--pair-timeout",
        timeout,
        machine ? "--virtual" : NULL,
        (char *)machine,
        NULL};
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    int rc = posix_spawn(&w->pid, self, &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    free(list);
    if (rc) {
        close(ends[0]);
        return gv_error_set(err, "%s cannot be started: %s", self, strerror(rc));
    }
    w->out = ends[0];
    return 0;
}

/* Ends the worker. One that the kernel cannot end (it waits for a GPU) is left behind. */
static void end(struct worker *w)
{
    struct timespec pause = {0, 10000000};
    close(w->out);
    kill(w->pid, SIGKILL);
    for (int i = 0; i < 300; i++) {
        if (waitpid(w->pid, NULL, WNOHANG) != 0)
            return;
        nanosleep(&pause, NULL);
    }
}

/* The next line, without its end. 1 a line, 0 the worker ended, -1 the deadline passed. */
static int next_line(struct worker *w, double seconds, char out[512])
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    double until = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec + seconds;
    for (;;) {
        char *newline = memchr(w->line, '\n', w->used);
        if (newline) {
            size_t n = (size_t)(newline - w->line);
            memcpy(out, w->line, n);
            out[n] = 0;
            w->used -= n + 1;
            memmove(w->line, newline + 1, w->used);
            return 1;
        }
        clock_gettime(CLOCK_MONOTONIC, &t);
        double left = until - ((double)t.tv_sec + 1e-9 * (double)t.tv_nsec);
        struct pollfd fd = {.fd = w->out, .events = POLLIN};
        int ready = left > 0 ? poll(&fd, 1, (int)(left * 1000) + 1) : 0;
        if (ready < 0 && errno == EINTR)
            continue;
        if (!ready)
            return -1;
        if (w->used == sizeof(w->line))
            w->used = 0; /* no line of ours is that long */
        ssize_t n = read(w->out, w->line + w->used, sizeof(w->line) - w->used);
        if (n <= 0)
            return 0;
        w->used += (size_t)n;
    }
}

static void take_end(struct checking *c, const char *line)
{
    int from, to, outcome, used = 0;
    unsigned long long wrong, first;
    if (sscanf(line, "end %d %d %d %llu %llu %n", &from, &to, &outcome, &wrong, &first, &used) != 5)
        return;
    int i = pair_index(c, from, to);
    if (i < 0 || outcome < 0 || outcome >= GV_PAIR_OUTCOMES)
        return;
    c->results[i].outcome = (enum gv_pair_outcome)outcome;
    c->results[i].wrong = wrong;
    c->results[i].first_wrong = first;
    snprintf(c->results[i].text, sizeof(c->results[i].text), "%s", used ? line + used : "");
    c->done[i] = true;
}

static void hung(struct checking *c, int i, const char *how)
{
    c->results[i].outcome = GV_PAIR_HUNG;
    snprintf(c->results[i].text, sizeof(c->results[i].text), "%s: look at ACS and the IOMMU", how);
    c->done[i] = true;
}

/* Reads one worker to its end. 0, or -1 with `err` where no other worker can do better. */
static int follow(struct worker *w, struct checking *c, struct gv_error *err)
{
    char line[512];
    int at = -1, from, to, code, used = 0;
    bool any = false;
    double deadline = 20 * c->cal->options.pair_timeout_s + 20;
    for (;;) {
        int got = next_line(w, deadline, line);
        if (got < 0 && at >= 0) {
            hung(c, at, "no answer, killed");
            return 0;
        }
        if (got < 0)
            return gv_error_set(err, "the driver did not start within %.0f s", deadline);
        if (!got && at < 0 && any)
            return 0;
        if (!got && at < 0)
            return gv_error_set(err, "the check of the pairs ended without a result");
        if (!got) {
            hung(c, at, "the check died");
            return 0;
        }
        if (sscanf(line, "begin %d %d", &from, &to) == 2)
            at = pair_index(c, from, to);
        else if (!strncmp(line, "end ", 4)) {
            take_end(c, line);
            at = -1;
            any = true;
            bool left = false;
            for (int i = 0; i < c->npairs; i++)
                left |= !c->done[i];
            if (!left)
                return 0;
        } else if (sscanf(line, "failed %d %d %d %n", &from, &to, &code, &used) == 3) {
            if (code)
                c->cal->meter.last = code;
            return gv_error_set(err, "%s", line + used);
        }
    }
}

int gv_check_pairs(
    struct gv_calibration *cal, const int (*pairs)[2], int npairs, struct gv_pair_result *results,
    struct gv_error *err)
{
    struct checking c = {cal, pairs, npairs, results, calloc((size_t)npairs + 1, sizeof(bool))};
    int rc = c.done ? 0 : gv_error_set(err, "out of memory");
    for (int round = 0; !rc && round <= npairs; round++) {
        bool left = false;
        struct worker w;
        for (int i = 0; i < npairs; i++)
            left |= !c.done[i];
        if (!left || (cal->options.stop && *cal->options.stop))
            break;
        rc = start(&w, &c, err);
        if (!rc) {
            rc = follow(&w, &c, err);
            end(&w);
        }
    }
    if (!rc && cal->options.stop && *cal->options.stop)
        rc = gv_error_set(err, "stopped");
    free(c.done);
    return rc;
}
