#include <math.h>
#include <string.h>

#include "base/gv_str.h"
#include "profiler/cli/log.h"
#include "profiler/cli/text.h"

static void field(const char *label, struct gv_str *s)
{
    if (s->data && !s->failed)
        gv_print_field(label, s->data);
    gv_str_free(s);
}

static void one_gpu(const struct gv_nlog_rank *rank, int index, struct gv_str *s)
{
    gv_str_addf(s, "%s%d", s->len ? ", " : "", index);
    if (*rank->bus_id)
        gv_str_addf(s, " = %s", rank->bus_id);
    if (rank->nvml_dev >= 0)
        gv_str_addf(s, "%s GPU %d", *rank->bus_id ? "" : " =", rank->nvml_dev);
    if (*rank->host)
        gv_str_addf(s, " on %s", rank->host);
}

static void ranks(const struct gv_nlog_comm *c)
{
    struct gv_str s = {0};
    int shown = 0;
    for (int i = 0; i < c->slots && shown < 16; i++)
        if (c->ranks[i].seen) {
            one_gpu(&c->ranks[i], i, &s);
            shown++;
        }
    if (c->nranks > shown && shown == 16)
        gv_str_addf(&s, ", ... %d in all", c->nranks);
    if (shown)
        field("ranks", &s);
}

static void rings(const struct gv_nlog_comm *c)
{
    for (int i = 0; i < c->nrings; i++) {
        struct gv_str s = {0};
        int n = __builtin_popcountll(c->rings[i].channels);
        for (int k = 0; k < c->rings[i].n; k++)
            gv_str_addf(&s, "%s%d", k ? " " : "", c->rings[i].order[k]);
        gv_str_addf(&s, "   (%d channel%s)", n, n == 1 ? "" : "s");
        field(i ? "" : "ring", &s);
    }
    if (!c->nrings)
        gv_print_field("ring", "the log does not tell: all edges are listed");
}

static void edge_row(
    struct gv_table_text *t, const struct gv_log_view *v, const struct gv_nlog_comm *c,
    const struct gv_nlog_edge *e)
{
    char pair[40], channels[16], gbs[24], line[16];
    snprintf(pair, sizeof(pair), "%d -> %d", e->from, e->to);
    snprintf(channels, sizeof(channels), "%d", __builtin_popcountll(e->channels));
    snprintf(line, sizeof(line), "%u", e->line);
    const char *cells[] = {pair,   gv_nlog_transport_name(e->transport),
                           e->via, channels,
                           line,   gv_number(gv_log_edge_gbs(v->profile, c, e), gbs)};
    gv_text_row(t, cells, GV_PLAIN);
}

static void edges(const struct gv_log_view *v, const struct gv_nlog_comm *c)
{
    struct gv_table_text t = {.columns = v->profile ? 6 : 5};
    const char *heading[] = {"edge", "is", "via", "channels", "line", "GB/s"};
    int other = 0;
    gv_text_row(&t, heading, GV_DIM);
    for (int i = 0; i < c->nedges; i++) {
        if (c->nrings && !c->edges[i].ring)
            other++;
        else
            edge_row(&t, v, c, &c->edges[i]);
    }
    if (t.rows > 1)
        gv_text_print(&t, 4);
    else
        gv_text_free(&t);
    if (other)
        printf(
            "    and %d that %s on no ring (trees, send and receive)\n", other,
            other == 1 ? "is" : "are");
}

static void summary(const struct gv_nlog_comm *c)
{
    struct gv_str s = {0};
    int by[GV_NLOG_TRANSPORTS], n = gv_nlog_count(c, by);
    gv_str_addf(&s, "%s", gv_log_transport(c));
    for (int t = 0; t < GV_NLOG_TRANSPORTS; t++)
        if (by[t])
            gv_str_addf(
                &s, "; %d of %d %sedges %s", by[t], n, c->nrings ? "ring " : "",
                gv_nlog_transport_name(t));
    if (c->nrings && c->nranks > 2 && n < c->nranks)
        gv_str_addf(&s, "; the log shows %d edges, the ring has %d", n, c->nranks);
    field("transport", &s);
}

static void slowest(const struct gv_log_view *v, const struct gv_nlog_comm *c)
{
    double gbs;
    char text[200];
    const struct gv_nlog_edge *e = gv_log_slowest(v->profile, c, &gbs);
    if (!v->profile)
        return;
    if (!e)
        snprintf(
            text, sizeof(text), "the profile '%s' has no figure for these edges", v->profile->name);
    else if (isnan(gbs))
        snprintf(
            text, sizeof(text), "%d -> %d by SHM, through host memory; the profile has no figure",
            e->from, e->to);
    else
        snprintf(
            text, sizeof(text), "%d -> %d by %s: %.2f GB/s one way", e->from, e->to,
            gv_nlog_transport_name(e->transport), gbs);
    gv_print_field("slowest", text);
}

static void notes(const char *label, const struct gv_nlog_notes *notes, int comm, int most)
{
    int shown = 0;
    for (int i = 0; i < notes->n; i++) {
        struct gv_str s = {0};
        if (comm >= 0 && notes->list[i].comm != comm)
            continue;
        if (shown == most) {
            gv_print_field("", "...");
            return;
        }
        gv_str_addf(&s, "line %u: %s", notes->list[i].line, notes->list[i].text);
        field(shown++ ? "" : label, &s);
    }
}

static void communicator(const struct gv_log_view *v, int i)
{
    const struct gv_nlog_comm *c = &v->log->comms[i];
    printf(
        "\n%sCommunicator %d%s%s%s, ", gv_style(GV_BOLD), i + 1, *c->id ? " (" : "", c->id,
        *c->id ? ")" : "");
    if (c->nranks > 0)
        printf("%d ranks", c->nranks);
    else
        printf("ranks not known");
    if (c->nnodes > 0)
        printf(" on %d node%s", c->nnodes, c->nnodes == 1 ? "" : "s");
    if (c->channels > 0)
        printf(", %d channel%s", c->channels, c->channels == 1 ? "" : "s");
    printf("%s\n", gv_style(GV_PLAIN));
    ranks(c);
    rings(c);
    summary(c);
    slowest(v, c);
    edges(v, c);
}

static void change(const struct gv_log_view *v, const struct gv_nlog_change *c)
{
    char moved[200];
    struct gv_str s = {0};
    gv_log_moved(c, moved);
    if (*moved)
        gv_str_add(&s, moved);
    else if (c->edges)
        gv_str_addf(&s, "all %d edges kept their transport", c->edges);
    else
        gv_str_add(&s, "no edge stands in both logs");
    if (c->rings_known && !c->same_ring)
        gv_str_add(&s, "; the ring's order changed");
    int was = v->against->comms[c->before].channels, is = v->log->comms[c->after].channels;
    if (was > 0 && is > 0 && was != is)
        gv_str_addf(&s, "; channels %d, before %d", is, was);
    char label[24];
    snprintf(label, sizeof(label), "number %d", c->after + 1);
    field(label, &s);
}

static void against(const struct gv_log_view *v)
{
    static struct gv_nlog_change changes[256];
    int n = gv_nlog_compare(v->against, v->log, changes, 256);
    printf("\n%sAgainst %s%s\n", gv_style(GV_BOLD), v->against_path, gv_style(GV_PLAIN));
    for (int i = 0; i < n; i++)
        change(v, &changes[i]);
    if (!n)
        gv_print_field("", "no communicator of the same number of ranks stands in both");
    if (strcmp(v->log->nccl, v->against->nccl) != 0) {
        struct gv_str s = {0};
        gv_str_addf(
            &s, "%s, before %s", *v->log->nccl ? v->log->nccl : "not known",
            *v->against->nccl ? v->against->nccl : "not known");
        field("NCCL", &s);
    }
    if (v->log->tuner != v->against->tuner) {
        char text[400];
        gv_print_field("before", gv_log_tuner(v->against, text));
    }
}

/* NCCL's model, by class: how many pairs, at which value. */
static void paths(const struct gv_nlog *log)
{
    struct gv_str s = {0};
    for (int i = 0; i < log->npaths; i++) {
        int n = 0, earlier = 0;
        for (int k = 0; k < log->npaths; k++)
            if (!strcmp(log->paths[i].class, log->paths[k].class) &&
                log->paths[i].model_gbs == log->paths[k].model_gbs) {
                n++;
                earlier += k < i;
            }
        if (!earlier)
            gv_str_addf(
                &s, "%s%d of %s at %.1f GB/s", s.len ? ", " : "", n, log->paths[i].class,
                log->paths[i].model_gbs);
    }
    if (log->npaths) {
        gv_str_add(&s, " (ways between GPUs in NCCL's model, nothing measured)");
        field("paths", &s);
    }
}

void gv_log_text(const struct gv_log_view *v)
{
    char tuner[400];
    printf("%s%s%s\n", gv_style(GV_BOLD), v->path, gv_style(GV_PLAIN));
    gv_print_field("NCCL", *v->log->nccl ? v->log->nccl : "no line says which");
    gv_print_field("tuner", gv_log_tuner(v->log, tuner));
    paths(v->log);
    notes("gv100", &v->log->ours, -1, 12);
    notes("settings", &v->log->settings, -1, 12);
    notes("warnings", &v->log->warnings, -1, 6);
    notes("plugins", &v->log->plugins, -1, 12);
    if (!v->log->ncomms)
        gv_print_field("", "no line is about a communicator");
    for (int i = 0; i < v->log->ncomms; i++)
        communicator(v, i);
    if (v->log->cut_line)
        printf("\n  line %u is cut and was not used\n", v->log->cut_line);
    if (v->against)
        against(v);
}
