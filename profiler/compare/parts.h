/* What the files of this folder share. */
#ifndef GV_COMPARE_PARTS_H
#define GV_COMPARE_PARTS_H

#include "profiler/compare/gv_compare.h"

/* A saved comparison while it is read. */
struct gv_loading {
    const char *path;
    struct gv_compared *out;
    struct gv_error *err;
};

/* Sets the error, "is no saved comparison: WHAT". -1. */
int gv_load_bad(const struct gv_loading *l, const char *what);
/* A text of `object`; "" where there is none. */
void gv_load_text(char *to, size_t size, const json_t *object, const char *key);
double gv_load_number(const json_t *value); /* NAN: none */
/* 0 to most - 1; -1: none. */
int gv_load_small(const json_t *value, int most);

/* settings.c */
json_t *gv_settings_json(const struct gv_compared *c); /* null where nothing was measured */
int gv_settings_load(const struct gv_loading *l, const json_t *settings);
json_t *gv_origins_json(const struct gv_compared *c);
int gv_origins_load(const struct gv_loading *l, const json_t *list);

/* job.c */
json_t *gv_compared_job_json(const struct gv_compared *c); /* null where there is none */
int gv_compared_job_load(const struct gv_loading *l, const json_t *job);

#endif
