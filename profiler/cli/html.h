/* `--html FILE` of the commands that have it. */
#ifndef GV_CLI_HTML_H
#define GV_CLI_HTML_H

#include "profiler/compare/gv_compare.h"

/* Writes the report of a comparison, whole or not at all. `profile` (a path or a shipped name)
 * stands in for the profile that the run names; NULL: that one. A profile that cannot be read is
 * told on stderr, and the report leaves out what needs it. 0, or -1 with `err`. */
int gv_html_compared(
    const struct gv_compared *c, const char *profile, const char *file, struct gv_error *err);

/* The report of a profile alone. */
int gv_html_profile(
    const struct gv_profile *profile, const char *profile_path, const char *file,
    struct gv_error *err);

#endif
