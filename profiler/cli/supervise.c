#include "profiler/cli/supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* What a launcher, a scheduler or a person sends to a job. SIGTSTP and SIGCONT keep their default,
 * so that job control stops and continues both. */
static const int passed_on[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH};

static void watched(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGCHLD);
    for (size_t i = 0; i < sizeof(passed_on) / sizeof(passed_on[0]); i++)
        sigaddset(set, passed_on[i]);
}

/* In the child: what went wrong with exec goes through the pipe, which a good exec closes. */
static void become(char *const argv[], const sigset_t *mask, int report)
{
    sigprocmask(SIG_SETMASK, mask, NULL);
    execvp(argv[0], argv);
    int cause = errno;
    if (write(report, &cause, sizeof(cause)) < 0)
        _exit(126);
    _exit(127);
}

static int start(char *const argv[], const sigset_t *mask, pid_t *out)
{
    int ends[2], cause = 0;
    if (pipe2(ends, O_CLOEXEC))
        return errno;
    pid_t pid = fork();
    if (pid == 0)
        become(argv, mask, ends[1]);
    if (pid < 0)
        cause = errno;
    close(ends[1]);
    while (pid > 0 && read(ends[0], &cause, sizeof(cause)) < 0 && errno == EINTR)
        ;
    close(ends[0]);
    if (pid > 0 && cause)
        waitpid(pid, NULL, 0);
    *out = pid;
    return cause;
}

static void wait_for(pid_t pid, const sigset_t *set, int *out_status)
{
    for (;;) {
        siginfo_t info;
        if (sigwaitinfo(set, &info) < 0)
            continue;
        if (info.si_signo != SIGCHLD) {
            if (info.si_code <= 0) /* sent by a process; the terminal's go to the whole group */
                kill(pid, info.si_signo);
            continue;
        }
        if (waitpid(pid, out_status, WNOHANG) == pid)
            return;
    }
}

int gv_supervise(char *const argv[], int *out_status)
{
    sigset_t set, before;
    pid_t pid = -1;
    watched(&set);
    sigprocmask(SIG_BLOCK, &set, &before);
    int cause = start(argv, &before, &pid);
    if (!cause)
        wait_for(pid, &set, out_status);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return cause;
}

int gv_supervise_end(int status)
{
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    signal(WTERMSIG(status), SIG_DFL);
    raise(WTERMSIG(status));
    return 128 + WTERMSIG(status);
}
