/* Profiles that the benchmarks need: of a wanted number of tuner rows, GPUs, or samples. */
#ifndef GV_BENCH_PROFILES_H
#define GV_BENCH_PROFILES_H

#include "config/gv_profile.h"

/* One row of the tuner's table as the generated profile asks for it. */
struct gv_bench_row {
    uint64_t min_bytes, max_bytes;
    enum gv_algo algorithm;
    enum gv_proto protocol;
    int channels;
};

/* The reference machine, with AllReduce of GPUs 0-1 measured at nrows + 1 sizes from 1 KiB to
 * 8 GiB, so that the policy makes `nrows` rows without gaps (at most 4096; a profile has no room
 * for one more size then, and the last row is that size alone). `rows` (may be NULL) receives what
 * they must be. The caller frees the profile with gv_profile_free. Exits when out of memory, or
 * where the shipped profile cannot be read. */
struct gv_profile *gv_bench_profile_rows(int nrows, struct gv_bench_row *rows);

/* The machine of 64 GPUs; all of them together gain by P2P across the host bridge. */
struct gv_profile *gv_bench_profile_64(void);

/* The reference machine with `nsamples` samples in its groups, 20 in a run. */
struct gv_profile *gv_bench_profile_samples(int nsamples);

#endif
