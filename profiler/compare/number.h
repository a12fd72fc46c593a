/* Numbers in JSON. */
#ifndef GV_COMPARE_NUMBER_H
#define GV_COMPARE_NUMBER_H

#include <jansson.h>
#include <math.h>

/* A number, or null where it is not known (NAN). New reference. */
static inline json_t *gv_json_number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

#endif
