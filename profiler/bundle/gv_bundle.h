/* What a maintainer would ask for, without what is nobody's business. */
#ifndef GV_BUNDLE_H
#define GV_BUNDLE_H

#include "base/gv_error.h"
#include "base/gv_str.h"
#include "config/gv_machine.h"

/* Replaces names in texts, the same name by the same word each time: this host's and user's names,
 * the home folder, UUIDs of GPUs, IP addresses; and the values of variables whose names speak of
 * keys, tokens, secrets or passwords. All zero is empty. */
#define GV_SCRUB_NAMES 8
#define GV_SCRUB_SEEN 256
struct gv_scrub {
    struct {
        char from[256], to[32];
    } names[GV_SCRUB_NAMES];
    int nnames;
    char uuids[GV_SCRUB_SEEN][64], addresses[GV_SCRUB_SEEN][48];
    int nuuids, naddresses;
    int replaced; /* how often anything was */
};

/* Learns the names of this host and user. */
void gv_scrub_init(struct gv_scrub *scrub);
/* Adds `text` to `out` with the names replaced. */
void gv_scrub_text(struct gv_scrub *scrub, const char *text, struct gv_str *out);

/* Copies from `sysfs` what a replay of the machine reads: the PCI devices that are GPUs or NICs and
 * every bridge above them, NUMA nodes, the driver's version; below `folder`/sysfs. UUIDs go through
 * `scrub`. 0, or -1 with `err`. */
int gv_bundle_sysfs(
    const char *sysfs, const struct gv_machine *machine, const char *folder, struct gv_scrub *scrub,
    struct gv_error *err);

/* Writes `text`, scrubbed, as `folder`/`name`. 0, or -1 with `err`. */
int gv_bundle_text(
    const char *folder, const char *name, const char *text, struct gv_scrub *scrub,
    struct gv_error *err);

#endif
