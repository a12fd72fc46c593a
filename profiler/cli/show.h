/* A profile as a person and as a script reads it. GPUs are in the profile's own numbers. */
#ifndef GV_CLI_SHOW_H
#define GV_CLI_SHOW_H

#include <jansson.h>

#include "config/gv_profile.h"

void gv_show_text(const struct gv_profile *profile, const char *path);
/* The groups alone: every variant with its median, range and samples. */
void gv_show_groups(const struct gv_profile *profile);
/* The stage hand-offs, of which there is at least one. */
void gv_show_handoffs(const struct gv_profile *profile);
json_t *gv_show_handoff_json(const struct gv_profile_handoff *handoff);
/* The tuner's rows, of which there is at least one. */
void gv_show_tuner(const struct gv_profile *profile);
json_t *gv_show_tuner_json(const struct gv_profile_tuner *row);
json_t *gv_show_json(const struct gv_profile *profile, const char *path);

/* Median of a variant's samples, throttled ones left out; NAN where none is left. `low` and `high`
 * (may be NULL) receive the range. */
double gv_variant_median(const struct gv_profile_variant *v, double *low, double *high, int *count);

#endif
