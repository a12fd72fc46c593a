#include <math.h>
#include <string.h>
#include <strings.h>

#include "profiler/collective/data.h"

static const struct {
    const char *name;
    int bytes;
    double roundoff;
} types[GV_TYPE_COUNT] = {
    [GV_TYPE_INT8] = {"int8", 1, 0},           [GV_TYPE_UINT8] = {"uint8", 1, 0},
    [GV_TYPE_INT32] = {"int32", 4, 0},         [GV_TYPE_UINT32] = {"uint32", 4, 0},
    [GV_TYPE_INT64] = {"int64", 8, 0},         [GV_TYPE_UINT64] = {"uint64", 8, 0},
    [GV_TYPE_HALF] = {"half", 2, 0x1p-11},     [GV_TYPE_FLOAT] = {"float", 4, 0x1p-24},
    [GV_TYPE_DOUBLE] = {"double", 8, 0x1p-53}, [GV_TYPE_BFLOAT16] = {"bfloat16", 2, 0x1p-8},
};

static const char *const redops[GV_REDOP_COUNT] = {"sum", "prod", "max", "min", "avg"};

const char *gv_type_name(enum gv_type type)
{
    return types[type].name;
}

int gv_type_bytes(enum gv_type type)
{
    return types[type].bytes;
}

double gv_type_roundoff(enum gv_type type)
{
    return types[type].roundoff;
}

int gv_type_from_name(const char *name)
{
    for (int i = 0; i < GV_TYPE_COUNT; i++)
        if (!strcasecmp(types[i].name, name))
            return i;
    return -1;
}

const char *gv_redop_name(enum gv_redop op)
{
    return redops[op];
}

int gv_redop_from_name(const char *name)
{
    for (int i = 0; i < GV_REDOP_COUNT; i++)
        if (!strcasecmp(redops[i], name))
            return i;
    return -1;
}

bool gv_op_reduces(enum gv_op op)
{
    return op == GV_OP_ALL_REDUCE || op == GV_OP_REDUCE || op == GV_OP_REDUCE_SCATTER;
}

double gv_bfloat16_to_double(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof(value));
    return value;
}

uint16_t gv_bfloat16_from_double(double value)
{
    float narrow = (float)value;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof(bits));
    if (isnan(value))
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

double gv_half_to_double(uint16_t bits)
{
    int exponent = bits >> 10 & 0x1f, mantissa = bits & 0x3ff;
    double value = exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24);
    if (exponent == 0x1f)
        value = mantissa ? NAN : INFINITY;
    return bits & 0x8000 ? -value : value;
}

uint16_t gv_half_from_double(double value)
{
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    double size = fabs(value);
    if (isnan(value))
        return 0x7e00;
    if (size >= 65520)
        return sign | 0x7c00;
    if (size < 0x1p-14)
        return (uint16_t)(sign | (uint16_t)nearbyint(ldexp(size, 24)));
    int exponent;
    double mantissa = nearbyint(ldexp(frexp(size, &exponent), 11)); /* 1024 to 2048 */
    return (uint16_t)(sign | (uint16_t)((exponent + 13) * 1024 + (int)mantissa));
}

double gv_type_load(enum gv_type type, const void *at)
{
    uint16_t half;
    float single;
    double wide;
    switch (type) {
    case GV_TYPE_HALF:
    case GV_TYPE_BFLOAT16:
        memcpy(&half, at, sizeof(half));
        return type == GV_TYPE_HALF ? gv_half_to_double(half) : gv_bfloat16_to_double(half);
    case GV_TYPE_FLOAT:
        memcpy(&single, at, sizeof(single));
        return single;
    default:
        memcpy(&wide, at, sizeof(wide));
        return wide;
    }
}

void gv_type_store(enum gv_type type, double value, void *at)
{
    uint16_t half =
        type == GV_TYPE_HALF ? gv_half_from_double(value) : gv_bfloat16_from_double(value);
    float single = (float)value;
    if (type == GV_TYPE_HALF || type == GV_TYPE_BFLOAT16)
        memcpy(at, &half, sizeof(half));
    else if (type == GV_TYPE_FLOAT)
        memcpy(at, &single, sizeof(single));
    else
        memcpy(at, &value, sizeof(value));
}
