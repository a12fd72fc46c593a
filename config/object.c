/* What every object can do because the schema knows its fields: start empty, release, compare. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "config/gv_profile.h"
#include "config/schema.h"

static void *at(const void *object, size_t offset)
{
    return (char *)object + offset;
}

static int int_at(const void *object, size_t offset)
{
    int value;
    memcpy(&value, at(object, offset), sizeof(value));
    return value;
}

static double double_at(const void *object, size_t offset)
{
    double value;
    memcpy(&value, at(object, offset), sizeof(value));
    return value;
}

static void *pointer_at(const void *object, size_t offset)
{
    void *value;
    memcpy(&value, at(object, offset), sizeof(value));
    return value;
}

static bool same_double(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static void init_field(const struct gv_field *f, void *object)
{
    void *place = at(object, f->offset);
    int value = f->type == GV_T_INT || f->type == GV_T_ENUM ? (int)f->silent : 0;
    switch (f->type) {
    case GV_T_INT:
    case GV_T_ENUM:
        memcpy(place, &value, sizeof(value));
        break;
    case GV_T_NUMBER:
        memcpy(place, &f->silent, sizeof(double));
        break;
    case GV_T_FIGURE:
        *(struct gv_figure *)place = (struct gv_figure){NAN, NAN, NAN, 0};
        break;
    case GV_T_SECTION:
        gv_object_init(f->object, place);
        break;
    default: /* zero already */
        break;
    }
}

void gv_object_init(const struct gv_object *type, void *object)
{
    for (int i = 0; i < type->nfields; i++)
        init_field(&type->fields[i], object);
}

static void finish_field(const struct gv_field *f, void *object)
{
    void *none = NULL, *place = at(object, f->offset);
    if (f->type == GV_T_SECTION) {
        gv_object_finish(f->object, place);
        return;
    }
    if (f->type != GV_T_LIST && f->type != GV_T_SAMPLES && f->type != GV_T_FLAGS)
        return;
    char *array = pointer_at(object, f->offset);
    int n = array && f->type == GV_T_LIST ? int_at(object, f->count_offset) : 0;
    for (int i = 0; i < n; i++)
        gv_object_finish(f->object, array + (size_t)i * f->object->size);
    free(array);
    memcpy(place, &none, sizeof(none));
}

void gv_object_finish(const struct gv_object *type, void *object)
{
    for (int i = 0; i < type->nfields; i++)
        finish_field(&type->fields[i], object);
}

static bool section_silent(const struct gv_object *type, const void *object)
{
    for (int i = 0; i < type->nfields; i++)
        if (!gv_field_silent(&type->fields[i], object))
            return false;
    return true;
}

bool gv_field_silent(const struct gv_field *f, const void *object)
{
    const char *place = at(object, f->offset);
    switch (f->type) {
    case GV_T_SCHEMA:
    case GV_T_END:
        return false;
    case GV_T_TEXT:
    case GV_T_BUS_ID:
        return !*place;
    case GV_T_INT:
    case GV_T_ENUM:
        return int_at(object, f->offset) == (int)f->silent;
    case GV_T_NUMBER:
        return same_double(double_at(object, f->offset), f->silent);
    case GV_T_BOOL:
        return !*(const bool *)place;
    case GV_T_HEX16:
        return !*(const uint16_t *)place;
    case GV_T_BYTES:
    case GV_T_GPUS:
        return !*(const uint64_t *)place;
    case GV_T_OPS:
        return !*(const unsigned *)place;
    case GV_T_FIGURE:
        return ((const struct gv_figure *)place)->count == 0;
    case GV_T_PAIRS:
        if (f->known_offset != GV_NO_OFFSET)
            return !*(const bool *)at(object, f->known_offset);
        return int_at(object, f->count_offset) == 0;
    case GV_T_FLAGS:
        return !pointer_at(object, f->offset);
    case GV_T_SECTION:
        return section_silent(f->object, place);
    default:
        return int_at(object, f->count_offset) == 0;
    }
}

static bool same_samples(const struct gv_field *f, const void *a, const void *b)
{
    const double *x = pointer_at(a, f->offset), *y = pointer_at(b, f->offset);
    for (int i = 0; i < int_at(a, f->count_offset); i++)
        if (!same_double(x[i], y[i]))
            return false;
    return true;
}

static bool same_flags(const struct gv_field *f, const void *a, const void *b)
{
    const bool *x = pointer_at(a, f->offset), *y = pointer_at(b, f->offset);
    if (!x || !y)
        return x == y;
    return !memcmp(x, y, (size_t)int_at(a, f->count_offset) * sizeof(bool));
}

static bool same_list(const struct gv_field *f, const void *a, const void *b)
{
    const char *x = pointer_at(a, f->offset), *y = pointer_at(b, f->offset);
    for (int i = 0; i < int_at(a, f->count_offset); i++) {
        size_t step = (size_t)i * f->object->size;
        if (!gv_object_equal(f->object, x + step, y + step))
            return false;
    }
    return true;
}

/* Fields of a fixed size. Only what is in use is compared. */
static bool same_value(const struct gv_field *f, const void *a, const void *b)
{
    const void *x = at(a, f->offset), *y = at(b, f->offset);
    const struct gv_figure *p = x, *q = y;
    switch (f->type) {
    case GV_T_TEXT:
    case GV_T_BUS_ID:
        return !strcmp(x, y);
    case GV_T_INT:
    case GV_T_ENUM:
    case GV_T_OPS:
        return !memcmp(x, y, sizeof(int));
    case GV_T_NUMBER:
        return same_double(double_at(a, f->offset), double_at(b, f->offset));
    case GV_T_BOOL:
        return *(const bool *)x == *(const bool *)y;
    case GV_T_HEX16:
        return !memcmp(x, y, sizeof(uint16_t));
    case GV_T_BYTES:
    case GV_T_GPUS:
        return !memcmp(x, y, sizeof(uint64_t));
    case GV_T_FIGURE:
        return p->count == q->count && same_double(p->median, q->median) &&
               same_double(p->min, q->min) && same_double(p->max, q->max);
    case GV_T_ORDER:
        return !memcmp(x, y, (size_t)int_at(a, f->count_offset) * sizeof(int));
    case GV_T_PAIRS:
        return gv_field_silent(f, a) == gv_field_silent(f, b) &&
               !memcmp(x, y, (size_t)int_at(a, f->count_offset) * 2 * sizeof(int));
    default:
        return true;
    }
}

static bool counted(enum gv_type type)
{
    return type == GV_T_ORDER || type == GV_T_PAIRS || type == GV_T_SAMPLES || type == GV_T_FLAGS ||
           type == GV_T_LIST;
}

static bool same_field(const struct gv_field *f, const void *a, const void *b)
{
    if (counted(f->type) && int_at(a, f->count_offset) != int_at(b, f->count_offset))
        return false;
    switch (f->type) {
    case GV_T_SECTION:
        return gv_object_equal(f->object, at(a, f->offset), at(b, f->offset));
    case GV_T_LIST:
        return same_list(f, a, b);
    case GV_T_SAMPLES:
        return same_samples(f, a, b);
    case GV_T_FLAGS:
        return same_flags(f, a, b);
    default:
        return same_value(f, a, b);
    }
}

bool gv_object_equal(const struct gv_object *type, const void *a, const void *b)
{
    for (int i = 0; i < type->nfields; i++)
        if (!same_field(&type->fields[i], a, b))
            return false;
    return true;
}
