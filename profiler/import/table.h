/* A run of nccl-tests while it is read, from text or from JSON. */
#ifndef GV_IMPORT_TABLE_H
#define GV_IMPORT_TABLE_H

#include "profiler/import/import.h"

/* One half of a row. */
struct gv_half {
    bool there;
    double time_us, algbw_gbs, busbw_gbs;
    bool checked; /* #wrong or error is a number; else it is N/A */
    double wrong;
};

struct gv_row {
    unsigned line;
    uint64_t bytes, count;
    char type[16], redop[16];
    int root; /* -1 none */
    struct gv_half out, in;
    double digit_us; /* half a unit of the time's last digit */
};

struct gv_device {
    unsigned line;
    int rank, device;
    char host[64], bus[20], model[64];
};

/* A variable of NCCL that was set, as the text says. */
struct gv_setting_seen {
    unsigned line;
    char name[40], value[64];
    bool exported; /* holds for later runs of the text too */
};

struct gv_run {
    unsigned line; /* where it begins */
    char program[64], nccl[16], version[32];
    unsigned program_line;
    bool has_sizes;
    uint64_t min_bytes, max_bytes, step;
    bool factor;
    int validation; /* -1 not said */
    struct gv_device devices[GV_MAX_GPUS];
    int ndevices, nranks; /* nranks counts those over the limit too */
    unsigned header_line;
    bool wrong_column; /* "#wrong": elements; else "error": a difference */
    bool has_redop, has_root;
    struct gv_row *rows;
    int nrows;
    bool has_bounds;
    double average; /* NAN not said */
    unsigned average_line;
    struct gv_setting_seen settings[16];
    int nsettings;
};

struct gv_row *gv_run_row(struct gv_run *run, unsigned line);
/* Returns it, NULL where there is no room or it is known. */
struct gv_setting_seen *
gv_run_setting(struct gv_run *run, unsigned line, const char *name, const char *value);
/* Checks a complete run and adds it as a source. */
int gv_run_take(
    struct gv_import *im, const struct gv_text *t, struct gv_run *run, enum gv_import_format format,
    struct gv_error *err);
/* Which operation, from its name or from what its columns and figures leave open; -1 with `err`. */
int gv_run_op(
    const struct gv_import *im, const struct gv_text *t, const struct gv_run *run, int nranks,
    struct gv_error *err);
/* busbw / (bytes / time) of an operation, as nccl-tests defines it. */
double gv_run_factor(enum gv_op op, int nranks);
/* The variant that the variables make. */
int gv_run_variant(
    const struct gv_import *im, const struct gv_text *t, const struct gv_run *run,
    struct gv_import_sample *out, struct gv_error *err);

#endif
