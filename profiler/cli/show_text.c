#include <math.h>
#include <string.h>

#include "profiler/cli/show.h"
#include "profiler/cli/text.h"

static void title(const char *text)
{
    printf("\n%s%s%s\n", gv_style(GV_BOLD), text, gv_style(GV_PLAIN));
}

static void provenance(const struct gv_profile *p, const char *path)
{
    const struct gv_profile_provenance *o = &p->provenance;
    const struct {
        const char *label, *text;
    } fields[] = {
        {"file", path},        {"figures", gv_provenance_name(o->kind)},
        {"date", o->date},     {"source", o->source},
        {"driver", o->driver}, {"CUDA", o->cuda},
        {"NCCL", o->nccl},     {"nccl-tests", o->nccl_tests},
        {"kernel", o->kernel}, {"container", o->container},
        {"tool", o->tool},     {"matched by", gv_match_name(p->match)},
    };
    printf("%sProfile %s%s\n", gv_style(GV_BOLD), p->name, gv_style(GV_PLAIN));
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        if (fields[i].text[0])
            gv_print_field(fields[i].label, fields[i].text);
}

/* An int that may be unknown. */
static const char *whole(int value, const char *unit, char out[24])
{
    if (value < 0)
        snprintf(out, 24, "-");
    else
        snprintf(out, 24, "%d%s", value, unit);
    return out;
}

static void boards(const struct gv_profile *p)
{
    struct gv_table_text t = {.columns = 9};
    const char *const head[] = {"GPU",    "model", "PCI id", "memory", "node",
                                "island", "link",  "power",  "bus id"};
    gv_text_row(&t, head, GV_DIM);
    for (int i = 0; i < p->ngpus; i++) {
        const struct gv_profile_gpu *g = &p->gpus[i];
        char index[24], id[24], memory[24], node[24], link[64], power[24];
        snprintf(id, sizeof(id), "%04x:%04x", g->pci_vendor, g->pci_device);
        if (g->link_gen > 0 && g->link_width > 0)
            snprintf(link, sizeof(link), "gen%d x%d", g->link_gen, g->link_width);
        else
            snprintf(link, sizeof(link), "-");
        const char *const cells[] = {
            whole(g->index, "", index),
            g->model,
            g->pci_vendor ? id : "-",
            whole(g->memory_mib, " MiB", memory),
            whole(g->numa_node, "", node),
            g->island,
            link,
            whole(g->power_limit_w, " W", power),
            g->bus_id[0] ? g->bus_id : "-"};
        gv_text_row(&t, cells, GV_PLAIN);
    }
    gv_text_print(&t, 2);
}

typedef void (*cell_text)(const struct gv_profile *p, int from, int to, char out[24]);

static void class_cell(const struct gv_profile *p, int from, int to, char out[24])
{
    const struct gv_profile_path *path = gv_profile_path_of(p, from, to);
    const char *name = path ? path->smi_class : "";
    snprintf(out, 24, "%s", name[0] ? name : path ? gv_path_class_name(path->nccl_class) : "?");
}

/* The figure where P2P works, else the state in short: a figure never stands for a pair without
 * P2P. */
static void write_cell(const struct gv_profile *p, int from, int to, char out[24])
{
    const struct gv_profile_path *path = gv_profile_path_of(p, from, to);
    enum gv_p2p state = gv_profile_p2p(p, from, to);
    if (path && state == GV_P2P_VERIFIED && path->write_gbs.count)
        snprintf(out, 24, "%.2f", path->write_gbs.median);
    else
        snprintf(
            out, 24, "%s",
            state == GV_P2P_VERIFIED  ? "ok"
            : state == GV_P2P_REFUSED ? "none"
                                      : gv_p2p_name(state));
}

static void matrix(const struct gv_profile *p, cell_text cell)
{
    struct gv_table_text t = {.columns = p->ngpus + 1, .to_the_right = true};
    char text[GV_MAX_GPUS + 1][24];
    const char *cells[GV_MAX_GPUS + 1];
    cells[0] = "";
    for (int to = 0; to < p->ngpus; to++) {
        snprintf(text[to + 1], 24, "GPU%d", to);
        cells[to + 1] = text[to + 1];
    }
    gv_text_row(&t, cells, GV_DIM);
    for (int from = 0; from < p->ngpus; from++) {
        snprintf(text[0], 24, "GPU%d", from);
        cells[0] = text[0];
        for (int to = 0; to < p->ngpus; to++) {
            if (from == to)
                snprintf(text[to + 1], 24, "X");
            else
                cell(p, from, to, text[to + 1]);
        }
        gv_text_row(&t, cells, GV_PLAIN);
    }
    gv_text_print(&t, 2);
}

static void figure(const struct gv_figure *f, char out[40])
{
    if (!f->count)
        snprintf(out, 40, "-");
    else if (f->min < f->max)
        snprintf(out, 40, "%.2f (%.2f-%.2f)", f->median, f->min, f->max);
    else
        snprintf(out, 40, "%.2f", f->median);
}

/* Entries of paths as they stand in the file, with all their figures. */
static void paths(const struct gv_profile *p)
{
    struct gv_table_text t = {.columns = 7};
    const char *const head[] = {"from",       "to",        "path",      "P2P",
                                "write GB/s", "both ways", "latency us"};
    gv_text_row(&t, head, GV_DIM);
    for (int i = 0; i < p->npaths; i++) {
        const struct gv_profile_path *x = &p->paths[i];
        char from[256], to[256], write[40], both[40], latency[40];
        gv_gpuset_format(x->from, from, sizeof(from));
        gv_gpuset_format(x->to, to, sizeof(to));
        figure(&x->write_gbs, write);
        figure(&x->both_ways_gbs, both);
        figure(&x->latency_us, latency);
        const char *const cells[] = {
            from,
            to,
            x->smi_class[0] ? x->smi_class : gv_path_class_name(x->nccl_class),
            gv_p2p_name(x->p2p),
            write,
            both,
            latency};
        gv_text_row(&t, cells, x->p2p == GV_P2P_VERIFIED ? GV_PLAIN : GV_WARN_STYLE);
    }
    gv_text_print(&t, 2);
}

static void memory(const struct gv_profile *p)
{
    struct gv_table_text t = {.columns = 6};
    const char *const head[] = {"GPUs", "theoretical", "copy", "read", "write", "triad"};
    gv_text_row(&t, head, GV_DIM);
    for (int i = 0; i < p->nmemory; i++) {
        const struct gv_profile_memory *m = &p->memory[i];
        char list[256], peak[24], copy[40], read[40], write[40], triad[40];
        figure(&m->copy_gbs, copy);
        figure(&m->read_gbs, read);
        figure(&m->write_gbs, write);
        figure(&m->triad_gbs, triad);
        const char *const cells[] = {
            gv_gpuset_format(m->gpus, list, sizeof(list)),
            gv_number(m->theoretical_gbs, peak),
            copy,
            read,
            write,
            triad};
        gv_text_row(&t, cells, GV_PLAIN);
    }
    gv_text_print(&t, 2);
}

static void host_links(const struct gv_profile *p)
{
    struct gv_table_text t = {.columns = 5};
    const char *const head[] = {"GPUs", "measured", "root port", "to GPU GB/s", "to host GB/s"};
    gv_text_row(&t, head, GV_DIM);
    for (int i = 0; i < p->nhost_links; i++) {
        const struct gv_profile_host_link *h = &p->host_links[i];
        char list[256], in[40], out[40];
        figure(&h->to_device_gbs, in);
        figure(&h->to_host_gbs, out);
        const char *const cells[] = {
            gv_gpuset_format(h->gpus, list, sizeof(list)), h->together ? "at once" : "alone",
            h->root_port[0] ? h->root_port : "-", in, out};
        gv_text_row(&t, cells, GV_PLAIN);
    }
    gv_text_print(&t, 2);
}

static void thresholds(const struct gv_profile *p)
{
    char text[160] = "";
    size_t len = 0;
    for (int op = 0; op < GV_OP_COUNT && len < sizeof(text); op++)
        if (p->policy.operations & GV_OP_BIT(op))
            len += (size_t)snprintf(
                text + len, sizeof(text) - len, "%s%s", len ? ", " : "", gv_op_name(op));
    printf(
        "  a change must gain %.0f %%, and no measured operation may lose more than %.0f %%; jobs "
        "use %s\n",
        p->policy.min_gain * 100, p->policy.max_loss * 100, len ? text : "any operation");
}

void gv_show_text(const struct gv_profile *p, const char *path)
{
    provenance(p, path);
    title("GPUs, in PCI order");
    boards(p);
    title("Paths, as nvidia-smi topo -m names them");
    matrix(p, class_cell);
    title("P2P write, one way, GB/s (row writes to column)");
    matrix(p, write_cell);
    title("Pairs, with range");
    paths(p);
    if (p->nmemory) {
        title("Memory, GB/s (bytes read plus bytes written)");
        memory(p);
    }
    if (p->nhost_links) {
        title("Host links");
        host_links(p);
    }
    title("Groups, collective operations");
    gv_show_groups(p);
    if (p->nhandoffs) {
        title("Stage hand-offs");
        gv_show_handoffs(p);
    }
    if (p->ntuner) {
        title("Choices without figures");
        gv_show_tuner(p);
    }
    title("Policy");
    thresholds(p);
}
