/* Host links, alone and all at once. */
#include <math.h>
#include <stdio.h>

#include "profiler/report/view.h"

#define WIDTH 352.0
#define LEFT 104.0
#define BAR 11.0
#define ROW 34.0
#define TOP 8.0

static double most_of(const struct gv_profile *p)
{
    double most = 0;
    for (int i = 0; i < p->nhost_links; i++) {
        most = fmax(
            most, fmax(p->host_links[i].to_device_gbs.median, p->host_links[i].to_device_gbs.max));
        most =
            fmax(most, fmax(p->host_links[i].to_host_gbs.median, p->host_links[i].to_host_gbs.max));
    }
    return most;
}

static const char *
who(const struct gv_view *view, const struct gv_profile_host_link *link, char out[300])
{
    char set[256];
    gv_gpuset_format(gv_view_shown(view, link->gpus), set, sizeof(set));
    snprintf(out, 300, "%s %s", gv_gpuset_count(link->gpus) > 1 ? "GPUs" : "GPU", set);
    return out;
}

static void
bar(struct gv_html *h, const char *class, double y, double most, const struct gv_figure *figure,
    const char *name)
{
    double room = WIDTH - LEFT - 46, width = figure->median / most * room;
    char text[32];
    if (!isfinite(figure->median))
        return;
    gv_open(h, "rect");
    gv_attrf(h, "class", "bar %s", class);
    gv_at(h, "x", LEFT);
    gv_at(h, "y", y);
    gv_at(h, "width", width);
    gv_at(h, "height", BAR);
    gv_data(h, name, figure->median);
    gv_close(h);
    double end = LEFT + width;
    if (figure->count > 1 && figure->max > figure->min) {
        double low = LEFT + figure->min / most * room, high = LEFT + figure->max / most * room;
        gv_open_class(h, "path", "whisker");
        gv_attrf(h, "d", "M%.1f %.1fH%.1f", low, y + BAR / 2, high);
        gv_close(h);
        end = fmax(end, high);
    }
    gv_svg_text(h, "tick", end + 4, y + BAR - 1.5, "start", gv_figure_text(figure->median, text));
}

static void draw(struct gv_html *h, const struct gv_view *view)
{
    const struct gv_profile *p = view->profile;
    double most = most_of(p), height = TOP + p->nhost_links * ROW + 2;
    char text[300];
    gv_svg(
        h, "host-links", WIDTH, height, 1.4, "Host links",
        "Two bars for each GPU, to the GPU and to the host, in GB/s: each alone first, then all "
        "of a set at once, where the figure is each GPU's share. The table has the same figures.");
    for (int i = 0; i < p->nhost_links; i++) {
        const struct gv_profile_host_link *link = &p->host_links[i];
        double y = TOP + i * ROW;
        gv_open(h, "g");
        gv_attrf(h, "data-link", "%d", i);
        gv_svg_text(h, "head", LEFT - 6, y + 10, "end", who(view, link, text));
        gv_svg_text(h, "tick", LEFT - 6, y + 22, "end", link->together ? "at once, each" : "alone");
        bar(h, "in", y, most, &link->to_device_gbs, "data-to-device-gbs");
        bar(h, "out", y + BAR + 2, most, &link->to_host_gbs, "data-to-host-gbs");
        gv_close(h);
    }
    gv_close(h);
}

static void key(struct gv_html *h)
{
    static const char *const names[][2] = {{"bar in", " to the GPU"}, {"bar out", " to the host"}};
    gv_open_class(h, "ul", "key");
    for (int i = 0; i < 2; i++) {
        gv_open(h, "li");
        gv_open(h, "svg");
        gv_attr(h, "viewBox", "0 0 24 12");
        gv_attr(h, "width", "24");
        gv_attr(h, "height", "12");
        gv_attr(h, "aria-hidden", "true");
        gv_svg_rect(h, names[i][0], 1, 1, 22, 10);
        gv_close(h);
        gv_text(h, names[i][1]);
        gv_close(h);
    }
    gv_close(h);
}

static void range_cell(struct gv_html *h, const char *name, const struct gv_figure *figure)
{
    char median[32], low[32], high[32];
    gv_open_class(h, "td", "n");
    gv_data(h, name, figure->median);
    gv_text(h, gv_figure_text(figure->median, median));
    if (figure->count > 1) {
        gv_open(h, "br");
        gv_close(h);
        gv_elementf(
            h, "small", "%s\xe2\x80\x93%s", gv_figure_text(figure->min, low),
            gv_figure_text(figure->max, high));
    }
    gv_close(h);
}

static void table(struct gv_html *h, const struct gv_view *view)
{
    static const char *const headings[] = {"GPUs", "how", "to the GPU", "to the host", "root port"};
    char text[300];
    gv_table_figures(h, "Host links, GB/s, median and range", headings, 5, 12);
    for (int i = 0; i < view->profile->nhost_links; i++) {
        const struct gv_profile_host_link *link = &view->profile->host_links[i];
        gv_open(h, "tr");
        gv_attrf(h, "data-link", "%d", i);
        gv_open(h, "th");
        gv_attr(h, "scope", "row");
        gv_text(h, who(view, link, text));
        gv_close(h);
        gv_element(h, "td", link->together ? "at once, each" : "alone");
        range_cell(h, "data-to-device-gbs", &link->to_device_gbs);
        range_cell(h, "data-to-host-gbs", &link->to_host_gbs);
        gv_element(h, "td", link->root_port[0] ? link->root_port : "-");
        gv_close(h);
    }
    gv_table_end(h);
}

void gv_part_host_links(struct gv_html *h, const struct gv_view *view)
{
    if (!view->profile->nhost_links) {
        gv_element(h, "p", "The profile has no figures of host links.");
        return;
    }
    gv_open_class(h, "div", "pair");
    gv_open(h, "figure");
    gv_element(h, "figcaption", "Host memory and GPU, GB/s");
    key(h);
    draw(h, view);
    gv_close(h);
    gv_open_class(h, "div", "beside");
    table(h, view);
    gv_close_n(h, 2);
}
