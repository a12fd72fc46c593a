/* Numbers and texts in JSON. */
#ifndef GV_COMPARE_NUMBER_H
#define GV_COMPARE_NUMBER_H

#include <jansson.h>
#include <math.h>

/* A number, or null where it is not known (NAN). New reference. */
static inline json_t *gv_json_number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

/* A text whose bytes may be anything (paths, messages, what was cut): where it is no UTF-8, all
 * that is not ASCII becomes "?". At most 4,095 bytes of such a one. New reference. */
static inline json_t *gv_json_text(const char *text)
{
    json_t *value = json_string(text);
    char plain[4096];
    size_t n = 0;
    for (; !value && text[n] && n < sizeof(plain) - 1; n++)
        plain[n] = (unsigned char)text[n] < 128 ? text[n] : '?';
    plain[n] = 0;
    return value ? value : json_string(plain);
}

#endif
