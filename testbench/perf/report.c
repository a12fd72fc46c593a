/* What nccl-tests prints, column by column, and its JSON (version 3). */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "testbench/perf/perf.h"

/* As wide as its column, fewer decimals where it must be. */
static const char *fit(double value, int width, char out[32])
{
    for (int decimals = 2; decimals >= 0; decimals--)
        if (snprintf(out, 32, "%*.*f", width, decimals, value) <= width)
            break;
    return out;
}

static double algbw(const struct gv_case *what, double time_us)
{
    return (double)what->bytes / 1e9 / (time_us * 1e-6);
}

/* Its doc/PERFORMANCE.md, section "Bus Bandwidth". */
static double busbw(const struct gv_case *what, int n, double time_us)
{
    double base = algbw(what, time_us);
    if (what->op == GV_OP_ALL_REDUCE)
        return base * (2.0 * (n - 1) / n);
    if (what->op == GV_OP_BROADCAST || what->op == GV_OP_REDUCE)
        return base;
    return base * ((double)(n - 1) / n);
}

static int root_of(enum gv_op op)
{
    return op == GV_OP_BROADCAST || op == GV_OP_REDUCE ? 0 : -1;
}

static const char *redop_of(const struct perf *p)
{
    return gv_op_reduces(p->op) ? gv_redop_name(p->redop) : "none";
}

static void device_line(const struct perf *p, int rank, char *out, size_t size)
{
    const struct gv_device *d = &p->gpus.device[rank];
    char host[65] = "";
    gethostname(host, sizeof(host) - 1);
    if (p->layout == PERF_NEW)
        snprintf(
            out, size, "#  Rank %2d Group %2d Pid %6d on %10s device %2d [%.10s] %s", rank, 0,
            (int)getpid(), host, rank, d->bus_id, d->model);
    else if (p->layout == PERF_WRONG)
        snprintf(
            out, size, "#  Rank %2d Group %2d Pid %6d on %10s device %2d [0x%.2s] %s", rank, 0,
            (int)getpid(), host, rank, d->bus_id + 5, d->model);
    else
        snprintf(
            out, size, "#   Rank %2d Pid %6d on %10s device %2d [0x%.2s] %s", rank, (int)getpid(),
            host, rank, d->bus_id + 5, d->model);
}

static void headings(const struct perf *p)
{
    const char *wrong = p->layout == PERF_ERROR ? "error" : "#wrong";
    bool old = p->layout == PERF_ERROR;
    bool redop = !old || gv_op_reduces(p->op), root = !old || root_of(p->op) >= 0;
    printf(
        "#\n# %10s  %12s  %8s           out-of-place                       in-place\n", "", "", "");
    printf("# %10s  %12s  %8s", "size", "count", "type");
    printf("%s%s", redop ? "   redop" : "", root ? "    root" : "");
    for (int i = 0; i < 2; i++)
        printf("  %7s  %6s  %6s  %6s", "time", "algbw", "busbw", wrong);
    printf("\n# %10s  %12s  %8s", "(B)", "(elements)", "");
    printf("%s%s", redop ? "        " : "", root ? "        " : "");
    for (int i = 0; i < 2; i++)
        printf("  %7s  %6s  %6s  %6s", "(us)", "(GB/s)", "(GB/s)", "");
    puts("");
}

static json_t *arguments(const struct perf *p)
{
    json_t *list = json_array();
    for (int i = 0; i < p->argc; i++)
        json_array_append_new(list, json_string(p->argv[i]));
    return list;
}

static json_t *variables(void)
{
    json_t *list = json_array();
    for (char **e = environ; *e; e++)
        json_array_append_new(list, json_string(*e));
    return list;
}

/* Of several GPUs in a process 2.17 to 2.19 list the first alone. */
static json_t *devices(const struct perf *p)
{
    char host[65] = "", bus[12];
    gethostname(host, sizeof(host) - 1);
    snprintf(bus, sizeof(bus), "%.10s", p->gpus.device[0].bus_id);
    return json_pack(
        "[{s:i, s:i, s:i, s:s, s:i, s:s, s:s}]", "rank", 0, "group", 0, "pid", (int)getpid(),
        "hostname", host, "device", 0, "device_hex", bus, "device_info", p->gpus.device[0].model);
}

static void json_head(struct perf *p)
{
    p->rows = json_array();
    p->json = json_pack(
        "{s:i, s:s, s:o, s:o, s:i, s:{s:i, s:i, s:I, s:I, s:I, s:i, s:i, s:i, s:i, s:i, s:s, s:s, "
        "s:o}, s:o}",
        "version", 3, "start_time", "2026-01-01 00:00:00", "args", arguments(p), "env", variables(),
        "nccl_version", p->nccl.version, "config", "nthreads", 1, "ngpus", p->ngpus,
        "minimum_bytes", (json_int_t)p->min_bytes, "maximum_bytes", (json_int_t)p->max_bytes,
        p->factor ? "step_factor" : "step_bytes", (json_int_t)p->step, "warmup_iters", p->warmups,
        "iterations", p->iterations, "aggregated_iterations", 1, "validation", p->check, "graph", 0,
        "blocking_collectives", "false", "parallel_init", "false", "devices", devices(p), "results",
        p->rows);
}

void perf_head(struct perf *p)
{
    char line[256];
    if (p->layout == PERF_NEW) {
        printf(
            "# nccl-tests version 2.19.6 nccl-headers=%d nccl-library=%d\n", p->nccl.version,
            p->nccl.version);
        printf("# Collective test starting: %s\n", p->program);
    }
    printf(
        "# nThread %d nGpus %d minBytes %llu maxBytes %llu step: %llu(%s) warmup iters: %d iters: "
        "%d "
        "%svalidation: %d %s\n",
        1, p->ngpus, (unsigned long long)p->min_bytes, (unsigned long long)p->max_bytes,
        (unsigned long long)p->step, p->factor ? "factor" : "bytes", p->warmups, p->iterations,
        p->layout == PERF_ERROR ? "" : "agg iters: 1 ", p->check,
        p->layout == PERF_NEW     ? "graph: 0 unalign: 0"
        : p->layout == PERF_WRONG ? "graph: 0"
                                  : "");
    printf("#\n# Using devices\n");
    for (int i = 0; i < p->ngpus; i++) {
        device_line(p, i, line, sizeof(line));
        puts(line);
    }
    headings(p);
    if (p->json_path)
        json_head(p);
}

static json_t *half_json(const struct perf *p, const struct gv_case *what, const struct gv_ran *ran)
{
    json_t *wrong = ran->bound < 0 ? json_null() : json_real((double)ran->wrong);
    return json_pack(
        "{s:f, s:f, s:f, s:o}", "time", ran->time_us, "alg_bw", algbw(what, ran->time_us), "bus_bw",
        busbw(what, p->ngpus, ran->time_us), "nwrong", wrong);
}

/* `bound` below 0: not checked. */
static void half(const struct perf *p, const struct gv_case *what, const struct gv_ran *ran)
{
    char time[32], alg[32], bus[32];
    printf(
        "  %7s  %6s  %6s", fit(ran->time_us, 7, time), fit(algbw(what, ran->time_us), 6, alg),
        fit(busbw(what, p->ngpus, ran->time_us), 6, bus));
    if (ran->bound < 0)
        printf("  %6s", "N/A");
    else if (p->layout == PERF_ERROR)
        printf("  %6s", ran->wrong ? "1e+00" : "0e+00");
    else
        printf("  %6g", (double)ran->wrong);
}

void perf_row(struct perf *p, const struct gv_case *what, const struct gv_ran halves[2])
{
    bool old = p->layout == PERF_ERROR;
    bool pieces = what->op == GV_OP_ALL_GATHER || what->op == GV_OP_REDUCE_SCATTER ||
                  what->op == GV_OP_ALL_TO_ALL;
    uint64_t count =
        what->bytes / (uint64_t)gv_type_bytes(what->type) / (uint64_t)(pieces ? p->ngpus : 1);
    printf(
        "%12llu  %12llu  %8s", (unsigned long long)what->bytes, (unsigned long long)count,
        gv_type_name(what->type));
    if (!old || gv_op_reduces(p->op))
        printf("  %6s", redop_of(p));
    if (!old || root_of(p->op) >= 0)
        printf("  %6d", root_of(p->op));
    for (int i = 0; i < 2; i++) {
        half(p, what, &halves[i]);
        p->sum += busbw(what, p->ngpus, halves[i].time_us);
        p->halves++;
        p->wrong += halves[i].bound < 0 ? 0 : halves[i].wrong;
    }
    puts("");
    fflush(stdout);
    char root[16];
    snprintf(root, sizeof(root), "%6d", root_of(p->op));
    if (p->json)
        json_array_append_new(
            p->rows,
            json_pack(
                "{s:I, s:I, s:s, s:s, s:s, s:o, s:o, s:i, s:s}", "size", (json_int_t)what->bytes,
                "count", (json_int_t)count, "type", gv_type_name(what->type), "redop", redop_of(p),
                "root", root, "out_of_place", half_json(p, what, &halves[0]), "in_place",
                half_json(p, what, &halves[1]), "actual_iterations", p->iterations,
                "experiment_name", ""));
}

int perf_tail(struct perf *p)
{
    double mean = p->halves ? p->sum / p->halves : 0;
    printf(
        "# %s : %llu %s\n# %s    : %g \n#\n", "Out of bounds values", p->wrong,
        p->wrong ? "FAILED" : "OK", "Avg bus bandwidth", mean);
    if (p->layout == PERF_NEW)
        printf("# Collective test concluded: %s\n#\n", p->program);
    if (!p->json)
        return 0;
    json_object_set_new(
        p->json, "out_of_bounds",
        json_pack(
            "{s:I, s:s}", "count", (json_int_t)p->wrong, "okay", p->wrong ? "false" : "true"));
    json_object_set_new(
        p->json, "average_bus_bandwidth",
        json_pack("{s:f, s:s}", "bandwidth", mean, "okay", "unchecked"));
    json_object_set_new(p->json, "errors", json_pack("[s]", ""));
    json_object_set_new(p->json, "end_time", json_string("2026-01-01 00:00:01"));
    return json_dump_file(p->json, p->json_path, JSON_COMPACT | JSON_REAL_PRECISION(12));
}
