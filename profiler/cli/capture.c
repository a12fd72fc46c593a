#include "profiler/cli/capture.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <time.h>
#include <unistd.h>
#include <sys/wait.h>

extern char **environ;

static pid_t start(const char *const argv[], int write_end)
{
    posix_spawn_file_actions_t act;
    if (posix_spawn_file_actions_init(&act))
        return -1;
    pid_t pid = -1;
    int bad = posix_spawn_file_actions_addopen(&act, STDIN_FILENO, "/dev/null", O_RDONLY, 0) ||
              posix_spawn_file_actions_adddup2(&act, write_end, STDOUT_FILENO) ||
              posix_spawn_file_actions_addopen(&act, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    if (bad || posix_spawnp(&pid, argv[0], &act, NULL, (char *const *)argv, environ))
        pid = -1;
    posix_spawn_file_actions_destroy(&act);
    return pid;
}

static long now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (long)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* True once the other end is closed, false when time is up. */
static bool drain(int fd, long until_ms, struct gv_str *out)
{
    char part[4096];
    for (;;) {
        long left = until_ms - now_ms();
        struct pollfd p = {fd, POLLIN, 0};
        if (left <= 0 || poll(&p, 1, (int)left) <= 0)
            return false;
        ssize_t n = read(fd, part, sizeof(part));
        if (n <= 0)
            return n == 0;
        if (out->len < 65536)
            gv_str_add_n(out, part, (size_t)n);
    }
}

int gv_capture(const char *const argv[], int timeout_ms, struct gv_str *out)
{
    int ends[2], status = -1;
    if (pipe2(ends, O_CLOEXEC))
        return -1;
    pid_t pid = start(argv, ends[1]);
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return -1;
    }
    bool done = drain(ends[0], now_ms() + timeout_ms, out);
    close(ends[0]);
    if (!done)
        kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    return done && WIFEXITED(status) && WEXITSTATUS(status) == 0 && !out->failed ? 0 : -1;
}
