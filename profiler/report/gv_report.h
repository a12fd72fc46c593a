/* A comparison, a profile, or both as one HTML file: no script, no outside reference, pictures as
 * inline SVG with a table beside each. Made from the same structs as the JSON; every figure of a
 * picture also stands in a data attribute of its mark, digit for digit as the JSON has it. */
#ifndef GV_REPORT_H
#define GV_REPORT_H

#include "base/gv_str.h"
#include "config/gv_profile.h"
#include "profiler/compare/gv_compare.h"

struct gv_report {
    const struct gv_compared *compared; /* NULL: the profile alone */
    const struct gv_profile *profile; /* NULL: pictures of the machine are left out, with a line */
    const char *profile_path;         /* "" where there is none */
    const char *json;                 /* the whole run, kept inside the file; NULL: left out */
};

/* Adds the page to `out`. One of `compared` and `profile` must be there; all is borrowed for the
 * call. 0, or -1: out of memory. */
int gv_report_html(const struct gv_report *report, struct gv_str *out);

#endif
