/* One error for a person: what is wrong, where, what to do. */
#ifndef GV_ERROR_H
#define GV_ERROR_H

#define GV_ERROR_TEXT 512
#define GV_ERROR_FILE 256

/* Filled by whoever detects the error first; callers pass it on unchanged. All zero means no error.
 * `line` and `column` count from 1; 0 means that the place inside the file is not known. */
struct gv_error {
    char file[GV_ERROR_FILE];
    unsigned line, column;
    char text[GV_ERROR_TEXT];
};

/* Sets the error's text and forgets any earlier place. `err` may be NULL. Returns -1 always, so
 * that `return gv_error_set(err, ...)` reads as a failure. */
int gv_error_set(struct gv_error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The same with a place. `file` may be NULL, then it stays empty. Returns -1. */
int gv_error_at(
    struct gv_error *err, const char *file, unsigned line, unsigned column, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));

/* Writes "file:line:column: text" (as much of it as is known) into `out`, always terminated.
 * Returns `out`. */
const char *gv_error_format(const struct gv_error *err, char *out, unsigned long out_size);

#ifdef __clang_analyzer__ /* it looks at one source at a time, and is told what these return */
#define gv_error_set(...) (gv_error_set(__VA_ARGS__), -1)
#define gv_error_at(...) (gv_error_at(__VA_ARGS__), -1)
#endif

#endif
