/* What pictures and tables of the page have in common. */
#include <math.h>
#include <stdio.h>

#include "base/gv_size.h"
#include "profiler/report/html.h"

#define BROAD 380.0

void gv_svg(
    struct gv_html *h, const char *id, double width, double height, double scale, const char *title,
    const char *description)
{
    gv_open(h, "svg");
    gv_attr(h, "xmlns", "http://www.w3.org/2000/svg");
    gv_attr(h, "id", id);
    gv_attrf(h, "viewBox", "0 0 %.0f %.0f", width, height);
    gv_attrf(h, "width", "%.0f", width * scale);
    gv_attrf(h, "height", "%.0f", height * scale);
    if (width > BROAD) { /* scrolls in its figure rather than shrink to nothing */
        gv_attr(h, "class", "broad");
        gv_attrf(h, "style", "min-width:%.0fpx", 0.9 * width);
    }
    gv_attr(h, "role", "img");
    gv_attrf(h, "aria-labelledby", "%s-title %s-desc", id, id);
    gv_open(h, "title");
    gv_attrf(h, "id", "%s-title", id);
    gv_text(h, title);
    gv_close(h);
    gv_open(h, "desc");
    gv_attrf(h, "id", "%s-desc", id);
    gv_text(h, description);
    gv_close(h);
}

void gv_svg_line(struct gv_html *h, const char *class, double x1, double y1, double x2, double y2)
{
    gv_open_class(h, "line", class);
    gv_at(h, "x1", x1);
    gv_at(h, "y1", y1);
    gv_at(h, "x2", x2);
    gv_at(h, "y2", y2);
    gv_close(h);
}

void gv_svg_rect(
    struct gv_html *h, const char *class, double x, double y, double width, double height)
{
    gv_open_class(h, "rect", class);
    gv_at(h, "x", x);
    gv_at(h, "y", y);
    gv_at(h, "width", width);
    gv_at(h, "height", height);
    gv_close(h);
}

void gv_svg_text(
    struct gv_html *h, const char *class, double x, double y, const char *anchor, const char *text)
{
    gv_open_class(h, "text", class);
    gv_at(h, "x", x);
    gv_at(h, "y", y);
    gv_attr(h, "text-anchor", anchor);
    gv_text(h, text);
    gv_close(h);
}

void gv_table(struct gv_html *h, const char *caption, const char *const *headings, int n)
{
    gv_table_figures(h, caption, headings, n, 0);
}

void gv_table_figures(
    struct gv_html *h, const char *caption, const char *const *headings, int n, uint64_t columns)
{
    gv_open_class(h, "div", "scroll");
    gv_attr(h, "role", "region");
    gv_attr(h, "tabindex", "0");
    gv_attr(h, "aria-label", caption);
    gv_open_class(h, "table", columns ? "figures" : "plain");
    gv_element(h, "caption", caption);
    gv_open(h, "thead");
    gv_open(h, "tr");
    for (int i = 0; i < n; i++) {
        gv_open(h, "th");
        if (columns >> i & 1)
            gv_attr(h, "class", "n");
        gv_attr(h, "scope", "col");
        gv_text(h, headings[i]);
        gv_close(h);
    }
    gv_close_n(h, 2);
    gv_open(h, "tbody");
}

void gv_table_end(struct gv_html *h)
{
    gv_close_n(h, 3);
}

void gv_cell_figure(struct gv_html *h, const char *name, double value)
{
    char text[32];
    gv_open_class(h, "td", "n");
    gv_data(h, name, value);
    gv_text(h, gv_figure_text(value, text));
    gv_close(h);
}

const char *gv_figure_text(double value, char out[32])
{
    if (!isfinite(value))
        snprintf(out, 32, "-");
    else
        snprintf(out, 32, "%.*f", fabs(value) < 100 ? 2 : fabs(value) < 1000 ? 1 : 0, value);
    return out;
}

const char *gv_size_text(uint64_t bytes, char out[32])
{
    double near = exp2(round(log2((double)(bytes ? bytes : 1))));
    if (fabs((double)bytes / near - 1) <= 0.01)
        bytes = (uint64_t)near;
    return gv_size_format(bytes, out, 32);
}
