/* The fleet as one page, with the look of the other reports. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "profiler/fleet/fleet.h"
#include "profiler/report/view.h"

#define ROW 24.0
#define LEFT 172.0
#define PLOT 300.0
#define TOP 30.0

static const char style[] = ".dot{fill:var(--c0);stroke:var(--ground);stroke-width:.8}"
                            ".dot.off{fill:var(--bad)}.zero{stroke:var(--soft);stroke-width:1}\n";

static void lines(struct gv_html *h, const struct gv_str *text)
{
    for (const char *p = text->data; p && *p;) {
        size_t n = strcspn(p, "\n");
        gv_elementf(h, "p", "%.*s", (int)n, p);
        p += n + (p[n] == '\n');
    }
}

static bool virtual_of(const struct gv_fleet *fleet)
{
    for (int i = 0; i < fleet->nhosts; i++)
        if (fleet->hosts[i].profile->provenance.kind == GV_VIRTUAL)
            return true;
    return false;
}

static int hosts_off(const struct gv_fleet *fleet)
{
    int n = 0;
    for (int i = 0; i < fleet->nhosts; i++)
        n += fleet->hosts[i].outliers > 0;
    return n;
}

static void summary(struct gv_html *h, const struct gv_fleet *fleet)
{
    char text[GV_ERROR_TEXT + GV_ERROR_FILE + 32];
    int off = hosts_off(fleet);
    if (virtual_of(fleet)) {
        gv_open_class(h, "p", "alarm");
        gv_text(h, "Virtual machines among them: their figures are no board's.");
        gv_close(h);
    }
    gv_open_class(h, "p", off ? "alarm" : "fine");
    gv_attrf(h, "data-hosts-off", "%d", off);
    gv_textf(h, "%d of %d hosts have something that is off.", off, fleet->nhosts);
    gv_close(h);
    for (int i = 0; i < fleet->nunread; i++) {
        gv_open_class(h, "p", "alarm");
        gv_textf(h, "Not read: %s", gv_error_format(&fleet->unread[i], text, sizeof(text)));
        gv_close(h);
    }
    lines(h, &fleet->passed);
}

static void section(struct gv_html *h, const char *id, const char *title)
{
    gv_open(h, "section");
    gv_attr(h, "id", id);
    gv_attrf(h, "aria-labelledby", "%s-h", id);
    gv_open(h, "h2");
    gv_attrf(h, "id", "%s-h", id);
    gv_text(h, title);
    gv_close(h);
}

static void row_head(struct gv_html *h, const char *text)
{
    gv_open(h, "tr");
    gv_open(h, "th");
    gv_attr(h, "scope", "row");
    gv_text(h, text);
    gv_close(h);
}

/* What follows from one cause is counted, not listed. */
static int follows(const struct gv_fleet *fleet, int cause)
{
    int n = 0;
    for (int i = 0; i < fleet->noutliers; i++)
        n += fleet->outliers[i].cause == cause;
    return n;
}

static void outliers(struct gv_html *h, const struct gv_fleet *fleet)
{
    static const char *const headings[] = {"host", "where", "what", "goes with it"};
    section(h, "off", "What is off");
    if (!fleet->noutliers)
        gv_element(h, "p", "Nothing that can be told.");
    else
        gv_table(h, "Hosts that differ from others of their kind", headings, 4);
    for (int i = 0; i < fleet->noutliers; i++) {
        const struct gv_fleet_outlier *o = &fleet->outliers[i];
        if (o->cause >= 0)
            continue;
        int more = follows(fleet, i);
        row_head(h, fleet->hosts[o->host].name);
        gv_element(h, "td", o->where);
        gv_open(h, "td");
        if (o->item >= 0) {
            gv_attr(h, "data-figure", gv_fleet_figures[fleet->items[o->item].key.figure].name);
            gv_data(h, "data-value", fleet->values[o->value].value);
            gv_data(h, "data-median", fleet->items[o->item].median);
        }
        gv_text(h, o->text);
        gv_close(h);
        gv_elementf(h, "td", more ? "%d figures of its pairs and groups" : "-", more);
        gv_close(h);
    }
    if (fleet->noutliers)
        gv_table_end(h);
    gv_close(h);
}

/* The value of this figure on this host that is furthest from its median; -1 none. */
static int
furthest(const struct gv_fleet *fleet, const struct gv_fleet_kind *kind, int figure, int host)
{
    double most = -1;
    int found = -1;
    for (int i = kind->first_item; i < kind->first_item + kind->nitems; i++) {
        const struct gv_fleet_item *item = &fleet->items[i];
        if (item->key.figure != figure || !(item->median > 0))
            continue;
        for (int v = item->first; v < item->first + item->n; v++) {
            double away = fabs(fleet->values[v].value / item->median - 1);
            if (fleet->values[v].host == host && away > most) {
                most = away;
                found = v;
            }
        }
    }
    return found;
}

static const struct gv_fleet_item *
item_of(const struct gv_fleet *fleet, const struct gv_fleet_kind *kind, int value)
{
    return gv_fleet_find(fleet, kind, &fleet->values[value].key);
}

static void
dot(struct gv_html *h, const struct gv_fleet *fleet, const struct gv_fleet_kind *kind, int value,
    double y, double scale)
{
    const struct gv_fleet_value *v = &fleet->values[value];
    const struct gv_fleet_item *item = item_of(fleet, kind, value);
    double off = v->value / item->median - 1, shown = fmin(fmax(off, -scale), scale);
    char where[160], here[48];
    gv_open_class(h, "circle", v->off ? "dot off" : "dot");
    gv_at(h, "cx", LEFT + PLOT / 2 * (1 + shown / scale));
    gv_at(h, "cy", y);
    gv_at(h, "r", v->off ? 5 : 3.5);
    gv_attr(h, "data-host", fleet->hosts[v->host].name);
    gv_attr(h, "data-figure", gv_fleet_figures[v->key.figure].name);
    gv_data(h, "data-deviation", off);
    gv_open(h, "title");
    gv_textf(
        h, "%s, %s: %s (%+.1f %%)", fleet->hosts[v->host].name,
        gv_fleet_where(fleet, &v->key, where, sizeof(where)),
        gv_fleet_say(&v->key, v->value, here, sizeof(here)), 100 * off);
    gv_close_n(h, 2);
}

/* A row for each figure, a dot for each host: how far its furthest item is from the kind's median.
 */
static void picture(struct gv_html *h, const struct gv_fleet *fleet, int k, const int *shown, int n)
{
    const struct gv_fleet_kind *kind = &fleet->kinds[k];
    char id[32], text[32];
    double scale = 0.05;
    for (int r = 0; r < n; r++)
        for (int i = 0; i < kind->n; i++) {
            int v = furthest(fleet, kind, shown[r], kind->hosts[i]);
            if (v >= 0)
                scale =
                    fmax(scale, fabs(fleet->values[v].value / item_of(fleet, kind, v)->median - 1));
        }
    scale = fmin(ceil(scale * 20) / 20, 1);
    snprintf(id, sizeof(id), "spread-%d", k);
    gv_open(h, "figure");
    gv_svg(
        h, id, LEFT + PLOT + 30, TOP + n * ROW + 8, 1.35, "Hosts against the median of their kind",
        "A row for each figure; a dot for each host shows how far its furthest item is from the "
        "median over hosts. What is off is larger and orange. The table after it has the spreads.");
    for (int t = -1; t <= 1; t++) {
        double x = LEFT + PLOT / 2 * (1 + t);
        snprintf(text, sizeof(text), "%+.0f %%", 100 * t * scale);
        gv_svg_text(h, "tick", x, 14, "middle", t ? text : "median");
        gv_svg_line(h, t ? "grid" : "zero", x, 20, x, TOP + n * ROW);
    }
    for (int r = 0; r < n; r++) {
        double y = TOP + (r + 0.5) * ROW;
        gv_svg_text(h, "tick strong", LEFT - 12, y + 4, "end", gv_fleet_figures[shown[r]].label);
        gv_svg_line(h, "grid", LEFT, y, LEFT + PLOT, y);
        for (int i = 0; i < kind->n; i++) {
            int v = furthest(fleet, kind, shown[r], kind->hosts[i]);
            if (v >= 0)
                dot(h, fleet, kind, v, y, scale);
        }
    }
    gv_close_n(h, 2);
}

static void
spread_row(struct gv_html *h, const struct gv_fleet *fleet, const struct gv_fleet_spread *s, int f)
{
    char where[160], text[32];
    row_head(h, gv_fleet_figures[f].label);
    gv_element(h, "td", gv_fleet_figures[f].unit);
    gv_elementf(h, "td", "%d", s->items);
    gv_open_class(h, "td", "n");
    gv_data(h, "data-low", s->low);
    gv_data(h, "data-high", s->high);
    gv_text(h, gv_figure_text(s->low, text));
    if (s->high > s->low)
        gv_textf(h, " to %s", gv_figure_text(s->high, text));
    gv_close(h);
    gv_open_class(h, "td", "n");
    gv_data(h, "data-typical", s->typical);
    gv_textf(h, isfinite(s->typical) ? "%.1f %%" : "-", 100 * s->typical);
    gv_close(h);
    gv_open_class(h, "td", "n");
    gv_data(h, "data-widest", s->widest);
    gv_textf(h, isfinite(s->widest) ? "%.1f %%" : "-", 100 * s->widest);
    gv_close(h);
    gv_element(
        h, "td",
        s->widest_item >= 0 && s->widest > 0
            ? gv_fleet_where(fleet, &fleet->items[s->widest_item].key, where, sizeof(where))
            : "-");
    gv_elementf(h, "td", "%d", s->off);
    gv_close(h);
}

static void spreads(struct gv_html *h, const struct gv_fleet *fleet, int k)
{
    static const char *const headings[] = {"figure",         "unit",          "items", "medians",
                                           "typical spread", "widest spread", "where", "off"};
    const struct gv_fleet_kind *kind = &fleet->kinds[k];
    struct gv_fleet_spread s;
    int shown[64], n = 0;
    for (int f = 0; f < gv_fleet_nfigures && n < 64; f++)
        if (!gv_fleet_figures[f].counted && gv_fleet_spread_of(fleet, kind, f, &s))
            shown[n++] = f;
    gv_open_class(h, "div", "pair");
    if (n && kind->n > 1)
        picture(h, fleet, k, shown, n);
    gv_open_class(h, "div", "beside");
    gv_table(h, "Spread across hosts, largest less smallest over the median", headings, 8);
    for (int i = 0; i < n; i++) {
        gv_fleet_spread_of(fleet, kind, shown[i], &s);
        spread_row(h, fleet, &s, shown[i]);
    }
    gv_table_end(h);
    gv_close_n(h, 2);
}

static void hosts(struct gv_html *h, const struct gv_fleet *fleet, const struct gv_fleet_kind *kind)
{
    static const char *const headings[] = {"host", "profile", "measured", "figures that are off"};
    gv_table(h, "Hosts", headings, 4);
    for (int i = 0; i < kind->n; i++) {
        const struct gv_fleet_host *host = &fleet->hosts[kind->hosts[i]];
        row_head(h, host->name);
        gv_element(h, "td", host->file);
        gv_element(h, "td", host->profile->provenance.date);
        gv_elementf(h, "td", "%d", host->outliers);
        gv_close(h);
    }
    gv_table_end(h);
}

static void kind_part(struct gv_html *h, const struct gv_fleet *fleet, int k)
{
    const struct gv_fleet_kind *kind = &fleet->kinds[k];
    const struct gv_profile *p = fleet->hosts[kind->hosts[0]].profile;
    char id[32], title[128];
    snprintf(id, sizeof(id), "kind-%d", k);
    snprintf(title, sizeof(title), "%s: %d host%s", kind->name, kind->n, kind->n == 1 ? "" : "s");
    section(h, id, title);
    gv_open(h, "dl");
    gv_factf(h, "GPUs", "%d, %s", p->ngpus, p->ngpus ? p->gpus[0].model : "");
    gv_fact(h, "driver", p->provenance.driver);
    gv_fact(h, "figures", gv_provenance_name(p->provenance.kind));
    if (*kind->differs)
        gv_fact(h, "differs", kind->differs);
    gv_close(h);
    if (kind->n < GV_FLEET_FEWEST)
        gv_element(h, "p", "Too few hosts to tell which one is off: it takes three.");
    lines(h, &kind->left_out);
    spreads(h, fleet, k);
    hosts(h, fleet, kind);
    gv_close(h);
}

static void link_to(struct gv_html *h, const char *id, const char *title)
{
    gv_open(h, "li");
    gv_open(h, "a");
    gv_attrf(h, "href", "#%s", id);
    gv_text(h, title);
    gv_close_n(h, 2);
}

static void navigation(struct gv_html *h, const struct gv_fleet *fleet)
{
    char id[32];
    gv_open(h, "nav");
    gv_attr(h, "aria-label", "Parts");
    gv_open(h, "ul");
    link_to(h, "off", "What is off");
    for (int k = 0; k < fleet->nkinds; k++) {
        snprintf(id, sizeof(id), "kind-%d", k);
        link_to(h, id, fleet->kinds[k].name);
    }
    gv_close_n(h, 2);
}

int gv_fleet_html(const struct gv_fleet *fleet, struct gv_str *out)
{
    struct gv_html h = {.out = out};
    char title[96];
    snprintf(
        title, sizeof(title), "Fleet of %d host%s of %d kind%s", fleet->nhosts,
        fleet->nhosts == 1 ? "" : "s", fleet->nkinds, fleet->nkinds == 1 ? "" : "s");
    gv_page_open(&h, title, style);
    summary(&h, fleet);
    gv_close(&h);
    navigation(&h, fleet);
    gv_open(&h, "main");
    gv_attr(&h, "id", "content");
    outliers(&h, fleet);
    for (int k = 0; k < fleet->nkinds; k++)
        kind_part(&h, fleet, k);
    gv_close_n(&h, 3);
    gv_str_add(out, "\n");
    return out->failed ? -1 : 0;
}
