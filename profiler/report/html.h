/* HTML that cannot be malformed: elements are closed in the order they were opened, and all text
 * is escaped. The result is well-formed XML too (but for the doctype). */
#ifndef GV_REPORT_HTML_H
#define GV_REPORT_HTML_H

#include <stdint.h>

#include "base/gv_str.h"

struct gv_html {
    struct gv_str *out;
    const char *open[32]; /* names of the elements that are open, literals */
    int depth;
    bool in_tag; /* attributes may still be added */
};

/* Opens an element; attributes and content follow, then gv_close. `name` must be a literal. */
void gv_open(struct gv_html *h, const char *name);
void gv_open_class(struct gv_html *h, const char *name, const char *class);
void gv_close(struct gv_html *h);
void gv_close_n(struct gv_html *h, int n);

void gv_attr(struct gv_html *h, const char *name, const char *value);
void gv_attrf(struct gv_html *h, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* A coordinate, one decimal. */
void gv_at(struct gv_html *h, const char *name, double value);
/* A figure with the twelve digits that the JSON output has; nothing where it is not known (NAN). */
void gv_data(struct gv_html *h, const char *name, double value);

void gv_text(struct gv_html *h, const char *text);
void gv_textf(struct gv_html *h, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Style sheet or script data: added as it is, must hold no '<' and no '&'. */
void gv_raw(struct gv_html *h, const char *text);

/* An element that holds text alone. */
void gv_element(struct gv_html *h, const char *name, const char *text);
void gv_elementf(struct gv_html *h, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* SVG: opens a picture of width x height units, shown `scale` pixels a unit, fewer where there is
 * less room, with the title and description that a screen reader says. `id` is unique in the page.
 * Up to 380 units wide it is readable on a telephone; a broader one scrolls. */
void gv_svg(
    struct gv_html *h, const char *id, double width, double height, double scale, const char *title,
    const char *description);
void gv_svg_line(struct gv_html *h, const char *class, double x1, double y1, double x2, double y2);
void gv_svg_rect(
    struct gv_html *h, const char *class, double x, double y, double width, double height);
/* Text at (x, y), the baseline; `anchor` "start", "middle" or "end". */
void gv_svg_text(
    struct gv_html *h, const char *class, double x, double y, const char *anchor, const char *text);

/* A table in a region that scrolls by itself where there is no room; `caption` names both. Rows
 * follow; then gv_table_end. */
void gv_table(struct gv_html *h, const char *caption, const char *const *headings, int n);
/* The same with the columns that hold figures as bits: their cells of class "n" and their headings
 * stand to the right, so that decimals meet. */
void gv_table_figures(
    struct gv_html *h, const char *caption, const char *const *headings, int n, uint64_t columns);
void gv_table_end(struct gv_html *h);
/* A cell with a figure: what is shown is rounded, `name` (an attribute) has all of its digits. */
void gv_cell_figure(struct gv_html *h, const char *name, double value);

/* A figure for people: two decimals under 100, one under 1000, else none; "-" for NAN. */
const char *gv_figure_text(double value, char out[32]);
/* "64K", also for a size within 1 % of that (whole pieces make 65472 of it). */
const char *gv_size_text(uint64_t bytes, char out[32]);

#endif
