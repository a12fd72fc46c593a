#include "profiler/collective/data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t mix(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

uint64_t gv_data_integer(int rank, uint64_t index)
{
    return mix((uint64_t)(rank + 1) << 32 | index % GV_DATA_PERIOD);
}

double gv_data_real(int rank, uint64_t index, int bits)
{
    uint64_t value = gv_data_integer(rank, index) >> (64 - bits);
    return 0.5 + (double)value / (double)((uint64_t)1 << bits); /* exact: a power of two */
}

/* Bits behind the point that a type holds for values under 1.5. */
static int bits_of(enum gv_type type)
{
    switch (type) {
    case GV_TYPE_HALF:
        return 9;
    case GV_TYPE_BFLOAT16:
        return 6;
    case GV_TYPE_FLOAT:
        return 22;
    default:
        return 50;
    }
}

static bool is_integer(enum gv_type type)
{
    return gv_type_roundoff(type) == 0;
}

static bool is_signed(enum gv_type type)
{
    return type == GV_TYPE_INT8 || type == GV_TYPE_INT32 || type == GV_TYPE_INT64;
}

/* Products of many ranks stay inside every type: 0.5, 1 or 2, so that they are exact besides. */
static double real_of(enum gv_type type, enum gv_redop redop, int rank, uint64_t index)
{
    if (redop != GV_REDOP_PROD)
        return gv_data_real(rank, index, bits_of(type));
    uint64_t value = gv_data_integer(rank, index) % 8;
    return value == 0 ? 0.5 : value == 1 ? 2 : 1;
}

/* An average of integers must not overflow on the way; NCCL divides the sum. */
static uint64_t integer_of(enum gv_type type, enum gv_redop redop, int rank, uint64_t index)
{
    uint64_t value = gv_data_integer(rank, index);
    int bits = 8 * gv_type_bytes(type);
    if (redop == GV_REDOP_AVG)
        return bits == 8 ? value % 2 : value % 1000;
    return bits == 64 ? value : value & (((uint64_t)1 << bits) - 1);
}

static void store_integer(enum gv_type type, uint64_t value, unsigned char *at)
{
    memcpy(
        at, &value, (size_t)gv_type_bytes(type)); /* little endian, as all hosts of NVIDIA GPUs */
}

void gv_data_fill(
    enum gv_type type, enum gv_redop redop, int rank, uint64_t first, size_t count, void *out)
{
    unsigned char *at = out;
    int bytes = gv_type_bytes(type);
    for (size_t i = 0; i < count; i++, at += bytes)
        if (is_integer(type))
            store_integer(type, integer_of(type, redop, rank, first + i), at);
        else
            gv_type_store(type, real_of(type, redop, rank, first + i), at);
}

double gv_data_bound(enum gv_type type, enum gv_redop redop, int nranks, bool reduces)
{
    double u = gv_type_roundoff(type);
    if (!reduces || u == 0 || redop == GV_REDOP_MAX || redop == GV_REDOP_MIN)
        return 0;
    double k = redop == GV_REDOP_AVG ? nranks + 1 : nranks - 1;
    return k * u / (1 - k * u);
}

static int64_t as_signed(enum gv_type type, uint64_t value)
{
    int shift = 64 - 8 * gv_type_bytes(type);
    return (int64_t)(value << shift) >> shift;
}

static bool less(enum gv_type type, uint64_t a, uint64_t b)
{
    return is_signed(type) ? as_signed(type, a) < as_signed(type, b) : a < b;
}

static uint64_t join_integers(enum gv_type type, enum gv_redop redop, uint64_t a, uint64_t b)
{
    switch (redop) {
    case GV_REDOP_PROD:
        return a * b;
    case GV_REDOP_MAX:
        return less(type, a, b) ? b : a;
    case GV_REDOP_MIN:
        return less(type, b, a) ? b : a;
    default:
        return a + b;
    }
}

static void integer_result(
    enum gv_type type, enum gv_redop redop, int nranks, uint64_t index, unsigned char *out)
{
    uint64_t value = integer_of(type, redop, 0, index);
    for (int r = 1; r < nranks; r++)
        value = join_integers(type, redop, value, integer_of(type, redop, r, index));
    if (redop == GV_REDOP_AVG)
        value /= (uint64_t)nranks;
    store_integer(type, value, out);
}

static double real_result(enum gv_type type, enum gv_redop redop, int nranks, uint64_t index)
{
    long double value = real_of(type, redop, 0, index);
    for (int r = 1; r < nranks; r++) {
        long double next = real_of(type, redop, r, index);
        if (redop == GV_REDOP_PROD)
            value *= next;
        else if (redop == GV_REDOP_MAX)
            value = next > value ? next : value;
        else if (redop == GV_REDOP_MIN)
            value = next < value ? next : value;
        else
            value += next;
    }
    return (double)(redop == GV_REDOP_AVG ? value / nranks : value);
}

int gv_expected_init(
    struct gv_expected *e, enum gv_type type, enum gv_redop redop, int nranks, int rank)
{
    size_t bytes = (size_t)gv_type_bytes(type);
    *e = (struct gv_expected){.type = type, .redop = redop, .nranks = nranks, .rank = rank};
    e->bytes = malloc(GV_DATA_PERIOD * bytes);
    e->bound = gv_data_bound(type, redop, nranks, rank < 0);
    if (e->bound > 0)
        e->values = malloc(GV_DATA_PERIOD * sizeof(*e->values));
    if (e->bytes && (e->bound == 0 || e->values))
        return 0;
    gv_expected_finish(e);
    return -1;
}

static void make_result(struct gv_expected *e, uint64_t first, size_t count)
{
    size_t bytes = (size_t)gv_type_bytes(e->type);
    unsigned char *at = e->bytes + first * bytes;
    for (uint64_t i = first; i < first + count; i++, at += bytes) {
        if (is_integer(e->type)) {
            integer_result(e->type, e->redop, e->nranks, i, at);
            continue;
        }
        double value = real_result(e->type, e->redop, e->nranks, i);
        gv_type_store(e->type, value, at);
        if (e->values)
            e->values[i] = value;
    }
}

/* Elements [first, first + count) of the period are there from now on. */
static void make(struct gv_expected *e, uint64_t first, size_t count)
{
    for (size_t part = first / GV_DATA_PART; part * GV_DATA_PART < first + count; part++) {
        uint64_t from = part * GV_DATA_PART, left = GV_DATA_PERIOD - from;
        size_t n = left < GV_DATA_PART ? (size_t)left : GV_DATA_PART;
        if (e->made[part])
            continue;
        e->made[part] = true;
        if (e->rank < 0)
            make_result(e, from, n);
        else
            gv_data_fill(
                e->type, e->redop, e->rank, from, n,
                e->bytes + from * (size_t)gv_type_bytes(e->type));
    }
}

void gv_expected_finish(struct gv_expected *e)
{
    free(e->bytes);
    free(e->values);
    *e = (struct gv_expected){0};
}

/* Elements up to the end of the period, or `count`. */
static size_t run_length(uint64_t first, size_t count)
{
    uint64_t left = GV_DATA_PERIOD - first % GV_DATA_PERIOD;
    return left < count ? (size_t)left : count;
}

void gv_expected_copy(struct gv_expected *e, uint64_t first, size_t count, void *out)
{
    size_t bytes = (size_t)gv_type_bytes(e->type);
    for (unsigned char *at = out; count;) {
        size_t run = run_length(first, count);
        make(e, first % GV_DATA_PERIOD, run);
        memcpy(at, e->bytes + first % GV_DATA_PERIOD * bytes, run * bytes);
        at += run * bytes;
        first += run;
        count -= run;
    }
}

static uint64_t wrong_in_run(
    const struct gv_expected *e, uint64_t from, size_t run, const unsigned char *got, size_t bytes)
{
    const unsigned char *right = e->bytes + from * bytes;
    uint64_t wrong = 0;
    if (!memcmp(right, got, run * bytes))
        return 0;
    for (size_t i = 0; i < run; i++, right += bytes, got += bytes)
        if (e->values) {
            double value = e->values[from + i];
            wrong += !(fabs(gv_type_load(e->type, got) - value) <= e->bound * fabs(value));
        } else {
            wrong += memcmp(right, got, bytes) != 0;
        }
    return wrong;
}

uint64_t gv_expected_wrong(struct gv_expected *e, uint64_t first, size_t count, const void *got)
{
    size_t bytes = (size_t)gv_type_bytes(e->type);
    uint64_t wrong = 0;
    for (const unsigned char *at = got; count;) {
        size_t run = run_length(first, count);
        make(e, first % GV_DATA_PERIOD, run);
        wrong += wrong_in_run(e, first % GV_DATA_PERIOD, run, at, bytes);
        at += run * bytes;
        first += run;
        count -= run;
    }
    return wrong;
}
