/* The ring of each variant, on the tree of CPU nodes, switches and GPUs. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "profiler/report/ring_layout.h"

static const char *class_of(const struct gv_compared_edge *e)
{
    if (gv_transport_is_shm(e->transport))
        return "shm";
    if (!strncmp(e->transport, "P2P", 3))
        return "p2p";
    return "other";
}

/* "P2P" of "P2P/IPC": the picture has no room for all of it, the table has. */
static const char *brief(const struct gv_compared_edge *e, char out[40])
{
    snprintf(out, 40, "%.*s", (int)strcspn(e->transport, "/"), e->transport);
    if (gv_transport_is_shm(e->transport))
        snprintf(out, 40, "SHM");
    return out[0] ? out : "?";
}

static void draw_tree(struct gv_html *h, const struct gv_ring_layout *l)
{
    for (int i = 0; i < l->nrows; i++) {
        const struct gv_ring_row *row = &l->row[i];
        double x = row->kind == GV_ROW_GPU ? l->box_x : 6 + 17.0 * row->indent;
        if (row->parent >= 0) {
            const struct gv_ring_row *up = &l->row[row->parent];
            double trunk = 11 + 17.0 * up->indent;
            gv_open_class(h, "path", "tree");
            gv_attrf(h, "d", "M%.1f %.1fV%.1fH%.1f", trunk, up->y + 7, row->y, x);
            gv_close(h);
        }
        if (row->kind == GV_ROW_GPU) {
            gv_svg_rect(h, "gpu", x, row->y - 12, l->box_width, 24);
            gv_svg_text(h, "name", x + l->box_width / 2, row->y + 4, "middle", row->name);
        } else {
            gv_svg_rect(h, "knot", x, row->y - 5, 10, 10);
            gv_svg_text(h, "head", x + 15, row->y + 4, "start", row->name);
        }
    }
}

static void edge_data(struct gv_html *h, const struct gv_compared_edge *e, bool slowest)
{
    gv_attrf(h, "data-from", "%d", e->from);
    gv_attrf(h, "data-to", "%d", e->to);
    gv_attr(h, "data-transport", e->transport);
    gv_data(h, "data-gbs", e->gbs);
    if (slowest)
        gv_attr(h, "data-slowest", "true");
}

static void draw_line(struct gv_html *h, const struct gv_ring_layout *l, int i, bool slowest)
{
    const struct gv_ring_lane *at = &l->edge[i];
    double x0 = l->box_x + l->box_width, x1 = l->lane_x + at->lane * l->lane_step;
    double turn = at->to_y > at->from_y ? 5 : -5;
    gv_open_class(h, "path", slowest ? "edge slowest" : "edge");
    gv_attrf(
        h, "d", "M%.1f %.1fH%.1fQ%.1f %.1f %.1f %.1fV%.1fQ%.1f %.1f %.1f %.1fH%.1f", x0, at->from_y,
        x1 - 5, x1, at->from_y, x1, at->from_y + turn, at->to_y - turn, x1, at->to_y, x1 - 5,
        at->to_y, x0 + 7);
    gv_close(h);
    gv_open_class(h, "path", "arrow");
    gv_attrf(h, "d", "M%.1f %.1fl8-4v8z", x0 + 1, at->to_y);
    gv_close(h);
}

static void draw_edge(
    struct gv_html *h, const struct gv_ring_layout *l, const struct gv_compared_ring *ring, int i)
{
    const struct gv_compared_edge *e = &ring->edge[i];
    char figure[32];
    gv_open_class(h, "g", class_of(e));
    edge_data(h, e, i == ring->slowest);
    gv_open(h, "title");
    gv_textf(
        h, "GPU %d to GPU %d: %s, %s, %s GB/s%s", e->from, e->to, e->path[0] ? e->path : "?",
        e->transport[0] ? e->transport : "transport not known", gv_figure_text(e->gbs, figure),
        i == ring->slowest ? ", the slowest hop" : "");
    gv_close(h);
    draw_line(h, l, i, i == ring->slowest);
    gv_close(h);
}

/* Above all lines, which it interrupts. */
static void draw_label(
    struct gv_html *h, const struct gv_ring_layout *l, const struct gv_compared_ring *ring, int i)
{
    const struct gv_compared_edge *e = &ring->edge[i];
    char name[40], figure[32], text[96];
    bool known = isfinite(e->gbs), slowest = i == ring->slowest;
    snprintf(
        text, sizeof(text), "%s%s%s%s", brief(e, name), known ? " " : "",
        known ? gv_figure_text(e->gbs, figure) : "", slowest ? " slowest" : "");
    double x = l->lane_x + l->edge[i].lane * l->lane_step + 6, y = l->edge[i].label_y;
    gv_svg_rect(h, "ground", x - 2, y - 7, 6.6 * (double)strlen(text) + 4, 14);
    gv_svg_text(h, slowest ? "label slowest" : "label", x, y + 4, "start", text);
}

static void draw(struct gv_html *h, const struct gv_view *view, int s)
{
    struct gv_ring_layout layout;
    const struct gv_compared_ring *ring = &view->compared->ring[s];
    char id[32], title[96];
    gv_ring_lay_out(view, ring, &layout);
    snprintf(id, sizeof(id), "ring-%d", s);
    snprintf(title, sizeof(title), "Ring under %s", view->compared->run.steer[s].name);
    gv_svg(
        h, id, layout.width, layout.height, 1.1, title,
        "The GPUs on the PCI tree, and the ring's edges beside them with transport and figure in "
        "GB/s; solid lines are P2P, dashed ones host memory. The table beside it says the same.");
    draw_tree(h, &layout);
    for (int i = 0; i < ring->n; i++) /* the slowest last, above the others */
        if (i != ring->slowest)
            draw_edge(h, &layout, ring, i);
    if (ring->slowest >= 0)
        draw_edge(h, &layout, ring, ring->slowest);
    for (int i = 0; i < ring->n; i++)
        draw_label(h, &layout, ring, i);
    gv_close(h);
}

static void table(struct gv_html *h, const struct gv_view *view, int s)
{
    static const char *const headings[] = {"edge", "path", "transport", "GB/s"};
    const struct gv_compared_ring *ring = &view->compared->ring[s];
    char caption[96];
    snprintf(caption, sizeof(caption), "Edges under %s", view->compared->run.steer[s].name);
    gv_table_figures(h, caption, headings, 4, 8);
    for (int i = 0; i < ring->n; i++) {
        const struct gv_compared_edge *e = &ring->edge[i];
        gv_open(h, "tr");
        edge_data(h, e, i == ring->slowest);
        gv_open(h, "th");
        gv_attr(h, "scope", "row");
        gv_textf(h, "%d \xe2\x86\x92 %d", e->from, e->to);
        gv_close(h);
        gv_element(h, "td", e->path[0] ? e->path : "-");
        gv_open(h, "td");
        gv_text(h, e->transport[0] ? e->transport : "-");
        if (i == ring->slowest) {
            gv_open(h, "br");
            gv_close(h);
            gv_element(h, "strong", "slowest");
        }
        gv_close(h);
        gv_cell_figure(h, "data-gbs", e->gbs);
        gv_close(h);
    }
    gv_table_end(h);
}

static void one_ring(struct gv_html *h, const struct gv_view *view, int s)
{
    const struct gv_compared *c = view->compared;
    gv_open_class(h, "div", "pair half");
    gv_attr(h, "data-ring", c->run.steer[s].name);
    if (!c->ring[s].n) {
        gv_elementf(h, "p", "%s: NCCL's log named no ring.", c->run.steer[s].name);
        gv_close(h);
        return;
    }
    gv_open(h, "figure");
    gv_open(h, "figcaption");
    gv_text(h, c->run.steer[s].name);
    if (c->run.wiring[s].channels)
        gv_textf(h, ", %d channels", c->run.wiring[s].channels);
    gv_close(h);
    draw(h, view, s);
    gv_close(h);
    gv_open_class(h, "div", "beside");
    table(h, view, s);
    gv_close_n(h, 2);
}

void gv_part_ring(struct gv_html *h, const struct gv_view *view)
{
    gv_element(
        h, "p",
        "Order and transports are NCCL's own, from its log (channel 0). A figure is what the "
        "profile has for that pair alone on that transport, one way, in GB/s. Solid: P2P. Dashed: "
        "through host memory (SHM). Dotted: anything else.");
    for (int i = 0; i < view->compared->norigins; i++)
        if (view->compared->origin[i].profile)
            gv_elementf(
                h, "p",
                "Of %s, a profile: the ring that it measured or that its policy expects, and the "
                "transports likewise.",
                view->compared->origin[i].file);
    if (!view->profile)
        gv_element(h, "p", "No profile: where the GPUs sit is not known here.");
    gv_open_class(h, "div", "grid");
    for (int s = 0; s < view->compared->run.nsteers; s++)
        one_ring(h, view, s);
    gv_close(h);
}
