#include "profiler/collective/crew.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SETUP_TIMEOUT_S 120 /* contexts and the driver's start on a large machine */

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int gv_crew_init(
    struct gv_crew *crew, const struct gv_collective_options *options, const int *gpus, int nranks,
    size_t buffer_bytes, struct gv_error *err)
{
    const char *tmp = getenv("TMPDIR");
    memset(crew, 0, sizeof(*crew));
    crew->options = options;
    crew->nranks = nranks;
    crew->buffer_bytes = buffer_bytes;
    memcpy(crew->gpu, gpus, (size_t)nranks * sizeof(*gpus));
    snprintf(crew->dir, sizeof(crew->dir), "%.3000s/gv100-nccl-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (mkdtemp(crew->dir))
        return 0;
    gv_error_set(err, "no temporary folder %.300s: %m", crew->dir);
    crew->dir[0] = 0;
    return -1;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

void gv_crew_finish(struct gv_crew *crew)
{
    struct gv_request quit = {.ask = GV_ASK_QUIT};
    for (int i = 0; i < crew->n; i++)
        send(crew->member[i].fd, &quit, sizeof(quit), MSG_NOSIGNAL | MSG_DONTWAIT);
    gv_crew_end(crew);
    if (crew->dir[0])
        nftw(crew->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    crew->dir[0] = 0;
}

/* In the child. The command's end of the pair is closed by exec. */
static void become_worker(const struct gv_crew *crew, int member, int fd, char **environment)
{
    char log[PATH_MAX + 32];
    char *argv[] = {(char *)"gv100", (char *)"compare", (char *)"--worker", NULL};
    snprintf(log, sizeof(log), "%s/stderr-%d", crew->dir, member);
    int null = open("/dev/null", O_RDWR), out = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGINT, SIG_IGN); /* Ctrl-C is the command's, which ends its workers */
    if (fd == GV_WORKER_FD)
        fcntl(fd, F_SETFD, 0);
    else
        dup2(fd, GV_WORKER_FD);
    dup2(null, 0);
    dup2(out, 1);
    dup2(out, 2);
    execve(crew->options->self, argv, environment);
    _exit(127);
}

static int start_one(struct gv_crew *crew, int i, struct gv_error *err)
{
    struct gv_member *m = &crew->member[i];
    int pair[2], rc = 0;
    char **environment = gv_crew_environment(crew, i);
    if (!environment || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
        gv_collective_environment_free(environment);
        return gv_error_set(err, "no socket for a worker: %m");
    }
    m->pid = fork();
    if (m->pid == 0)
        become_worker(crew, i, pair[1], environment);
    close(pair[1]);
    m->fd = pair[0];
    if (m->pid < 0) {
        close(pair[0]);
        rc = gv_error_set(err, "a worker cannot be started: %m");
    }
    gv_collective_environment_free(environment);
    return rc;
}

static void describe(const struct gv_crew *crew, int i, struct gv_worker_setup *setup)
{
    const struct gv_collective_options *o = crew->options;
    const struct gv_member *m = &crew->member[i];
    snprintf(setup->nccl, sizeof(setup->nccl), "%s", o->nccl ? o->nccl : "");
    snprintf(setup->cuda, sizeof(setup->cuda), "%s", o->cuda ? o->cuda : "");
    snprintf(setup->nvml, sizeof(setup->nvml), "%s", o->nvml ? o->nvml : "");
    setup->nranks = crew->nranks;
    setup->first_rank = m->first_rank;
    setup->nlocal = m->nlocal;
    memcpy(setup->gpu, crew->gpu + m->first_rank, sizeof(int) * (size_t)m->nlocal);
    setup->buffer_bytes = crew->buffer_bytes;
    setup->check_bytes = o->check_bytes;
    /* the virtual driver moves no more than this much of a copy */
    setup->staging_bytes = o->virtual_driver ? (size_t)64 << 10 : (size_t)8 << 20;
}

static int name_rank(
    struct gv_crew *crew, const struct gv_member *m, int rank, const char *what,
    struct gv_error *err)
{
    int local = rank < m->first_rank ? 0 : rank - m->first_rank;
    return gv_error_set(
        err, "rank %d (GPU %d) %.260s; its last step: %s", m->first_rank + local,
        crew->gpu[m->first_rank + local], what,
        m->step[local][0] ? m->step[local] : "being started");
}

/* The last line that the process wrote on stderr, "" none. */
static void last_words(const struct gv_crew *crew, int i, char *out, size_t size)
{
    char path[PATH_MAX + 32], line[256];
    snprintf(path, sizeof(path), "%s/stderr-%d", crew->dir, i);
    FILE *f = fopen(path, "re");
    out[0] = 0;
    while (f && fgets(line, sizeof(line), f)) {
        line[strcspn(line, "\n")] = 0;
        if (line[0])
            snprintf(out, size, "%.*s", (int)size - 1, line);
    }
    if (f)
        fclose(f);
}

static int died(struct gv_crew *crew, int i, struct gv_error *err)
{
    struct gv_member *m = &crew->member[i];
    char text[260], words[160];
    int status = 0;
    waitpid(m->pid, &status, 0); /* its end of the socket is closed: it is gone */
    m->pid = -1;
    last_words(crew, i, words, sizeof(words));
    if (WIFSIGNALED(status))
        snprintf(
            text, sizeof(text), "died by signal %d (%s)%s%s", WTERMSIG(status),
            strsignal(WTERMSIG(status)), words[0] ? ": " : "", words);
    else
        snprintf(
            text, sizeof(text), "ended with status %d%s%s", WEXITSTATUS(status),
            words[0] ? ": " : "", words);
    return name_rank(crew, m, m->first_rank, text, err);
}

static void join(struct gv_ran *all, const struct gv_ran *one, int weight)
{
    all->time_us += one->time_us * weight;
    all->first_us = one->first_us > all->first_us ? one->first_us : all->first_us;
    all->wrong += one->wrong;
    all->bound = one->bound > all->bound ? one->bound : all->bound;
    all->throttled |= one->throttled;
}

/* One message of member `i`. 1: its answer, 0: a step, -1: it failed or is gone. */
static int take(struct gv_crew *crew, int i, struct gv_answer *answer, struct gv_error *err)
{
    struct gv_member *m = &crew->member[i];
    ssize_t n = recv(m->fd, answer, sizeof(*answer), MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return 0;
    if (n != (ssize_t)sizeof(*answer))
        return died(crew, i, err);
    if (answer->kind == GV_ANSWER_FAILED)
        return name_rank(crew, m, answer->rank, answer->text, err);
    if (answer->kind == GV_ANSWER_DONE)
        return 1;
    for (int k = 0; k < m->nlocal; k++)
        if (answer->rank < 0 || answer->rank == m->first_rank + k)
            snprintf(m->step[k], sizeof(m->step[k]), "%.95s", answer->text);
    return 0;
}

static int late(struct gv_crew *crew, double timeout_s, struct gv_error *err)
{
    char text[96];
    snprintf(text, sizeof(text), "did not answer within %.0f s", timeout_s);
    for (int i = 0; i < crew->n; i++)
        if (!crew->member[i].answered)
            return name_rank(crew, &crew->member[i], crew->member[i].first_rank, text, err);
    return 0;
}

static bool stopped(const struct gv_crew *crew)
{
    return crew->options->stop && *crew->options->stop;
}

/* Waits for all answers. */
static int collect(
    struct gv_crew *crew, double timeout_s, struct gv_answer *first, struct gv_ran *ran,
    struct gv_error *err)
{
    double until = now_s() + timeout_s;
    int open = crew->n;
    struct gv_answer answer;
    while (open) {
        struct pollfd fds[GV_MAX_GPUS];
        for (int i = 0; i < crew->n; i++)
            fds[i] = (struct pollfd){.fd = crew->member[i].fd, .events = POLLIN};
        if (stopped(crew))
            return gv_error_set(err, "stopped");
        if (now_s() > until)
            return late(crew, timeout_s, err);
        poll(fds, (nfds_t)crew->n, 100);
        for (int i = 0; i < crew->n; i++) {
            int rc = fds[i].revents ? take(crew, i, &answer, err) : 0;
            if (rc < 0)
                return -1;
            if (rc == 0)
                continue;
            crew->member[i].answered = true;
            open--;
            if (ran)
                join(ran, &answer.ran, crew->member[i].nlocal);
            if (i == 0 && first)
                *first = answer;
        }
    }
    return 0;
}

static int
ask(struct gv_crew *crew, int n, const struct gv_request *request, double timeout_s,
    struct gv_answer *first, struct gv_ran *ran, struct gv_error *err)
{
    int rc = 0;
    for (int i = 0; i < crew->n; i++) {
        crew->member[i].answered = i >= n;
        if (i < n && send(crew->member[i].fd, request, sizeof(*request), MSG_NOSIGNAL) < 0)
            rc = died(crew, i, err);
        if (rc)
            break;
    }
    int all = crew->n;
    crew->n = rc ? crew->n : n; /* only those who were asked are waited for */
    if (!rc)
        rc = collect(crew, timeout_s, first, ran, err);
    crew->n = all;
    if (rc)
        gv_crew_end(crew);
    return rc;
}

int gv_crew_ask(
    struct gv_crew *crew, const struct gv_request *request, double timeout_s, struct gv_ran *ran,
    struct gv_error *err)
{
    if (ran)
        *ran = (struct gv_ran){0};
    int rc = ask(crew, crew->n, request, timeout_s, NULL, ran, err);
    if (!rc && ran)
        ran->time_us /= crew->nranks;
    return rc;
}

int gv_crew_communicator(
    struct gv_crew *crew, const char *force, double timeout_s, struct gv_error *err)
{
    static struct gv_request request; /* large */
    struct gv_answer answer;
    request = (struct gv_request){.ask = GV_ASK_ID};
    if (ask(crew, 1, &request, timeout_s, &answer, NULL, err))
        return -1;
    request.ask = GV_ASK_INIT;
    request.id = answer.id;
    snprintf(request.force, sizeof(request.force), "%s", force);
    return gv_crew_ask(crew, &request, timeout_s, NULL, err);
}

/* Each member is told its own ranks, so they are asked one by one and answer together. */
static int set_up(struct gv_crew *crew, struct gv_error *err)
{
    static struct gv_request request; /* large */
    struct gv_answer answer = {0};
    for (int i = 0; i < crew->n; i++) {
        request = (struct gv_request){.ask = GV_ASK_SETUP};
        describe(crew, i, &request.setup);
        crew->member[i].answered = false;
        if (send(crew->member[i].fd, &request, sizeof(request), MSG_NOSIGNAL) < 0)
            return died(crew, i, err);
    }
    if (collect(crew, SETUP_TIMEOUT_S, &answer, NULL, err))
        return -1;
    crew->nccl_version = answer.version;
    return 0;
}

int gv_crew_start(struct gv_crew *crew, struct gv_error *err)
{
    if (crew->n)
        return 0;
    int members = crew->options->threads ? 1 : crew->nranks;
    for (int i = 0; i < members; i++) {
        long log_at = crew->member[i].log_at;
        crew->member[i] = (struct gv_member){
            .first_rank = i,
            .nlocal = crew->options->threads ? crew->nranks : 1,
            .log_at = log_at,
        };
        if (start_one(crew, i, err)) {
            gv_crew_end(crew);
            return -1;
        }
        crew->n = i + 1;
    }
    if (!set_up(crew, err))
        return 0;
    gv_crew_end(crew);
    return -1;
}
