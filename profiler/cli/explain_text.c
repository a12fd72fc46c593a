/* The decision as a person reads it. */
#include <math.h>
#include <string.h>

#include "base/gv_size.h"
#include "base/gv_str.h"
#include "profiler/cli/explain.h"
#include "profiler/cli/text.h"

void gv_explain_header(const struct gv_source *source)
{
    const struct gv_profile *p = source->profile;
    const struct gv_profile_provenance *o = &p->provenance;
    printf(
        "%sProfile %s%s: %d GPUs, %s", gv_style(GV_BOLD), p->name, gv_style(GV_PLAIN), p->ngpus,
        gv_provenance_name(o->kind));
    if (o->date[0])
        printf(" %s", o->date);
    if (o->nccl[0])
        printf(", NCCL %s", o->nccl);
    if (o->driver[0])
        printf(", driver %s", o->driver);
    puts(source->has_machine ? "; it matches this machine\n" : "\n");
}

/* "~SHM~", "=P2P=" where the plan turned it on, "=NV4=", else "-". */
static const char *mark(
    const struct gv_explained *x, const struct gv_ring_edge *e, bool tuned, char out[16],
    enum gv_style *style)
{
    enum gv_transport before = gv_default_transport(x, e->from, e->to);
    enum gv_transport now = tuned ? e->transport : before;
    const struct gv_profile_path *path = gv_profile_path_of(x->source->profile, e->from, e->to);
    *style = GV_PLAIN;
    if (now == GV_TRANSPORT_SHM) {
        *style = GV_BAD;
        return "~SHM~";
    }
    if (now != before) {
        *style = GV_GOOD;
        return "=P2P=";
    }
    if (path && path->nvlinks > 0) {
        snprintf(out, 16, "=NV%d=", path->nvlinks);
        return out;
    }
    return "-";
}

/* The figure, then the ring closed with its first GPU, broken where the line is full. */
static void ring(const struct gv_explained *x, const char *label, double gbs, bool tuned)
{
    char number[24], text[16], gpu[8];
    const struct gv_plan *p = &x->plan;
    printf("  %s%-11s%s", gv_style(GV_DIM), label, gv_style(GV_PLAIN));
    if (isfinite(gbs))
        printf("%s%6s%s GB/s  ", gv_style(GV_BOLD), gv_number(gbs, number), gv_style(GV_PLAIN));
    else
        printf("%13s", "");
    int column = 26;
    for (int i = 0; i < p->nring; i++) {
        enum gv_style style;
        const char *edge = mark(x, &p->edges[i], tuned, text, &style);
        snprintf(gpu, sizeof(gpu), "%d", x->source->from_profile[p->ring[i]]);
        int more = (int)(strlen(gpu) + strlen(edge)) + 2;
        if (column + more > GV_WIDTH - 4) {
            printf("\n%26s", "");
            column = 26;
        }
        printf(
            "%s %s%s%s ", gpu, style ? gv_style(style) : "", edge, style ? gv_style(GV_PLAIN) : "");
        column += more;
    }
    if (p->nring)
        printf("%d\n", x->source->from_profile[p->ring[0]]);
    else
        puts("ring not known");
}

static void samples(const struct gv_explained *x)
{
    struct gv_str s = {0};
    char size[32];
    const struct gv_profile_group *g = x->group;
    if (!g)
        gv_str_add(&s, "none of exactly these GPUs");
    else
        gv_str_addf(
            &s, "%s, %s%s, busbw in GB/s:", gv_op_name(g->op),
            gv_size_format(g->bytes, size, sizeof(size)), g->loaded ? ", beside other groups" : "");
    for (int i = 0; g && i < g->nvariants; i++) {
        const struct gv_profile_variant *v = &g->variants[i];
        gv_str_addf(&s, "%s %s", i ? ";" : "", gv_edit_words(v->edit));
        for (int r = 0; r < v->nruns; r++) {
            gv_str_add(&s, r ? " |" : "");
            for (int k = 0; k < v->runs[r].count; k++)
                gv_str_addf(
                    &s, " %.2f%s", v->runs[r].busbw_gbs[k],
                    v->runs[r].throttled && v->runs[r].throttled[k] ? "(throttled)" : "");
        }
    }
    gv_print_field("samples", s.data && !s.failed ? s.data : "out of memory");
    gv_str_free(&s);
}

static void edits(const struct gv_explained *x)
{
    const struct gv_plan *p = &x->plan;
    struct gv_str s = {0};
    char list[256];
    for (int i = 0; i < p->nedits; i++) {
        const struct gv_edit *e = &p->edits[i];
        gv_str_add(&s, i ? ", " : "");
        if (e->kind == GV_EDIT_BRIDGE)
            gv_str_addf(
                &s, "a bridge above the switches of GPUs %s",
                gv_gpuset_format(gv_source_shown(x->source, e->gpus), list, sizeof(list)));
        else
            gv_str_addf(
                &s, "%s %d-%d", e->kind == GV_EDIT_LEND ? "a link lent to" : "separated",
                x->source->from_profile[e->from], x->source->from_profile[e->to]);
    }
    if (p->nvb_disable)
        gv_str_add(&s, ", NCCL_NVB_DISABLE=1");
    if (p->level_pxb)
        gv_str_add(&s, p->nedits ? ", NCCL_P2P_LEVEL=PXB" : "NCCL_P2P_LEVEL=PXB");
    if (s.data && !s.failed)
        gv_print_field("how", s.data);
    gv_str_free(&s);
}

static void headline(const struct gv_explained *x)
{
    const struct gv_plan *p = &x->plan;
    static const char *const words[] = {"default", "P2P", "SHM", "mixed"};
    char list[256];
    bool changed = p->transport != GV_TRANSPORT_DEFAULT;
    gv_gpuset_format(gv_source_shown(x->source, x->gpus), list, sizeof(list));
    printf(
        "%sGPUs %-10s%s %s%s%s", gv_style(GV_BOLD), list, gv_style(GV_PLAIN),
        gv_style(changed ? GV_GOOD : GV_BOLD), words[p->transport], gv_style(GV_PLAIN));
    if (changed && isfinite(p->gain))
        printf(", %+.0f %%", p->gain * 100);
    if (p->evidence != GV_EVIDENCE_NONE)
        printf(", %s%s", gv_evidence_name(p->evidence), p->thin ? " (thin)" : "");
    putchar('\n');
}

static void bus_ids(const struct gv_explained *x)
{
    struct gv_str s = {0};
    gv_gpuset shown = gv_source_shown(x->source, x->gpus);
    for (gv_gpuset rest = shown; rest; rest &= rest - 1) {
        int gpu = gv_gpuset_first(rest);
        const char *bus = gv_source_bus_id(x->source, gpu);
        if (bus[0])
            gv_str_addf(&s, "%s%d=%s", s.len ? " " : "", gpu, bus);
    }
    if (s.data && !s.failed)
        gv_print_field("bus ids", s.data);
    gv_str_free(&s);
}

static const char *transport_words(enum gv_transport t)
{
    return t == GV_TRANSPORT_P2P ? "P2P" : t == GV_TRANSPORT_SHM ? "SHM" : "-";
}

static void edge_table(const struct gv_explained *x)
{
    struct gv_table_text t = {.columns = 6};
    const char *const head[] = {"edge", "path", "default", "gv100", "GB/s one way", ""};
    gv_text_row(&t, head, GV_DIM);
    for (int i = 0; i < x->plan.nring; i++) {
        const struct gv_ring_edge *e = &x->plan.edges[i];
        char edge[24], number[24];
        enum gv_transport before = gv_default_transport(x, e->from, e->to);
        snprintf(
            edge, sizeof(edge), "%d-%d", x->source->from_profile[e->from],
            x->source->from_profile[e->to]);
        const char *const cells[] = {
            edge,
            gv_path_class_name(e->path),
            transport_words(before),
            transport_words(e->transport),
            gv_number(e->gbs, number),
            i == x->plan.slowest ? "slowest" : ""};
        gv_text_row(&t, cells, e->transport != before ? GV_GOOD : GV_PLAIN);
    }
    if (t.rows > 1)
        putchar('\n');
    gv_text_print(&t, 2);
}

static void tuner_rows(const struct gv_explained *x)
{
    char low[32], high[32];
    for (int i = 0; i < x->plan.nrows; i++) {
        const struct gv_tuner_row *r = &x->plan.rows[i];
        printf(
            "  %s%-11s%s%s %s to %s: %s/%s", gv_style(GV_DIM), i ? "" : "tuner", gv_style(GV_PLAIN),
            gv_op_name(r->op), gv_size_format(r->min_bytes, low, sizeof(low)),
            r->max_bytes == UINT64_MAX ? "any" : gv_size_format(r->max_bytes, high, sizeof(high)),
            gv_algo_name(r->algorithm), gv_proto_name(r->protocol));
        if (r->channels)
            printf(", %d channels", r->channels);
        if (isfinite(r->gain))
            printf(", %+.0f %%", r->gain * 100);
        else
            fputs(", imported, not measured", stdout);
        putchar('\n');
    }
}

void gv_explain_text(const struct gv_explained *x, bool detail)
{
    bool changed = x->plan.transport != GV_TRANSPORT_DEFAULT;
    headline(x);
    ring(x, "default", gv_explained_busbw(x, false), false);
    if (changed)
        ring(x, "gv100", gv_explained_busbw(x, true), true);
    samples(x);
    gv_print_field("why", x->plan.reason);
    edits(x);
    tuner_rows(x);
    if (x->source->has_machine ? changed || detail : changed && detail)
        gv_print_field("verified", x->proof_text);
    if (detail) {
        bus_ids(x);
        edge_table(x);
    }
    putchar('\n');
}

void gv_explain_legend(const struct gv_source *source)
{
    printf(
        "%sEdges: - P2P by NCCL's own choice, =P2P= turned on here, ~SHM~ through host memory, "
        "=NV4= "
        "NVLink.\nthin: decided on fewer than three samples on a side.\n",
        gv_style(GV_DIM));
    if (!source->has_machine)
        puts("No machine was looked at: a job turns P2P on once its own host has verified it.");
    fputs(gv_style(GV_PLAIN), stdout);
}
