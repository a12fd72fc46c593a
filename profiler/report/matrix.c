/* The P2P matrix as a heat map with its legend, the same as a table, and the paths behind it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "profiler/report/colour.h"
#include "profiler/report/view.h"

#define CELL 28.0
#define SMALL 14.0 /* without figures in the cells: for many GPUs */
#define MANY 16
#define LEFT 36.0
#define TOP 36.0

struct matrix {
    const struct gv_view *view;
    int gpu[GV_MAX_GPUS], n; /* the profile's GPUs, in the page's numbers */
    double cell;             /* width and height of one */
    struct gv_heat heat;
};

/* A cell: the figure of P2P where P2P is sound or not yet verified, else of the way through host
 * memory, which is never a P2P figure. */
struct cell {
    bool known, p2p;
    enum gv_p2p state;
    double gbs;
};

static struct cell cell_of(const struct matrix *m, int from, int to)
{
    const struct gv_view *v = m->view;
    const struct gv_profile_path *path =
        gv_profile_path_of(v->profile, v->to_profile[m->gpu[from]], v->to_profile[m->gpu[to]]);
    struct cell cell = {.gbs = NAN};
    if (!path)
        return cell;
    cell.known = true;
    cell.state = path->p2p;
    cell.p2p = (path->p2p == GV_P2P_VERIFIED || path->p2p == GV_P2P_UNVERIFIED) &&
               isfinite(path->write_gbs.median);
    cell.gbs = cell.p2p ? path->write_gbs.median : path->host_path_gbs.median;
    return cell;
}

static void collect(struct matrix *m)
{
    m->n = 0;
    for (int i = 0; i < m->view->profile->ngpus; i++)
        if (m->view->from_profile[i] >= 0)
            m->gpu[m->n++] = m->view->from_profile[i];
    m->cell = m->n > MANY ? SMALL : CELL;
    m->heat = (struct gv_heat){INFINITY, 0};
    for (int a = 0; a < m->n; a++)
        for (int b = 0; b < m->n; b++) {
            struct cell cell = cell_of(m, a, b);
            if (a == b || !cell.p2p || !(cell.gbs > 0))
                continue;
            m->heat.low = fmin(m->heat.low, cell.gbs);
            m->heat.high = fmax(m->heat.high, cell.gbs);
        }
    /* Pairs that differ by noise must not look far apart. */
    m->heat.low = fmin(m->heat.low, m->heat.high / 2);
}

/* A figure that fits a cell: at most four characters. */
static const char *brief(double gbs, char out[32])
{
    snprintf(out, 32, "%.*f", gbs < 99.95 ? 1 : 0, gbs);
    return out;
}

/* One letter for what is not sound. */
static const char *letter(enum gv_p2p state)
{
    static const char *const letters[GV_P2P_STATES] = {"?", "", "no", "bad", "hung", "one"};
    return letters[state];
}

static void say(struct gv_html *h, const struct matrix *m, int a, int b, const struct cell *cell)
{
    char figure[32];
    gv_open(h, "title");
    gv_textf(
        h, "GPU %d to GPU %d: P2P %s, %s GB/s%s", m->gpu[a], m->gpu[b], gv_p2p_name(cell->state),
        gv_figure_text(cell->gbs, figure), cell->p2p ? "" : " (through host memory)");
    gv_close(h);
}

static void cell_data(struct gv_html *h, const struct matrix *m, int a, int b, const struct cell *c)
{
    gv_attrf(h, "data-from", "%d", m->gpu[a]);
    gv_attrf(h, "data-to", "%d", m->gpu[b]);
    gv_attr(h, "data-p2p", gv_p2p_name(c->state));
    gv_data(h, c->p2p ? "data-write-gbs" : "data-host-path-gbs", c->gbs);
}

static void draw_cell(struct gv_html *h, const struct matrix *m, int a, int b)
{
    struct cell cell = cell_of(m, a, b);
    double x = LEFT + b * m->cell, y = TOP + a * m->cell, place = 0;
    char colour[8], text[32];
    if (!cell.known) {
        gv_svg_rect(h, "unknown", x, y, m->cell, m->cell);
        return;
    }
    gv_open(h, "g");
    cell_data(h, m, a, b, &cell);
    say(h, m, a, b, &cell);
    gv_open_class(h, "rect", cell.p2p ? "cell" : "cell hatched");
    gv_at(h, "x", x);
    gv_at(h, "y", y);
    gv_at(h, "width", m->cell);
    gv_at(h, "height", m->cell);
    if (cell.p2p) {
        place = gv_heat_place(&m->heat, cell.gbs);
        gv_attr(h, "fill", gv_heat_colour(place, colour));
    }
    gv_close(h);
    const char *word = isfinite(cell.gbs) ? brief(cell.gbs, text) : letter(cell.state);
    if (m->n <= MANY)
        gv_svg_text(
            h,
            !cell.p2p                 ? "figure"
            : gv_heat_is_light(place) ? "figure dark"
                                      : "figure light",
            x + m->cell / 2, y + m->cell / 2 + 3.5, "middle", word);
    gv_close(h);
}

static void draw_head(struct gv_html *h, const struct matrix *m)
{
    char text[16];
    gv_svg_text(h, "tick", LEFT + m->n * m->cell / 2, 10, "middle", "to GPU");
    gv_open_class(h, "text", "tick");
    gv_attrf(h, "transform", "translate(10 %.1f) rotate(-90)", TOP + m->n * m->cell / 2);
    gv_attr(h, "text-anchor", "middle");
    gv_text(h, "from GPU");
    gv_close(h);
    for (int i = 0; i < m->n; i++) {
        snprintf(text, sizeof(text), "%d", m->gpu[i]);
        gv_svg_text(h, "tick strong", LEFT + (i + 0.5) * m->cell, TOP - 6, "middle", text);
        gv_svg_text(h, "tick strong", LEFT - 6, TOP + (i + 0.5) * m->cell + 4, "end", text);
    }
}

static void draw_hatch(struct gv_html *h)
{
    gv_open(h, "defs");
    gv_open(h, "pattern");
    gv_attr(h, "id", "hatch");
    gv_attr(h, "width", "6");
    gv_attr(h, "height", "6");
    gv_attr(h, "patternUnits", "userSpaceOnUse");
    gv_attr(h, "patternTransform", "rotate(45)");
    gv_svg_rect(h, "hatch-ground", 0, 0, 6, 6);
    gv_svg_line(h, "hatch-line", 0, 0, 0, 6);
    gv_close_n(h, 2);
}

/* The scale by its ends and three figures between, and what a hatched cell means. */
static void draw_legend(struct gv_html *h, const struct matrix *m, double y, double width)
{
    const int steps = 40;
    double x0 = LEFT, w = width - LEFT - 14, each = w / steps;
    char colour[8], text[32];
    gv_svg_text(h, "tick", x0, y - 5, "start", "GB/s one way, by P2P (logarithmic)");
    for (int i = 0; i < steps && m->heat.high > 0; i++) {
        gv_open(h, "rect");
        gv_at(h, "x", x0 + i * each);
        gv_at(h, "y", y);
        gv_at(h, "width", each + 0.6);
        gv_at(h, "height", 12);
        gv_attr(h, "fill", gv_heat_colour((i + 0.5) / steps, colour));
        gv_close(h);
    }
    int ticks = m->heat.high > m->heat.low ? 4 : 0;
    for (int i = 0; i <= ticks && m->heat.high > 0; i++) {
        double place = ticks ? (double)i / ticks : 1;
        gv_svg_text(
            h, "tick", x0 + place * w, y + 25,
            i == ticks ? "end"
            : i == 0   ? "start"
                       : "middle",
            gv_figure_text(gv_heat_value(&m->heat, place), text));
    }
    gv_svg_rect(h, "cell hatched", x0, y + 36, 14, 12);
    gv_svg_text(h, "tick", x0 + 20, y + 46, "start", "no P2P; a figure: through host memory");
}

static void draw(struct gv_html *h, const struct matrix *m)
{
    double width = LEFT + m->n * m->cell + 2, height = TOP + m->n * m->cell + 76;
    if (width < 270)
        width = 270;
    gv_svg(
        h, "p2p", width, height, 1.35, "P2P matrix",
        "A row for each sending GPU, a column for each receiving one; each cell has the one-way "
        "figure in GB/s, dark is slow and bright is fast, hatched is no P2P. The table after it "
        "has the same figures.");
    draw_hatch(h);
    draw_head(h, m);
    for (int a = 0; a < m->n; a++)
        for (int b = 0; b < m->n; b++) {
            if (a == b)
                gv_svg_rect(h, "self", LEFT + b * m->cell, TOP + a * m->cell, m->cell, m->cell);
            else
                draw_cell(h, m, a, b);
        }
    draw_legend(h, m, TOP + m->n * m->cell + 24, width);
    gv_close(h);
}

static void table_cell(struct gv_html *h, const struct matrix *m, int a, int b)
{
    char text[32];
    struct cell cell = cell_of(m, a, b);
    gv_open_class(h, "td", cell.p2p ? "n" : "n weak");
    if (a == b || !cell.known) {
        gv_text(h, a == b ? "" : "-");
        gv_close(h);
        return;
    }
    cell_data(h, m, a, b, &cell);
    gv_text(h, isfinite(cell.gbs) ? gv_figure_text(cell.gbs, text) : "-");
    if (cell.state != GV_P2P_VERIFIED) {
        gv_open(h, "br");
        gv_close(h);
        gv_element(h, "small", gv_p2p_name(cell.state));
    }
    gv_close(h);
}

static void matrix_table(struct gv_html *h, const struct matrix *m)
{
    char heading[GV_MAX_GPUS][16];
    const char *headings[GV_MAX_GPUS + 1] = {"from / to"};
    for (int i = 0; i < m->n; i++) {
        snprintf(heading[i], sizeof(heading[i]), "%d", m->gpu[i]);
        headings[i + 1] = heading[i];
    }
    gv_table_figures(h, "P2P matrix, GB/s one way", headings, m->n + 1, ~(uint64_t)1);
    for (int a = 0; a < m->n; a++) {
        gv_open(h, "tr");
        gv_open(h, "th");
        gv_attr(h, "scope", "row");
        gv_textf(h, "GPU %d", m->gpu[a]);
        gv_close(h);
        for (int b = 0; b < m->n; b++)
            table_cell(h, m, a, b);
        gv_close(h);
    }
    gv_table_end(h);
}

static void set_cell(struct gv_html *h, const struct gv_view *view, gv_gpuset set)
{
    char text[256];
    gv_element(h, "td", gv_gpuset_format(gv_view_shown(view, set), text, sizeof(text)));
}

static void path_row(struct gv_html *h, const struct gv_view *view, const struct gv_profile_path *p)
{
    gv_open(h, "tr");
    set_cell(h, view, p->from);
    set_cell(h, view, p->to);
    bool same = !p->smi_class[0] || !strcmp(p->smi_class, gv_path_class_name(p->nccl_class));
    gv_elementf(
        h, "td", "%s%s%s", gv_path_class_name(p->nccl_class), same ? "" : ", ",
        same ? "" : p->smi_class);
    gv_element(h, "td", gv_p2p_name(p->p2p));
    gv_cell_figure(h, "data-write-gbs", p->write_gbs.median);
    gv_cell_figure(h, "data-read-gbs", p->read_gbs.median);
    gv_cell_figure(h, "data-both-ways-gbs", p->both_ways_gbs.median);
    gv_cell_figure(h, "data-loaded-write-gbs", p->loaded_write_gbs.median);
    gv_cell_figure(h, "data-latency-us", p->latency_us.median);
    gv_cell_figure(h, "data-host-path-gbs", p->host_path_gbs.median);
    gv_open_class(h, "td", "note");
    gv_text(h, p->note);
    gv_close(h);
    gv_close(h);
}

static void path_table(struct gv_html *h, const struct gv_view *view)
{
    static const char *const headings[] = {
        "from",          "to",         "path",         "P2P", "write", "read", "both ways",
        "write, loaded", "latency us", "through host", "note"};
    gv_table(h, "Paths as the profile has them, medians, GB/s", headings, 11);
    for (int i = 0; i < view->profile->npaths; i++)
        path_row(h, view, &view->profile->paths[i]);
    gv_table_end(h);
}

void gv_part_paths(struct gv_html *h, const struct gv_view *view)
{
    struct matrix m = {.view = view};
    collect(&m);
    gv_open_class(h, "div", "pair");
    gv_open(h, "figure");
    gv_element(h, "figcaption", "One way, each pair alone");
    draw(h, &m);
    gv_close(h);
    gv_open_class(h, "div", "beside");
    matrix_table(h, &m);
    gv_close(h);
    gv_close(h);
    gv_open(h, "details");
    gv_elementf(h, "summary", "All %d paths of the profile, with latency", view->profile->npaths);
    path_table(h, view);
    gv_close(h);
}
