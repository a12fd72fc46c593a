/* Workers ended, and nothing of theirs left behind. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "profiler/collective/crew.h"

#define LEFT_BEHIND 512

struct left {
    char path[LEFT_BEHIND][64];
    int n;
};

/* The segments of NCCL's in /dev/shm that the process has mapped; NCCL unlinks them itself where it
 * comes to it. */
static void note_segments(pid_t pid, struct left *left)
{
    char name[64], line[PATH_MAX + 128];
    snprintf(name, sizeof(name), "/proc/%d/maps", (int)pid);
    FILE *f = fopen(name, "re");
    while (f && fgets(line, sizeof(line), f)) {
        char *path = strstr(line, "/dev/shm/nccl-");
        if (!path || left->n == LEFT_BEHIND)
            continue;
        path[strcspn(path, " \n")] = 0;
        snprintf(left->path[left->n++], sizeof(left->path[0]), "%.63s", path);
    }
    if (f)
        fclose(f);
}

static bool gone_within(pid_t pid, int ms)
{
    for (int waited = 0; waited < ms; waited += 5) {
        if (waitpid(pid, NULL, WNOHANG) == pid)
            return true;
        nanosleep(&(struct timespec){0, 5000000}, NULL);
    }
    return false;
}

void gv_crew_end(struct gv_crew *crew)
{
    struct left left = {.n = 0};
    for (int i = 0; i < crew->n; i++)
        if (crew->member[i].pid > 0)
            note_segments(crew->member[i].pid, &left);
    for (int i = 0; i < crew->n; i++)
        close(crew->member[i].fd); /* a worker that is not stuck ends by itself then */
    for (int i = 0; i < crew->n; i++) {
        pid_t pid = crew->member[i].pid;
        if (pid > 0 && !gone_within(pid, i ? 100 : 500)) {
            kill(pid, SIGKILL);
            gone_within(pid, 10000); /* longer only where the driver holds it: nothing helps then */
        }
        crew->member[i].pid = -1;
    }
    for (int i = 0; i < left.n; i++)
        unlink(left.path[i]);
    crew->n = 0;
}
