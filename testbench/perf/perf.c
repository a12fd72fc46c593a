#include <fcntl.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/gv_size.h"
#include "profiler/collective/gv_busbw.h"
#include "testbench/perf/perf.h"

static const struct {
    const char *program;
    enum gv_op op;
} programs[] = {
    {"all_reduce_perf", GV_OP_ALL_REDUCE},
    {"all_gather_perf", GV_OP_ALL_GATHER},
    {"reduce_scatter_perf", GV_OP_REDUCE_SCATTER},
    {"broadcast_perf", GV_OP_BROADCAST},
    {"reduce_perf", GV_OP_REDUCE},
    {"alltoall_perf", GV_OP_ALL_TO_ALL},
};

static int which(struct perf *p, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
        if (!strcmp(programs[i].program, name)) {
            p->program = programs[i].program;
            p->op = programs[i].op;
            return 0;
        }
    fprintf(stderr, "%s: call it by the name of a program of nccl-tests\n", path);
    return -1;
}

static uint64_t size_of(const char *text)
{
    struct gv_error err;
    uint64_t bytes;
    if (!gv_size_parse(text, &bytes, &err))
        return bytes;
    fprintf(stderr, "%s\n", err.text);
    exit(2);
}

static int option(struct perf *p, int key)
{
    int found;
    switch (key) {
    case 'b':
        p->min_bytes = size_of(optarg);
        return 0;
    case 'e':
        p->max_bytes = size_of(optarg);
        return 0;
    case 'f':
        p->step = strtoull(optarg, NULL, 10);
        p->factor = true;
        return 0;
    case 'i':
        p->step = size_of(optarg);
        return 0;
    case 'g':
        p->ngpus = atoi(optarg);
        return 0;
    case 'w':
        p->warmups = atoi(optarg);
        return 0;
    case 'n':
        p->iterations = atoi(optarg);
        return 0;
    case 'c':
        p->check = atoi(optarg) > 0;
        return 0;
    case 'J':
        p->json_path = optarg;
        return 0;
    case 'd':
        found = gv_type_from_name(optarg);
        p->type = (enum gv_type)found;
        return found < 0 ? -1 : 0;
    case 'o':
        found = gv_redop_from_name(optarg);
        p->redop = (enum gv_redop)found;
        return found < 0 ? -1 : 0;
    default:
        return -1;
    }
}

static int options(struct perf *p, int argc, char **argv)
{
    const char *layout = getenv("GV_PERF_LAYOUT");
    int key;
    while ((key = getopt(argc, argv, "b:e:f:i:g:w:n:c:J:d:o:")) != -1)
        if (option(p, key)) {
            fprintf(
                stderr,
                "USAGE: %s -b SIZE -e SIZE -f N -g N -w N -n N -c N -d TYPE -o OP -J FILE\n",
                p->program);
            return -1;
        }
    p->layout = layout && !strcmp(layout, "2.10")   ? PERF_ERROR
                : layout && !strcmp(layout, "2.13") ? PERF_WRONG
                                                    : PERF_NEW;
    if (p->factor && p->step < 2) {
        p->factor = false;
        p->step = 1 << 20;
    }
    return 0;
}

static int measure(struct perf *p, struct gv_error *err)
{
    for (uint64_t size = p->min_bytes; size <= p->max_bytes;
         size = p->factor ? size * p->step : size + p->step) {
        struct gv_case what = {
            .op = p->op,
            .bytes = gv_op_bytes(p->op, p->ngpus, size, gv_type_bytes(p->type)),
            .type = p->type,
            .redop = p->redop};
        struct gv_ran halves[2];
        for (int i = 0; i < 2; i++) {
            what.in_place = i && p->op != GV_OP_ALL_TO_ALL;
            if (perf_run(p, &what, &halves[i], err))
                return -1;
            halves[i].bound = p->check && !(i && p->op == GV_OP_ALL_TO_ALL) ? 0 : -1;
        }
        perf_row(p, &what, halves);
    }
    return 0;
}

int main(int argc, char **argv)
{
    static struct perf perf = {/* nccl-tests' own defaults */
                               .type = GV_TYPE_FLOAT,
                               .redop = GV_REDOP_SUM,
                               .min_bytes = 32 << 20,
                               .max_bytes = 32 << 20,
                               .step = 1 << 20,
                               .check = true,
                               .ngpus = 1,
                               .iterations = 20,
                               .warmups = 1};
    struct gv_error err = {0};
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(null, GV_WORKER_FD); /* the ranks tell nobody of their steps */
    perf.argc = argc;
    perf.argv = argv;
    if (which(&perf, argv[0]) || options(&perf, argc, argv))
        return 2;
    if (perf_open(&perf, &err)) {
        printf("%s\n", err.text);
        return 3;
    }
    perf_head(&perf);
    if (measure(&perf, &err) || perf_close(&perf, &err)) {
        printf("Test failure: %s\n", err.text);
        return 3;
    }
    if (perf_tail(&perf)) {
        fprintf(stderr, "%s cannot be written\n", perf.json_path);
        return 3;
    }
    return perf.wrong ? 1 : 0;
}
