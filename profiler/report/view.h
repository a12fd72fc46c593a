/* What the parts of the report share; inside this folder only. */
#ifndef GV_REPORT_VIEW_H
#define GV_REPORT_VIEW_H

#include "plugin/policy/gv_policy.h"
#include "profiler/report/gv_report.h"
#include "profiler/report/html.h"

struct gv_view {
    const struct gv_compared *compared; /* may be NULL */
    const struct gv_profile *profile;   /* may be NULL */
    const struct gv_report *report;
    /* GPUs on the page are the machine's, as in the comparison; in a profile alone its own. */
    int to_profile[GV_MAX_GPUS];   /* -1: the profile does not know this GPU */
    int from_profile[GV_MAX_GPUS]; /* -1: not among the comparison's and not known */
};

void gv_view_init(struct gv_view *view, const struct gv_report *report);

/* The profile's entry of a GPU in the page's numbers, or NULL. */
const struct gv_profile_gpu *gv_view_gpu(const struct gv_view *view, int gpu);
/* The communicator's GPUs in the page's numbers, and in the profile's. */
gv_gpuset gv_view_gpus(const struct gv_view *view);
gv_gpuset gv_view_profile_gpus(const struct gv_view *view);
/* A set in the profile's numbers as one in the page's. */
gv_gpuset gv_view_shown(const struct gv_view *view, gv_gpuset profile_gpus);

/* Class of a variant's marks: "v0" the base, "v1" to "v7" the others. */
const char *gv_view_class(const struct gv_view *view, int steer);
/* A key of variants above a picture: mark and name. */
void gv_view_key(struct gv_html *h, const struct gv_view *view);
/* A variant's mark at (x, y): a shape of its own, so that colour is not needed. Left open for
 * attributes and a title; close it with gv_close. */
void gv_mark_open(struct gv_html *h, const struct gv_view *view, int steer, double x, double y);

/* A word and its explanation. */
void gv_fact(struct gv_html *h, const char *name, const char *text);
void gv_factf(struct gv_html *h, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* chart.c: a linear axis from 0: the step between its ticks, 4 to 6 of them. */
double gv_axis_step(double most);

/* The parts, in the order of the page; each writes the content of its section. */
void gv_part_busbw(struct gv_html *h, const struct gv_view *view);
void gv_part_ring(struct gv_html *h, const struct gv_view *view);
void gv_part_paths(struct gv_html *h, const struct gv_view *view);
void gv_part_host_links(struct gv_html *h, const struct gv_view *view);
void gv_part_handoffs(struct gv_html *h, const struct gv_view *view);
void gv_part_groups(struct gv_html *h, const struct gv_view *view);
void gv_part_decisions(struct gv_html *h, const struct gv_view *view);
void gv_part_job(struct gv_html *h, const struct gv_view *view);
void gv_part_witness(struct gv_html *h, const struct gv_view *view);
void gv_part_provenance(struct gv_html *h, const struct gv_view *view);

extern const char gv_report_style[];

/* Opens a page down to its header, which stays open behind the heading. `style` is added to the
 * style sheet, "" for none. */
void gv_page_open(struct gv_html *h, const char *title, const char *style);

#endif
