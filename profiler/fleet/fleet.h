/* What the parts of the fleet share; inside this folder only. */
#ifndef GV_FLEET_INSIDE_H
#define GV_FLEET_INSIDE_H

#include "profiler/fleet/gv_fleet.h"

int gv_fleet_no_memory(struct gv_error *err);

/* read.c, stream.c */
int gv_fleet_take_text(
    struct gv_fleet *fleet, const char *text, size_t len, const char *name, struct gv_error *err);
/* A text that may hold several profiles. */
int gv_fleet_take_stream(
    struct gv_fleet *fleet, const char *text, size_t len, const char *name, struct gv_error *err);
/* tags.c: whether a text is what Open MPI tagged by rank, and such a text. */
bool gv_fleet_is_tagged(const char *text);
int gv_fleet_take_tagged(
    struct gv_fleet *fleet, const char *text, const char *name, struct gv_error *err);
/* Notes a profile that could not be read. */
int gv_fleet_unread(struct gv_fleet *fleet, const struct gv_error *why);

/* hosts.c: each machine once, each name once. */
int gv_fleet_hosts(struct gv_fleet *fleet, struct gv_error *err);
/* kinds.c: fleet->kinds and each host's kind. */
int gv_fleet_group(struct gv_fleet *fleet, struct gv_error *err);
/* Parts that a smaller kind lacks of a larger one: outliers without a figure. */
void gv_fleet_missing(struct gv_fleet *fleet);
/* figures.c: fleet->values, by kind. */
int gv_fleet_collect(struct gv_fleet *fleet, const struct gv_fleet_kind *kind);
/* statistics.c: items of the values from `first` on. */
int gv_fleet_items(struct gv_fleet *fleet, struct gv_fleet_kind *kind, int first);
/* outliers.c: names what is off, and what explains it. */
int gv_fleet_name_outliers(struct gv_fleet *fleet);
struct gv_fleet_outlier *gv_fleet_new_outlier(struct gv_fleet *fleet, int host);
/* merge.c: kind->merged. */
int gv_fleet_merge(struct gv_fleet *fleet, struct gv_fleet_kind *kind, struct gv_error *err);

/* The item of a key within a kind, or NULL. */
const struct gv_fleet_item *gv_fleet_find(
    const struct gv_fleet *fleet, const struct gv_fleet_kind *kind, const struct gv_fleet_key *key);
/* Order of keys. */
int gv_fleet_compare_keys(const struct gv_fleet_key *a, const struct gv_fleet_key *b);
/* The index of a figure by its name; the name must be there. */
int gv_fleet_figure_of(const char *name);
/* Index of a variant among those seen so far; it is added where it is new. -1: out of memory. */
int gv_fleet_variant(struct gv_fleet *fleet, const struct gv_profile_variant *variant);
bool gv_fleet_same_variant(const struct gv_profile_variant *a, const struct gv_profile_variant *b);

/* Median of sorted values. */
double gv_fleet_middle(const double *sorted, int n);
/* Sorts values, smallest first. */
void gv_fleet_sort(double *values, int n);

/* Room for one more at the end of a list; zeroed. NULL: out of memory. */
void *gv_fleet_grow(void *list, int *n, size_t size);

#endif
