/* Reductions on the bytes themselves, each step rounded to the type as a GPU's would be. */
#include <stdint.h>
#include <string.h>

#include "testbench/vnccl/vnccl.h"

enum { SUM, PROD, MAX, MIN, AVG };

#define JOIN(op, a, b)                                                                             \
    ((op) == PROD  ? (a) * (b)                                                                     \
     : (op) == MAX ? ((a) > (b) ? (a) : (b))                                                       \
     : (op) == MIN ? ((a) < (b) ? (a) : (b))                                                       \
                   : (a) + (b))

#define LOOP(kind, wide)                                                                           \
    for (size_t i = 0; i + sizeof(kind) <= bytes; i += sizeof(kind)) {                             \
        kind a, b;                                                                                 \
        memcpy(&a, into + i, sizeof(a));                                                           \
        memcpy(&b, from + i, sizeof(b));                                                           \
        a = (kind)JOIN(op, (wide)a, (wide)b);                                                      \
        memcpy(into + i, &a, sizeof(a));                                                           \
    }

static float bfloat16_load(const unsigned char *at)
{
    uint16_t half;
    float value;
    memcpy(&half, at, sizeof(half));
    uint32_t bits = (uint32_t)half << 16;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static void bfloat16_store(unsigned char *at, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    uint16_t half = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    memcpy(at, &half, sizeof(half));
}

static void reduce_bfloat16(unsigned char *into, const unsigned char *from, size_t bytes, int op)
{
    for (size_t i = 0; i + 2 <= bytes; i += 2) {
        float a = bfloat16_load(into + i), b = bfloat16_load(from + i);
        bfloat16_store(into + i, JOIN(op, a, b));
    }
}

int gvv_type_bytes(int type)
{
    static const int bytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
    return type >= 0 && type < 10 ? bytes[type] : 1;
}

void gvv_reduce(
    unsigned char *restrict into, const unsigned char *restrict from, size_t bytes, int type,
    int op)
{
    switch (type) {
    case 0:
        LOOP(int8_t, int)
        break;
    case 1:
        LOOP(uint8_t, unsigned)
        break;
    case 2:
        if (op == MAX || op == MIN) {
            LOOP(int32_t, int32_t)
        } else {
            LOOP(uint32_t, uint32_t) /* wraps */
        }
        break;
    case 3:
        LOOP(uint32_t, uint32_t)
        break;
    case 4:
        if (op == MAX || op == MIN) {
            LOOP(int64_t, int64_t)
        } else {
            LOOP(uint64_t, uint64_t)
        }
        break;
    case 5:
        LOOP(uint64_t, uint64_t)
        break;
    case 6:
        LOOP(_Float16, float)
        break;
    case 7:
        LOOP(float, float)
        break;
    case 8:
        LOOP(double, double)
        break;
    default:
        reduce_bfloat16(into, from, bytes, op);
    }
}

#define DIVIDE(kind, wide)                                                                         \
    for (size_t i = 0; i + sizeof(kind) <= bytes; i += sizeof(kind)) {                             \
        kind a;                                                                                    \
        memcpy(&a, at + i, sizeof(a));                                                             \
        a = (kind)((wide)a / (wide)n);                                                             \
        memcpy(at + i, &a, sizeof(a));                                                             \
    }

void gvv_scale(unsigned char *at, size_t bytes, int type, int n)
{
    switch (type) {
    case 0:
        DIVIDE(int8_t, int)
        break;
    case 1:
        DIVIDE(uint8_t, unsigned)
        break;
    case 2:
        DIVIDE(int32_t, int32_t)
        break;
    case 3:
        DIVIDE(uint32_t, uint32_t)
        break;
    case 4:
        DIVIDE(int64_t, int64_t)
        break;
    case 5:
        DIVIDE(uint64_t, uint64_t)
        break;
    case 6:
        DIVIDE(_Float16, float)
        break;
    case 7:
        DIVIDE(float, float)
        break;
    case 8:
        DIVIDE(double, double)
        break;
    default:
        for (size_t i = 0; i + 2 <= bytes; i += 2)
            bfloat16_store(at + i, bfloat16_load(at + i) / (float)n);
    }
}
