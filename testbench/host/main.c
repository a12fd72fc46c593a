/* Starts the job's processes, each with its own environment, and prints what became of it. The
 * launcher itself never loads a plugin: NCCL's release and LD_PRELOAD are for the processes. */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testbench/host/job.h"

static char self[PATH_MAX];

struct process {
    pid_t pid;
    int first; /* lowest GPU */
    char out[PATH_MAX + 32];
};

/* The caller's child is process 1 of a new namespace; the caller waits for it and ends as it does.
 */
static void enter_namespace(void)
{
    int status;
    if (unshare(CLONE_NEWPID)) {
        fprintf(stderr, "gv-nccl-host: no PID namespace: %m\n");
        _exit(77);
    }
    pid_t pid = fork();
    if (pid == 0)
        return;
    waitpid(pid, &status, 0);
    if (WIFSIGNALED(status))
        kill(getpid(), WTERMSIG(status));
    _exit(WEXITSTATUS(status));
}

/* The same command once more, told by GV_HOST_GPUS that it is a process of the job. */
static int start(
    const struct gvh_job *job, struct process *p, gv_gpuset gpus, int rank, int nprocs, char **argv)
{
    char text[256];

    p->first = gv_gpuset_first(gpus);
    snprintf(p->out, sizeof(p->out), "%s/out-%d.json", job->dir, p->first);
    p->pid = fork();
    if (p->pid)
        return p->pid < 0 ? -1 : 0;
    gvh_setup_rank(job, rank, nprocs);
    for (int i = 0; i < job->nrank_env; i++)
        if (gv_gpuset_has(gpus, job->rank_env[i].gpu))
            putenv((char *)job->rank_env[i].setting);
    if (job->namespaces)
        enter_namespace();
    setenv("GV_HOST_GPUS", gv_gpuset_format(gpus, text, sizeof(text)), 1);
    setenv("GV_HOST_OUT", p->out, 1);
    execv(self, argv);
    fprintf(stderr, "gv-nccl-host: %s: %m\n", self);
    _exit(2);
}

static void describe_end(const struct process *p, int status, char *out, size_t size)
{
    out[0] = 0;
    if (WIFSIGNALED(status))
        snprintf(out, size, "the process was killed by signal %d", WTERMSIG(status));
    else if (WEXITSTATUS(status) > 1 || access(p->out, R_OK))
        snprintf(out, size, "the process ended with status %d", WEXITSTATUS(status));
}

static struct process procs[GV_MAX_GPUS];

/* Told to stop: the processes go, and what is left is said and removed as ever. */
static void stop(int number)
{
    (void)number;
    for (int i = 0; i < GV_MAX_GPUS; i++)
        if (procs[i].pid > 0)
            kill(procs[i].pid, SIGKILL);
}

static int run(const struct gvh_job *job, char **argv)
{
    static char lost[GV_MAX_GPUS][64];
    const char *files[GV_MAX_GPUS];
    int nprocs = job->mode == GVH_THREADS ? 1 : gv_gpuset_count(job->all), n = 0;

    for (gv_gpuset rest = job->all; rest; rest &= rest - 1, n++) {
        gv_gpuset gpus = nprocs == 1 ? job->all : GV_GPU_BIT(gv_gpuset_first(rest));
        if (start(job, &procs[n], gpus, n, nprocs, argv))
            return 2;
        files[n] = procs[n].out;
        if (nprocs == 1) {
            n++;
            break;
        }
    }
    signal(SIGTERM, stop);
    signal(SIGINT, stop);
    for (int left = n; left > 0;) {
        int status;
        pid_t pid = wait(&status);
        if (pid < 0)
            continue;
        left--;
        for (int i = 0; i < n; i++)
            if (procs[i].pid == pid)
                describe_end(&procs[i], status, lost[procs[i].first], sizeof(lost[0]));
    }
    return gvh_merge(job, files, n, lost);
}

/* Another program as the job's only process. */
static int run_command(const struct gvh_job *job)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        gvh_setup_rank(job, 0, 1);
        execl("/bin/sh", "sh", "-c", job->command, (char *)NULL);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) < 0)
        return 2;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static const char *program_folder(void)
{
    static char folder[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    self[n > 0 ? n : 0] = 0;
    snprintf(folder, sizeof(folder), "%s", self);
    char *slash = strrchr(folder, '/');
    if (slash)
        *slash = 0;
    return folder;
}

static int work(const struct gvh_job *job)
{
    gv_gpuset gpus = 0;
    gv_gpuset_parse(getenv("GV_HOST_GPUS"), &gpus, NULL);
    return gvh_work(job, gpus, getenv("GV_HOST_OUT"));
}

int main(int argc, char **argv)
{
    static struct gvh_job job;
    struct gv_error err = {0};
    char text[1024];
    int rc = gvh_options(argc, argv, &job);

    if (rc)
        return rc;
    snprintf(job.dir, sizeof(job.dir), "%s", getenv("GV_HOST_DIR") ? getenv("GV_HOST_DIR") : "");
    if (getenv("GV_HOST_GPUS"))
        return work(&job);
    if (gvh_setup(&job, program_folder(), &err)) {
        fprintf(stderr, "gv-nccl-host: %s\n", gv_error_format(&err, text, sizeof(text)));
        rc = 2;
    } else {
        rc = job.command ? run_command(&job) : run(&job, argv);
    }
    if (job.keep)
        fprintf(stderr, "gv-nccl-host: %s\n", job.dir);
    else
        gvh_remove_folder(job.dir);
    return rc;
}
