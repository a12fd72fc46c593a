/* The profile that a command works on, and the machine where there is one. */
#ifndef GV_CLI_SOURCE_H
#define GV_CLI_SOURCE_H

#include <limits.h>
#include <stdbool.h>

#include "base/gv_error.h"
#include "config/gv_machine.h"
#include "config/gv_profile.h"
#include "config/gv_stamp.h"

/* With a machine, GPUs are numbered as the machine has them (PCI order); without one as the profile
 * does. Indexes into the profile never leave the commands. */
struct gv_source {
    struct gv_profile *profile;
    char path[PATH_MAX];
    bool has_machine;
    struct gv_machine machine;
    int ngpus;                     /* of the machine, else of the profile */
    int to_profile[GV_MAX_GPUS];   /* -1: the profile does not know this GPU */
    int from_profile[GV_MAX_GPUS]; /* -1: not on this machine */
    bool own_word; /* the profile was measured on this very machine, or GV100_ASSUME_VERIFIED=1: no
                      stamp is asked for */
    bool verified; /* a stamp that holds was found; always false without a machine */
    struct gv_stamp stamp;
    struct gv_error no_stamp; /* why there is none */
};

/* `profile` (a path, a shipped name) and `machine` (a sysfs root, or an archive
 * of `gv100 bundle`, whose profile then counts where none is named) may each be NULL. Only a
 * profile: no machine is looked at. Neither: the live machine (GV100_SYSFS counts) and the profile
 * found for it. A profile and a machine that do not fit together are an error. NULL with `err`;
 * else to be freed with gv_source_free. */
struct gv_source *gv_source_open(const char *profile, const char *machine, struct gv_error *err);
void gv_source_free(struct gv_source *source);

/* A set in the command's numbers as one in the profile's. 0, or -1 with `err` naming the GPU that
 * is not there. */
int gv_source_gpus(
    const struct gv_source *source, gv_gpuset gpus, gv_gpuset *out, struct gv_error *err);

/* The reverse, for printing. */
gv_gpuset gv_source_shown(const struct gv_source *source, gv_gpuset profile_gpus);

/* The bus id of a GPU in the command's numbers, "" where it is not known. */
const char *gv_source_bus_id(const struct gv_source *source, int gpu);

/* Pairs that this host found bad (corrupt, hung, one-way), by profile index: bit b of bad[a]. */
void gv_source_bad(const struct gv_source *source, gv_gpuset bad[GV_MAX_GPUS]);

/* Whether this host verified P2P of the pair (profile indexes), both ways. */
bool gv_source_pair_verified(const struct gv_source *source, int a, int b);

#endif
