/* Facts of all sources on their way into one profile. */
#ifndef GV_IMPORT_MERGE_H
#define GV_IMPORT_MERGE_H

#include "profiler/import/import.h"

struct gv_merge {
    struct gv_import *im;
    struct gv_profile *p;
    struct gv_error *err;
    int (*map)[GV_MAX_GPUS]; /* [nsources]: the profile's GPU of each of a source's */
    int bus[GV_MAX_GPUS];    /* of GPUs of which no more than the bus is known; -1 */
    bool whole;              /* the profile's list of GPUs is settled */
};

/* The GPUs: settles p->gpus and every map. */
int gv_merge_gpus(struct gv_merge *m);
/* Paths, memory, host links; then groups and rings. */
int gv_merge_paths(struct gv_merge *m);
int gv_merge_singles(struct gv_merge *m);
int gv_merge_groups(struct gv_merge *m);
/* The tuner's rows. */
int gv_merge_choices(struct gv_merge *m);

/* Adds "file:line" to a source field of 200 bytes; once. */
void gv_merge_source(char *field, const struct gv_import_source *s, unsigned line);
/* Error at a line of a source. */
int gv_merge_fail(
    struct gv_merge *m, const struct gv_import_source *s, unsigned line, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* A figure of one sample; an equal one may be there already, another one is an error. */
int gv_merge_figure(
    struct gv_merge *m, const struct gv_import_source *s, unsigned line, const char *name,
    double value, struct gv_figure *to, char *field);
void *gv_merge_grow(void **array, int *n, size_t size);

#endif
