/* `gv100 fleet` for people. */
#include <math.h>
#include <string.h>

#include "profiler/cli/fleet.h"
#include "profiler/cli/text.h"

static void
join_hosts(const struct gv_fleet *fleet, const struct gv_fleet_kind *kind, char *out, size_t size)
{
    size_t n = 0;
    out[0] = '\0';
    for (int i = 0; i < kind->n && n < size; i++) {
        if (n + 120 > size) {
            snprintf(out + n, size - n, ", and %d more", kind->n - i);
            return;
        }
        n += (size_t)snprintf(
            out + n, size - n, "%s%s", i ? ", " : "", fleet->hosts[kind->hosts[i]].name);
    }
}

static void percent(double value, char out[24])
{
    if (isfinite(value))
        snprintf(out, 24, "%.1f%%", 100 * value);
    else
        snprintf(out, 24, "-");
}

static void spread_row(
    const struct gv_fleet *fleet, const struct gv_fleet_spread *s, int f, struct gv_table_text *t)
{
    char items[24], low[24], high[24], typical[24], widest[24], off[24], where[160];
    snprintf(items, sizeof(items), "%d", s->items);
    snprintf(off, sizeof(off), "%d", s->off);
    percent(s->typical, typical);
    percent(s->widest, widest);
    const char *const cells[] = {
        gv_fleet_figures[f].label,
        gv_fleet_figures[f].unit,
        items,
        gv_number(s->low, low),
        gv_number(s->high, high),
        typical,
        widest,
        s->widest_item >= 0 && s->widest > 0
            ? gv_fleet_where(fleet, &fleet->items[s->widest_item].key, where, sizeof(where))
            : "",
        off,
    };
    gv_text_row(t, cells, s->off ? GV_WARN_STYLE : GV_PLAIN);
}

static void print_spreads(const struct gv_fleet *fleet, const struct gv_fleet_kind *kind)
{
    static const char *const head[] = {"figure",  "unit",   "items", "least", "most",
                                       "typical", "widest", "where", "off"};
    struct gv_table_text t = {.columns = 9};
    struct gv_fleet_spread s;
    gv_text_row(&t, head, GV_DIM);
    for (int f = 0; f < gv_fleet_nfigures; f++)
        if (!gv_fleet_figures[f].counted && gv_fleet_spread_of(fleet, kind, f, &s))
            spread_row(fleet, &s, f, &t);
    if (t.rows > 1) {
        puts("  medians over hosts, least and most of the items; spread across hosts: typical and "
             "widest");
        gv_text_print(&t, 4);
    } else
        gv_text_free(&t);
}

static void print_lines(const char *label, const struct gv_str *text)
{
    char line[600];
    for (const char *p = text->data; p && *p;) {
        size_t n = strcspn(p, "\n");
        snprintf(line, sizeof(line), "%.*s", (int)n, p);
        gv_print_field(label, line);
        p += n + (p[n] == '\n');
    }
}

static void print_kind(const struct gv_fleet *fleet, int k, const char *written)
{
    const struct gv_fleet_kind *kind = &fleet->kinds[k];
    const struct gv_profile *p = fleet->hosts[kind->hosts[0]].profile;
    char text[2048];
    printf(
        "%s%s%s: %d host%s, driver %s%s\n", gv_style(GV_BOLD), kind->name, gv_style(GV_PLAIN),
        kind->n, kind->n == 1 ? "" : "s",
        *p->provenance.driver ? p->provenance.driver : "not known",
        p->provenance.kind == GV_VIRTUAL ? " (virtual)" : "");
    if (*kind->differs)
        gv_print_field("differs", kind->differs);
    join_hosts(fleet, kind, text, sizeof(text));
    gv_print_field("hosts", text);
    print_spreads(fleet, kind);
    if (kind->n < GV_FLEET_FEWEST)
        gv_print_field(
            "note", kind->n == 1 ? "one host: there is nothing to compare it with"
                                 : "two hosts: where they differ, no one can tell which is off");
    print_lines("left out", &kind->left_out);
    if (written)
        gv_print_field("profile", written);
    putchar('\n');
}

/* What follows from outlier `cause`: how many, and the furthest off. */
static int follows(const struct gv_fleet *fleet, int cause, int *furthest)
{
    double most = -1;
    int n = 0;
    *furthest = -1;
    for (int i = 0; i < fleet->noutliers; i++) {
        const struct gv_fleet_outlier *o = &fleet->outliers[i];
        if (o->cause != cause)
            continue;
        n++;
        const struct gv_fleet_item *item = &fleet->items[o->item];
        double off = item->median > 0 ? fabs(fleet->values[o->value].value / item->median - 1) : 0;
        if (gv_fleet_figures[item->key.figure].counted)
            off = 0;
        if (off > most) {
            most = off;
            *furthest = i;
        }
    }
    return n;
}

static void print_outliers(const struct gv_fleet *fleet)
{
    int host = -1, furthest;
    char text[400];
    for (int i = 0; i < fleet->noutliers; i++) {
        const struct gv_fleet_outlier *o = &fleet->outliers[i];
        if (o->cause >= 0)
            continue;
        if (o->host != host)
            printf(
                "%s%s%s is off:\n", gv_style(GV_BAD), fleet->hosts[o->host].name,
                gv_style(GV_PLAIN));
        host = o->host;
        printf("  %s: %s\n", o->where, o->text);
        int n = follows(fleet, i, &furthest);
        if (!n)
            continue;
        const struct gv_fleet_outlier *far = &fleet->outliers[furthest];
        snprintf(
            text, sizeof(text), "%d more go with it, the furthest: %s: %s", n, far->where,
            far->text);
        printf("    %s\n", text);
    }
}

void gv_fleet_print(const struct gv_fleet *fleet, char *const *written)
{
    int off = 0;
    for (int i = 0; i < fleet->nhosts; i++)
        off += fleet->hosts[i].outliers > 0;
    for (int k = 0; k < fleet->nkinds; k++)
        print_kind(fleet, k, written[k]);
    print_outliers(fleet);
    print_lines("passed", &fleet->passed);
    printf(
        "%d host%s of %d kind%s, %d off", fleet->nhosts, fleet->nhosts == 1 ? "" : "s",
        fleet->nkinds, fleet->nkinds == 1 ? "" : "s", off);
    if (fleet->nunread)
        printf(", %d not read", fleet->nunread);
    putchar('\n');
}
