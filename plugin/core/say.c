/* Lines on stderr, for processes in which no slot of ours is given NCCL's logger. */
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "plugin/core/gv_env.h"
#include "plugin/core/say.h"

/* NCCL_DEBUG's words in the order of ncclDebugLogLevel; what is not known there says nothing. */
static int wanted_level(void)
{
    static const char *const words[] = {"NONE", "VERSION", "WARN", "INFO", "ABORT", "TRACE"};
    const char *value = gv_env_get("NCCL_DEBUG");
    for (int i = 0; value && i < (int)(sizeof(words) / sizeof(words[0])); i++)
        if (!strcasecmp(value, words[i]))
            return i;
    return 0;
}

/* A pipe whose reader is gone would end the job, one that is full would stop it. */
static void write_if_possible(const char *text, size_t len)
{
    struct pollfd err = {.fd = STDERR_FILENO, .events = POLLOUT};
    sigset_t pipe_only, before, pending;
    if (poll(&err, 1, 0) != 1 || err.revents != POLLOUT)
        return;
    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    if (sigpending(&pending) || pthread_sigmask(SIG_BLOCK, &pipe_only, &before))
        return;
    ssize_t n = write(STDERR_FILENO, text, len);
    if (n < 0 && !sigismember(&pending, SIGPIPE))
        sigtimedwait(&pipe_only, NULL, &(struct timespec){0});
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void gv_say(enum gv_level level, const char *text)
{
    char host[HOST_NAME_MAX + 1] = "", line[1024];
    if (wanted_level() < (int)level)
        return;
    gethostname(host, sizeof(host) - 1);
    int n = snprintf(
        line, sizeof(line), "%s:%ld gv100: %s %s\n", host, (long)getpid(),
        level == GV_LOG_WARN ? "WARN" : "INFO", text);
    if (n > 0)
        write_if_possible(line, n < (int)sizeof(line) ? (size_t)n : sizeof(line) - 1);
}
