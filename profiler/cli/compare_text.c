/* The comparison for a person, and as CSV. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/gv_size.h"
#include "profiler/cli/compare_show.h"
#include "profiler/cli/text.h"

/* What a variant is: the plan that was forced, or what the plugin decided by itself. */
static void print_steer(const struct gv_steer *steer, const struct gv_wiring *w)
{
    char text[800];
    const char *what = !strcmp(steer->force, "default") ? "NCCL left alone"
                       : steer->force[0]                ? steer->force
                       : w->decided[0]                  ? w->decided
                                                        : "what the plugin decides";
    if (strlen(steer->name) < 11) {
        gv_print_field(steer->name, strcmp(what, steer->name) ? what : "forced");
        return;
    }
    snprintf(text, sizeof(text), "%s: %s", steer->name, what);
    gv_print_field("variant", strcmp(what, steer->name) ? text : what);
}

/* "2.28.9", or "2.23.4 and 2.28.9". */
static const char *releases(const struct gv_compared *c, char out[40])
{
    char first[16], last[16];
    int from = c->run.wiring[0].nccl_version, to = c->run.wiring[c->run.nsteers - 1].nccl_version;
    gv_nccl_format(from, first);
    gv_nccl_format(to, last);
    if (!from && !to)
        return "not known";
    snprintf(out, 40, "%s%s%s", first, from == to ? "" : " and ", from == to ? "" : last);
    return out;
}

static void print_head(const struct gv_compared *c)
{
    char gpus[256], version[40];
    gv_gpuset set = 0;
    for (int i = 0; i < c->run.nranks; i++)
        set |= GV_GPU_BIT(c->run.gpu[i]);
    gv_gpuset_format(set, gpus, sizeof(gpus));
    printf(
        "%sGPUs %s%s on %s%s, NCCL %s, %d ranks\n", gv_style(GV_BOLD), gpus, gv_style(GV_PLAIN),
        c->host, c->virtual_machine ? " (virtual: no figure is a board's)" : "",
        releases(c, version), c->run.nranks);
    for (int s = 0; s < c->run.nsteers; s++)
        print_steer(&c->run.steer[s], &c->run.wiring[s]);
    for (int i = 0; i < c->nnotes; i++)
        gv_print_field("note", c->note[i]);
    puts("");
}

static const char *range(const struct gv_side *side, char out[40])
{
    if (side->count)
        snprintf(out, 40, "%.2f-%.2f", side->low, side->high);
    else
        snprintf(out, 40, "-");
    return out;
}

static const char *percent(double value, char out[40])
{
    if (isfinite(value))
        snprintf(out, 40, "%+.1f%%", 100 * value);
    else
        snprintf(out, 40, "-");
    return out;
}

static enum gv_style style_of(enum gv_verdict verdict)
{
    return verdict == GV_GAIN ? GV_GOOD : verdict == GV_LOSS ? GV_BAD : GV_PLAIN;
}

static void
print_row(const struct gv_compared *c, const struct gv_compared_row *row, struct gv_table_text *t)
{
    const struct gv_case *what = &c->run.cases[row->k];
    char size[40], op[40], base[24], other[24], balg[24], oalg[24], low[40], high[40], gain[40],
        between[96], a[40], b[40];
    snprintf(op, sizeof(op), "%s%s", gv_op_name(what->op), what->in_place ? " (in place)" : "");
    gv_size_format(what->bytes, size, sizeof(size));
    if (isfinite(row->interval.low))
        snprintf(
            between, sizeof(between), "%s..%s", percent(row->interval.low, a),
            percent(row->interval.high, b));
    else
        snprintf(between, sizeof(between), "-");
    const char *cells[] = {
        op,
        size,
        gv_number(row->base.algbw_gbs, balg),
        gv_number(row->base.busbw_gbs, base),
        range(&row->base.busbw, low),
        gv_number(row->tuned.algbw_gbs, oalg),
        gv_number(row->tuned.busbw_gbs, other),
        range(&row->tuned.busbw, high),
        percent(row->gain, gain),
        between,
        gv_judgement(row->verdict)};
    gv_text_row(t, cells, style_of(row->verdict));
}

static void print_rows(const struct gv_compared *c, int s)
{
    static const char *const heading[] = {"operation", "size",  "algbw", "busbw", "range",  "algbw",
                                          "busbw",     "range", "gain",  "95 %",  "verdict"};
    struct gv_table_text t = {.columns = 11};
    printf(
        "%s%s against %s%s, GB/s\n", gv_style(GV_BOLD), c->run.steer[s].name,
        c->run.steer[c->base].name, gv_style(GV_PLAIN));
    gv_text_row(&t, heading, GV_DIM);
    for (int i = 0; i < c->nrows; i++)
        if (c->rows[i].other == s)
            print_row(c, &c->rows[i], &t);
    gv_text_print(&t, 2);
}

static void print_wrong(const struct gv_compared *c, int s, int k)
{
    char size[32];
    const struct gv_cell *cell = gv_cell_of(&c->run, s, k);
    gv_size_format(c->run.cases[k].bytes, size, sizeof(size));
    if (cell->wrong)
        printf(
            "%s%s, %s of %s: %llu wrong elements%s\n", gv_style(GV_BAD), c->run.steer[s].name,
            gv_op_name(c->run.cases[k].op), size, (unsigned long long)cell->wrong,
            gv_style(GV_PLAIN));
}

/* The same cause is told once, with the first case that it struck. */
static void print_errors(const struct gv_compared *c)
{
    char size[32];
    for (int s = 0; s < c->run.nsteers; s++) {
        const char *last = "";
        for (int k = 0; k < c->run.ncases; k++) {
            const struct gv_cell *cell = gv_cell_of(&c->run, s, k);
            print_wrong(c, s, k);
            if (!cell->error[0] || !strcmp(cell->error, last))
                continue;
            last = cell->error;
            gv_size_format(c->run.cases[k].bytes, size, sizeof(size));
            printf(
                "%s%s, %s of %s%s: %s\n", gv_style(GV_BAD), c->run.steer[s].name,
                gv_op_name(c->run.cases[k].op), size, gv_style(GV_PLAIN), cell->error);
        }
    }
}

static void print_ring(const struct gv_compared *c, int s)
{
    const struct gv_compared_ring *ring = &c->ring[s];
    struct gv_table_text t = {.columns = 4};
    char edge[40], gbs[24];
    if (!ring->n)
        return;
    printf("%sring under %s%s", gv_style(GV_BOLD), c->run.steer[s].name, gv_style(GV_PLAIN));
    if (c->run.wiring[s].channels)
        printf(", %d channels", c->run.wiring[s].channels);
    puts("");
    for (int i = 0; i < ring->n; i++) {
        const struct gv_compared_edge *e = &ring->edge[i];
        snprintf(edge, sizeof(edge), "%d -> %d", e->from, e->to);
        const char *cells[] = {
            edge, e->path[0] ? e->path : "-", e->transport[0] ? e->transport : "-",
            gv_number(e->gbs, gbs)};
        gv_text_row(&t, cells, i == ring->slowest ? GV_WARN_STYLE : GV_PLAIN);
    }
    gv_text_print(&t, 2);
    if (ring->slowest >= 0) {
        const struct gv_compared_edge *e = &ring->edge[ring->slowest];
        printf("  slowest hop: %d -> %d, %s\n", e->from, e->to, e->transport);
    }
    puts("");
}

static const struct gv_compared_edge *edge_in(const struct gv_compared_ring *ring, int a, int b)
{
    for (int i = 0; i < ring->n; i++)
        if (ring->edge[i].from == a && ring->edge[i].to == b)
            return &ring->edge[i];
    return NULL;
}

/* What became of the base's ring: edges that are no longer there, or on another transport. */
static void print_changes(const struct gv_compared *c, int s)
{
    const struct gv_compared_ring *before = &c->ring[c->base], *after = &c->ring[s];
    int was = c->run.wiring[c->base].channels, is = c->run.wiring[s].channels, moved = 0, gone = 0;
    if (!before->n || !after->n)
        return;
    for (int i = 0; i < before->n; i++) {
        const struct gv_compared_edge *e = &before->edge[i],
                                      *other = edge_in(after, e->from, e->to);
        gone += !other;
        if (!other || !strcmp(e->transport, other->transport))
            continue;
        printf(
            "%s%d -> %d: %s, was %s", moved++ ? "; " : "  edges moved: ", e->from, e->to,
            other->transport, e->transport);
    }
    printf("%s", moved ? "\n" : "  no edge moved\n");
    if (gone)
        printf("  another ring: %d of its %d edges are new\n", gone, after->n);
    if (was != is)
        printf("  channels: %d, were %d\n", is, was);
}

/* Ours beside the other program's, where both have the size. */
static void print_witness(const struct gv_compared *c)
{
    static const char *const heading[] = {"variant", "operation", "size",
                                          "gv100",   "witness",   "difference"};
    struct gv_table_text t = {.columns = 6};
    if (!c->witness_program[0])
        return;
    printf(
        "%switness%s %s, busbw GB/s\n", gv_style(GV_BOLD), gv_style(GV_PLAIN), c->witness_program);
    gv_text_row(&t, heading, GV_DIM);
    for (int i = 0; i < c->nwitness; i++) {
        const struct gv_witness *w = &c->witness[i];
        char size[40], ours[24], theirs[24], by[40], op[40];
        snprintf(op, sizeof(op), "%s%s", gv_op_name(w->op), w->in_place ? " (in place)" : "");
        double mine = NAN;
        for (int k = 0; k < c->run.ncases; k++)
            if (c->run.cases[k].op == w->op && c->run.cases[k].bytes == w->bytes &&
                c->run.cases[k].in_place == w->in_place)
                mine = gv_compared_side_of(c, w->steer, k).busbw_gbs;
        gv_size_format(w->bytes, size, sizeof(size));
        const char *cells[] = {
            c->run.steer[w->steer].name,
            op,
            size,
            gv_number(mine, ours),
            gv_number(w->busbw_gbs, theirs),
            percent(w->busbw_gbs / mine - 1, by)};
        gv_text_row(&t, cells, GV_PLAIN);
    }
    gv_text_print(&t, 2);
    puts("");
}

/* One variant alone has nothing to be held against. */
static void print_alone(const struct gv_compared *c)
{
    static const char *const heading[] = {"operation", "size",  "time us",
                                          "algbw",     "busbw", "range"};
    struct gv_table_text t = {.columns = 6};
    gv_text_row(&t, heading, GV_DIM);
    for (int k = 0; k < c->run.ncases; k++) {
        struct gv_compared_side side = gv_compared_side_of(c, c->base, k);
        const struct gv_case *what = &c->run.cases[k];
        char op[40], size[40], us[24], alg[24], bus[24], between[40];
        snprintf(op, sizeof(op), "%s%s", gv_op_name(what->op), what->in_place ? " (in place)" : "");
        const char *cells[] = {
            op,
            gv_size_format(what->bytes, size, sizeof(size)),
            gv_number(side.time_us, us),
            gv_number(side.algbw_gbs, alg),
            gv_number(side.busbw_gbs, bus),
            range(&side.busbw, between)};
        gv_text_row(&t, cells, GV_PLAIN);
    }
    gv_text_print(&t, 2);
    puts("");
}

void gv_compared_text(const struct gv_compared *c)
{
    print_head(c);
    if (c->run.nsteers == 1)
        print_alone(c);
    for (int s = 0; s < c->run.nsteers; s++)
        if (s != c->base) {
            print_rows(c, s);
            print_changes(c, s);
            puts("");
        }
    for (int s = 0; s < c->run.nsteers; s++)
        print_ring(c, s);
    print_witness(c);
    print_errors(c);
}
