/* A program that takes nccl-tests' options and prints its tables and its JSON, as published: README
 * and outputs of 2.10 to 2.19. It is a stand-in for them on the virtual machine. */
#ifndef GV_PERF_H
#define GV_PERF_H

#include <stdio.h>

#include <jansson.h>

#include "profiler/collective/rank.h"

/* $GV_PERF_LAYOUT: which release's output. */
enum perf_layout {
    PERF_ERROR, /* "2.10": a column "error", no version, no "test starting" */
    PERF_WRONG, /* "2.13": a column "#wrong" */
    PERF_NEW    /* "2.19": version, domain in bus ids, "test concluded" */
};

struct perf {
    const char *program; /* "all_reduce_perf" */
    enum gv_op op;
    enum perf_layout layout;
    enum gv_type type;
    enum gv_redop redop;
    uint64_t min_bytes, max_bytes, step;
    bool factor, check;
    int ngpus, iterations, warmups, argc;
    const char *json_path; /* NULL none */
    char **argv;
    struct gv_gpus gpus; /* large */
    struct gv_nccl_table nccl;
    json_t *json, *rows;
    double sum;
    int halves;
    unsigned long long wrong;
};

/* ranks.c: a thread for each GPU, one communicator. 0, or -1 with `err`. */
int perf_open(struct perf *p, struct gv_error *err);
int perf_run(struct perf *p, const struct gv_case *what, struct gv_ran *out, struct gv_error *err);
int perf_close(struct perf *p, struct gv_error *err);

/* report.c */
void perf_head(struct perf *p);
void perf_row(struct perf *p, const struct gv_case *what, const struct gv_ran halves[2]);
int perf_tail(struct perf *p);

#endif
