/* The schema: one table of fields per kind of object. Reader, writer, comparison, release and the
 * format's documentation are all driven by it, so a key that is added here exists everywhere. */
#ifndef GV_CONFIG_SCHEMA_H
#define GV_CONFIG_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>

#include "base/gv_error.h"
#include "base/gv_str.h"
#include "config/names.h"
#include "config/yaml_tree.h"

enum gv_type {
    GV_T_SCHEMA,  /* the schema's number (`max`); no storage */
    GV_T_END,     /* `true` on the last line; no storage */
    GV_T_TEXT,    /* char[size], one line */
    GV_T_BUS_ID,  /* char[20], "0000:1a:00.0" */
    GV_T_INT,     /* int */
    GV_T_NUMBER,  /* double */
    GV_T_BOOL,    /* bool */
    GV_T_HEX16,   /* uint16_t */
    GV_T_BYTES,   /* uint64_t, as "1G" */
    GV_T_ENUM,    /* an enum by name */
    GV_T_FIGURE,  /* struct gv_figure */
    GV_T_OPS,     /* unsigned of GV_OP_BITs, as a list of names */
    GV_T_GPUS,    /* gv_gpuset, as "0-5,7" */
    GV_T_ORDER,   /* int[limit] of GPUs in order, number at count_offset */
    GV_T_PAIRS,   /* int[limit][2] of GPUs, number at count_offset, bool at known_offset */
    GV_T_SAMPLES, /* double * on the heap, number at count_offset */
    GV_T_FLAGS,   /* bool * on the heap or NULL, as many as the samples before it */
    GV_T_SECTION, /* an object inside this one, at offset */
    GV_T_LIST     /* array of objects on the heap, number at count_offset */
};

#define GV_NO_OFFSET ((size_t)-1)

struct gv_object;

struct gv_field {
    const char *key;
    enum gv_type type;
    bool required;
    size_t offset, size, count_offset, known_offset;
    double min, max, silent;        /* numbers: range, and the value where the file is silent */
    int limit;                      /* lists: most entries; required ones have at least one */
    const struct gv_names *names;   /* GV_T_ENUM */
    const struct gv_object *object; /* GV_T_SECTION, GV_T_LIST */
    const char *doc;
};

struct gv_reader {
    const struct gv_yaml *tree;
    const char *name; /* of the file, for errors */
    int ngpus;        /* GPUs read so far; indexes are checked against it */
    struct gv_error *err;
};

struct gv_object {
    const char *name; /* in errors: "path", "group" */
    size_t size;
    const struct gv_field *fields;
    int nfields;
    /* What a table cannot say; called when all fields are read. NULL: nothing. */
    int (*check)(struct gv_reader *r, int node, void *object);
    const char *doc;
};

extern const struct gv_object gv_object_profile, gv_object_stamp;

/* Object.c: all fields as in an empty file; release of what an object owns; equality by value. */
void gv_object_init(const struct gv_object *type, void *object);
void gv_object_finish(const struct gv_object *type, void *object);
bool gv_object_equal(const struct gv_object *type, const void *a, const void *b);
/* Whether a field holds what it would hold were the file silent. */
bool gv_field_silent(const struct gv_field *field, const void *object);

/* Reads the map `node` into `object`, which it initialises. 0, or -1 with r->err set; the object
 * must be finished in both cases. Fields are read in the table's order, not the file's. */
int gv_read_object(struct gv_reader *r, int node, const struct gv_object *type, void *object);
/* One value that is neither section nor list (read_scalar.c, read_list.c). */
int gv_read_value(struct gv_reader *r, int node, const struct gv_field *field, void *object);
int gv_read_listed(struct gv_reader *r, int node, const struct gv_field *field, void *object);
/* Sets the error at a node. Returns -1. */
int gv_reader_fail(const struct gv_reader *r, int node, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* A plain decimal number within [min, max]; the error names `key`. */
int gv_read_int(
    const struct gv_reader *r, int node, const char *key, double min, double max, int *out);
int gv_read_number(
    const struct gv_reader *r, int node, const char *key, double min, double max, double *out);
int gv_read_bool(const struct gv_reader *r, int node, const char *key, bool *out);
/* A GPU index below r->ngpus. */
int gv_read_gpu(const struct gv_reader *r, int node, const char *key, int *out);

/* Adds `object` as YAML. Fields that are silent are left out unless required. */
void gv_write_object(const struct gv_object *type, const void *object, struct gv_str *out);
/* One value that is neither section nor list, without key and newline. */
void gv_write_value(const struct gv_field *field, const void *object, struct gv_str *out);
/* The fewest digits that read back as the same double. */
void gv_write_number(double value, struct gv_str *out);
/* `text`, in quotes where YAML (1.1 or 1.2) would otherwise see anything but this text. */
void gv_write_text(const char *text, struct gv_str *out);

#endif
