/* A growing text. */
#ifndef GV_STR_H
#define GV_STR_H

#include <stdbool.h>
#include <stddef.h>

/* All zero is the empty text. `data` is terminated whenever it is not NULL and belongs to the text.
 * `failed` is sticky: once memory ran out nothing more is added and the content is not to be used.
 */
struct gv_str {
    char *data;
    size_t len, cap;
    bool failed;
};

void gv_str_add(struct gv_str *s, const char *text);
void gv_str_add_n(struct gv_str *s, const char *text, size_t n);
void gv_str_addf(struct gv_str *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Frees the content; the text is empty again and can be used anew. */
void gv_str_free(struct gv_str *s);

#endif
