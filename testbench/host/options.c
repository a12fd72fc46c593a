#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/gv_size.h"
#include "testbench/host/job.h"

enum {
    O_MACHINE = 256,
    O_RELEASE,
    O_MODE,
    O_COMM,
    O_SPLIT,
    O_SHRINK,
    O_CONCURRENT,
    O_ALLTOALL,
    O_JSON,
    O_PLUGIN,
    O_NO_PLUGIN,
    O_GIVEN,
    O_LAUNCHER,
    O_NODES,
    O_SHARE,
    O_NONBLOCKING,
    O_HOW,
    O_STAMP,
    O_TOPOLOGY,
    O_NOP2P,
    O_SM,
    O_VISIBLE,
    O_BYTES,
    O_TIMEOUT,
    O_LATE,
    O_DIE,
    O_ABORT,
    O_TRACE,
    O_KEEP,
    O_RANK_ENV,
    O_NAMESPACES,
    O_EXEC,
};

static const struct argp_option options[] = {
    {"machine", O_MACHINE, "FILE|NAME", 0, "the machine (default 4028)", 1},
    {"release", O_RELEASE, "X.Y.Z", 0, "the NCCL release to play (default 2.28.9)", 1},
    {"mode", O_MODE, "threads|processes", 0, "ranks are threads (default) or processes", 1},
    {"comm", O_COMM, "GPUS", 0, "make a communicator; may be repeated. GPUS as 0-5,7", 1},
    {"split", O_SPLIT, "N:GPUS[/GPUS..]", 0, "split communicator N, one child for each list", 1},
    {"shrink", O_SHRINK, "N:GPUS", 0, "shrink communicator N: GPUS leave", 1},
    {"concurrent", O_CONCURRENT, 0, 0, "make the --comm communicators at the same time", 1},
    {"api", O_HOW, "rank|config|scalable|all", 0, "which ncclCommInit* is called", 1},
    {"share", O_SHARE, 0, 0, "children share their parent's resources", 1},
    {"nonblocking", O_NONBLOCKING, 0, 0, "blocking = 0", 1},
    {"alltoall", O_ALLTOALL, 0, 0, "run an all-to-all on each communicator too", 1},
    {"bytes", O_BYTES, "SIZE", 0, "size of the AllReduce (default 1G)", 1},
    {"plugin", O_PLUGIN, "PATH", 0, "the plugin (default: the one of this build)", 2},
    {"given", O_GIVEN, "auto|env|preload|tuner", 0,
     "how: NCCL_ENV_PLUGIN (auto from 2.28.7), LD_PRELOAD (auto before), NCCL_TUNER_PLUGIN", 2},
    {"no-plugin", O_NO_PLUGIN, 0, 0, "none", 2},
    {"launcher", O_LAUNCHER, "NAME", 0, "torchrun (default), srun, mpirun, spawn, plain", 2},
    {"nodes", O_NODES, "N", 0, "pretend that the job spans N such machines", 2},
    {"stamp", O_STAMP, "FILE|none|auto", 0, "verification stamp (default auto: a valid one)", 2},
    {"topology", O_TOPOLOGY, "FILE", 0, "NCCL_TOPO_FILE; without --machine nothing else is known",
     2},
    {"nop2p", O_NOP2P, "GPUS", 0, "GPUs without P2P (default: as the machine says)", 2},
    {"sm", O_SM, "N", 0, "compute capability, 70 for 7.0 (default: as the machine says)", 2},
    {"visible", O_VISIBLE, "GPUS", 0, "CUDA_VISIBLE_DEVICES", 2},
    {"late", O_LATE, "GPU[:MS]", 0, "this rank comes late (default 1000 ms)", 3},
    {"die", O_DIE, "GPU:STEP", 0,
     "this rank ends before STEP: net, register, lookup, topology, connect, tuner, ready", 3},
    {"abort", O_ABORT, "GPU:STEP", 0, "this rank's communicator is aborted before STEP", 3},
    {"rank-env", O_RANK_ENV, "GPU:NAME=VALUE", 0, "a variable of that rank's process alone", 3},
    {"pid-namespaces", O_NAMESPACES, 0, 0, "each process in a PID namespace of its own (root)", 3},
    {"timeout", O_TIMEOUT, "MS", 0, "when waiting counts as a hang (default 60000)", 3},
    {"json", O_JSON, 0, 0, "one JSON object a line for each communicator", 4},
    {"trace", O_TRACE, 0, 0, "with --json: everything that was asked and called", 4},
    {"exec", O_EXEC, "COMMAND", 0, "run a shell command in the job's environment instead", 4},
    {"keep", O_KEEP, 0, 0, "keep the temporary folder and name it on stderr", 4},
    {0},
};

static int word(const char *const *words, const char *arg)
{
    for (int i = 0; words[i]; i++)
        if (!strcmp(words[i], arg))
            return i;
    return -1;
}

static int choice(struct argp_state *state, const char *const *words, const char *arg)
{
    int i = word(words, arg);
    if (i < 0)
        argp_error(state, "'%s' is not known here", arg);
    return i;
}

static int number(struct argp_state *state, const char *arg, int least)
{
    char *end;
    long n = strtol(arg, &end, 10);
    if (*end || end == arg || n < least || n > INT_MAX)
        argp_error(state, "'%s' is not a number from %d on", arg, least);
    return (int)n;
}

static struct gvh_wanted *add_comm(struct argp_state *state, const char *gpus)
{
    struct gvh_job *job = state->input;
    struct gv_error err = {0};
    if (job->ncomms == GVH_MAX_COMMS)
        argp_error(state, "more than %d communicators", GVH_MAX_COMMS);
    struct gvh_wanted *comm = &job->comms[job->ncomms];
    *comm = (struct gvh_wanted){.parent = -1};
    comm->n = gv_gpulist_parse(gpus, comm->gpus, &err);
    if (comm->n < 0)
        argp_error(state, "'%s': %s", gpus, err.text);
    job->ncomms++;
    return comm;
}

static bool has(const struct gvh_wanted *comm, int gpu)
{
    for (int i = 0; i < comm->n; i++)
        if (comm->gpus[i] == gpu)
            return true;
    return false;
}

/* "N:rest": the number of an existing communicator; `*rest` starts after the colon. */
static int parent_of(struct argp_state *state, char *arg, char **rest)
{
    struct gvh_job *job = state->input;
    char *colon = strchr(arg, ':');
    if (!colon)
        argp_error(state, "'%s' is not N:GPUS", arg);
    *colon = 0;
    int parent = number(state, arg, 0);
    if (parent >= job->ncomms)
        argp_error(state, "there is no communicator %d before this one", parent);
    *rest = colon + 1;
    return parent;
}

static void add_split(struct argp_state *state, char *arg)
{
    struct gvh_job *job = state->input;
    char *rest, *save = NULL;
    int parent = parent_of(state, arg, &rest), color = 0, step = ++job->steps;
    for (char *list = strtok_r(rest, "/", &save); list; list = strtok_r(NULL, "/", &save)) {
        struct gvh_wanted *child = add_comm(state, list);
        child->origin = GVH_SPLIT;
        child->parent = parent;
        child->color = color++;
        child->step = step;
        for (int i = 0; i < child->n; i++)
            if (!has(&job->comms[parent], child->gpus[i]))
                argp_error(state, "GPU %d is not in communicator %d", child->gpus[i], parent);
    }
}

static void add_shrink(struct argp_state *state, char *arg)
{
    struct gvh_job *job = state->input;
    char *rest;
    int parent = parent_of(state, arg, &rest), n = 0;
    struct gvh_wanted *child = add_comm(state, rest);
    const struct gvh_wanted gone = *child, *from = &job->comms[parent];
    for (int i = 0; i < from->n; i++)
        if (!has(&gone, from->gpus[i]))
            child->gpus[n++] = from->gpus[i];
    if (n == 0 || n == from->n)
        argp_error(state, "shrinking leaves %d of %d GPUs", n, from->n);
    child->n = n;
    child->origin = GVH_SHRINK;
    child->parent = parent;
    child->step = ++job->steps;
}

static void fault(struct argp_state *state, struct gvh_fault *to, char *arg, bool step)
{
    char *colon = strchr(arg, ':');
    if (colon)
        *colon = 0;
    to->gpu = number(state, arg, 0);
    to->ms = !step && colon ? number(state, colon + 1, 0) : 1000;
    if (step && !colon)
        argp_error(state, "GPU:STEP is expected");
    if (step)
        snprintf(to->step, sizeof(to->step), "%s", colon + 1);
}

static void rank_env(struct argp_state *state, const char *arg)
{
    struct gvh_job *job = state->input;
    const char *colon = strchr(arg, ':');
    if (!colon || !strchr(colon, '=') || job->nrank_env == GVH_MAX_RANK_ENV)
        argp_error(state, "'%s' is not GPU:NAME=VALUE", arg);
    job->rank_env[job->nrank_env++] = (struct gvh_rank_env){atoi(arg), colon + 1};
}

static const char *const modes[] = {"threads", "processes", NULL};
static const char *const hows[] = {"rank", "config", "scalable", "all", NULL};
static const char *const givens[] = {"auto", "env", "preload", "tuner", NULL};
static const char *const launchers[] = {"torchrun", "srun", "mpirun", "spawn", "plain", NULL};

static void size_option(struct argp_state *state, const char *arg)
{
    struct gvh_job *job = state->input;
    struct gv_error err = {0};
    if (gv_size_parse(arg, &job->bytes, &err))
        argp_error(state, "%s", err.text);
}

/* What the job consists of. False if the option is another one. */
static bool parse_job(int key, char *arg, struct argp_state *state)
{
    struct gvh_job *job = state->input;
    switch (key) {
    case O_MODE:
        job->mode = choice(state, modes, arg);
        return true;
    case O_COMM:
        add_comm(state, arg);
        return true;
    case O_SPLIT:
        add_split(state, arg);
        return true;
    case O_SHRINK:
        add_shrink(state, arg);
        return true;
    case O_CONCURRENT:
        job->concurrent = true;
        return true;
    case O_HOW:
        job->how = choice(state, hows, arg);
        return true;
    case O_SHARE:
        job->share = true;
        return true;
    case O_NONBLOCKING:
        job->nonblocking = true;
        return true;
    case O_ALLTOALL:
        job->alltoall = true;
        return true;
    case O_BYTES:
        size_option(state, arg);
        return true;
    case O_LATE:
        fault(state, &job->late, arg, false);
        return true;
    case O_DIE:
        fault(state, &job->die, arg, true);
        return true;
    case O_ABORT:
        fault(state, &job->abort, arg, true);
        return true;
    default:
        return false;
    }
}

/* Where it runs. */
static bool parse_place(int key, char *arg, struct argp_state *state)
{
    struct gvh_job *job = state->input;
    switch (key) {
    case O_MACHINE:
        job->machine = arg;
        return true;
    case O_RELEASE:
        job->release_text = arg;
        return true;
    case O_PLUGIN:
        job->plugin = arg;
        return true;
    case O_NO_PLUGIN:
        job->given = GVH_GIVEN_NONE;
        return true;
    case O_GIVEN:
        job->given = choice(state, givens, arg);
        return true;
    case O_LAUNCHER:
        choice(state, launchers, arg);
        job->launcher = arg;
        return true;
    case O_NODES:
        job->nodes = number(state, arg, 1);
        return true;
    case O_STAMP:
        job->stamp = arg;
        return true;
    case O_TOPOLOGY:
        job->topology = arg;
        return true;
    case O_NOP2P:
        job->nop2p = arg;
        return true;
    case O_SM:
        job->sm = number(state, arg, 10);
        return true;
    case O_VISIBLE:
        job->visible = arg;
        return true;
    case O_RANK_ENV:
        rank_env(state, arg);
        return true;
    case O_NAMESPACES:
        job->namespaces = true;
        return true;
    case O_EXEC:
        job->command = arg;
        return true;
    case O_TIMEOUT:
        job->timeout_ms = number(state, arg, 1);
        return true;
    default:
        return false;
    }
}

static void finish(struct argp_state *state)
{
    struct gvh_job *job = state->input;
    if (!job->ncomms && !job->command)
        argp_error(state, "no communicator; name one with --comm 0-5");
    if (!gvh_release_find(job->release_text, &job->release))
        argp_error(state, "'%s' is no NCCL release from 2.19.0 on", job->release_text);
    if (job->how == GVH_HOW_ALL && job->mode == GVH_PROCESSES)
        argp_error(state, "ncclCommInitAll makes ranks of one process: --mode threads");
    if (job->topology && !job->machine)
        job->machine = "";
    else if (!job->machine)
        job->machine = "4028";
    for (int c = 0; c < job->ncomms; c++)
        for (int i = 0; i < job->comms[c].n; i++)
            job->all |= GV_GPU_BIT(job->comms[c].gpus[i]);
}

/* These are taken apart in place, and the processes of the job get the arguments once more. */
static bool is_cut(int key)
{
    return key == O_SPLIT || key == O_SHRINK || key == O_LATE || key == O_DIE || key == O_ABORT;
}

static bool parse_any(int key, char *arg, struct argp_state *state)
{
    char *copy = is_cut(key) ? strdup(arg) : NULL;
    bool known = parse_job(key, copy ? copy : arg, state) || parse_place(key, arg, state);
    free(copy);
    return known;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct gvh_job *job = state->input;
    if (parse_any(key, arg, state))
        return 0;
    switch (key) {
    case O_JSON:
        job->json = true;
        return 0;
    case O_TRACE:
        job->trace = true;
        return 0;
    case O_KEEP:
        job->keep = true;
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "'%s' is not expected", arg);
        return EINVAL;
    case ARGP_KEY_END:
        finish(state);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const char doc[] =
    "Drives the plugin as a given NCCL release would, on a machine that is not here, and says what "
    "becomes of each communicator: ring, transport of each edge, algorithm, protocol.\v"
    "Exit status: 0; 1 if a communicator failed; 2 wrong usage. Settings of the user (NCCL_*, "
    "GV100_*) are taken from the environment.";

int gvh_options(int argc, char **argv, struct gvh_job *job)
{
    static const struct argp argp = {.options = options, .parser = parse, .doc = doc};
    *job = (struct gvh_job){
        .release_text = "2.28.9",
        .launcher = "torchrun",
        .stamp = "auto",
        .nodes = 1,
        .bytes = 1u << 30,
        .late.gpu = -1,
        .die.gpu = -1,
        .abort.gpu = -1,
    };
    argp_err_exit_status = 2;
    return argp_parse(&argp, argc, argv, 0, NULL, job) ? 2 : 0;
}
