/* The verification stamp: proof that P2P between named GPUs was checked on this very host since it
 * booted, with the driver that is loaded now. `gv100 verify` writes it, the plugin reads it. */
#ifndef GV_STAMP_H
#define GV_STAMP_H

#include <stdbool.h>

#include "base/gv_error.h"
#include "config/gv_machine.h"

#define GV_STAMP_SCHEMA 1

/* The most bytes that a stamp may have. */
#define GV_STAMP_MAX (8u << 20)

struct gv_stamp {
    char host[65], boot_id[40], driver[32], date[32], tool[64];
    /* State of each ordered pair by machine index (PCI order); UNVERIFIED where the stamp is
     * silent. */
    enum gv_p2p pair[GV_MAX_GPUS][GV_MAX_GPUS];
    char bus_id[GV_MAX_GPUS][20]; /* which GPU the index meant */
    int ngpus;
};

/* Where a stamp may lie, in this order: $GV100_STAMP (a file), /var/lib/gv100/verified.yaml,
 * $XDG_STATE_HOME/gv100/verified.yaml (or
 * ~/.local/state/...). Only a regular file that root or this user owns and that no one else can
 * write to is believed. Reads the first that exists and is valid for `machine`: same boot, same
 * driver, same bus ids. Returns 0; or -1 with `err`: none found, or why it does not hold ("driver
 * was 580.1 when checked, 580.2 is loaded"), and the command to run (`gv100 verify`). */
int gv_stamp_find(const struct gv_machine *machine, struct gv_stamp *out, struct gv_error *err);

/* Where a stamp is to be written: $GV100_STAMP; for root /var/lib/gv100/verified.yaml; else in this
 * user's state folder. Returns 0 and fills out[PATH_MAX], or -1 with `err` (no HOME). */
int gv_stamp_path(char *out, struct gv_error *err);

/* Only a file that can be believed (see above) and that is whole. */
/* Whether the profile itself is this host's verification, so that no stamp is needed: it was
 * measured on these very cards (matched by UUID) with the driver that is loaded, or
 * GV100_ASSUME_VERIFIED=1 says so. */
bool gv_profile_own_word(const struct gv_profile *profile, const struct gv_machine *machine);

int gv_stamp_read(const char *path, struct gv_stamp *out, struct gv_error *err);
/* Whole or not at all, mode 0644; missing folders are made. */
int gv_stamp_write(const struct gv_stamp *stamp, const char *path, struct gv_error *err);
/* Whether it holds for this machine now: same boot, driver and bus ids (the host's name is not
 * compared, containers have other ones). Returns 0, or -1 with `err`. A real machine needs a boot
 * id and a driver version on both sides; a replayed one may have neither. */
int gv_stamp_holds(
    const struct gv_stamp *stamp, const struct gv_machine *machine, struct gv_error *err);

#endif
