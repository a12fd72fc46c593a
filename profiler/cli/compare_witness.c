/* nccl-tests under the same plans: another program's word on what we measured. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/gv_str.h"
#include "profiler/cli/compare_live.h"
#include "profiler/import/gv_import.h"

#define TIMEOUT_S 600
#define OUTPUT ((size_t)1 << 20)

struct job {
    const struct gv_compare_input *in;
    const struct gv_collective_options *options;
    const int *ordinals;
    struct gv_compared *out;
    char dir[64];
};

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

/* nccl-tests takes the first N GPUs that it sees, and NCCL from the loader. */
static void become(const struct job *j, char **environment, int out)
{
    char gpus[16], low[32], high[32], factor[32], visible[256] = "", library[4096];
    int null = open("/dev/null", O_RDONLY);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(null, 0);
    dup2(out, 1);
    dup2(out, 2);
    environ = environment;
    for (int r = 0; r < j->out->run.nranks; r++)
        snprintf(
            visible + strlen(visible), sizeof(visible) - strlen(visible), "%s%d", r ? "," : "",
            j->ordinals[r]);
    setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
    setenv("CUDA_VISIBLE_DEVICES", visible, 1);
    const char *before = getenv("LD_LIBRARY_PATH"), *slash = strrchr(j->options->nccl, '/');
    snprintf(
        library, sizeof(library), "%.*s%s%.2000s", slash ? (int)(slash - j->options->nccl) : 0,
        j->options->nccl, before ? ":" : "", before ? before : "");
    if (slash)
        setenv("LD_LIBRARY_PATH", library, 1);
    snprintf(gpus, sizeof(gpus), "%d", j->out->run.nranks);
    snprintf(low, sizeof(low), "%llu", (unsigned long long)j->in->min_bytes);
    snprintf(high, sizeof(high), "%llu", (unsigned long long)j->in->max_bytes);
    snprintf(factor, sizeof(factor), "%.0f", j->in->factor);
    execl(
        j->in->witness, j->in->witness, "-b", low, "-e", high, "-f", factor, "-g", gpus, "-w", "5",
        "-n", "20", "-c", "1", "-d", gv_type_name(j->in->type), "-o", gv_redop_name(j->in->redop),
        (char *)NULL);
    dprintf(1, "%s: %s\n", j->in->witness, strerror(errno));
    _exit(127);
}

static bool stopped(const struct job *j)
{
    return j->options->stop && *j->options->stop;
}

/* Its output until it ends, or is ended. 0, or -1. */
static int collect(const struct job *j, int fd, pid_t pid, struct gv_str *text)
{
    struct timespec now, begin;
    char part[4096];
    ssize_t n = 1;
    int status = 0;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    while (n > 0) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (stopped(j) || now.tv_sec - begin.tv_sec > TIMEOUT_S || text->len > OUTPUT) {
            kill(pid, SIGKILL);
            break;
        }
        if (poll(&p, 1, 200) > 0 && (n = read(fd, part, sizeof(part))) > 0)
            gv_str_add_n(text, part, (size_t)n);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : -1;
}

static int run(const struct job *j, int s, struct gv_str *text, struct gv_error *err)
{
    int pipe_fds[2];
    char **environment = gv_collective_environment(j->options, j->dir, j->out->run.steer[s].force);
    if (!environment || pipe2(pipe_fds, O_CLOEXEC)) {
        gv_collective_environment_free(environment);
        return gv_error_set(err, "out of memory");
    }
    pid_t pid = fork();
    if (pid == 0)
        become(j, environment, pipe_fds[1]);
    close(pipe_fds[1]);
    int rc = pid < 0 ? -1 : collect(j, pipe_fds[0], pid, text);
    close(pipe_fds[0]);
    gv_collective_environment_free(environment);
    if (!rc)
        return 0;
    const char *last = text->data && text->len > 300 ? text->data + text->len - 300 : text->data;
    return gv_error_at(
        err, j->in->witness, 0, 0, "failed under %s: %.300s", j->out->run.steer[s].name,
        last ? last : "no output");
}

static int add(struct job *j, int s, const struct gv_import_sample *sample, bool in_place)
{
    struct gv_witness *grown =
        realloc(j->out->witness, sizeof(*grown) * (size_t)(j->out->nwitness + 1));
    if (!grown)
        return -1;
    j->out->witness = grown;
    grown[j->out->nwitness++] = (struct gv_witness){
        .steer = s,
        .op = sample->op,
        .bytes = sample->bytes,
        .in_place = in_place,
        .algbw_gbs = sample->algbw_gbs,
        .busbw_gbs = sample->busbw_gbs,
    };
    return 0;
}

/* Old tables do not say their operation, the program's name does. -1: another name. */
static int op_of(const char *program)
{
    static const struct {
        const char *name;
        enum gv_op op;
    } programs[] = {
        {"all_reduce_perf", GV_OP_ALL_REDUCE},
        {"all_gather_perf", GV_OP_ALL_GATHER},
        {"reduce_scatter_perf", GV_OP_REDUCE_SCATTER},
        {"broadcast_perf", GV_OP_BROADCAST},
        {"reduce_perf", GV_OP_REDUCE},
        {"alltoall_perf", GV_OP_ALL_TO_ALL},
    };
    const char *slash = strrchr(program, '/'), *name = slash ? slash + 1 : program;
    for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
        if (!strncmp(name, programs[i].name, strlen(programs[i].name)))
            return (int)programs[i].op;
    return -1;
}

/* One half of its table. */
static int
read_half(struct job *j, int s, const struct gv_str *text, bool in_place, struct gv_error *err)
{
    struct gv_import import = {
        .options = {.op = op_of(j->in->witness), .edit = -1, .in_place = in_place}};
    int rc = gv_import_text(
        &import, text->data ? text->data : "", text->len, j->in->witness, GV_IMPORT_NCCL_TESTS,
        err);
    for (int i = 0; !rc && i < import.nsources; i++)
        for (int k = 0; !rc && k < import.sources[i].nsamples; k++)
            if (add(j, s, &import.sources[i].samples[k], in_place))
                rc = gv_error_set(err, "out of memory");
    gv_import_finish(&import);
    return rc;
}

/* What alltoall_perf says in place it did not check. */
static int read_table(struct job *j, int s, const struct gv_str *text, struct gv_error *err)
{
    int first = j->out->nwitness;
    if (read_half(j, s, text, false, err))
        return -1;
    bool exchange = j->out->nwitness > first && j->out->witness[first].op == GV_OP_ALL_TO_ALL;
    return j->in->in_place && !exchange ? read_half(j, s, text, true, err) : 0;
}

int gv_compare_witness(
    const struct gv_compare_input *in, const struct gv_collective_options *options,
    const int *ordinals, struct gv_compared *out, struct gv_error *err)
{
    struct job j = {in, options, ordinals, out, "/tmp/gv100-witness-XXXXXX"};
    int rc = 0;
    if (in->factor != floor(in->factor))
        return gv_error_set(err, "--with needs a whole number for -f: nccl-tests takes no other");
    if (access(in->witness, X_OK))
        return gv_error_at(err, in->witness, 0, 0, "cannot be run: %m");
    if (!mkdtemp(j.dir))
        return gv_error_set(err, "no temporary folder: %m");
    snprintf(out->witness_program, sizeof(out->witness_program), "%.255s", in->witness);
    for (int s = 0; s < out->run.nsteers && !rc; s++) {
        struct gv_str text = {0};
        rc = run(&j, s, &text, err);
        if (!rc)
            rc = read_table(&j, s, &text, err);
        gv_str_free(&text);
    }
    nftw(j.dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return rc;
}
