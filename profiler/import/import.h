/* Inside the importers: text by lines and words, and adding facts. */
#ifndef GV_IMPORT_INSIDE_H
#define GV_IMPORT_INSIDE_H

#include "profiler/import/gv_import.h"

/* Column and length of a word, and its text (owned by the line). */
struct gv_word {
    char *s;
    unsigned column; /* from 1 */
};

#define GV_MAX_WORDS 160

struct gv_text {
    const char *path;
    char *copy;   /* lines without escapes, each terminated */
    char **lines; /* [n] */
    int n;
    const char *raw; /* as given */
    size_t len;
};

/* Copies `raw` without ANSI escapes. 0, or -1 (out of memory). */
int gv_text_init(struct gv_text *t, const char *raw, size_t len, const char *path);
void gv_text_finish(struct gv_text *t);

/* Makes the tag of a launcher or a log collector at the line's beginning blank ("[1,0]<stdout>:",
 * "0: ", a time stamp). */
void gv_untag(char *line);
/* The same for a tag that is not known: what stands before the first line of a result (a logger's
 * stamp, a process) is taken from all lines that begin alike. */
void gv_untag_all(struct gv_text *t);

/* Splits `line` (changed) at blanks; with `separator` ('\t', '|', ',') at that, words trimmed and
 * empty ones kept. Returns the number, GV_MAX_WORDS at most. */
int gv_words(char *line, char separator, struct gv_word *out);
bool gv_is_digits(const char *s);
/* A whole number up to 999999, -1 for anything else. */
int gv_small(const char *s);
/* A decimal number, whole word; false for N/A, nan, inf, hex. */
bool gv_is_number(const char *s, double *out);

/* Adds one element, zeroed apart from unknowns; NULL: out of memory. */
struct gv_import_source *
gv_import_source(struct gv_import *im, const struct gv_text *t, enum gv_import_format format);
struct gv_import_gpu *gv_import_gpu(struct gv_import_source *s, unsigned line);
struct gv_import_pair *gv_import_pair(struct gv_import_source *s, int from, int to, unsigned line);
struct gv_import_single *gv_import_single(struct gv_import_source *s, int gpu, unsigned line);
struct gv_import_sample *gv_import_sample(struct gv_import_source *s, unsigned line);
struct gv_import_ring *gv_import_ring(struct gv_import_source *s, unsigned line);
struct gv_import_choice *gv_import_choice(struct gv_import_source *s, unsigned line);
void gv_import_note(struct gv_import_source *s, unsigned line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

int gv_import_no_memory(struct gv_error *err);
#ifdef __clang_analyzer__ /* told, as in base/gv_error.h */
#define gv_import_no_memory(err) (gv_import_no_memory(err), -1)
#endif

/* "00000000:1A:00.0", "0000:1a:00", "1a:00.0" to "0000:1a:00.0"; false where it is none. */
bool gv_import_bus_id(const char *text, char out[20]);

/* One function for each format: 0, or -1 with `err`. */
typedef int (*gv_import_fn)(struct gv_import *im, struct gv_text *t, struct gv_error *err);
int gv_import_smi(struct gv_import *im, struct gv_text *t, struct gv_error *err);
int gv_import_nccl_tests(struct gv_import *im, struct gv_text *t, struct gv_error *err);
int gv_import_nccl_tests_json(struct gv_import *im, struct gv_text *t, struct gv_error *err);
int gv_import_p2p_bandwidth(struct gv_import *im, struct gv_text *t, struct gv_error *err);
int gv_import_nvbandwidth(struct gv_import *im, struct gv_text *t, struct gv_error *err);
int gv_import_nvbandwidth_json(struct gv_import *im, struct gv_text *t, struct gv_error *err);
int gv_import_nccl_topology(struct gv_import *im, struct gv_text *t, struct gv_error *err);
int gv_import_nccl_graph(struct gv_import *im, struct gv_text *t, struct gv_error *err);
int gv_import_hwloc(struct gv_import *im, struct gv_text *t, struct gv_error *err);
int gv_import_csv(struct gv_import *im, struct gv_text *t, struct gv_error *err);
int gv_import_tuner(struct gv_import *im, struct gv_text *t, struct gv_error *err);

/* Whether the first row of a CSV is one of a tuner's configuration (no heading, or its own). */
bool gv_import_is_tuner(const char *row);

#endif
