/* What ranks put in, and what must come out: inside this folder only.
 *
 * Element i of rank r is a fixed function of (r, i mod GV_DATA_PERIOD). The period is a prime, so
 * that a piece that arrives at a wrong place is wrong. */
#ifndef GV_COLLECTIVE_DATA_H
#define GV_COLLECTIVE_DATA_H

#include <stddef.h>

#include "profiler/collective/gv_collective.h"

#define GV_DATA_PERIOD 65521

/* One element's value before it is stored in a type: integers as they are, floats exactly. */
uint64_t gv_data_integer(int rank, uint64_t index);
/* In [0.5, 1.5), a multiple of 2^-`bits` so that the type holds it exactly. */
double gv_data_real(int rank, uint64_t index, int bits);

/* Writes elements [first, first + count) of `rank`'s data into `out`. `redop` matters for AVG and
 * PROD of narrow types, which get values that cannot leave the type's range. */
void gv_data_fill(
    enum gv_type type, enum gv_redop redop, int rank, uint64_t first, size_t count, void *out);

/* Relative error that is allowed for `nranks` summands of that type; 0: to the bit.
 *
 * With unit roundoff u (2^-24 float, 2^-53 double, 2^-11 half, 2^-8 bfloat16) every order of
 * summing n numbers errs by at most g(n-1) times the sum of their magnitudes, g(k) = k u / (1 - k
 * u) (Higham, Accuracy and Stability of Numerical Algorithms, section 4.2); all our numbers are
 * positive, so that sum is the result itself. A product of n has g(n-1). AVG scales every summand
 * (or the sum) by a rounded 1/n: g(n+1). MAX, MIN and copies are exact. */
double gv_data_bound(enum gv_type type, enum gv_redop redop, int nranks, bool reduces);

#define GV_DATA_PART 1024 /* elements that are made at a time */
#define GV_DATA_PARTS ((GV_DATA_PERIOD + GV_DATA_PART - 1) / GV_DATA_PART)

/* One period of what must arrive. Each part of it is made when it is first asked for, and compared
 * many times: a buffer of which only the ends are checked needs few. */
struct gv_expected {
    enum gv_type type;
    enum gv_redop redop;
    int nranks, rank;
    double bound;         /* relative; 0: to the bit */
    unsigned char *bytes; /* [GV_DATA_PERIOD] elements */
    double *values;       /* [GV_DATA_PERIOD], only where bound is not 0 */
    bool made[GV_DATA_PARTS];
};

/* `rank` -1: the reduction over `nranks` ranks; else that rank's own data. 0, or -1: out of memory.
 * Release with gv_expected_finish, which is fine on all zero. */
int gv_expected_init(
    struct gv_expected *e, enum gv_type type, enum gv_redop redop, int nranks, int rank);
void gv_expected_finish(struct gv_expected *e);

/* Writes elements [first, first + count) to `out`. */
void gv_expected_copy(struct gv_expected *e, uint64_t first, size_t count, void *out);

/* Counts the elements of `got`, which stand for [first, first + count), that are wrong. */
uint64_t gv_expected_wrong(struct gv_expected *e, uint64_t first, size_t count, const void *got);

/* types.c: half and bfloat16, exact one way, to the nearest (even) the other. */
double gv_half_to_double(uint16_t bits);
uint16_t gv_half_from_double(double value);
double gv_bfloat16_to_double(uint16_t bits);
uint16_t gv_bfloat16_from_double(double value);
/* Unit roundoff; 0 for integers. */
double gv_type_roundoff(enum gv_type type);
double gv_type_load(enum gv_type type, const void *at);
void gv_type_store(enum gv_type type, double value, void *at);

#endif
